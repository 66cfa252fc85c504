// Verifies a migration: both stores must have the same number of rows in every table, the same ledger, and the same ledger when it is
// recounted from the rows.

import type { MigrationTarget } from '../store/postgres/schema/migration-target.ts'
import { type MigrationSource, SQLITE_TABLES, type SqliteTable } from '../store/sqlite/migration/migration-source.ts'
import type { LedgerRow, QuarantinedCount } from '../store/store.ts'

const COUNTS = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

export interface Comparison {
  /** One sentence for each difference. */
  problems: string[]
  counts: Record<SqliteTable, number>
  destinations: number
}

/** `more`: how many more rows PostgreSQL must have in some tables. */
export async function compareStores(
  source: MigrationSource,
  target: MigrationTarget,
  more: Partial<Record<SqliteTable, number>>,
): Promise<Comparison> {
  const problems: string[] = []
  const counts = {} as Comparison['counts']
  for (const table of SQLITE_TABLES) {
    const expected = source.count(table) + (more[table] ?? 0)
    // The state of the migration is a setting of the target.
    const found = (await target.count(table)) - (table === 'settings' ? 1 : 0)
    if (expected !== found) problems.push(`${table}: ${expected} rows in the file, ${found} in PostgreSQL`)
    counts[table] = found
  }
  const ledger = source.books.ledger()
  problems.push(...differences('the ledger', ledger, await target.books.ledger()))
  problems.push(...differences('the recount', source.books.recount(), await target.books.recount()))
  problems.push(...quarantineDifferences('the count', source.books.sourceCounts(), await target.books.sourceCounts()))
  problems.push(...quarantineDifferences('the recount', await source.books.recountQuarantined(), await target.books.recountQuarantined()))
  return { problems, counts, destinations: ledger.length }
}

/** A destination without a row counts as all zeros. */
export function differences(what: string, inFile: readonly LedgerRow[], inPostgres: readonly LedgerRow[]): string[] {
  const ids = new Set([...inFile, ...inPostgres].map(({ destinationId }) => destinationId))
  return [...ids].flatMap((id) => {
    const [left, right] = [inFile, inPostgres].map((rows) => rows.find(({ destinationId }) => destinationId === id))
    return COUNTS.filter((name) => (left?.[name] ?? 0) !== (right?.[name] ?? 0)).map(
      (name) => `${what} of ${id}: ${name} is ${left?.[name] ?? 0} in the file and ${right?.[name] ?? 0} in PostgreSQL`,
    )
  })
}

function quarantineDifferences(what: string, inFile: readonly QuarantinedCount[], inPostgres: readonly QuarantinedCount[]): string[] {
  const ids = new Set([...inFile, ...inPostgres].map(({ sourceId }) => sourceId))
  return [...ids].flatMap((id) => {
    const [left, right] = [inFile, inPostgres].map((rows) => rows.find(({ sourceId }) => sourceId === id)?.quarantined ?? 0)
    return left === right ? [] : [`${what} of quarantined messages of ${id} is ${left} in the file and ${right} in PostgreSQL`]
  })
}
