// Checks that each message is in its tables exactly once: every message that was delivered to a warehouse has one row in each of its tables, one that ended
// otherwise has at most one, and there are no other rows. A pure function.

import type { FinalState } from '../system/destinations.ts'
import type { TableIds } from '../system/warehouses.ts'

export interface TableAudit {
  /** Rows that must be there. */
  checked: number
  /** Messages that are missing from at least one of their tables. */
  missing: ReadonlySet<string>
  /** Rows that are missing, or that must not be there. */
  wrong: number
  /** A sentence for each kind of error in each table. */
  problems: string[]
}

const SHOWN = 5

export function auditTables(owed: ReadonlyMap<string, FinalState>, sent: ReadonlySet<string>, tables: TableIds): TableAudit {
  const missing = new Set<string>()
  const problems: string[] = []
  let checked = 0
  let wrong = 0
  const report = (table: string, ids: readonly string[], what: string): void => {
    wrong += ids.length
    if (ids.length > 0) problems.push(`table ${table}: ${ids.length} ${what}: ${ids.slice(0, SHOWN).join()}`)
  }
  for (const [table, ids] of tables) {
    const rows = new Map<string, number>()
    for (const id of ids) rows.set(id, (rows.get(id) ?? 0) + 1)
    const delivered = [...owed].filter(([, state]) => state === 'delivered').map(([id]) => id)
    const absent = delivered.filter((id) => !rows.has(id))
    for (const id of absent) missing.add(id)
    checked += delivered.length
    report(table, absent, 'acknowledged messages have no row')
    report(
      table,
      [...rows].filter(([, count]) => count > 1).map(([id]) => id),
      'messages have more than one row',
    )
    report(
      table,
      [...rows.keys()].filter((id) => !sent.has(id)),
      'rows are of messages that were never sent',
    )
  }
  return { checked, missing, wrong, problems }
}
