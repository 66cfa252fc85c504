// All senders of this process: threads for webhooks, and processes for integrations.

import { kindOf } from '../../destinations/kinds.ts'
import type { Destination } from '../../store/store.ts'
import type { OpenLink } from '../link/link.ts'
import { type SenderGroup, SenderPool } from './sender-pool.ts'
import { type SpreadingOptions, SpreadingPool } from './spreading-pool.ts'

export interface SendersOptions {
  count: number
  open: OpenLink
  /** See Senders.runAhead. Default: true. */
  runAhead?: boolean
  /** Called when a sender was lost. It is replaced. */
  onLost?: ((error: Error) => void) | undefined
  /** Runs integrations. Without it, there can be no such destinations. */
  hosts?: SenderGroup | undefined
  /** Loads messages into warehouses. Without it, there can be no such destinations. */
  loaders?: SenderGroup | undefined
  /** When a destination is spread over several senders. */
  spreading?: SpreadingOptions | undefined
  /** How often senders are checked. Default: every 2 s. */
  checkMs?: number | undefined
}

const CHECK_MS = 2_000

export class Senders {
  /** Whether senders keep work that exceeds the limit, so that they can go on without waiting for this thread. */
  readonly runAhead: boolean
  readonly #threads: SenderGroup
  readonly #hosts: SenderGroup
  readonly #loaders: SenderGroup
  readonly #groups: readonly SenderGroup[]
  readonly #check: NodeJS.Timeout

  constructor({ count, open, runAhead = true, onLost = () => undefined, hosts, loaders, spreading, checkMs = CHECK_MS }: SendersOptions) {
    const lost = (error: Error): 'sender_lost' => {
      onLost(error)
      return 'sender_lost'
    }
    const pool = { count, name: 'switchyard-sender', open, onLost: lost }
    this.#threads = count > 1 ? new SpreadingPool(pool, spreading) : new SenderPool({ ...pool, isPreloaded: !runAhead })
    this.#hosts = hosts ?? this.#threads
    this.#loaders = loaders ?? this.#threads
    this.#groups = [...new Set([this.#threads, this.#hosts, this.#loaders])]
    this.runAhead = runAhead
    this.#check = setInterval(() => {
      for (const group of this.#groups) group.check()
    }, checkMs)
    this.#check.unref()
  }

  /** The senders for destinations like this one. */
  of(destination: Destination): SenderGroup {
    const { place } = kindOf(destination)
    if (place === 'thread') return this.#threads
    return place === 'host' ? this.#hosts : this.#loaders
  }

  /** Waits a moment for requests in flight; the others end as `aborted`. */
  async close(): Promise<void> {
    clearInterval(this.#check)
    await Promise.all(this.#groups.map((group) => group.close()))
  }
}
