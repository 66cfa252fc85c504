// All senders of this process: threads for webhooks, and processes for integrations.

import type { Destination } from '../../store/store.ts'
import type { OpenLink, Sendable, Work } from './link.ts'
import { type SenderGroup, SenderPool } from './sender-pool.ts'

export type { Sendable, Work } from './link.ts'

export interface SendersOptions {
  count: number
  open: OpenLink
  /** See Senders.runAhead. Default: true. */
  runAhead?: boolean
  /** Called when a sender was lost. It is replaced. */
  onLost?: ((error: Error) => void) | undefined
  /** Runs integrations. Without it, there can be no such destinations. */
  hosts?: SenderGroup | undefined
  /** How often senders are checked. Default: every 2 s. */
  checkMs?: number | undefined
}

const CHECK_MS = 2_000

export class Senders {
  readonly #webhooks: SenderGroup
  readonly #hosts: SenderGroup
  readonly #groups: readonly SenderGroup[]
  readonly #check: NodeJS.Timeout
  readonly #runAhead: boolean

  constructor({ count, open, runAhead = true, onLost = () => undefined, hosts, checkMs = CHECK_MS }: SendersOptions) {
    const lost = (error: Error): 'sender_lost' => {
      onLost(error)
      return 'sender_lost'
    }
    this.#webhooks = new SenderPool({ count, name: 'switchyard-sender', open, onLost: lost })
    this.#hosts = hosts ?? this.#webhooks
    this.#groups = [...new Set([this.#webhooks, this.#hosts])]
    this.#runAhead = runAhead
    this.#check = setInterval(() => {
      for (const group of this.#groups) group.check()
    }, checkMs)
    this.#check.unref()
  }

  start(work: Work): void {
    const group = work.destination.integration === null ? this.#webhooks : this.#hosts
    group.start(work)
  }

  /** Whether senders keep work that exceeds the limit, so that they can go on without waiting for this thread. */
  get runAhead(): boolean {
    return this.#runAhead
  }

  /** Gives messages that are parsed to a sender in this thread, which would parse them again later. A sender thread parses them itself. */
  preload(destination: Destination, contents: readonly Sendable[]): void {
    if (this.#runAhead || destination.integration !== null) return
    for (const content of contents) if (content.body.parsed !== null) this.#webhooks.preload(destination, content)
  }

  /** Takes back the work of a destination that waits in its sender: it ends as `aborted`. */
  recall(destinationId: string): void {
    for (const group of this.#groups) group.tell(destinationId, 'recall')
  }

  /** Lets the work of a destination that waits in its sender go on. A sender stops it after a temporary failure. */
  resume(destinationId: string): void {
    for (const group of this.#groups) group.tell(destinationId, 'resume')
  }

  /** Makes senders forget messages that will not be started: the given ones, or all if `indexes` is missing. */
  drop(content: Sendable, indexes: readonly number[] | null = null): void {
    const { loaded } = content
    if (loaded === null || loaded.left === 0) return
    loaded.by.drop(loaded.key, indexes)
    loaded.left -= indexes?.length ?? loaded.left
  }

  /** Called when a destination was deleted. */
  forget(destinationId: string): void {
    for (const group of this.#groups) group.forget(destinationId)
  }

  /** Waits a moment for requests in flight; the others end as `aborted`. */
  async close(): Promise<void> {
    clearInterval(this.#check)
    await Promise.all(this.#groups.map((group) => group.close()))
  }
}
