// The connection to a sender, at the side of the main thread. If the sender is a thread or a process, packets are exchanged with it over a channel: all
// commands of one turn of the event loop go into one packet.

import { type Packet, PacketReader, PacketWriter, type TakenPacket } from './packet.ts'
import type { SenderCommands, SenderReports } from './protocol.ts'
import { CommandWriter, ReportReader } from './wire.ts'

/** A connection to a sender. If it is lost, another one can be opened. */
export interface Link {
  commands: SenderCommands
  drain(): Promise<void>
  /** The share of the time since the last call in which a sender thread was busy, from 0 to 1. Missing for other senders. */
  utilization?: (() => number) | undefined
  /** Missing if the sender is part of this thread. */
  health?: {
    isHeard: boolean
    /** Whether it is to be replaced when it has finished its work, for example because it uses too much memory. */
    isSpent: boolean
    ping(): void
    kill(error: Error): void
  }
}

export interface LinkEvents extends SenderReports {
  /** The sender has ended, although it was not asked to. Called once. */
  lost(error: Error): void
}

export type OpenLink = (name: string, events: LinkEvents) => Link

/** How packets reach a thread or a process. */
export interface Channel {
  post(taken: TakenPacket): void
  /** Asks it to finish and to end. */
  drain(): void
  /** Ends it at once, whatever it is doing. */
  kill(): void
  /** See Link. */
  utilization?: () => number
}

export interface ChannelEvents {
  packet: (packet: Packet) => void
  /** It has ended, after its last packet. */
  ended: (error: Error) => void
}

/** How much longer than its grace period a sender may take to drain. */
const DRAIN_LIMIT_MS = 1_000

export class PacketLink implements Link {
  readonly #channel: Channel
  readonly #writer = new PacketWriter()
  readonly commands = new CommandWriter(this.#writer, () => this.#schedule())
  readonly #events: LinkEvents
  readonly #closeGraceMs: number
  readonly #ended: Promise<void>
  #isScheduled = false
  #isEnding = false
  #drained: Promise<void> | undefined
  readonly health = {
    /** Whether anything was received since the last ping. */
    isHeard: true,
    /** Set by the opener of a channel: see Link. */
    isSpent: false,
    /** Makes the sender answer, if it can. */
    ping: (): void => {
      this.health.isHeard = false
      this.commands.ping()
    },
    /** Ends the sender at once, whatever it is doing, and reports it as lost. */
    kill: (error: Error): void => {
      this.#lose(error)
      this.#channel.kill()
    },
  }

  constructor(open: (events: ChannelEvents) => Channel, events: LinkEvents, closeGraceMs: number) {
    this.#events = events
    this.#closeGraceMs = closeGraceMs
    const reports = new ReportReader()
    let onEnd = (): void => undefined
    this.#ended = new Promise((resolve) => {
      onEnd = resolve
    })
    this.#channel = open({
      packet: (packet) => {
        this.health.isHeard = true
        this.#writer.keepSpare(packet.spare)
        reports.read(new PacketReader(packet), events)
        this.#writer.giveBack(packet.buffer)
      },
      ended: (error) => {
        onEnd()
        this.#lose(error)
      },
    })
  }

  get utilization(): (() => number) | undefined {
    return this.#channel.utilization
  }

  drain(): Promise<void> {
    this.#drained ??= this.#drain()
    return this.#drained
  }

  async #drain(): Promise<void> {
    if (this.#isEnding) return
    this.#send()
    this.#isEnding = true
    this.#channel.drain()
    const limit = setTimeout(() => this.#channel.kill(), this.#closeGraceMs + DRAIN_LIMIT_MS)
    await this.#ended
    clearTimeout(limit)
  }

  #lose(error: Error): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#events.lost(error)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#send())
  }

  #send(): void {
    this.#isScheduled = false
    if (this.#writer.isEmpty || this.#isEnding) return
    this.#channel.post(this.#writer.take())
  }
}
