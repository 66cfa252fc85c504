// The row port of the books.

import type { Awaitable, Sql } from '../encoding/sql.ts'
import type { LedgerRow, OldestPending, QuarantinedCount, RejectionRow, RowId, SourceCounts, StatKind } from '../store.ts'
import type { StatRange } from './stats.ts'

export interface BookRows {
  /** The ids of all destinations that are not deleted, oldest first. */
  destinations(): Awaitable<readonly string[]>
  /** Has a row for each destination that ever had a delivery. */
  ledger(): Awaitable<readonly LedgerRow[]>
  recount(): Awaitable<readonly LedgerRow[]>
  /** When the oldest pending delivery was created, and when the first attempt was made, for those of these destinations that have one. */
  oldestOf(destinationIds: readonly string[]): Awaitable<readonly OldestPending[]>
  /** The most recent rejection first. */
  rejections(): Awaitable<RejectionRow[]>
  sourceCounts(): Awaitable<SourceCounts[]>
  recountQuarantined(): Awaitable<QuarantinedCount[]>
  /** The rows of these ranges, ordered by subject. */
  stats(
    kind: StatKind,
    subjects: readonly string[],
    ranges: readonly StatRange[],
  ): Awaitable<readonly { subject: string; step: number; at: number; doc: string }[]>
}

export async function readRejections<Id extends RowId>(sql: Sql<Id>): Promise<RejectionRow[]> {
  const rows = await sql.all<RejectionRow>(
    `SELECT s.id AS "sourceId", code, count, last_at AS "lastAtMs", last_sample AS "lastSample"
     FROM rejections LEFT JOIN sources s ON s.num = source ORDER BY last_at DESC, source, code`,
  )
  return rows.map((row) => sql.read(row, 'lastSample'))
}

/** Counts the messages in quarantine. */
export function recountQuarantined<Id extends RowId>(sql: Sql<Id>): Awaitable<QuarantinedCount[]> {
  return sql.all(
    `SELECT s.id AS "sourceId", count(*) AS quarantined FROM quarantine q JOIN sources s ON s.num = q.source
     GROUP BY s.num, s.id ORDER BY s.num`,
  )
}

/** The rows that an inspection of the whole store reads, from one snapshot. */
export interface InspectedRows extends Pick<BookRows, 'ledger' | 'recount' | 'sourceCounts' | 'recountQuarantined'> {
  /** A store that an earlier version of the service wrote lacks some tables. It is inspected as it is. */
  hasTable(name: string): Awaitable<boolean>
  /** The problems that the database itself finds in its files or its schema. */
  problems(): Awaitable<string[]>
  oldestMessageAtMs(): Awaitable<number | null>
  /** All texts that may contain encrypted secrets. */
  textsWithSecrets(): Awaitable<readonly string[]>
  storedBytes(): Awaitable<number>
}

export function inspectedRows<Id extends RowId>(
  sql: Sql<Id>,
  own: Omit<InspectedRows, 'oldestMessageAtMs' | 'textsWithSecrets'>,
): InspectedRows {
  return {
    ...own,
    async oldestMessageAtMs() {
      const [row] = await sql.all<{ seq: Id }>('SELECT seq FROM segments ORDER BY seq LIMIT 1')
      return row === undefined ? null : sql.order.msOf(row.seq)
    },
    async textsWithSecrets() {
      const versions = (await own.hasTable('destination_versions'))
        ? 'UNION ALL SELECT substr(content, 1, 100) FROM destination_versions'
        : ''
      const rows = await sql.all<{ text: string }>(
        `SELECT doc AS text FROM destinations WHERE NOT deleted UNION ALL SELECT value FROM settings ${versions}`,
      )
      return rows.map(({ text }) => text)
    },
  }
}
