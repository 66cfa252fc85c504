// The program of a sender thread: carries out the commands of each packet, and sends back the outcomes that became known in the same turn
// of the event loop.

import { parentPort, workerData } from 'node:worker_threads'
import { createAddressGuard } from '../sending/address-guard.ts'
import { createHttpClient } from '../sending/attempt.ts'
import { ThreadTransformer } from '../transforming/thread-transformer.ts'
import { Executor } from './executor.ts'
import { type Packet, PacketReader, PacketWriter } from './packet.ts'
import type { ThreadOptions } from './thread-link.ts'
import { ReportWriter, readCommands } from './wire.ts'

const { guard, ca, closeGraceMs } = workerData as ThreadOptions
const port = parentPort
if (port === null) throw new Error('sender-thread.ts must run as a worker thread')

/** How long an outcome waits for others, so that one packet contains many of them. */
const GATHER_MS = 1
const MOST_GATHERED = 64

const writer = new PacketWriter()
let isFlushing = false
let gathering: NodeJS.Timeout | undefined
/** The number of reports that were not sent yet. */
let gathered = 0
const http = createHttpClient({ guard: createAddressGuard(guard), ca, closeGraceMs })
const executor = new Executor(http, new ThreadTransformer(), new ReportWriter(writer, onReport))

port.on('message', (packet: Packet | 'drain') => {
  if (packet === 'drain') return void drain()
  writer.keepSpare(packet.spare)
  const isPinged = readCommands(new PacketReader(packet), executor)
  writer.giveBack(packet.buffer)
  if (isPinged) flushSoon()
})

/**
 * If few requests are in flight, the lane may need this outcome to start the next request, so it is reported at once. If many are in flight,
 * others will end very soon, and a packet for each outcome would cost more than everything else that is done for it.
 */
function onReport(): void {
  gathered++
  if (gathered >= Math.min(http.inFlight, MOST_GATHERED)) flushSoon()
  else gathering ??= setTimeout(flush, GATHER_MS)
}

function flushSoon(): void {
  if (isFlushing) return
  isFlushing = true
  setImmediate(flush)
}

function flush(): void {
  isFlushing = false
  clearTimeout(gathering)
  gathering = undefined
  gathered = 0
  const { packet, transfer } = writer.take()
  port?.postMessage(packet, transfer)
}

async function drain(): Promise<void> {
  await executor.drain()
  flush()
  port?.close()
}
