// Segments as an adapter gives them to lists of messages and of deliveries, and what is read from one.

import { unpackBody } from '../encoding/body-bytes.ts'
import { type Seed, sourceSeed, userHash } from '../encoding/fingerprint.ts'
import type { Awaitable, RowOrder } from '../encoding/row-port.ts'
import { readTrace } from '../encoding/trace-column.ts'
import type { RowId, SegmentContent } from '../port/model.ts'
import { readStoredBody } from '../port/stored-messages.ts'
import type { OriginRows } from './named-deliveries.ts'

/** What is read of a segment without its body. */
export interface SegmentHead<Id extends RowId> {
  seq: Id
  /** Its row. */
  source: Id
  receivedAtMs: number
  count: number
  /** Places of duplicates. */
  absent: readonly number[]
  /** If asked for: they may be 60 KB. */
  keys?: Uint8Array
}

export interface StoredContent<Id extends RowId> extends SegmentHead<Id> {
  sourceId: string
  ip: string | null
  browser: boolean
  trace: string | null
  body: Uint8Array
}

export interface SegmentRow<Id extends RowId> extends StoredContent<Id> {
  /** JSON of Routes. */
  routes: string
  keys: Uint8Array
}

export interface SegmentRows<Id extends RowId> extends Pick<OriginRows<Id>, 'named'> {
  readonly order: RowOrder<Id>
  /** What fingerprints and hashes of users are made with. */
  seed(): Awaitable<Seed>
  /** All there ever were. */
  sources(): Awaitable<readonly { num: Id; id: string }[]>
  /** The ids of destinations by their rows. */
  destinationIds(nums: readonly Id[]): Awaitable<(num: Id) => string>
  heads(names: readonly Id[], withKeys: boolean): Awaitable<readonly SegmentHead<Id>[]>
  /** In the order of the names, without those that are no longer stored. Reads little ahead: who has enough stops. */
  segments(names: readonly Id[]): Iterable<SegmentRow<Id>> | AsyncIterable<SegmentRow<Id>>
}

/** A segment whose body was read, and the bytes that were parsed for it. */
export interface ReadSegment<Id extends RowId> extends SegmentRow<Id> {
  content: SegmentContent
  bytes: number
}

export async function* readSegments<Id extends RowId>(rows: SegmentRows<Id>, names: readonly Id[]): AsyncGenerator<ReadSegment<Id>> {
  for await (const row of rows.segments(names)) {
    const body = unpackBody(row.body)
    yield Object.assign(row, { content: contentOf(row, body), bytes: body.length })
  }
}

export function contentOf<Id extends RowId>(row: StoredContent<Id>, body: Uint8Array): SegmentContent {
  const { sourceId, receivedAtMs, ip, browser, trace, absent } = row
  return readStoredBody(body, { sourceId, receivedAtMs, ip, browser, trace: readTrace(trace) }, absent)
}

export async function readSegment<Id extends RowId>(rows: SegmentRows<Id>, name: Id): Promise<ReadSegment<Id> | undefined> {
  for await (const segment of readSegments(rows, [name])) return segment
  return undefined
}

/** What a user's messages carry in their keys, by the source's row. */
export async function userHashes<Id extends RowId>(rows: SegmentRows<Id>, userId: string): Promise<ReadonlyMap<Id, number>> {
  const seed = await rows.seed()
  return new Map((await rows.sources()).map(({ num, id }) => [num, userHash(userId, sourceSeed(id, seed))]))
}
