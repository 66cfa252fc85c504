// The row port of segments, for lists of messages and of deliveries, and reading messages from a segment.

import type { RowId, SegmentContent } from '../../model/messages.ts'
import { unpackBody } from '../encoding/body-bytes.ts'
import { type Seed, sourceSeed, userHash } from '../encoding/fingerprint.ts'
import { type Awaitable, isTrue, type RowOrder, type Sql, type SqlValue } from '../encoding/sql.ts'
import { absentIndexes } from '../encoding/stored-parts.ts'
import { readTrace } from '../encoding/trace-column.ts'
import { readViolations } from '../encoding/violations-column.ts'
import { type SegmentAbout, SegmentBody } from '../port/stored-messages.ts'
import type { OriginRows } from './delivery-ids.ts'

/** A segment without its body and its routes. */
export interface SegmentHead<Id extends RowId> {
  seq: Id
  /** The row id of its source. */
  source: Id
  receivedAtMs: number
  count: number
  /** The indexes of duplicates. */
  absent: readonly number[]
  /** Only if requested, because they may be 60 KB. */
  keys?: Uint8Array
}

export interface StoredContent<Id extends RowId> extends SegmentHead<Id> {
  sourceId: string
  ip: string | null
  browser: boolean
  trace: string | null
  violations: string | null
  body: Uint8Array
}

export interface SegmentRow<Id extends RowId> extends StoredContent<Id> {
  /** Routes as JSON. */
  routes: string
  keys: Uint8Array
}

/** How an adapter finds what is not in a row of a segment. */
export type SegmentLookups<Id extends RowId> = Pick<SegmentRows<Id>, 'parseId' | 'seed' | 'destinationIds'>

export interface SegmentRows<Id extends RowId> extends Pick<OriginRows<Id>, 'parseId'> {
  readonly order: RowOrder<Id>
  /** The seed of fingerprints and of hashes of users. */
  seed(): Awaitable<Seed>
  /** All sources that ever existed. */
  sources(): Awaitable<readonly { num: Id; id: string }[]>
  /** Returns a function from row ids of destinations to their ids. */
  destinationIds(nums: readonly Id[]): Awaitable<(num: Id) => string>
  heads(ids: readonly Id[], withKeys: boolean): Awaitable<readonly SegmentHead<Id>[]>
  /** In the order of `ids`, without segments that are no longer stored. Reads only a little ahead, so that a caller can stop early. */
  segments(ids: readonly Id[]): Iterable<SegmentRow<Id>> | AsyncIterable<SegmentRow<Id>>
}

const FIRST_READ = 16
const LONGEST_READ = 128
const BYTES_PER_READ = 4 * 1024 * 1024
const HEAD = 'g.seq, g.source, g.received_at AS "receivedAtMs", g.count, g.absent'
/** Selects the columns of StoredContent, to be followed by a condition. `absent` and `browser` are as the database returns them. */
export const selectContent = (more = ''): string =>
  `SELECT ${HEAD}, s.id AS "sourceId", g.ip, g.browser, g.trace, g.violations, g.body${more} FROM segments g JOIN sources s ON s.num = g.source`

export function segmentRows<Id extends RowId>(sql: Sql<Id>, lookups: SegmentLookups<Id>): SegmentRows<Id> {
  return {
    ...lookups,
    order: sql.order,
    sources: () => sql.all('SELECT num, id FROM sources'),
    heads: (ids, withKeys) => (ids.length === 0 ? [] : readHeads(sql, withKeys, sql.among('g.seq'), sql.list(ids))),
    segments: (ids) => segments(sql, ids),
  }
}

export async function readHeads<Id extends RowId>(
  sql: Sql<Id>,
  withKeys: boolean,
  where: string,
  ...values: SqlValue[]
): Promise<SegmentHead<Id>[]> {
  const rows = await sql.all<SegmentHead<Id>>(`SELECT ${HEAD}${withKeys ? ', g.keys' : ''} FROM segments g WHERE ${where}`, values)
  return rows.map((row) => Object.assign(row, { absent: absentIndexes(row.absent) }))
}

/**
 * Those of the segments that are of these sources. Reads no contents, so that a request about a message of another source takes as long as one about a
 * message that does not exist. Without `sourceIds`: all.
 */
export async function segmentsOf<Id extends RowId>(
  rows: Pick<SegmentRows<Id>, 'heads' | 'sources'>,
  segments: readonly Id[],
  sourceIds: readonly string[] | undefined,
): Promise<readonly Id[]> {
  if (sourceIds === undefined) return segments
  const own = new Set((await rows.sources()).filter(({ id }) => sourceIds.includes(id)).map(({ num }) => num))
  const heads = await rows.heads(segments, false)
  const wanted = new Set(heads.filter(({ source }) => own.has(source)).map(({ seq }) => seq))
  return segments.filter((seq) => wanted.has(seq))
}

/** Reads a few segments at a time, so that memory is bounded however large they are. */
async function* segments<Id extends RowId>(sql: Sql<Id>, seqs: readonly Id[]): AsyncGenerator<SegmentRow<Id>> {
  if (seqs.length === 0) return
  const sizes = await sql.all<{ seq: Id; bytes: number }>(
    `SELECT seq, octet_length(body) AS bytes FROM segments WHERE ${sql.among('seq')}`,
    [sql.list([...new Set(seqs)])],
  )
  const bytesOf = new Map(sizes.map(({ seq, bytes }) => [seq, bytes]))
  const stored = seqs.filter((seq) => bytesOf.has(seq))
  let longest = FIRST_READ
  for (let at = 0; at < stored.length; longest = Math.min(longest * 2, LONGEST_READ)) {
    const some: Id[] = []
    for (let bytes = 0; at < stored.length && some.length < longest && bytes < BYTES_PER_READ; at++) {
      const seq = stored[at] as Id
      some.push(seq)
      bytes += bytesOf.get(seq) as number
    }
    const rows = await sql.all<SegmentRow<Id>>(`${selectContent(', g.keys, g.routes')} WHERE ${sql.among('g.seq')}`, [sql.list(some)])
    const found = new Map(rows.map((row) => [row.seq, row]))
    for (const seq of some) {
      const row = found.get(seq)
      if (row !== undefined) yield Object.assign(row, { absent: absentIndexes(row.absent) })
    }
  }
}

/** A segment with its parsed body. `bytes`: the size of the unpacked body. */
export interface ReadSegment<Id extends RowId> extends SegmentRow<Id> {
  content: SegmentContent
  bytes: number
}

/** `wantedIn` returns the indexes of the messages that are needed, if they are known. The other messages may be null, because parsing a large body is slow. */
export async function* readSegments<Id extends RowId>(
  rows: SegmentRows<Id>,
  ids: readonly Id[],
  wantedIn?: (row: SegmentRow<Id>) => Iterable<number> | undefined,
): AsyncGenerator<ReadSegment<Id>> {
  for await (const row of rows.segments(ids)) {
    const body = unpackBody(row.body)
    const wanted = wantedIn?.(row)
    const stored = bodyOf(row, body)
    yield Object.assign(row, { content: wanted === undefined ? stored.content : stored.contentOf(new Set(wanted)), bytes: body.length })
  }
}

export function bodyOf<Id extends RowId>(row: StoredContent<Id>, body: Uint8Array): SegmentBody {
  const { sourceId, receivedAtMs, ip, browser, trace, absent } = row
  const about: SegmentAbout = { sourceId, receivedAtMs, ip, browser: isTrue(browser), trace: readTrace(trace) }
  if (row.violations !== null) about.violations = readViolations(row.violations)
  return new SegmentBody(body, about, absentIndexes(absent))
}

export async function readSegment<Id extends RowId>(
  rows: SegmentRows<Id>,
  id: Id,
  wanted: Iterable<number>,
): Promise<ReadSegment<Id> | undefined> {
  for await (const segment of readSegments(rows, [id], () => wanted)) return segment
  return undefined
}

/** The hashes of a user in the keys of segments, by the row id of the source. */
export async function userHashes<Id extends RowId>(rows: SegmentRows<Id>, userId: string): Promise<ReadonlyMap<Id, number>> {
  const seed = await rows.seed()
  return new Map((await rows.sources()).map(({ num, id }) => [num, userHash(userId, sourceSeed(id, seed))]))
}
