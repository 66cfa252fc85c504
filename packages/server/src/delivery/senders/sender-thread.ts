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

/** How long outcomes wait for others, so that a packet carries many of them. */
const GATHER_MS = 1
const MOST_GATHERED = 64

const writer = new PacketWriter()
let isFlushing = false
let gathering: NodeJS.Timeout | undefined
/** The number of requests in flight, and of outcomes that were not reported yet. */
let inFlight = 0
let gathered = 0
const http = createHttpClient({ guard: createAddressGuard(guard), ca, closeGraceMs })
const executor = new Executor(http, new ReportWriter(writer, onReport))

port.on('message', (packet: Packet | 'drain') => {
  if (packet === 'drain') return void drain()
  writer.keepSpare(packet.spare)
  const { isPinged, started } = readCommands(new PacketReader(packet), executor)
  inFlight += started
  writer.giveBack(packet.buffer)
  if (isPinged) flushSoon()
})

/**
 * If few requests are in flight, the lane may wait for this outcome to start the next one, so it is reported at once. If many are, others
 * will end within a moment, and a packet for each would cost more than the rest of its work.
 */
function onReport(): void {
  inFlight--
  gathered++
  if (gathered >= Math.min(inFlight, MOST_GATHERED)) flushSoon()
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
