// The row port of the books, for SQLite.

import type { StoredPart } from '../../encoding/stored-parts.ts'
import { type BookRows, readRejections, recountQuarantined } from '../../history/book-rows.ts'
import type { StatRows, StoredStat } from '../../history/stats.ts'
import type { LedgerRow, SourceCounts } from '../../store.ts'
import { msOfRowId } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'

export function bookRows(rows: Rows): BookRows {
  return {
    destinations: () => rows.all<{ id: string }>('SELECT id FROM destinations WHERE deleted = 0 ORDER BY num').map(({ id }) => id),
    ...countedRows(rows),
    oldestOf(destinationIds) {
      const which = [
        'class = 0 ORDER BY due, id',
        'class = 1 AND first_attempt IS NOT NULL ORDER BY first_attempt',
        'class = 2 ORDER BY due, id',
        'class = 3 AND first_attempt IS NOT NULL ORDER BY first_attempt',
      ]
      const oldest = (condition: string) =>
        `SELECT parts, first_attempt FROM shipments WHERE destination = (SELECT num FROM destinations WHERE id = ?) AND ${condition} LIMIT 1`
      return destinationIds.flatMap((destinationId) => {
        const waiting = which.flatMap((condition) =>
          rows.all<{ parts: string; first_attempt: number | null }>(oldest(condition), [destinationId]),
        )
        const origins = waiting.flatMap(({ parts }) => (JSON.parse(parts) as StoredPart<number>[]).map(([origin]) => origin))
        const attempted = waiting.flatMap(({ first_attempt: firstAttempt }) => firstAttempt ?? [])
        const firstAttemptAtMs = attempted.length === 0 ? null : Math.min(...attempted)
        return origins.length === 0 ? [] : [{ destinationId, atMs: msOfRowId(Math.min(...origins)), firstAttemptAtMs }]
      })
    },
    rejections: () => readRejections(rows),
    // One statement, so that hours that are being packed are neither missed nor counted twice.
    stats(kind, subjects, ranges) {
      const range = 'SELECT subject, step, at, doc FROM stats WHERE kind = ? AND subject = ? AND step = ? AND at >= ? AND at < ?'
      const text = ranges.map(() => range).join(' UNION ALL ')
      return subjects.flatMap((subject) =>
        rows.all<StoredStat>(
          text,
          ranges.flatMap(({ step, fromMs, toMs }) => [kind, subject, step, fromMs, toMs]),
        ),
      )
    },
  }
}

/** The counts, and the same computed from the rows. */
export function countedRows(rows: Rows) {
  return {
    ledger: () => readLedger(rows),
    recount: () => recount(rows),
    sourceCounts: () => readSourceCounts(rows),
    recountQuarantined: () => recountQuarantined(rows),
  }
}

export function readLedger(rows: Rows): LedgerRow[] {
  return withDestinationIds(rows, 'SELECT * FROM ledger')
}

/** Computes the ledger from the rows: owed from segments and replays, pending from shipments, and the final states from attempts. */
function recount(rows: Rows): LedgerRow[] {
  return withDestinationIds(
    rows,
    `SELECT destination, sum(owed) AS owed, sum(delivered) AS delivered, sum(pending) AS pending, sum(failed) AS failed,
            sum(expired) AS expired, sum(cancelled) AS cancelled
     FROM (
       SELECT json_extract(value, '$[0]') AS destination, json_extract(value, '$[3]') AS owed,
              0 AS delivered, 0 AS pending, 0 AS failed, 0 AS expired, 0 AS cancelled
       FROM segments, json_each(segments.routes, '$.s')
       UNION ALL SELECT destination, 1, 0, 0, 0, 0, 0 FROM replays
       UNION ALL SELECT destination, 0, 0, count, 0, 0, 0 FROM shipments
       UNION ALL SELECT destination, 0, delivered, 0, failed, expired, cancelled FROM attempts
       UNION ALL SELECT destination, owed, delivered, 0, failed, expired, cancelled FROM ledger_archive
     )
     GROUP BY destination`,
  )
}

function readSourceCounts(rows: Rows): SourceCounts[] {
  return rows.all(`
    SELECT s.id AS sourceId, accepted, duplicates, rejected, suppressed, quarantined, released, source_counts.deleted
    FROM source_counts JOIN sources s ON s.num = source ORDER BY source`)
}

function withDestinationIds(rows: Rows, counts: string): LedgerRow[] {
  return rows.all(`SELECT d.id AS destinationId, owed, delivered, pending, failed, expired, cancelled
    FROM (${counts}) JOIN destinations d ON d.num = destination ORDER BY destination`)
}

/** Only the writing thread adds counts, so no locks are needed. */
export function statRows(rows: Rows): StatRows {
  return {
    stored: (keys) =>
      keys.flatMap(({ kind, subject, step, at }) =>
        rows.all<StoredStat>('SELECT * FROM stats WHERE kind = ? AND subject = ? AND step = ? AND at = ?', [kind, subject, step, at]),
      ),
    put(stats) {
      for (const { kind, subject, step, at, doc } of stats)
        rows.run('INSERT OR REPLACE INTO stats (kind, subject, step, at, doc) VALUES (?, ?, ?, ?, ?)', [kind, subject, step, at, doc])
    },
  }
}
