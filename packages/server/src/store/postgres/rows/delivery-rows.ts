// The row port of lists of deliveries, for PostgreSQL.

import type { StoredPart } from '../../encoding/stored-parts.ts'
import { type DeliveryRows, deliveryRows as sharedDeliveryRows } from '../../history/delivery-rows.ts'
import { ROWS_PER_PAGE } from '../../history/paging.ts'
import type { SegmentLookups } from '../../history/segment-rows.ts'
import { type Ask, rowsOf } from '../session/database.ts'
import { statement } from '../session/row-parameters.ts'
import type { IdMap } from '../tables/id-map.ts'
import { oldestOf, SKEW } from '../tables/ids.ts'
import { readLedger } from '../tables/recount.ts'
import { DELIVERIES, resolveOrigins } from '../tables/resolve-origins.ts'
import { holders } from '../tables/shipment-holders.ts'
import { sqlOf } from '../tables/sql.ts'
import { firstPending, walkPending } from './pending.ts'

export function deliveryRows(ask: Ask, lookups: SegmentLookups<string>, idMap: IdMap): DeliveryRows<string> {
  const all = rowsOf(ask)
  return sharedDeliveryRows(sqlOf(ask), {
    ...lookups,
    destination: (id) => idMap.find(ask, 'destinations', id),
    firstPending,
    pending: (of, from, first) => walkPending(ask, of, from, first),
    numberedAttempts: (of) =>
      all(
        // OFFSET 0: otherwise PostgreSQL may join with a scan of all attempts.
        `SELECT a.id, w.origin, a.bytes FROM unnest($1::bigint[], $2::bigint[]) w (origin, attempt)
         CROSS JOIN LATERAL (
           SELECT id, octet_length(doc) AS bytes FROM attempts WHERE origin = w.origin AND attempt = w.attempt AND id > w.origin - ${SKEW} OFFSET 0
         ) a ORDER BY a.id`,
        [of.map(({ origin }) => origin), of.map(({ attempt }) => attempt)],
      ),
    replayLinks: (deliveries) => all(REPLAY_LINKS, REPLAY_LINKS.values({ deliveries, oldest: oldestOf(deliveries) })),
    ledger: () => readLedger(ask),
    origins: (wanted) => resolveOrigins(ask, wanted),
    async retriesOf(of, origin) {
      const some = (holder: string): string =>
        `(SELECT due, parts FROM (SELECT due, id, parts FROM shipments WHERE ${holder} AND attempt > 0 AND destination = $1
          ORDER BY due, id LIMIT ${ROWS_PER_PAGE}) s WHERE strpos(s.parts, $2) > 0)`
      const sql = `${some('holder = 0')} UNION ALL ${some('holder = ANY($3::bigint[])')}`
      const rows = await all<{ due: number; parts: string }>(sql, [of, origin, await holders(ask)])
      return rows.map(({ due, parts }) => ({ dueAtMs: due, parts: JSON.parse(parts) as StoredPart<string>[] }))
    },
  })
}

// A replay is always newer than its message, so older partitions are not read.
const REPLAY_LINKS = statement({
  parameters: { deliveries: DELIVERIES, oldest: 'value' },
  text: ({ deliveries, oldest }) => `SELECT nullif(own.replay_of, '') AS "replayOf", j.id AS "replayJobId", own.at AS "replayedAtMs",
      CASE WHEN newest.origin > d.origin THEN newest.origin || '-' || d.idx END AS "replayedBy"
    FROM ${deliveries.inOrder('d')}
    LEFT JOIN LATERAL (
      SELECT r.origin FROM replays r
      WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination AND r.origin > ${oldest}::bigint - ${SKEW}
      ORDER BY r.origin DESC LIMIT 1
    ) newest ON true
    LEFT JOIN LATERAL (
      SELECT r.replay_of, r.job, r.at FROM replays r WHERE r.origin = d.origin AND r.idx = d.idx AND newest.origin IS NOT NULL
    ) own ON true
    LEFT JOIN replay_jobs j ON j.num = own.job
    ORDER BY d.place`,
})
