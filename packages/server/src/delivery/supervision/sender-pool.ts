// Senders of one kind. Every destination has one of them, so that its connections are reused.

import type { Destination } from '../../store/store.ts'
import type { Sendable, Work } from '../link/work.ts'
import { type ReplaceableOptions, ReplaceableSender } from './replaceable-sender.ts'

/** Sends the work of some destinations. */
export interface SenderGroup {
  start(work: Work): void
  /** Gives messages that are parsed to a sender in this thread, which would parse them again later. A sender in another thread parses them itself. */
  preload?(destination: Destination, contents: readonly Sendable[]): void
  /**
   * `recall`: takes back the work of a destination that waits in its sender, which ends as `aborted`. `resume`: lets it go on, after a temporary failure
   * has stopped it.
   */
  tell(destinationId: string, command: 'recall' | 'resume'): void
  /** Over how many senders a destination is spread. If missing, it always has one. */
  widthOf?(destinationId: string): number
  /** The destination was deleted, or belongs to another group now. */
  forget(destinationId: string): void
  /** Replaces senders that do not respond. To be called every few seconds. */
  check(): void
  /** Waits a moment for requests in flight; the others end as `aborted`. */
  close(): Promise<void>
}

export interface PoolOptions extends Omit<ReplaceableOptions, 'name'> {
  count: number
  /** The senders are NAME-1, NAME-2 and so on. */
  name: string
  /** Whether they are in this thread. */
  isPreloaded?: boolean
}

export class SenderPool implements SenderGroup {
  readonly #senders: ReplaceableSender[]
  readonly #byDestination = new Map<string, ReplaceableSender>()
  readonly #isPreloaded: boolean

  constructor({ count, name, isPreloaded = false, ...options }: PoolOptions) {
    this.#isPreloaded = isPreloaded
    this.#senders = Array.from({ length: count }, (_, at) => new ReplaceableSender({ ...options, name: `${name}-${at + 1}` }))
  }

  start(work: Work): void {
    this.#senderOf(work.destination.id).start(work)
  }

  preload(destination: Destination, contents: readonly Sendable[]): void {
    if (!this.#isPreloaded) return
    for (const content of contents) if (content.body.parsed !== null) this.#senderOf(destination.id).preload(destination, content)
  }

  tell(destinationId: string, command: 'recall' | 'resume'): void {
    this.#byDestination.get(destinationId)?.tell(destinationId, command)
  }

  forget(destinationId: string): void {
    const sender = this.#byDestination.get(destinationId)
    this.#byDestination.delete(destinationId)
    sender?.forget(destinationId)
  }

  check(): void {
    for (const sender of this.#senders) sender.check()
  }

  async close(): Promise<void> {
    await Promise.all(this.#senders.map((sender) => sender.close()))
  }

  #senderOf(destinationId: string): ReplaceableSender {
    let sender = this.#byDestination.get(destinationId)
    if (sender === undefined) {
      sender = this.#senders.reduce((best, each) => (each.destinations < best.destinations ? each : best))
      sender.destinations++
      this.#byDestination.set(destinationId, sender)
    }
    return sender
  }
}
