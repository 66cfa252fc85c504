// Whether the books agree: the ledger as it is kept with the ledger as it is counted from the rows, and each with itself.
// For the service's own checks and for those of a file that is not in use.

import type { LedgerRow } from '../store/store.ts'

const COUNTS = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

/** What does not agree, as sentences; `nameOf` says how to call a destination. */
export function ledgerProblems(
  kept: readonly LedgerRow[],
  counted: readonly LedgerRow[],
  nameOf: (id: string) => string = (id) => id,
): string[] {
  const ids = new Set([...kept, ...counted].map(({ destinationId }) => destinationId))
  return [...ids].flatMap((id) => {
    const [left, right] = [kept, counted].map((rows) => rows.find(({ destinationId }) => destinationId === id))
    const different = COUNTS.filter((name) => (left?.[name] ?? 0) !== (right?.[name] ?? 0))
    const told = different.map((name) => `${name} is kept as ${left?.[name] ?? 0} and counted as ${right?.[name] ?? 0}`)
    const sum = right === undefined ? 0 : right.delivered + right.pending + right.failed + right.expired + right.cancelled
    if (right !== undefined && right.owed !== sum) told.push(`${right.owed} are owed, and ${sum} have a state`)
    return told.length === 0 ? [] : [`${nameOf(id)}: ${told.join('; ')}`]
  })
}
