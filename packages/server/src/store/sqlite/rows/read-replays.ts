// Reads replay jobs, and counts the deliveries that a new job would have.

import { resolveDeliveryIds } from '../../history/delivery-ids.ts'
import { PENDING_OR_DELIVERED, type ReplayJobRow } from '../../replays/replay-job-row.ts'
import type { ReplayJobRows, RowCount } from '../../replays/replay-rows.ts'
import { rowAndIndex } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import { resolveOrigins } from './history-rows.ts'

/** SQL: whether there is a later delivery of the same message that is pending or was delivered. */
const replayed = (index: string): string =>
  `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = ${index} AND r.destination = d.destination
    AND r.origin > d.origin AND ${PENDING_OR_DELIVERED})`
const REPLAYED = replayed('d.idx')
const SUPERSEDED = `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination
  AND r.origin > d.origin AND r.state IN (SELECT value FROM json_each(?5)))`

/** SQL: whether the message is of one of the sources. The parameter is a list of row ids as JSON. */
const ofSources = (parameter: string): string =>
  `EXISTS (SELECT 1 FROM segments g WHERE g.seq = d.segment AND g.source IN (SELECT value FROM json_each(${parameter})))`

type ReplayReads = Pick<ReplayJobRows<number>, 'newest' | 'one' | 'countFailures' | 'countDelivered' | 'countByIds'>

export function replayReads(rows: Rows): ReplayReads {
  const origins = (ids: readonly number[]) => resolveOrigins(rows.database, ids)
  const numbers = (sourceIds: readonly string[] | undefined): string | null =>
    sourceIds === undefined ? null : JSON.stringify(sourceIds.map((id) => rows.sources.num(id) ?? 0))
  return {
    newest: async (state, last, limit) =>
      rows.all(
        `SELECT * FROM replay_jobs WHERE ${state === undefined ? '' : 'state = ? AND '}num <= ? ORDER BY num DESC LIMIT ?`,
        state === undefined ? [last, limit] : [state, last, limit],
      ),

    one: async (id) => rows.all<ReplayJobRow<number>>('SELECT * FROM replay_jobs WHERE id = ?', [id])[0],

    countFailures: async ({ destinationId, sourceIds, state, reason, instead, first, last, limit }) =>
      rows.all(
        `SELECT count(*) AS seen, max(id) AS newest, ifnull(sum(matches), 0) AS total,
                ifnull(sum(matches AND (${REPLAYED} OR ${SUPERSEDED})), 0) AS replayed
         FROM (SELECT id, destination, origin, idx, segment, (?7 IS NULL OR reason = ?7) AND (?8 IS NULL OR ${ofSources('?8')}) AS matches
               FROM failures d WHERE destination = ?1 AND state = ?2 AND id >= ?3 AND id <= ?4 ORDER BY id LIMIT ?6) d`,
        [rows.destinations.num(destinationId) ?? -1, state, first, last, JSON.stringify(instead), limit, reason, numbers(sourceIds)],
      )[0] as RowCount<number>,

    countDelivered: async ({ destinationId, sourceIds, first, last, limit }) =>
      rows.all(
        `SELECT count(*) AS seen, max(id) AS newest, ifnull(sum(delivered), 0) AS total, ifnull(sum(CASE WHEN delivered > 0 THEN (
           SELECT count(*) FROM json_each(doc, '$.f') f, json_each(f.value, '$[2]') i
           WHERE json_extract(f.value, '$[0]') = 'delivered' AND ${replayed('i.value')}) ELSE 0 END), 0) AS replayed
         FROM (SELECT id, destination, origin, segment, CASE WHEN ?5 IS NULL OR ${ofSources('?5')} THEN delivered ELSE 0 END AS delivered, doc
               FROM attempts d WHERE destination = ?1 AND id >= ?2 AND id <= ?3 ORDER BY id LIMIT ?4) d`,
        [rows.destinations.num(destinationId) ?? -1, first, last, limit, numbers(sourceIds)],
      )[0] as RowCount<number>,

    async countByIds(deliveryIds, sourceIds) {
      const found = await resolveDeliveryIds({ parseId: rowAndIndex, origins }, deliveryIds)
      return found.flatMap((delivery) => {
        if (delivery === undefined) return []
        const { destination, segment, index, origin } = delivery
        const own = rows.all(`SELECT 1 FROM (SELECT ?1 AS segment) d WHERE ?2 IS NULL OR ${ofSources('?2')}`, [segment, numbers(sourceIds)])
        if (own.length === 0) return []
        const later = rows.all(`SELECT 1 FROM (SELECT ? AS segment, ? AS idx, ? AS destination, ? AS origin) d WHERE ${REPLAYED}`, [
          segment,
          index,
          destination,
          origin,
        ])
        return { destinationId: rows.destinations.id(destination), replayed: later.length > 0 }
      })
    },
  }
}
