// The program of a sender's thread: carries out the commands of each packet, and sends back what came of them, together with what
// else has ended in the same turn of the event loop.

import { parentPort, workerData } from 'node:worker_threads'
import { createAddressGuard } from '../sending/address-guard.ts'
import { createHttpClient } from '../sending/attempt.ts'
import { Executor } from './executor.ts'
import { type Packet, PacketReader, PacketWriter } from './packet.ts'
import type { ThreadOptions } from './thread-link.ts'
import { ReportWriter, readCommands } from './wire.ts'

const { guard, ca, closeGraceMs } = workerData as ThreadOptions
const port = parentPort
if (port === null) throw new Error('sender-thread.ts must run as a worker thread')

const writer = new PacketWriter()
let isScheduled = false
const http = createHttpClient({ guard: createAddressGuard(guard), ca, closeGraceMs })
const executor = new Executor(http, new ReportWriter(writer, schedule))

port.on('message', (packet: Packet | 'drain') => {
  if (packet === 'drain') return void drain()
  writer.keepSpare(packet.spare)
  const isPinged = readCommands(new PacketReader(packet), executor)
  writer.giveBack(packet.buffer)
  if (isPinged) schedule()
})

function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(flush)
}

function flush(): void {
  isScheduled = false
  const { packet, transfer } = writer.take()
  port?.postMessage(packet, transfer)
}

async function drain(): Promise<void> {
  await executor.drain()
  flush()
  port?.close()
}
