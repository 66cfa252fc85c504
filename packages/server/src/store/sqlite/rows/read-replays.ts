// Replay jobs as they are asked for, and the counting of what one would be made for: in pages, so that a million failures
// do not keep other questions waiting.

import { cursorOf, NEWEST, ROWS_PER_PAGE } from '../../history/paging.ts'
import { type ReplayJobRow, replayJobOf, STANDS } from '../../replays/replay-job-row.ts'
import type { FinalStateName, Page, PageRequest, ReplayCount, ReplayJob, ReplayJobState } from '../../store.ts'
import { type Origin, resolveOrigin } from '../messages/origins.ts'
import { absentIndexes, owedIndexes } from '../messages/read-claims.ts'
import { rowAndIndex } from '../schema/ids.ts'
import type { Rows } from './rows.ts'

export interface ReplayCountRequest {
  destinationId: string
  state: FinalStateName
  reason: string | null
  /** Where a later delivery of the message came to one of these, that is the one which is repeated. */
  instead: readonly FinalStateName[]
  first: number
  last: number
}

export interface ReplayCountPage {
  total: number
  alreadyReplayed: number
  /** Where the next page begins; null: there is none. */
  next: number | null
}

/** Whether a delivery of the same message came after it and is pending or was delivered. */
const replayed = (index: string): string =>
  `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = ${index} AND r.destination = d.destination
    AND r.origin > d.origin AND ${STANDS})`
const REPLAYED = replayed('d.idx')
const SUPERSEDED = `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination
  AND r.origin > d.origin AND r.state IN (SELECT value FROM json_each(?5)))`

export class ReplayReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  list({ state }: { state?: ReplayJobState | undefined }, { limit, cursor }: PageRequest): Page<ReplayJob> {
    const [start] = cursorOf('r', cursor, [NEWEST])
    const rows = (
      state === undefined
        ? this.#rows.all('SELECT * FROM replay_jobs WHERE num <= ? ORDER BY num DESC LIMIT ?', start, limit + 1)
        : this.#rows.all('SELECT * FROM replay_jobs WHERE state = ? AND num <= ? ORDER BY num DESC LIMIT ?', state, start, limit + 1)
    ) as ReplayJobRow<number>[]
    return { data: rows.slice(0, limit).map(replayJobOf), next: rows.length > limit ? JSON.stringify(['r', rows[limit]?.num]) : null }
  }

  one(id: string): ReplayJob | undefined {
    const row = this.#rows.get('SELECT * FROM replay_jobs WHERE id = ?', id) as ReplayJobRow<number> | undefined
    return row && replayJobOf(row)
  }

  count({ destinationId, state, reason, instead, first, last }: ReplayCountRequest): ReplayCountPage {
    const destination = this.#rows.destinations.num(destinationId)
    if (destination === undefined || (state === 'delivered' && reason !== null)) return { total: 0, alreadyReplayed: 0, next: null }
    if (state === 'delivered') return this.#countDelivered(destination, first, last)
    const found = this.#rows.get(
      `SELECT count(*) AS seen, max(id) AS newest, ifnull(sum(matches), 0) AS total,
              ifnull(sum(matches AND (${REPLAYED} OR ${SUPERSEDED})), 0) AS replayed
       FROM (SELECT id, destination, origin, idx, segment, ${reason === null ? '1' : 'reason = ?6'} AS matches
             FROM failures WHERE destination = ?1 AND state = ?2 AND id >= ?3 AND id <= ?4 ORDER BY id LIMIT ${ROWS_PER_PAGE}) d`,
      destination,
      state,
      first,
      last,
      JSON.stringify(instead),
      ...(reason === null ? [] : [reason]),
    ) as { seen: number; newest: number | null; total: number; replayed: number }
    return pageOf(found)
  }

  /** Those of them that there are. */
  countNamed(deliveryIds: readonly string[]): ReplayCount {
    const counts = new Map<number, { total: number; alreadyReplayed: number }>()
    for (const id of deliveryIds) {
      const named = rowAndIndex(id)
      const origin = named && resolveOrigin(this.#rows.database, named.row)
      if (!named || !origin || !this.#indexesOf(origin).includes(named.index)) continue
      const { replayed } = this.#rows.get(
        `SELECT ${REPLAYED} AS replayed FROM (SELECT ? AS segment, ? AS idx, ? AS destination, ? AS origin) d`,
        origin.segment,
        named.index,
        origin.destination,
        named.row,
      ) as { replayed: number }
      const own = counts.get(origin.destination) ?? { total: 0, alreadyReplayed: 0 }
      counts.set(origin.destination, { total: own.total + 1, alreadyReplayed: own.alreadyReplayed + replayed })
    }
    const byDestination = [...counts].map(([num, own]) => Object.assign({ destinationId: this.#rows.destinations.id(num) }, own))
    const alreadyReplayed = byDestination.reduce((sum, own) => sum + own.alreadyReplayed, 0)
    return { total: deliveryIds.length, alreadyReplayed, byDestination }
  }

  #indexesOf({ segment, indexes }: Origin): readonly number[] {
    if (indexes !== 0) return indexes
    const row = this.#rows.get('SELECT count, absent FROM segments WHERE seq = ?', segment) as { count: number; absent: string | null }
    return owedIndexes(row.count, absentIndexes(row.absent))
  }

  #countDelivered(destination: number, first: number, last: number): ReplayCountPage {
    const found = this.#rows.get(
      `SELECT count(*) AS seen, max(id) AS newest, ifnull(sum(delivered), 0) AS total, ifnull(sum(CASE WHEN delivered > 0 THEN (
         SELECT count(*) FROM json_each(doc, '$.f') f, json_each(f.value, '$[2]') i
         WHERE json_extract(f.value, '$[0]') = 'delivered' AND ${replayed('i.value')}) ELSE 0 END), 0) AS replayed
       FROM (SELECT id, destination, origin, segment, delivered, doc FROM attempts
             WHERE destination = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ${ROWS_PER_PAGE}) d`,
      destination,
      first,
      last,
    ) as { seen: number; newest: number | null; total: number; replayed: number }
    return pageOf(found)
  }
}

function pageOf({
  seen,
  newest,
  total,
  replayed,
}: {
  seen: number
  newest: number | null
  total: number
  replayed: number
}): ReplayCountPage {
  return { total, alreadyReplayed: replayed, next: seen < ROWS_PER_PAGE || newest === null ? null : newest + 1 }
}
