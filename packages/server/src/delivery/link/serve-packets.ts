// The other end of a packet link, in the sender: carries out the commands of each packet, and sends back the reports that became known in the same turn
// of the event loop.

import { type Packet, PacketReader, PacketWriter, type TakenPacket } from './packet.ts'
import type { CommandTarget, SenderReports } from './protocol.ts'
import { ReportWriter, readCommands } from './wire.ts'

export interface ServeOptions {
  open: (reports: SenderReports) => CommandTarget
  /** The number of requests in flight. */
  inFlight: () => number
  post: (taken: TakenPacket) => void
  /** Called before a ping is answered. */
  pinged?: () => void
  /** Called when everything was drained and reported. */
  close: () => void
}

/** How long an outcome waits for others, so that one packet contains many of them. */
const GATHER_MS = 1
const MOST_GATHERED = 64

/** Returns what is to be called for each message of the main thread. */
export function servePackets({ open, inFlight, post, pinged, close }: ServeOptions): (packet: Packet | 'drain') => void {
  const writer = new PacketWriter()
  const target = open(new ReportWriter(writer, onReport))
  let isFlushing = false
  let gathering: NodeJS.Timeout | undefined
  /** The number of reports that were not sent yet. */
  let gathered = 0

  /**
   * If few requests are in flight, the lane may need this outcome to start the next request, so it is reported at once. If many are in flight,
   * others will end very soon, and a packet for each outcome would cost more than everything else that is done for it.
   */
  function onReport(): void {
    gathered++
    if (gathered >= Math.min(inFlight(), MOST_GATHERED)) flushSoon()
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
    post(writer.take())
  }

  async function drain(): Promise<void> {
    await target.drain()
    flush()
    close()
  }

  return (packet) => {
    if (packet === 'drain') return void drain()
    writer.keepSpare(packet.spare)
    const isPinged = readCommands(new PacketReader(packet), target)
    writer.giveBack(packet.buffer)
    if (!isPinged) return
    pinged?.()
    flushSoon()
  }
}
