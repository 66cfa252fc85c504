// Failures grouped by cause, within what one answer may look at. That is shared among the destinations and states that have
// any, the small ones first: so a flood at one of them hides nothing of the others.

import type { CauseFilter, FailureCause, FailureCauses, LedgerRow, RowId } from '../store.ts'
import type { CauseRow, CauseShare, DeliveryRows } from './delivery-rows.ts'
import { FAILURES_LOOKED_AT, firstRow, lastRow } from './paging.ts'

const FAILED = ['failed', 'expired', 'cancelled'] as const satisfies readonly FailureCause['state'][]
/** However many there are to share with. */
const LEAST = 100

export async function failureCauses<Id extends RowId>(rows: DeliveryRows<Id>, filter: CauseFilter): Promise<FailureCauses> {
  const { order } = rows
  const shares = sharesOf(await rows.ledger(), filter)
  const tally = new CauseTally(shares)
  for (const share of shares) {
    tally.add(share, await rows.causes(share, firstRow(order, filter), lastRow(order, filter), filter, tally.limit()))
  }
  return tally.result()
}

/** What is to be looked at, in order. The ledger counts what is no longer stored too, so it only says where nothing is. */
export function sharesOf(ledger: readonly LedgerRow[], filter: CauseFilter): CauseShare[] {
  return ledger
    .filter(({ destinationId }) => filter.destinationId === undefined || destinationId === filter.destinationId)
    .flatMap((row) => FAILED.map((state) => ({ destinationId: row.destinationId, state, size: row[state] })))
    .filter(({ state, size }) => size > 0 && (filter.state === undefined || state === filter.state))
    .sort((a, b) => a.size - b.size)
}

export class CauseTally {
  readonly #causes: FailureCause[] = []
  #shares: number
  #left = FAILURES_LOOKED_AT
  #looked = 0

  constructor(shares: readonly CauseShare[]) {
    this.#shares = shares.length
  }

  /** How many of the next share may be looked at. */
  limit(): number {
    return Math.max(LEAST, Math.floor(this.#left / this.#shares))
  }

  add({ destinationId, state }: CauseShare, rows: readonly CauseRow[]): void {
    const looked = rows.reduce((sum, { count }) => sum + count, 0)
    const isPartial = looked >= this.limit()
    for (const { reason, count, first, last, origin, idx } of rows) {
      const deliveryId = `${origin}-${idx}`
      this.#causes.push({ destinationId, state, reason, count, firstAtMs: first, lastAtMs: last, deliveryId, isPartial })
    }
    this.#looked += looked
    this.#left -= looked
    this.#shares--
  }

  result(): FailureCauses {
    return { causes: this.#causes.sort((a, b) => b.lastAtMs - a.lastAtMs || b.count - a.count), looked: this.#looked }
  }
}
