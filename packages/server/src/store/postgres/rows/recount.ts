// The ledger, and the same counted from the rows: messages owed as they were accepted or replayed, shipments waiting, attempts
// that ended, and what retention has dropped. Each is one statement, so of one snapshot; in one transaction they must agree.
// Destinations whose counts are all zero are left out of both.

import type { LedgerRow } from '../../store.ts'
import { LEDGER } from '../messages/owing.ts'
import type { Rows } from '../session/connection.ts'

type AskRows = (text: string) => Promise<Rows<LedgerRow>>

const STATES = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

export async function readLedger(ask: AskRows): Promise<LedgerRow[]> {
  const { rows } = await ask(
    summed(`
      SELECT destination, owed, delivered, pending, failed, expired, cancelled FROM ledger
      UNION ALL
      SELECT subject, counts[1], counts[2], counts[3], counts[4], counts[5], counts[6] FROM deltas WHERE kind = ${LEDGER}`),
  )
  return rows
}

export async function recount(ask: AskRows): Promise<LedgerRow[]> {
  // A route says how many messages were planned; where some of the segment were duplicates, those that it names are taken off.
  const { rows } = await ask(
    summed(`
      SELECT (r->>0)::bigint AS destination, sum((r->>3)::bigint - CASE WHEN g.absent IS NULL THEN 0 ELSE (
               SELECT count(*) FROM unnest(g.absent) AS a WHERE r->2 = '0'::jsonb OR r->2 @> to_jsonb(a)
             ) END) AS owed,
             0 AS delivered, 0 AS pending, 0 AS failed, 0 AS expired, 0 AS cancelled
      FROM segments g CROSS JOIN LATERAL jsonb_array_elements(g.routes::jsonb->'s') AS r GROUP BY 1
      UNION ALL SELECT destination, count(*), 0, 0, 0, 0, 0 FROM replays GROUP BY 1
      UNION ALL SELECT destination, 0, 0, sum(count), 0, 0, 0 FROM shipments GROUP BY 1
      UNION ALL SELECT destination, 0, sum(delivered), 0, sum(failed), sum(expired), sum(cancelled) FROM attempts GROUP BY 1
      UNION ALL SELECT destination, owed, delivered, 0, failed, expired, cancelled FROM ledger_archive`),
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
