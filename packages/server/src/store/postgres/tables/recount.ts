// Reads the ledger, and counts the same from the rows: messages that were accepted or replayed, pending shipments, settled
// deliveries, and the counts of rows that retention has dropped. Each is one statement, so one snapshot; in the same transaction both
// must agree. Destinations whose counts are all zero are left out of both.

import { recountQuarantined } from '../../history/book-rows.ts'
import type { LedgerRow, SourceCounts } from '../../store.ts'
import type { Rows } from '../session/connection.ts'
import type { Ask } from '../session/database.ts'
import { COUNT_NAMES, countsOfDeltas, LEDGER } from './ledger-deltas.ts'
import { sqlOf } from './sql.ts'

type AskRows = (text: string) => Promise<Rows<LedgerRow>>

/** What the rows of a table add to the ledger. `from` is the table, or rows that were deleted from it. */
export const COUNTS = {
  // A route has the number of planned messages. Duplicates of the segment that the route includes are subtracted.
  segments: {
    columns: 'seq, absent, routes',
    select: (from: string): string =>
      `SELECT (route->>0)::bigint AS destination, sum((route->>3)::bigint - CASE WHEN absent IS NULL THEN 0
          WHEN route->2 = '0' THEN cardinality(absent) ELSE (SELECT count(*) FROM unnest(absent) AS at WHERE route->2 @> to_jsonb(at)) END)::bigint AS owed,
        0::bigint AS delivered, 0::bigint AS failed, 0::bigint AS expired, 0::bigint AS cancelled
       FROM ${from} CROSS JOIN LATERAL jsonb_array_elements(routes::jsonb->'s') AS route GROUP BY 1`,
  },
  attempts: {
    columns: 'destination, delivered, failed, expired, cancelled',
    select: (from: string): string =>
      `SELECT destination, 0::bigint AS owed, sum(delivered)::bigint AS delivered, sum(failed)::bigint AS failed, sum(expired)::bigint AS expired,
        sum(cancelled)::bigint AS cancelled FROM ${from} GROUP BY 1`,
  },
  replays: {
    columns: 'destination',
    select: (from: string): string =>
      `SELECT destination, count(*) AS owed, 0::bigint AS delivered, 0::bigint AS failed, 0::bigint AS expired, 0::bigint AS cancelled
       FROM ${from} GROUP BY 1`,
  },
}

const STATES = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

/** The counts, and the same computed from the rows. */
export function countedRows(ask: Ask) {
  return {
    ledger: () => readLedger(ask),
    recount: () => recount(ask),
    sourceCounts: () => readSourceCounts(ask),
    recountQuarantined: async () => recountQuarantined(sqlOf(ask)),
  }
}

export async function readLedger(ask: AskRows): Promise<LedgerRow[]> {
  const ledger = `
    SELECT destination, owed, delivered, pending, failed, expired, cancelled FROM ledger
    UNION ALL
    SELECT subject, counts[1], counts[2], counts[3], counts[4], counts[5], counts[6] FROM deltas WHERE kind = ${LEDGER}`
  return (await ask(summed(ledger))).rows
}

export async function recount(ask: AskRows): Promise<LedgerRow[]> {
  const counted = (['segments', 'replays', 'attempts'] as const).map(
    (table) =>
      `SELECT destination, owed, delivered, 0 AS pending, failed, expired, cancelled FROM (${COUNTS[table].select(table)}) ${table}`,
  )
  const rest = `
    SELECT destination, 0, 0, sum(count), 0, 0, 0 FROM shipments GROUP BY 1
    UNION ALL SELECT destination, owed, delivered, 0, failed, expired, cancelled FROM ledger_archive`
  return (await ask(summed([...counted, rest].join(' UNION ALL ')))).rows
}

async function readSourceCounts(ask: Ask): Promise<SourceCounts[]> {
  const { rows } = await ask<SourceCounts>(
    `SELECT s.id AS "sourceId", ${COUNT_NAMES.map((name) => `sum(c.${name})::bigint AS ${name}`).join(', ')}
     FROM (
       SELECT source, ${COUNT_NAMES.join(', ')} FROM source_counts
       UNION ALL ${countsOfDeltas('deltas')}
     ) c JOIN sources s ON s.num = c.source GROUP BY s.num, s.id ORDER BY s.num`,
  )
  return rows
}

function summed(rows: string): string {
  const sums = STATES.map((state) => `sum(${state})::bigint AS ${state}`).join(', ')
  const any = STATES.map((state) => `sum(${state}) <> 0`).join(' OR ')
  return `SELECT d.id AS "destinationId", c.${STATES.join(', c.')} FROM (
    SELECT destination, ${sums} FROM (${rows}) counts GROUP BY destination HAVING ${any}
  ) c JOIN destinations d ON d.num = c.destination ORDER BY d.num`
}
