// Failures grouped by cause, within what one answer may look at. That is shared among the destinations and states that have
// any, the small ones first: so a flood at one of them hides nothing of the others.

import type { LedgerRow } from '../port/books.ts'
import type { CauseFilter, FailureCause, FailureCauses } from '../port/history.ts'
import type { RowId } from '../port/model.ts'
import type { CauseShare, DeliveryRows } from './delivery-rows.ts'
import { firstRow, lastRow } from './paging.ts'

const FAILED = ['failed', 'expired', 'cancelled'] as const satisfies readonly FailureCause['state'][]
/** The most failures that one answer looks at. */
const FAILURES_LOOKED_AT = 100_000
/** However many there are to share with. */
const LEAST = 100

export async function failureCauses<Id extends RowId>(
  rows: Pick<DeliveryRows<Id>, 'order' | 'ledger' | 'causes'>,
  filter: CauseFilter,
): Promise<FailureCauses> {
  const { order } = rows
  const causes: FailureCause[] = []
  let looked = 0
  const shares = sharesOf(await rows.ledger(), filter)
  for (const [at, share] of shares.entries()) {
    const limit = Math.max(LEAST, Math.floor((FAILURES_LOOKED_AT - looked) / (shares.length - at)))
    const found = await rows.causes(share, firstRow(order, filter), lastRow(order, filter), filter, limit)
    const size = found.reduce((sum, { count }) => sum + count, 0)
    for (const cause of found) causes.push({ ...share, ...cause, isPartial: size >= limit })
    looked += size
  }
  return { causes: causes.sort((a, b) => b.lastAtMs - a.lastAtMs || b.count - a.count), looked }
}

/** What is to be looked at, in order. The ledger counts what is no longer stored too, so it only says where nothing is. */
function sharesOf(ledger: readonly LedgerRow[], filter: CauseFilter): CauseShare[] {
  return ledger
    .filter(({ destinationId }) => filter.destinationId === undefined || destinationId === filter.destinationId)
    .flatMap((row) => FAILED.map((state) => ({ destinationId: row.destinationId, state, size: row[state] })))
    .filter(({ state, size }) => size > 0 && (filter.state === undefined || state === filter.state))
    .sort((a, b) => a.size - b.size)
    .map(({ destinationId, state }) => ({ destinationId, state }))
}
