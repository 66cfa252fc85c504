// The row port of the quarantine.

import type { RowId } from '../../model/messages.ts'
import { type Awaitable, isTrue, type Sql, type SqlValue } from '../encoding/sql.ts'
import type { OriginRows } from '../history/delivery-ids.ts'
import { type SegmentLookups, type SegmentRows, segmentRows } from '../history/segment-rows.ts'
import { lockDestinations, type OwedAgain } from '../replays/replay-rows.ts'

/** A message in quarantine. */
export interface Place<Id extends RowId> {
  segment: Id
  index: number
}

export interface QuarantineRow<Id extends RowId> extends Place<Id> {
  planId: string
  rule: string
}

export interface LockedSegment<Id extends RowId> {
  seq: Id
  source: Id
  sourceDeleted: boolean
  routes: string
  bytes: number
}

export interface HeldQuery<Id extends RowId> {
  /** The row id of the source. */
  source?: Id | undefined
  /** The row ids of the sources to choose from. */
  sources?: readonly Id[] | undefined
  planId?: string | undefined
  rule?: string | undefined
  /** The first row, and the direction in which the others follow. */
  from: Place<Id>
  oldestFirst: boolean
  limit: number
}

export interface QuarantineReadRows<Id extends RowId> extends SegmentRows<Id> {
  /** The row id of a source; undefined if it never existed. */
  source(id: string): Awaitable<Id | undefined>
  held(query: HeldQuery<Id>): Awaitable<readonly QuarantineRow<Id>[]>
  heldAt(places: readonly Place<Id>[]): Awaitable<readonly QuarantineRow<Id>[]>
}

const COLUMNS = 'segment, idx AS "index", plan AS "planId", rule'

export function quarantineReadRows<Id extends RowId>(
  sql: Sql<Id>,
  own: SegmentLookups<Id> & Pick<QuarantineReadRows<Id>, 'source'>,
): QuarantineReadRows<Id> {
  return {
    ...segmentRows(sql, own),
    source: own.source,
    async held({ source, sources, planId, rule, from, oldestFirst, limit }) {
      const values: SqlValue[] = [from.segment, from.index]
      const conditions = [`(segment, idx) ${oldestFirst ? '>=' : '<='} (?, ?)`]
      for (const [column, value] of Object.entries({ source, plan: planId && sql.text(planId), rule: rule && sql.text(rule) })) {
        if (value === undefined) continue
        conditions.push(`${column} = ?`)
        values.push(value)
      }
      if (sources !== undefined) {
        conditions.push(sql.among('source'))
        values.push(sql.list(sources))
      }
      const direction = oldestFirst ? 'ASC' : 'DESC'
      const rows = await sql.all<QuarantineRow<Id>>(
        `SELECT ${COLUMNS} FROM quarantine WHERE ${conditions.join(' AND ')} ORDER BY segment ${direction}, idx ${direction} LIMIT ?`,
        [...values, limit],
      )
      return rows.map((row) => sql.read(row, 'planId', 'rule'))
    },
    async heldAt(places) {
      if (places.length === 0) return []
      const wanted = new Set(places.map(({ segment, index }) => `${segment}-${index}`))
      const rows = await sql.all<QuarantineRow<Id>>(
        `SELECT ${COLUMNS} FROM quarantine WHERE ${sql.among('segment')} ORDER BY segment, idx`,
        [sql.list([...new Set(places.map(({ segment }) => segment))])],
      )
      return rows.filter(({ segment, index }) => wanted.has(`${segment}-${index}`)).map((row) => sql.read(row, 'planId', 'rule'))
    },
  }
}

/** Inside the transaction that ends the quarantine of messages. */
export interface QuarantineChanges<Id extends RowId> extends Pick<OriginRows<Id>, 'parseId'> {
  /** Locks the segments, so that the quarantine of their messages cannot end in another transaction. Segments that are not stored are missing. */
  lock(segments: readonly Id[]): Awaitable<readonly LockedSegment<Id>[]>
  /** Deletes the rows of messages whose segments are locked, and returns those that existed. */
  take(places: readonly Place<Id>[]): Awaitable<readonly Place<Id>[]>
  /** Locks the destinations against deletion until the transaction ends. Those that never existed are missing. */
  destinations(ids: readonly string[]): Awaitable<readonly { num: Id; id: string; deleted: boolean }[]>
  owe(shipments: readonly OwedAgain<Id>[], atMs: number): Awaitable<unknown>
  saveRoutes(segment: Id, routes: string): Awaitable<void>
  /** Counts messages of a source that left the quarantine. */
  count(source: Id, outcome: 'released' | 'deleted', count: number): Awaitable<void>
}

export function quarantineChanges<Id extends RowId>(
  sql: Sql<Id>,
  own: Pick<QuarantineChanges<Id>, 'parseId' | 'take' | 'owe' | 'count'>,
): QuarantineChanges<Id> {
  return {
    ...own,
    async lock(segments) {
      const rows = await sql.all<LockedSegment<Id>>(
        `SELECT g.seq, g.source, s.deleted AS "sourceDeleted", g.routes, octet_length(g.body) AS bytes
         FROM segments g JOIN sources s ON s.num = g.source WHERE ${sql.among('g.seq')} ORDER BY g.seq ${sql.lock('FOR NO KEY UPDATE OF g')}`,
        [sql.list(segments)],
      )
      return rows.map((row) => Object.assign(row, { sourceDeleted: isTrue(row.sourceDeleted) }))
    },
    destinations: (ids) => lockDestinations(sql, sql.among('id', 'text'), ids),
    saveRoutes: async (segment, routes) => void (await sql.run('UPDATE segments SET routes = ? WHERE seq = ?', [routes, segment])),
  }
}
