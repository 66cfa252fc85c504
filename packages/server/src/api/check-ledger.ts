// Compares the stored ledger with a recount of the rows, and checks that the counts of each destination add up. Used by the diagnostics of
// the service, and by the checks of a store file that is not in use.

import type { LedgerRow } from '../store/store.ts'

const COUNTS = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

/** Returns the differences as sentences. `nameOf` returns the display name of a destination. */
export function ledgerProblems(
  kept: readonly LedgerRow[],
  counted: readonly LedgerRow[],
  nameOf: (id: string) => string = (id) => id,
): string[] {
  const ids = new Set([...kept, ...counted].map(({ destinationId }) => destinationId))
  return [...ids].flatMap((id) => {
    const [left, right] = [kept, counted].map((rows) => rows.find(({ destinationId }) => destinationId === id))
    const different = COUNTS.filter((name) => (left?.[name] ?? 0) !== (right?.[name] ?? 0))
    const problems = different.map((name) => `${name} is ${left?.[name] ?? 0} in the ledger and ${right?.[name] ?? 0} in the recount`)
    const sum = right === undefined ? 0 : right.delivered + right.pending + right.failed + right.expired + right.cancelled
    if (right !== undefined && right.owed !== sum) problems.push(`owed is ${right.owed}, but the states add up to ${sum}`)
    return problems.length === 0 ? [] : [`${nameOf(id)}: ${problems.join('; ')}`]
  })
}
