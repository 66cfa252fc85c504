// The row port of lists of messages, for PostgreSQL.

import { FINGERPRINT_WORDS, fingerprint, sourceSeed } from '../../encoding/fingerprint.ts'
import { type MessageRows, messageRows as sharedMessageRows } from '../../history/message-rows.ts'
import type { SegmentLookups } from '../../history/segment-rows.ts'
import { type Ask, rowsOf } from '../session/database.ts'
import type { IdMap } from '../tables/id-map.ts'
import { oldestOf, SKEW } from '../tables/ids.ts'
import { keyText } from '../tables/message-keys.ts'
import { sqlOf } from '../tables/sql.ts'

export function messageRows(ask: Ask, lookups: SegmentLookups<string>, idMap: IdMap): MessageRows<string> {
  const all = rowsOf(ask)
  return sharedMessageRows(sqlOf(ask), {
    ...lookups,
    source: (id) => idMap.find(ask, 'sources', id),
    async find(messageId) {
      // A key depends on its source, which is not known here, so the keys for all sources that ever existed are looked up.
      const words = new Map<string, Uint32Array>()
      const seed = await lookups.seed()
      for (const { id } of await all<{ id: string }>('SELECT id FROM sources')) {
        const into = new Uint32Array(FINGERPRINT_WORDS)
        fingerprint(messageId, sourceSeed(id, seed), into, 0)
        words.set(keyText(into), into)
      }
      const rows = await all<{ key: string; segment: string }>('SELECT key, segment FROM message_keys WHERE key = ANY($1::uuid[])', [
        [...words.keys()],
      ])
      // Sorted here, because with ORDER BY the server would choose another index to avoid sorting.
      return rows
        .map(({ key, segment }) => ({ segment, fingerprint: words.get(key) as Uint32Array }))
        .sort((a, b) => (a.segment < b.segment ? 1 : -1))
    },
    replays: (messages) =>
      all(
        `SELECT m.place::integer - 1 AS at, r.origin, r.destination
         FROM unnest($1::bigint[], $2::integer[]) WITH ORDINALITY AS m(segment, idx, place)
         JOIN replays r ON r.segment = m.segment AND r.idx = m.idx AND r.origin > $3::bigint - ${SKEW} ORDER BY r.origin`,
        [messages.map(({ segment }) => segment), messages.map(({ index }) => index), oldestOf(messages)],
      ),
  })
}
