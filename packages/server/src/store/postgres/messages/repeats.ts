// Records messages that were received again and dropped as duplicates: how often, and when last. A client that repeats a call repeats
// all of it, so there is one row for each set of messages that were received again together, with the segment that contains them. If the
// same call is repeated once more, only its count increases. Duplicates are rare, so they are written in a separate statement after the commit of the new messages.

import { digestOf, FINGERPRINT_WORDS } from '../../encoding/fingerprint.ts'
import { uuids } from '../session/binary-arrays.ts'
import type { Database } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import { keyBytes, keyText } from '../tables/message-keys.ts'

const SETS = plainColumns({ segment: 'bigint', digest: 'bigint', count: 'integer', last_at: 'bigint', fingerprints: 'bytea' })

const RECORD = statement({
  parameters: { sets: SETS },
  text: ({ sets }) => `INSERT INTO repeats (${sets.names}) SELECT * FROM ${sets.unnest}
    ON CONFLICT (segment, digest) DO UPDATE SET count = repeats.count + excluded.count, last_at = greatest(repeats.last_at, excluded.last_at)`,
})

/** `keys` has the fingerprints of the messages of one call that were duplicates. */
export async function recordDuplicates(
  database: Database,
  calls: readonly { keys: readonly Uint32Array[]; atMs: number }[],
): Promise<void> {
  const all = calls.flatMap(({ keys }) => keys)
  const { rows } = await database.query<{ key: string; segment: string }>(
    'SELECT key, max(segment) AS segment FROM message_keys WHERE key = ANY ($1::uuid[]) GROUP BY key',
    [uuids(all.map((words) => keyBytes(words)))],
  )
  const segmentOf = new Map(rows.map(({ key, segment }) => [key, segment]))
  const found = new Map<string, { segment: string; digest: number; count: number; last_at: number; fingerprints: Uint8Array }>()
  for (const { keys, atMs } of calls) {
    const bySegment = new Map<string, Uint32Array[]>()
    for (const words of keys) {
      const segment = segmentOf.get(keyText(words))
      if (segment === undefined) continue
      bySegment.set(segment, [...(bySegment.get(segment) ?? []), words])
    }
    for (const [segment, own] of bySegment) {
      const words = new Uint32Array(own.length * FINGERPRINT_WORDS)
      for (const [at, one] of own.entries()) words.set(one, at * FINGERPRINT_WORDS)
      const digest = digestOf(words)
      const id = `${segment} ${digest}`
      const before = found.get(id)
      if (before) {
        before.count++
        before.last_at = Math.max(before.last_at, atMs)
      } else found.set(id, { segment, digest, count: 1, last_at: atMs, fingerprints: new Uint8Array(words.buffer) })
    }
  }
  // All nodes use the same order, to avoid deadlocks.
  const sets = [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, set]) => set)
  await database.query(RECORD, RECORD.values({ sets }))
}
