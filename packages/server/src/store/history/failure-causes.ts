// Groups failures by cause. One call counts a limited number of failures. The limit is divided among the destinations and states that have
// failures, starting with those that have the fewest, so that many failures of one destination do not hide those of the others.

import type { CauseFilter, FailureCause, FailureCauses, LedgerRow, RowId } from '../store.ts'
import type { CauseShare, DeliveryRows } from './delivery-rows.ts'
import { firstRow, lastRow } from './paging.ts'

const FAILED = ['failed', 'expired', 'cancelled'] as const satisfies readonly FailureCause['state'][]
/** The maximum number of failures that one call counts. */
const MAX_FAILURES = 100_000
/** The minimum share of a destination and state, however many there are. */
const MIN_SHARE = 100

export async function failureCauses<Id extends RowId>(
  rows: Pick<DeliveryRows<Id>, 'order' | 'ledger' | 'causes'>,
  filter: CauseFilter,
): Promise<FailureCauses> {
  const { order } = rows
  const causes: FailureCause[] = []
  let counted = 0
  const shares = sharesOf(await rows.ledger(), filter)
  for (const [at, share] of shares.entries()) {
    const limit = Math.max(MIN_SHARE, Math.floor((MAX_FAILURES - counted) / (shares.length - at)))
    const found = await rows.causes(share, firstRow(order, filter), lastRow(order, filter), filter, limit)
    const size = found.reduce((sum, { count }) => sum + count, 0)
    for (const cause of found) causes.push({ ...share, ...cause, isPartial: size >= limit })
    counted += size
  }
  return { causes: causes.sort((a, b) => b.lastAtMs - a.lastAtMs || b.count - a.count), counted }
}

/** The destinations and states that may have failures, those with the fewest first. The ledger also counts deliveries that are no longer stored, so there may be none. */
function sharesOf(ledger: readonly LedgerRow[], filter: CauseFilter): CauseShare[] {
  return ledger
    .filter(({ destinationId }) => filter.destinationId === undefined || destinationId === filter.destinationId)
    .flatMap((row) => FAILED.map((state) => ({ destinationId: row.destinationId, state, size: row[state] })))
    .filter(({ state, size }) => size > 0 && (filter.state === undefined || state === filter.state))
    .sort((a, b) => a.size - b.size)
    .map(({ destinationId, state }) => ({ destinationId, state }))
}
