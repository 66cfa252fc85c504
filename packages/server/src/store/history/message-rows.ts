// The rows that lists of messages are made of, as an adapter gives them.

import type { Awaitable } from '../encoding/row-port.ts'
import type { RowId } from '../port/model.ts'
import type { RepeatRow } from './repeat-counts.ts'
import type { SegmentHead, SegmentRows } from './segment-rows.ts'

/** A segment that has the key of a messageId, and its fingerprint. */
export interface FoundKey<Id extends RowId> {
  segment: Id
  fingerprint: Uint32Array
}

export interface MessageRows<Id extends RowId> extends SegmentRows<Id> {
  /** The row of a source; undefined when there never was one. */
  source(id: string): Awaitable<Id | undefined>
  /** Newest first, with names from `first` to `last`. */
  newest(withKeys: boolean, first: Id, last: Id, limit: number): Awaitable<readonly SegmentHead<Id>[]>
  /** Where a messageId may be, of any source, newest first. */
  find(messageId: string): Awaitable<readonly FoundKey<Id>[]>
  /** Deliveries of messages owed once more, oldest first; `at` is the message's place among those asked for. */
  replays(messages: readonly { segment: Id; index: number }[]): Awaitable<readonly { at: number; origin: Id; destination: Id }[]>
  repeats(segments: readonly Id[]): Awaitable<readonly (RepeatRow & { segment: Id })[]>
}
