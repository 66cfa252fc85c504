// The row ports of lists of messages and of deliveries, for SQLite.

import type { DatabaseSync } from 'node:sqlite'
import type { Seed } from '../../encoding/fingerprint.ts'
import { absentIndexes, owedIndexes, type Routes, type StoredPart } from '../../encoding/stored-parts.ts'
import type { Origin } from '../../history/delivery-ids.ts'
import {
  type DeliveryRows,
  type PendingPlace,
  type PendingRow,
  type ReplayLinks,
  deliveryRows as sharedDeliveryRows,
} from '../../history/delivery-rows.ts'
import { type FoundKey, type MessageRows, messageRows as sharedMessageRows } from '../../history/message-rows.ts'
import { MAX_STEP_OF_PENDING, ROWS_PER_PAGE, steps } from '../../history/paging.ts'
import type { SegmentLookups } from '../../history/segment-rows.ts'
import { RELEASED } from '../../replays/replay-job-row.ts'
import { rowAndIndex } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import { readSetting } from '../schema/settings.ts'
import { readLedger } from './book-rows.ts'

export interface ShipmentRow {
  destination: number
  class: number
  due: number
  id: number
  count: number
  attempt: number
  first_attempt: number | null
  unit: number
  replay: number
  urls: string | null
  parts: string
  /** Null unless its messages are delivered in order. */
  ord: number | null
}

export function deliveryRows(rows: Rows): DeliveryRows<number> {
  return sharedDeliveryRows(rows, {
    ...segmentLookups(rows),
    destination: (id) => rows.destinations.num(id),
    firstPending: (destination) => [destination ?? 0, 0, 0, 0],
    pending: (destination, from, first) =>
      steps<PendingRow<number>, PendingPlace>(
        from,
        ({ place: [num, type, due, id] }) => [num, type, due, Math.max((id as number) + 1, type === 0 ? first : 0)] as PendingPlace,
        ([num, ...rest], count) =>
          rows
            .all<ShipmentRow>(
              // `destination = ?` is needed: with one comparison of all four columns, SQLite would begin at the destination's first row instead of the place.
              `SELECT * FROM shipments WHERE ${destination === null ? '(destination, class, due, id) >= (?, ' : 'destination = ? AND (class, due, id) >= ('}?, ?, ?)
               ORDER BY destination, class, due, id LIMIT ?`,
              [destination ?? (num as number), ...rest, count],
            )
            .map((row) => ({
              place: [row.destination, row.class, row.due, row.id],
              destination: row.destination,
              attempts: row.attempt,
              replay: row.replay === 1,
              // The other classes have none.
              dueAtMs: row.class === 1 || row.class === 3 ? row.due : 0,
              firstAttemptAtMs: row.first_attempt,
              parts: JSON.parse(row.parts) as StoredPart<number>[],
            })),
        MAX_STEP_OF_PENDING,
      ),
    numberedAttempts: (of) =>
      rows.all(
        // CROSS JOIN: SQLite reads the list first, and the attempts by the index of their origins.
        `SELECT a.id, a.origin, octet_length(a.doc) AS bytes FROM json_each(?) w
         CROSS JOIN attempts a ON a.origin = w.value->>'origin' AND a.attempt = w.value->>'attempt' ORDER BY a.id`,
        [JSON.stringify(of)],
      ),
    replayLinks: (deliveries) =>
      rows.all<ReplayLinks>(
        // Most deliveries have no replay, which one index lookup shows.
        `SELECT nullif(r.replay_of, '') AS replayOf, j.id AS replayJobId, r.at AS replayedAtMs, r.resumed,
                CASE WHEN d.newest > d.origin THEN d.newest || '-' || d.idx END AS replayedBy
         FROM (
           SELECT key AS place, value->>'origin' AS origin, value->>'index' AS idx, (
             SELECT max(n.origin) FROM replays n
             WHERE n.segment = value->>'segment' AND n.idx = value->>'index' AND n.destination = value->>'destination'
           ) AS newest
           FROM json_each(?)
         ) d
         LEFT JOIN replays r ON d.newest IS NOT NULL AND r.origin = d.origin AND r.idx = d.idx
         LEFT JOIN replay_jobs j ON j.num = r.job ORDER BY d.place`,
        [JSON.stringify(deliveries.map(({ origin, index, segment, destination }) => ({ origin, index, segment, destination })))],
      ),
    ledger: () => readLedger(rows),
    waitingParts: (destination, key, origin) =>
      rows
        .all<{ parts: string }>(
          `SELECT parts FROM (SELECT parts FROM shipments WHERE destination = ? AND class = 4 AND due = ? LIMIT ${ROWS_PER_PAGE}) WHERE instr(parts, ?)`,
          [destination, key, String(origin)],
        )
        .flatMap(({ parts }) => JSON.parse(parts) as StoredPart<number>[]),
    origins: (ids) => resolveOrigins(rows.database, ids),
    retriesOf: (destination, origin) =>
      rows
        .all<{ due: number; first_attempt: number | null; parts: string }>(
          `SELECT due, first_attempt, parts FROM (
             SELECT due, id, first_attempt, parts FROM shipments WHERE destination = ? AND class IN (1, 3) ORDER BY due, id LIMIT ${ROWS_PER_PAGE}
           ) WHERE instr(parts, ?) ORDER BY due, id`,
          [destination, String(origin)],
        )
        .map(({ due, first_attempt: firstAttemptAtMs, parts }) => {
          return { dueAtMs: due, firstAttemptAtMs, parts: JSON.parse(parts) as StoredPart<number>[] }
        }),
  })
}

export function segmentLookups(rows: Rows): SegmentLookups<number> {
  return {
    parseId: rowAndIndex,
    seed: () => JSON.parse(readSetting(rows.database, 'dedup_seed') as string) as Seed,
    destinationIds: () => (num) => rows.destinations.id(num),
  }
}

/** Only the writing thread can find a messageId, so it is asked first, and its result is passed here as `found`. */
export function messageRows(rows: Rows, found: readonly FoundKey<number>[]): MessageRows<number> {
  return sharedMessageRows(rows, {
    ...segmentLookups(rows),
    source: (id) => rows.sources.num(id),
    find: () => [...found].sort((a, b) => b.segment - a.segment),
    replays: (messages) =>
      rows.all(
        `SELECT m.key AS at, r.origin, r.destination FROM json_each(?) m
         JOIN replays r ON r.segment = m.value->>'segment' AND r.idx = m.value->>'index' ORDER BY r.origin`,
        [JSON.stringify(messages)],
      ),
  })
}

/**
 * Resolves origins, the row ids in ids of deliveries, to the segment and the destination. The row id of a shipment follows that of its segment, so
 * the segment is the last one before it. A replay has its own row, and so has the delivery of a message that was released from quarantine. No
 * index by delivery is needed.
 */
export function resolveOrigins(database: DatabaseSync, ids: readonly number[]): Map<number, Origin<number>> {
  const replays = database.prepare('SELECT destination, segment, idx, state FROM replays WHERE origin = ? ORDER BY idx')
  const segments = database.prepare('SELECT seq, routes, count, absent FROM segments WHERE seq < ? ORDER BY seq DESC LIMIT 1')
  const found = new Map<number, Origin<number>>()
  for (const id of ids) {
    const rows = replays.all(id) as { destination: number; segment: number; idx: number; state: string | null }[]
    if (rows[0]) {
      const { destination, segment, state } = rows[0]
      found.set(id, { destination, segment, indexes: rows.map(({ idx }) => idx), replay: state !== RELEASED })
      continue
    }
    const row = segments.get(id) as { seq: number; routes: string; count: number; absent: string | null } | undefined
    const route = row && (JSON.parse(row.routes) as Routes<number>).s.find(([, origin]) => origin === id)
    if (!row || !route) continue
    const indexes = owedIndexes(route[2], row.count, absentIndexes(row.absent))
    found.set(id, { destination: route[0], segment: row.seq, indexes, replay: false })
  }
  return found
}
