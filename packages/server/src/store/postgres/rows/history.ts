// Reads the history from the database: the row ports of lists of messages and of deliveries. Each query of the port runs in one read-only transaction.

import { PARTITIONS } from '../../../model/order/order-key.ts'
import { FINGERPRINT_WORDS, fingerprint, sourceSeed } from '../../encoding/fingerprint.ts'
import type { StoredPart } from '../../encoding/stored-parts.ts'
import { writeAudit } from '../../history/audit-log.ts'
import { type DeliveryRows, deliveryRows as sharedDeliveryRows } from '../../history/delivery-rows.ts'
import { historyReads } from '../../history/history.ts'
import { type MessageRows, messageRows as sharedMessageRows } from '../../history/message-rows.ts'
import { ROWS_PER_PAGE } from '../../history/paging.ts'
import type { SegmentLookups } from '../../history/segment-rows.ts'
import type { HistoryStore } from '../../store.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { type Ask, rowsOf, withIndexScansOnly } from '../session/database.ts'
import { statement } from '../session/row-parameters.ts'
import type { IdMap } from '../tables/id-map.ts'
import { oldestOf, rowAndIndex, SKEW } from '../tables/ids.ts'
import { keyText } from '../tables/message-keys.ts'
import { readLedger } from '../tables/recount.ts'
import { DELIVERIES, resolveOrigins } from '../tables/resolve-origins.ts'
import { holders } from '../tables/shipment-holders.ts'
import { sqlOf } from '../tables/sql.ts'
import { firstPending, walkPending } from './pending.ts'

export function createHistory(context: StoreContext): HistoryStore {
  const { database, idMap, ids, nowMs } = context
  const reads = historyReads<string>((work) =>
    withIndexScansOnly(database, (ask) => {
      const lookups = segmentLookups(ask, context)
      return work({ messages: messageRows(ask, lookups, idMap), deliveries: deliveryRows(ask, lookups, idMap), audit: sqlOf(ask) })
    }),
  )
  return { ...reads, noteAudit: async (entry) => void (await writeAudit(sqlOf(database.ask), ids, entry, nowMs())) }
}

export function segmentLookups(ask: Ask, { idMap, seed }: Pick<StoreContext, 'idMap' | 'seed'>): SegmentLookups<string> {
  return { parseId: rowAndIndex, seed, destinationIds: (nums) => idMap.idsOf(ask, 'destinations', nums) }
}

export function messageRows(ask: Ask, lookups: SegmentLookups<string>, idMap: IdMap): MessageRows<string> {
  const all = rowsOf(ask)
  return sharedMessageRows(sqlOf(ask), {
    ...lookups,
    source: (id) => idMap.find(ask, 'sources', id),
    async find(messageId) {
      // A key depends on its source, which is not known here, so the keys for all sources that ever existed are looked up.
      const words = new Map<string, Uint32Array>()
      const seed = await lookups.seed()
      for (const { id } of await all<{ id: string }>('SELECT id FROM sources')) {
        const into = new Uint32Array(FINGERPRINT_WORDS)
        fingerprint(messageId, sourceSeed(id, seed), into, 0)
        words.set(keyText(into), into)
      }
      const rows = await all<{ key: string; segment: string }>('SELECT key, segment FROM message_keys WHERE key = ANY($1::uuid[])', [
        [...words.keys()],
      ])
      // Sorted here, because with ORDER BY the server would choose another index to avoid sorting.
      return rows
        .map(({ key, segment }) => ({ segment, fingerprint: words.get(key) as Uint32Array }))
        .sort((a, b) => (a.segment < b.segment ? 1 : -1))
    },
    replays: (messages) =>
      all(
        `SELECT m.place::integer - 1 AS at, r.origin, r.destination
         FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS m(segment, idx, place)
         JOIN replays r ON r.segment = m.segment AND r.idx = m.idx AND r.origin > $3::bigint - ${SKEW} ORDER BY r.origin`,
        [messages.map(({ segment }) => segment), messages.map(({ index }) => index), oldestOf(messages)],
      ),
  })
}

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
    async waitingParts(of, key, origin) {
      const rows = await all<{ parts: string }>(
        `SELECT parts FROM (SELECT parts FROM shipments WHERE holder < 1 AND attempt = -1 AND key IS NOT NULL AND destination = $1 AND key = $2
           LIMIT ${ROWS_PER_PAGE}) s WHERE strpos(s.parts, $3) > 0`,
        [of, key, origin],
      )
      return rows.flatMap(({ parts }) => JSON.parse(parts) as StoredPart<string>[])
    },
    origins: (wanted) => resolveOrigins(ask, wanted),
    async retriesOf(of, origin) {
      const some = (holder: string): string =>
        `(SELECT due, first_attempt, parts FROM (SELECT due, id, first_attempt, parts FROM shipments WHERE ${holder} AND attempt > 0 AND destination = $1
          ORDER BY due, id LIMIT ${ROWS_PER_PAGE}) s WHERE strpos(s.parts, $2) > 0)`
      const ordered = `(SELECT due, first_attempt, parts FROM generate_series(0, ${PARTITIONS - 1}) AS p (part) CROSS JOIN LATERAL (
          SELECT s.due, s.first_attempt, s.parts FROM shipments s WHERE s.holder < 1 AND s.attempt < -1 AND s.destination = $1 AND s.partition = p.part
          ORDER BY s.due, s.id LIMIT ${ROWS_PER_PAGE}) h WHERE strpos(h.parts, $2) > 0)`
      const heldOrdered = `(SELECT due, first_attempt, parts FROM shipments WHERE holder = ANY($3::bigint[]) AND attempt < -1 AND destination = $1 AND strpos(parts, $2) > 0)`
      const sql = [some('holder = 0'), some('holder = ANY($3::bigint[])'), ordered, heldOrdered].join(' UNION ALL ')
      const rows = await all<{ due: number; first_attempt: number | null; parts: string }>(sql, [of, origin, await holders(ask)])
      return rows.map(({ due, first_attempt: firstAttemptAtMs, parts }) => {
        return { dueAtMs: due, firstAttemptAtMs, parts: JSON.parse(parts) as StoredPart<string>[] }
      })
    },
  })
}

// A replay is always newer than its message, so older partitions are not read.
const REPLAY_LINKS = statement({
  parameters: { deliveries: DELIVERIES, oldest: 'value' },
  text: ({
    deliveries,
    oldest,
  }) => `SELECT nullif(own.replay_of, '') AS "replayOf", j.id AS "replayJobId", own.at AS "replayedAtMs", own.resumed,
      CASE WHEN newest.origin > d.origin THEN newest.origin || '-' || d.idx END AS "replayedBy"
    FROM ${deliveries.inOrder('d')}
    LEFT JOIN LATERAL (
      SELECT r.origin FROM replays r
      WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination AND r.origin > ${oldest}::bigint - ${SKEW}
      ORDER BY r.origin DESC LIMIT 1
    ) newest ON true
    LEFT JOIN LATERAL (
      SELECT r.replay_of, r.job, r.at, r.resumed FROM replays r WHERE r.origin = d.origin AND r.idx = d.idx AND newest.origin IS NOT NULL
    ) own ON true
    LEFT JOIN replay_jobs j ON j.num = own.job
    ORDER BY d.place`,
})
