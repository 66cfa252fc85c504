// The program of a sender thread.

import { parentPort, workerData } from 'node:worker_threads'
import { releaseMemoryWhenIdle } from '../../timing/idle-memory.ts'
import { servePackets } from '../link/serve-packets.ts'
import type { ThreadOptions } from '../link/thread-channel.ts'
import { createClient } from './client.ts'
import { Executor } from './executor.ts'
import { createAddressGuard } from './http/address-guard.ts'
import { ThreadTransformer } from './transforming/thread-transformer.ts'

const { guard, ca, closeGraceMs } = workerData as ThreadOptions
const port = parentPort
if (port === null) throw new Error('sender-thread.ts must run as a worker thread')

const http = createClient({ guard: createAddressGuard(guard), ca, closeGraceMs })
const receive = servePackets({
  open: (reports) => new Executor(http, new ThreadTransformer(), reports),
  inFlight: () => http.inFlight,
  post: ({ packet, transfer }) => port.postMessage(packet, transfer),
  close: () => port.close(),
})
port.on('message', receive)
releaseMemoryWhenIdle()
