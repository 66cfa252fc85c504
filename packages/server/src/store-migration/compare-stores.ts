// Whether everything has arrived: as many rows in every table, and on both sides the same ledger, kept and counted.

import type { Arriving } from '../store/postgres/schema/arriving.ts'
import { LEAVING_TABLES, type Leaving, type LeavingTable } from '../store/sqlite/schema/leaving.ts'
import type { LedgerRow } from '../store/store.ts'

const COUNTS = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

export interface Compared {
  /** What does not agree, as sentences. */
  problems: string[]
  counts: Record<LeavingTable, number>
  destinations: number
}

/** `staying`: settings that are not moved. */
export async function compareStores(leaving: Leaving, arriving: Arriving, staying: number): Promise<Compared> {
  const problems: string[] = []
  const counts = {} as Compared['counts']
  for (const table of LEAVING_TABLES) {
    const left = leaving.count(table) - (table === 'settings' ? staying : 0)
    // How far the move is is a setting, too.
    const arrived = (await arriving.count(table)) - (table === 'settings' ? 1 : 0)
    if (left !== arrived) problems.push(`${table}: ${left} rows in the file, ${arrived} in PostgreSQL`)
    counts[table] = arrived
  }
  const ledger = leaving.ledger()
  problems.push(...differences('the ledger', ledger, await arriving.ledger()))
  problems.push(...differences('the recount', leaving.recount(), await arriving.recount()))
  return { problems, counts, destinations: ledger.length }
}

/** A destination that has no row has only zeros. */
export function differences(what: string, here: readonly LedgerRow[], there: readonly LedgerRow[]): string[] {
  const ids = new Set([...here, ...there].map(({ destinationId }) => destinationId))
  return [...ids].flatMap((id) => {
    const [left, right] = [here, there].map((rows) => rows.find(({ destinationId }) => destinationId === id))
    return COUNTS.filter((name) => (left?.[name] ?? 0) !== (right?.[name] ?? 0)).map(
      (name) => `${what} of ${id}: ${name} is ${left?.[name] ?? 0} in the file and ${right?.[name] ?? 0} in PostgreSQL`,
    )
  })
}
