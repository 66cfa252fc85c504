// The row port of lists of messages, for SQLite. Only the writing thread can find a messageId, so it is asked first, and its result is passed here as `found`.

import { type FoundKey, type MessageRows, messageRows as sharedMessageRows } from '../../history/message-rows.ts'
import type { Rows } from '../schema/rows.ts'
import { segmentLookups } from './segment-lookups.ts'

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
