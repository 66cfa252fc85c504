// The row port of lists of messages.

import type { RowId } from '../../model/messages.ts'
import type { Awaitable, Sql } from '../encoding/sql.ts'
import type { Ending, EndingRows } from './message-lists/delivery-states.ts'
import { readHeads, type SegmentHead, type SegmentLookups, type SegmentRows, segmentRows } from './segment-rows.ts'

/** A segment with the key of a messageId, and the fingerprint of the messageId. */
export interface FoundKey<Id extends RowId> {
  segment: Id
  fingerprint: Uint32Array
}

export interface RepeatRow {
  count: number
  last_at: number
  fingerprints: Uint8Array
}

export interface MessageRows<Id extends RowId> extends SegmentRows<Id>, EndingRows<Id> {
  /** The row id of a source; undefined if it never existed. */
  source(id: string): Awaitable<Id | undefined>
  /** Newest first, with row ids from `first` to `last`. */
  newest(withKeys: boolean, first: Id, last: Id, limit: number): Awaitable<readonly SegmentHead<Id>[]>
  /** The segments that may have the messageId, of any source, newest first. */
  find(messageId: string): Awaitable<readonly FoundKey<Id>[]>
  /** Replays of these messages, oldest first. `at` is the index of the message in `messages`. */
  replays(messages: readonly { segment: Id; index: number }[]): Awaitable<readonly { at: number; origin: Id; destination: Id }[]>
  repeats(segments: readonly Id[]): Awaitable<readonly (RepeatRow & { segment: Id })[]>
}

export function messageRows<Id extends RowId>(
  sql: Sql<Id>,
  own: SegmentLookups<Id> & Pick<MessageRows<Id>, 'source' | 'find' | 'replays'>,
): MessageRows<Id> {
  return {
    ...segmentRows(sql, own),
    ...own,
    newest: (withKeys, first, last, limit) =>
      readHeads(sql, withKeys, 'g.seq >= ? AND g.seq <= ? ORDER BY g.seq DESC LIMIT ?', first, last, limit),
    async endings(origins, limit) {
      if (origins.length === 0) return []
      const oldest = origins.reduce((first, each) => (each < first ? each : first))
      const endings = await sql.all<Omit<Ending<Id>, 'isOnlyDelivered'> & { others: number }>(
        // Rows about an origin are newer than it, except for the difference between the clocks of nodes.
        `SELECT id, origin, delivered, failed + expired + cancelled AS others, octet_length(doc) AS bytes FROM attempts
         WHERE ${sql.among('origin')} AND id >= ? AND delivered + failed + expired + cancelled > 0 ORDER BY id LIMIT ?`,
        [sql.list(origins), sql.order.at(sql.order.msOf(oldest) - sql.order.skewMs), limit],
      )
      return endings.map(({ others, ...ending }) => Object.assign(ending, { isOnlyDelivered: others === 0 }))
    },
    endingDocs: (attempts) =>
      attempts.length === 0 ? [] : sql.all(`SELECT id, doc FROM attempts WHERE ${sql.among('id')}`, [sql.list(attempts)]),
    repeats: (segments) =>
      sql.all(`SELECT segment, count, last_at, fingerprints FROM repeats WHERE ${sql.among('segment')}`, [sql.list(segments)]),
  }
}
