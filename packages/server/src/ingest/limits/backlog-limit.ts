// The limit on the pending deliveries of a healthy destination (SWITCHYARD_MAX_BACKLOG). Once a second, it reads the ledger of the store
// and compares the pending deliveries of each destination that is behind with the limit. The ledger covers all nodes. Only destinations
// whose deliveries this process delays count: a destination that is dead, paused or slow by itself never causes a request to be refused.
// While no destination is behind, nothing is read.

import type { LedgerRow, Routing } from '../../store/store.ts'

export interface BacklogLimitDeps {
  maxPending: number
  ledger: () => Promise<readonly LedgerRow[]>
  /** The ids of the destinations that are behind. */
  behind: () => Iterable<string>
}

const CHECK_EVERY_MS = 1_000
/** A destination counts as behind if it was in most of the last checks, so that a short delay is not enough. */
const MAX_SCORE = 3
const COUNTED_FROM = 2

export class BacklogLimit {
  readonly #deps: BacklogLimitDeps
  readonly #scores = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  #over: ReadonlySet<string> = new Set()
  #isReading = false

  constructor(deps: BacklogLimitDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => void this.check(), CHECK_EVERY_MS).unref()
  }

  /** Whether a destination that the plan ships to has reached the limit. */
  isReached({ shipments }: Routing): boolean {
    return this.#over.size > 0 && shipments.some(({ destinationId }) => this.#over.has(destinationId))
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async check(): Promise<void> {
    const counted = this.#countBehind()
    if (counted.size === 0) this.#over = counted
    if (counted.size === 0 || this.#isReading) return
    this.#isReading = true
    try {
      const { ledger, maxPending } = this.#deps
      const rows = (await ledger()).filter(({ destinationId, pending }) => counted.has(destinationId) && pending >= maxPending)
      this.#over = new Set(rows.map(({ destinationId }) => destinationId))
    } catch {
      // The store is unavailable, so it accepts nothing anyway. The next check reads again.
    } finally {
      this.#isReading = false
    }
  }

  #countBehind(): Set<string> {
    const behind = new Set(this.#deps.behind())
    for (const id of behind) this.#scores.set(id, Math.min(MAX_SCORE, (this.#scores.get(id) ?? 0) + 1))
    for (const [id, score] of this.#scores) {
      if (behind.has(id)) continue
      if (score === 1) this.#scores.delete(id)
      else this.#scores.set(id, score - 1)
    }
    return new Set([...this.#scores].flatMap(([id, score]) => (score >= COUNTED_FROM ? [id] : [])))
  }
}
