// Compares the stored counts with a recount of the rows, and checks that the counts of each destination add up. Used by the diagnostics of
// the service, and by the checks of a store file that is not in use.

const COUNTS = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

/** The counts of a store, as far as they are compared. */
interface Books {
  ledger: readonly LedgerRow[]
  recount: readonly LedgerRow[]
  quarantined: readonly { sourceId: string; quarantined: number }[]
  quarantineRecount: readonly { sourceId: string; quarantined: number }[]
}
type LedgerRow = Readonly<Record<(typeof COUNTS)[number], number> & { destinationId: string }>

/** Returns the differences as sentences. `nameOf` returns the display name of a destination or a source. */
export function bookProblems(books: Books, nameOf: (id: string) => string = (id) => id): string[] {
  return [...ledgerProblems(books.ledger, books.recount, nameOf), ...quarantineProblems(books, nameOf)]
}

function quarantineProblems({ quarantined, quarantineRecount }: Books, nameOf: (id: string) => string): string[] {
  const ids = new Set([...quarantined, ...quarantineRecount].map(({ sourceId }) => sourceId))
  return [...ids].flatMap((id) => {
    const [left, right] = [quarantined, quarantineRecount].map((rows) => rows.find(({ sourceId }) => sourceId === id)?.quarantined ?? 0)
    return left === right ? [] : [`${nameOf(id)}: ${left} quarantined messages are counted, and ${right} are in the recount`]
  })
}

function ledgerProblems(kept: readonly LedgerRow[], counted: readonly LedgerRow[], nameOf: (id: string) => string): string[] {
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
