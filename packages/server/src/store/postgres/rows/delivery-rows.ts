// The row port of lists of deliveries, for PostgreSQL.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { StoredPart } from '../../encoding/stored-parts.ts'
import type { CauseRow, DeliveryRows, FailureRow } from '../../history/delivery-rows.ts'
import { ROWS_PER_PAGE } from '../../history/paging.ts'
import { DELIVERIES, resolveOrigins } from '../messages/resolve-origins.ts'
import { holders } from '../messages/shipment-holders.ts'
import type { IdMap } from '../schema/id-map.ts'
import { SKEW } from '../schema/ids.ts'
import { type Ask, rowsOf } from '../session/database.ts'
import { statement } from '../session/row-parameters.ts'
import { readText } from '../session/text-columns.ts'
import { firstPending, walkPending } from './pending.ts'
import { readLedger } from './recount.ts'
import { oldestOf, segmentRows } from './segment-rows.ts'

const FAILED = ['failed', 'expired', 'cancelled']

export function deliveryRows(ask: Ask, idMap: IdMap, seed: Seed): DeliveryRows<string> {
  const all = rowsOf(ask)
  const destination = (id: string): Promise<string | undefined> => idMap.find(ask, 'destinations', id)
  return {
    ...segmentRows(ask, idMap, seed),
    destination,
    firstPending,
    pending: (of, from, first) => walkPending(ask, of, from, first),
    attempts: (of, deliveredOnly, first, last, limit) =>
      all(
        `SELECT id, origin, destination, segment, at AS "atMs", attempt AS attempts, replay,
           CASE WHEN delivered${deliveredOnly ? '' : ' + failed + expired + cancelled'} > 0 THEN octet_length(doc) ELSE 0 END AS bytes
         FROM attempts WHERE ${of === null ? '' : 'destination = $4 AND '}id >= $1 AND id <= $2 ORDER BY id DESC LIMIT $3`,
        [first, last, limit, ...(of === null ? [] : [of])],
      ),
    docs: (attempts) => all('SELECT id, doc FROM attempts WHERE id = ANY($1::bigint[])', [attempts]),
    numberedAttempts: (of) =>
      all(
        // OFFSET 0: otherwise PostgreSQL may join with a scan of all attempts.
        `SELECT a.id, w.origin, a.bytes FROM unnest($1::bigint[], $2::bigint[]) w (origin, attempt)
         CROSS JOIN LATERAL (
           SELECT id, octet_length(doc) AS bytes FROM attempts WHERE origin = w.origin AND attempt = w.attempt AND id > w.origin - ${SKEW} OFFSET 0
         ) a ORDER BY a.id`,
        [of.map(({ origin }) => origin), of.map(({ attempt }) => attempt)],
      ),
    async failures(of, state, first, last, limit) {
      const some = (condition: string): string =>
        `(SELECT id, origin, idx AS index, destination, segment, state, reason, attempts, replay, at AS "atMs"
          FROM failures WHERE ${condition}id >= $1 AND id <= $2 ORDER BY id DESC LIMIT $3)`
      // For one destination: reads the index once per state and merges the results. For all destinations: reads by row id.
      const states = state === undefined ? FAILED : [state]
      const parts = of === null ? [some('')] : states.map((_, at) => some(`destination = $4 AND state = $${at + 5} AND `))
      const sql = parts.length === 1 ? (parts[0] as string) : `${parts.join(' UNION ALL ')} ORDER BY id DESC LIMIT $3`
      const rows = await all<FailureRow<string>>(sql, [first, last, limit, ...(of === null ? [] : [of, ...states])])
      return rows.map(withReason)
    },
    replayLinks: (deliveries) => all(REPLAY_LINKS, REPLAY_LINKS.values({ deliveries, oldest: oldestOf(deliveries) })),
    async causes({ destinationId, state }, first, last, { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER }, limit) {
      const rows = await all<CauseRow>(
        `SELECT g.reason, g.count, g."firstAtMs", g."lastAtMs", f.origin || '-' || f.idx AS "deliveryId" FROM (
           SELECT reason, count(*) AS count, min(at) AS "firstAtMs", max(at) AS "lastAtMs", max(id) AS newest FROM (
             SELECT id, reason, at FROM failures WHERE destination = $1 AND state = $2 AND id >= $3 AND id <= $4 ORDER BY id DESC LIMIT $5
           ) n WHERE at >= $6 AND at <= $7 GROUP BY reason
         ) g JOIN failures f ON f.id = g.newest`,
        [(await destination(destinationId)) ?? null, state, first, last, limit, fromMs, toMs],
      )
      return rows.map(withReason)
    },
    ledger: () => readLedger(ask),
    origins: (wanted) => resolveOrigins(ask, wanted),
    attemptsAt: (origin) =>
      all(`SELECT at, attempt, doc FROM attempts WHERE origin = $1 AND id > $1::bigint - ${SKEW} ORDER BY attempt, id`, [origin]),
    async retriesOf(of, origin) {
      const some = (holder: string): string =>
        `(SELECT due, parts FROM (SELECT due, id, parts FROM shipments WHERE ${holder} AND attempt > 0 AND destination = $1
          ORDER BY due, id LIMIT ${ROWS_PER_PAGE}) s WHERE strpos(s.parts, $2) > 0)`
      const sql = `${some('holder = 0')} UNION ALL ${some('holder = ANY($3::bigint[])')}`
      const rows = await all<{ due: number; parts: string }>(sql, [of, origin, await holders(ask)])
      return rows.map(({ due, parts }) => ({ dueAtMs: due, parts: JSON.parse(parts) as StoredPart<string>[] }))
    },
  }
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

function withReason<Row extends { reason: string | null }>(row: Row): Row {
  return Object.assign(row, { reason: row.reason === null ? null : readText(row.reason) })
}
