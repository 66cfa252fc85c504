// Messages that came again and were dropped as duplicates: how often, and when last. A client that repeats a call repeats
// all of it, so there is a row for each set of messages that came again together, under the segment that has them, and the
// same call once more only counts it up. Written after the commit of what was new, in a statement of its own: it happens seldom.

import { digestOf, FINGERPRINT_WORDS } from '../../encoding/fingerprint.ts'
import { uuids } from '../session/binary-arrays.ts'
import type { Database } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import { keyBytes, keyText } from './message-keys.ts'

const SETS = plainColumns({ segment: 'bigint', digest: 'bigint', count: 'integer', last_at: 'bigint', fingerprints: 'bytea' })

const RECORD = statement({
  parameters: { sets: SETS },
  text: ({ sets }) => `INSERT INTO repeats (${sets.names}) SELECT * FROM ${sets.unnest}
    ON CONFLICT (segment, digest) DO UPDATE SET count = repeats.count + excluded.count, last_at = greatest(repeats.last_at, excluded.last_at)`,
})

/** `keys`: the fingerprints of one call's messages that were known already. */
export async function recordRepeats(database: Database, calls: readonly { keys: readonly Uint32Array[]; atMs: number }[]): Promise<void> {
  const all = calls.flatMap(({ keys }) => keys)
  const { rows } = await database.query<{ key: string; segment: string }>(
    'SELECT key, max(segment) AS segment FROM message_keys WHERE key = ANY ($1::uuid[]) GROUP BY key',
    [uuids(all.map((words) => keyBytes(words)))],
  )
  const holders = new Map(rows.map(({ key, segment }) => [key, segment]))
  const found = new Map<string, { segment: string; digest: number; count: number; last_at: number; fingerprints: Uint8Array }>()
  for (const { keys, atMs } of calls) {
    const bySegment = new Map<string, Uint32Array[]>()
    for (const words of keys) {
      const segment = holders.get(keyText(words))
      if (segment === undefined) continue
      bySegment.set(segment, [...(bySegment.get(segment) ?? []), words])
    }
    for (const [segment, own] of bySegment) {
      const words = new Uint32Array(own.length * FINGERPRINT_WORDS)
      for (const [at, one] of own.entries()) words.set(one, at * FINGERPRINT_WORDS)
      const digest = digestOf(words)
      const name = `${segment} ${digest}`
      const before = found.get(name)
      if (before) {
        before.count++
        before.last_at = Math.max(before.last_at, atMs)
      } else found.set(name, { segment, digest, count: 1, last_at: atMs, fingerprints: new Uint8Array(words.buffer) })
    }
  }
  // In one order everywhere, so that two nodes do not wait for each other in a ring.
  const sets = [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, set]) => set)
  await database.query(RECORD, RECORD.values({ sets }))
}
