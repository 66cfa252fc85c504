// The main thread's connection to a sender thread. All commands of one turn of the event loop go into one packet.

import { Worker } from 'node:worker_threads'
import { type Packet, PacketReader, PacketWriter } from './packet.ts'
import type { SenderReports } from './protocol.ts'
import type { Link } from './senders.ts'
import { CommandWriter, ReportReader } from './wire.ts'

export interface ThreadOptions {
  /** What the address guard allows. */
  guard: { allowPrivate: boolean; allow: readonly string[] }
  ca?: string | undefined
  closeGraceMs: number
}

export interface ThreadEvents extends SenderReports {
  /** The thread has ended, although it was not asked to. Called once. */
  lost(error: Error): void
}

/** How much longer than its grace period a thread may take to drain. */
const DRAIN_LIMIT_MS = 1_000

export class ThreadLink implements Link {
  readonly #worker: Worker
  readonly #writer = new PacketWriter()
  readonly commands = new CommandWriter(this.#writer, () => this.#schedule())
  readonly #options: ThreadOptions
  readonly #events: ThreadEvents
  #isScheduled = false
  #isEnding = false
  readonly health = {
    /** Whether anything was received since the last ping. */
    isHeard: true,
    /** Makes the thread answer, if it can. */
    ping: (): void => {
      this.health.isHeard = false
      this.commands.ping()
    },
    /** Ends the thread at once, whatever it is doing, and reports it as lost. */
    kill: (error: Error): void => {
      this.#lose(error)
      void this.#worker.terminate()
    },
  }

  constructor(name: string, options: ThreadOptions, events: ThreadEvents, program = new URL('./sender-thread.ts', import.meta.url)) {
    this.#options = options
    this.#worker = new Worker(program, { workerData: options, name })
    const reports = new ReportReader()
    this.#worker.on('message', (packet: Packet) => {
      this.health.isHeard = true
      this.#writer.keepSpare(packet.spare)
      reports.read(new PacketReader(packet), events)
      this.#writer.giveBack(packet.buffer)
    })
    this.#events = events
    let cause: Error | undefined
    this.#worker.on('error', (error) => {
      cause = error as Error
    })
    // The exit event follows every error, after the last reports of the thread.
    this.#worker.on('exit', (code) => this.#lose(cause ?? new Error(`a sender thread ended unexpectedly, with code ${code}`)))
  }

  async drain(): Promise<void> {
    if (this.#isEnding) return
    this.#send()
    // once() of node:events cannot be used here: it rejects if the thread fails before it has ended.
    const exited = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#isEnding = true
    this.#worker.postMessage('drain', [])
    const limit = setTimeout(() => void this.#worker.terminate(), this.#options.closeGraceMs + DRAIN_LIMIT_MS)
    await exited
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
    const { packet, transfer } = this.#writer.take()
    this.#worker.postMessage(packet, transfer)
  }
}
