// The row port of lists of messages, for SQLite. Only the writing thread can find a messageId, so it is asked first, and its result is passed here as `found`.

import type { FoundKey, MessageRows } from '../../history/message-rows.ts'
import type { Rows } from './rows.ts'
import { headColumns, headOf, type StoredHead, segmentRows } from './segment-rows.ts'

export function messageRows(rows: Rows, found: readonly FoundKey<number>[]): MessageRows<number> {
  return {
    ...segmentRows(rows),
    source: (id) => rows.sources.num(id),
    newest: (withKeys, first, last, limit) =>
      rows
        .all<StoredHead>(
          `SELECT ${headColumns(withKeys)} FROM segments WHERE seq >= ? AND seq <= ? ORDER BY seq DESC LIMIT ?`,
          first,
          last,
          limit,
        )
        .map(headOf),
    find: () => [...found].sort((a, b) => b.segment - a.segment),
    replays: (messages) =>
      rows.all(
        `SELECT m.key AS at, r.origin, r.destination FROM json_each(?) m
         JOIN replays r ON r.segment = m.value->>'segment' AND r.idx = m.value->>'index' ORDER BY r.origin`,
        JSON.stringify(messages),
      ),
    repeats: (segments) =>
      rows.all(
        'SELECT segment, count, last_at, fingerprints FROM repeats WHERE segment IN (SELECT value FROM json_each(?))',
        JSON.stringify(segments),
      ),
  }
}
