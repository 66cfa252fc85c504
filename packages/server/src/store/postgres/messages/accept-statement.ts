// The statement that accepts a group of batches: see accepting.ts.

import type { PlannedHandOver } from '../../delivery/hand-to-delivery.ts'
import type { PlannedShipment } from '../../delivery/ordered-shipments.ts'
import { packBody } from '../../encoding/body-bytes.ts'
import { writeTrace } from '../../encoding/trace-column.ts'
import { writeViolations } from '../../encoding/violations-column.ts'
import type { AcceptBatch, Configuration } from '../../store.ts'
import { Columns, plainColumns, type RowOf, statement, type Texts } from '../session/row-parameters.ts'
import { LEDGER, QUARANTINE_COUNTS, SOURCE_COUNTS } from '../tables/ledger-deltas.ts'

export interface Item {
  batch: AcceptBatch
  keys: Uint32Array
  shipments: readonly PlannedShipment[]
  wanted: PlannedHandOver[]
  /** Whether `reserve` was called for each of its shipments. */
  hasCalledReserve: boolean
  /** The configuration by which the batch was planned and suppressed users were dropped. */
  configuration: Configuration
}

export interface PlannedSegment {
  seq: string
  /** The source's `num`. */
  source: string
  item: Item
  routes: string
}

export interface Planned {
  id: string
  /** The row id that the ids of its deliveries contain. The ordered shipments of one request to the same destination share that of the first. */
  origin: string
  item: Item
  segment: string
  destinationId: string
  /** The destination's `num`. */
  destination: string
  indexes: readonly number[] | null
  /** One for each index, and their partition, if the messages are delivered in order. */
  keys: readonly number[] | undefined
  partition: number | undefined
  count: number
  own: boolean
  /** The holder id of the node that holds it from the start, or '0' for none. */
  holder: string
}

const KEYS = plainColumns({ key: 'uuid', segment: 'bigint', idx: 'integer' })

const SEGMENTS = new Columns<PlannedSegment>({
  seq: ['bigint', ({ seq }) => seq],
  source: ['bigint', ({ source }) => source],
  received_at: ['bigint', ({ item }) => Math.floor(item.batch.content.receivedAtMs)],
  count: ['integer', ({ item }) => item.batch.messageIds.length],
  browser: ['boolean', ({ item }) => item.batch.content.browser],
  ip: ['text', ({ item }) => item.batch.content.ip],
  trace: ['text', ({ item }) => writeTrace(item.batch.content.trace)],
  violations: ['text', ({ item }) => writeViolations(item.batch.content.violations)],
  routes: ['text', ({ routes }) => routes],
  keys: ['bytea', ({ item: { keys } }) => new Uint8Array(keys.buffer, keys.byteOffset, keys.byteLength)],
  body: ['bytea', ({ item }) => packBody(item.batch.body)],
})

const SHIPMENTS = new Columns<Planned>({
  holder: ['bigint', ({ holder }) => holder],
  id: ['bigint', ({ id }) => id],
  segment: ['bigint', ({ segment }) => segment],
  destination: ['bigint', ({ destination }) => destination],
  count: ['integer', ({ count }) => count],
  bytes: ['integer', ({ item }) => item.batch.body.length],
  indexes: ['text', ({ indexes }) => (indexes === null ? null : `{${indexes.join(',')}}`)],
  part: ['bigint', ({ partition }) => partition ?? null],
  parts: [
    'text',
    ({ origin, segment, indexes, keys }) =>
      `[["${origin}","${segment}",${indexes === null ? 0 : `[${indexes.join(',')}]`}${keys === undefined ? '' : `,[${keys.join(',')}]`}]]`,
  ],
})

const DELTAS = plainColumns({ id: 'bigint', subject: 'bigint' })

/** Compared with the error that refuse() raises. */
export const DESTINATION_DELETED = 'a destination was deleted'

/** Messages that a tracking plan holds back. */
const QUARANTINED = plainColumns({ segment: 'bigint', idx: 'integer', source: 'bigint', plan: 'text', rule: 'text' })

export type QuarantinedRow = RowOf<typeof QUARANTINED>

const PARAMETERS = {
  holder: 'value',
  day: 'value',
  isAfterMidnight: 'value',
  keys: KEYS,
  segments: SEGMENTS,
  shipments: SHIPMENTS,
  destinations: DELTAS,
  sources: DELTAS,
} as const

function acceptText(
  { holder, day, isAfterMidnight, keys, segments, shipments, destinations, sources }: Texts<typeof PARAMETERS>,
  more = '',
): string {
  return `
WITH k AS MATERIALIZED (
  SELECT * FROM ${keys.as('k')}
), day_before AS (
  INSERT INTO message_keys (day, key, segment) SELECT ${day}::integer - 1, k.key, k.segment FROM k WHERE ${isAfterMidnight} AND k.key IS NOT NULL
  ORDER BY k.key ON CONFLICT DO NOTHING RETURNING key
), new AS (
  INSERT INTO message_keys (day, key, segment)
  SELECT ${day}, k.key, k.segment FROM k
  -- Not written as NOT EXISTS, for which the planner may scan all keys of a day.
  WHERE k.key IS NOT NULL AND (SELECT y.segment FROM message_keys y WHERE y.key = k.key AND y.day = ${day} - 1 LIMIT 1) IS NULL
    AND (NOT ${isAfterMidnight} OR EXISTS (SELECT FROM day_before t WHERE t.key = k.key))
  -- All nodes use the same order, to avoid deadlocks.
  ORDER BY k.key ON CONFLICT DO NOTHING RETURNING key
), dup AS MATERIALIZED (
  SELECT k.segment, array_agg(k.idx ORDER BY k.idx) AS absent FROM k LEFT JOIN new ON new.key = k.key WHERE new.key IS NULL GROUP BY k.segment
), s AS MATERIALIZED (
  SELECT s.*, d.absent, coalesce(cardinality(d.absent), 0) AS gone FROM ${segments.as('s')} LEFT JOIN dup d ON d.segment = s.seq
), seg AS (
  INSERT INTO segments (absent, ${segments.names}) SELECT absent, ${segments.names} FROM s WHERE count = 0 OR gone < count
), p AS MATERIALIZED (
  SELECT p.*, CASE WHEN d.absent IS NULL THEN 0 WHEN p.indexes IS NULL THEN cardinality(d.absent)
    ELSE (SELECT count(*) FROM unnest(d.absent) a WHERE a = ANY (p.indexes::integer[])) END AS gone
  FROM ${shipments.as('p')} LEFT JOIN dup d ON d.segment = p.segment
), ship AS (
  INSERT INTO shipments (holder, id, destination, claim, count, bytes, parts, partition, attempt, ord)
  -- The place in the order of acceptance is drawn before the commit, so it is smaller than that of a request sent after the acknowledgement.
  SELECT holder, id, destination, CASE WHEN holder = 0 THEN 0 ELSE 1 END, count - gone, bytes, parts,
    part, CASE WHEN part IS NULL THEN 0 ELSE -1 END, CASE WHEN part IS NULL THEN NULL ELSE nextval('order_places') END FROM p WHERE count > gone
), delta AS (
  INSERT INTO deltas (id, kind, subject, counts)
  SELECT b.id, ${LEDGER}, b.subject, ARRAY[o.owed, 0, o.owed, 0, 0, 0]
  FROM ${destinations.as('b')}
  JOIN (SELECT destination, sum(count - gone)::bigint AS owed FROM p GROUP BY destination) o ON o.destination = b.subject AND o.owed > 0
  UNION ALL
  SELECT b.id, ${SOURCE_COUNTS}, b.subject, ARRAY[c.accepted, c.duplicates, 0, 0]
  FROM ${sources.as('b')}
  JOIN (SELECT source, sum(count - gone)::bigint AS accepted, sum(gone)::bigint AS duplicates FROM s GROUP BY source) c ON c.source = b.subject
)${more}
SELECT (SELECT json_agg(json_build_object('segment', segment::text, 'absent', absent)) FROM dup) AS dups,
  CASE WHEN NOT EXISTS (SELECT FROM nodes WHERE holder = ${holder}) THEN refuse('this node was declared dead')
       WHEN EXISTS (SELECT FROM destinations WHERE num = ANY (${destinations.array('subject')}) AND deleted) THEN refuse('${DESTINATION_DELETED}') END AS refused`
}

export const ACCEPT = statement({ name: 'accept', parameters: PARAMETERS, text: (texts) => acceptText(texts) })

/** For groups with quarantined messages. Duplicates among them are not stored. */
export const ACCEPT_QUARANTINED = statement({
  name: 'accept-quarantined',
  parameters: { ...PARAMETERS, quarantined: QUARANTINED, holding: DELTAS },
  text: ({ quarantined, holding, ...texts }) =>
    acceptText(
      texts,
      `, q AS (
  INSERT INTO quarantine (${quarantined.names}) SELECT q.* FROM ${quarantined.as('q')} LEFT JOIN dup d ON d.segment = q.segment
  WHERE d.absent IS NULL OR q.idx <> ALL (d.absent) RETURNING source
), q_delta AS (
  INSERT INTO deltas (id, kind, subject, counts)
  SELECT b.id, ${QUARANTINE_COUNTS}, b.subject, ARRAY[c.held, 0, 0]
  FROM ${holding.as('b')} JOIN (SELECT source, count(*) AS held FROM q GROUP BY source) c ON c.source = b.subject
)`,
    ),
})
