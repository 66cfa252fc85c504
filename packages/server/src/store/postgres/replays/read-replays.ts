// Replay jobs as they are asked for, and the counting of what one would be made for: in pages, so that a million failures are
// no one long question.

import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import { cursorOf, ROWS_PER_PAGE } from '../../history/paging.ts'
import { replayJobOf, STANDS } from '../../replays/replay-job-row.ts'
import {
  type FinalStateName,
  InvalidCursor,
  type Page,
  type PageRequest,
  type ReplayCount,
  type ReplayJob,
  type ReplayJobState,
  type ReplaySelection,
} from '../../store.ts'
import { afterRowId, isRowId, NEWEST } from '../schema/ids.ts'
import type { Ask, Database } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { writeText } from '../session/texts.ts'
import { resolveNamed } from './replay-origins.ts'
import { type JobRow, rowRange, SELECT_JOBS } from './replay-rows.ts'

const NAMES_PER_PAGE = 200
/** Rows with what they delivered, which may be read too. */
const ATTEMPTS_PER_PAGE = 5_000

interface CountRequest {
  /** Its `num`. */
  destination: string
  state: FinalStateName
  reason: string | null
  /** Where a later delivery of the message came to one of these, that is the one which is repeated. */
  instead: readonly FinalStateName[]
  first: string
  last: string
}

interface CountPage {
  total: number
  alreadyReplayed: number
  /** Where the next page begins; null: there is none. */
  next: string | null
}

export async function listReplays(
  database: Database,
  { state }: { state?: ReplayJobState | undefined },
  { limit, cursor }: PageRequest,
): Promise<Page<ReplayJob>> {
  const [start] = cursorOf('r', cursor, [NEWEST])
  if (!isRowId(start)) throw new InvalidCursor()
  const { rows } = await database.query<JobRow>(
    `${SELECT_JOBS} WHERE j.num <= $1 ${state === undefined ? '' : 'AND j.state = $3'} ORDER BY j.num DESC LIMIT $2`,
    [start, limit + 1, ...(state === undefined ? [] : [state])],
  )
  return { data: rows.slice(0, limit).map(replayJobOf), next: rows.length > limit ? JSON.stringify(['r', rows[limit]?.num]) : null }
}

export async function readReplay(database: Pick<Database, 'query'>, id: string): Promise<ReplayJob | undefined> {
  const { rows } = await database.query<JobRow>(`${SELECT_JOBS} WHERE j.id = $1`, [writeText(id)])
  return rows[0] && replayJobOf(rows[0])
}

export async function countReplays(
  { database, names, configuration }: Parts,
  selection: ReplaySelection,
  bound: string,
): Promise<ReplayCount> {
  if ('deliveryIds' in selection) return countNamed(database, selection.deliveryIds)
  const { first, last } = rowRange(selection.fromMs, selection.toMs, bound)
  // Whether a later one is of the set can be told by its state alone only where nothing else decides.
  const instead = selection.reason === null && selection.toMs === null ? selection.states.filter((state) => state !== 'delivered') : []
  const counted: ReplayCount = { total: 0, alreadyReplayed: 0, byDestination: [] }
  for (const destinationId of selection.destinationId === null ? configuration().destinations.keys() : [selection.destinationId]) {
    const destination = await names.find(database, 'destinations', destinationId)
    if (destination === undefined) continue
    const own = { destinationId, total: 0, alreadyReplayed: 0 }
    for (const state of selection.states) {
      for (let from: string | null = first; from !== null; ) {
        const page: CountPage = await count(database, { destination, state, reason: selection.reason, instead, first: from, last })
        own.total += page.total
        own.alreadyReplayed += page.alreadyReplayed
        from = page.next
      }
    }
    if (own.total === 0) continue
    counted.total += own.total
    counted.alreadyReplayed += own.alreadyReplayed
    counted.byDestination.push(own)
  }
  return counted
}

/** Whether a delivery of the same message came after it and is pending or was delivered. */
const REPLAYED = `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination
  AND r.origin > d.origin AND ${STANDS})`
const SUPERSEDED = `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination
  AND r.origin > d.origin AND r.state = ANY($5::text[]))`

async function count(database: Database, request: CountRequest): Promise<CountPage> {
  const { destination, state, reason, instead, first, last } = request
  if (state === 'delivered') return reason === null ? countDelivered(database, request) : { total: 0, alreadyReplayed: 0, next: null }
  const { rows } = await database.query<{ seen: number; newest: string | null; total: number; replayed: number }>(
    `SELECT count(*) AS seen, max(id) AS newest, count(*) FILTER (WHERE matches) AS total,
            count(*) FILTER (WHERE matches AND (${REPLAYED} OR ${SUPERSEDED})) AS replayed
     FROM (SELECT id, destination, origin, idx, segment, $6::text IS NULL OR reason = $6 AS matches
           FROM failures WHERE destination = $1 AND state = $2 AND id >= $3 AND id <= $4 ORDER BY id LIMIT ${ROWS_PER_PAGE}) d`,
    [destination, state, first, last, instead, reason === null ? null : writeText(reason)],
  )
  const { seen, newest, total, replayed } = rows[0] as (typeof rows)[number]
  return { total, alreadyReplayed: replayed, next: seen < ROWS_PER_PAGE || newest === null ? null : afterRowId(newest) }
}

/** Which messages an attempt delivered is in its doc, and that is read only where something of the segment was sent again. */
async function countDelivered(database: Database, { destination, first, last }: CountRequest): Promise<CountPage> {
  const { rows } = await database.query<{ seen: number; newest: string | null; total: number }>(
    `SELECT count(*) AS seen, max(id) AS newest, coalesce(sum(delivered), 0) AS total
     FROM (SELECT id, delivered FROM attempts WHERE destination = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT ${ATTEMPTS_PER_PAGE}) d`,
    [destination, first, last],
  )
  const { seen, newest, total } = rows[0] as (typeof rows)[number]
  if (newest === null) return { total: 0, alreadyReplayed: 0, next: null }
  const { rows: repeated } = await database.query<{ doc: string; indexes: number[] }>(
    `SELECT d.doc, r.indexes FROM attempts d CROSS JOIN LATERAL (
       SELECT array_agg(r.idx) AS indexes FROM replays r
       WHERE r.segment = d.segment AND r.destination = d.destination AND r.origin > d.origin AND ${STANDS}) r
     WHERE d.destination = $1 AND d.id >= $2 AND d.id <= $3 AND d.delivered > 0 AND r.indexes IS NOT NULL`,
    [destination, first, newest],
  )
  let alreadyReplayed = 0
  for (const { doc, indexes } of repeated) {
    const again = new Set(indexes)
    for (const [state, , of] of (JSON.parse(doc) as AttemptDoc).f) {
      if (state === 'delivered') alreadyReplayed += of.filter((index) => again.has(index)).length
    }
  }
  return { total, alreadyReplayed, next: seen < ATTEMPTS_PER_PAGE ? null : afterRowId(newest) }
}

/** Those of them that there are. */
async function countNamed(database: Database, deliveryIds: readonly string[]): Promise<ReplayCount> {
  const counts = new Map<string, { destinationId: string; total: number; alreadyReplayed: number }>()
  for (let at = 0; at < deliveryIds.length; at += NAMES_PER_PAGE) {
    const found = await database.transaction((ask) => readNamed(ask, deliveryIds.slice(at, at + NAMES_PER_PAGE)), { readOnly: true })
    for (const { id, replayed } of found) {
      const own = counts.get(id) ?? { destinationId: id, total: 0, alreadyReplayed: 0 }
      counts.set(id, { destinationId: id, total: own.total + 1, alreadyReplayed: own.alreadyReplayed + (replayed ? 1 : 0) })
    }
  }
  const byDestination = [...counts.values()]
  const alreadyReplayed = byDestination.reduce((sum, own) => sum + own.alreadyReplayed, 0)
  return { total: deliveryIds.length, alreadyReplayed, byDestination }
}

async function readNamed(ask: Ask, deliveryIds: readonly string[]): Promise<{ id: string; replayed: boolean }[]> {
  const found = (await resolveNamed(ask, deliveryIds)).filter((delivery) => delivery !== undefined)
  if (found.length === 0) return []
  const { rows } = await ask<{ id: string; replayed: boolean }>(
    `SELECT t.id, ${REPLAYED} AS replayed
     FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS d (segment, idx, destination, origin, n)
     JOIN destinations t ON t.num = d.destination ORDER BY d.n`,
    [
      found.map(({ segment }) => segment),
      found.map(({ index }) => index),
      found.map(({ destination }) => destination),
      found.map(({ origin }) => origin),
    ],
  )
  return rows
}
