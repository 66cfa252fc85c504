// The row port of lists of messages, for PostgreSQL.

import { FINGERPRINT_WORDS, fingerprint, type Seed, sourceSeed } from '../../encoding/fingerprint.ts'
import type { MessageRows } from '../../history/message-rows.ts'
import { keyText } from '../messages/message-keys.ts'
import type { IdMap } from '../schema/id-map.ts'
import { SKEW } from '../schema/ids.ts'
import { type Ask, rowsOf } from '../session/database.ts'
import { headColumns, oldestOf, segmentRows } from './segment-rows.ts'

export function messageRows(ask: Ask, idMap: IdMap, seed: Seed): MessageRows<string> {
  const all = rowsOf(ask)
  const segments = segmentRows(ask, idMap, seed)
  return {
    ...segments,
    source: (id) => idMap.find(ask, 'sources', id),
    newest: (withKeys, first, last, limit) =>
      all(`SELECT ${headColumns(withKeys)} FROM segments g WHERE seq >= $1 AND seq <= $2 ORDER BY seq DESC LIMIT $3`, [first, last, limit]),
    async find(messageId) {
      // A key depends on its source, which is not known here, so the keys for all sources that ever existed are looked up.
      const words = new Map<string, Uint32Array>()
      for (const { id } of await segments.sources()) {
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
    repeats: (of) => all('SELECT segment, count, last_at, fingerprints FROM repeats WHERE segment = ANY($1::bigint[])', [of]),
  }
}
