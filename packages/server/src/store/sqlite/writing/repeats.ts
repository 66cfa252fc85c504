// How often messages were sent again and dropped as duplicates, and when last. A client that repeats a call repeats all of it, so there is one row for
// each set of messages that were sent again together, by the segment that contains them. Sending the same call once more only increments its
// count. Calls of one message are gathered into batches, so they may be counted in sets that differ. Repeats are rare, and the cost is per call, not
// per message.

import { digestOf, FINGERPRINT_WORDS } from '../../encoding/fingerprint.ts'
import { groupBy } from '../../encoding/group-by.ts'
import { KEY_WORDS } from '../../encoding/segment-keys.ts'
import type { Duplicates } from '../keys/duplicates.ts'
import type { Rows } from '../schema/rows.ts'

const ROWS_PER_STEP = 300

/** `repeated`: the indexes of the call's keys that were already known. */
export function countRepeats(rows: Rows, duplicates: Duplicates, keys: Uint32Array, repeated: readonly number[], atMs: number): void {
  const bySegment = groupBy(repeated, (index) => duplicates.holder(keys, index * KEY_WORDS))
  for (const [segment, indexes] of bySegment) {
    const words = new Uint32Array(indexes.length * FINGERPRINT_WORDS)
    for (const [at, index] of indexes.entries()) {
      words.set(keys.subarray(index * KEY_WORDS, index * KEY_WORDS + FINGERPRINT_WORDS), at * FINGERPRINT_WORDS)
    }
    rows.run(
      `INSERT INTO repeats (segment, digest, count, last_at, fingerprints) VALUES (?, ?, 1, ?, ?)
       ON CONFLICT (segment, digest) DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)`,
      [segment, digestOf(words), atMs, new Uint8Array(words.buffer)],
    )
  }
}

/** Drops some rows whose segment is older than the cutoff. Returns false if there are none. */
export function dropRepeats(rows: Rows, cutoff: number): boolean {
  const sql = `DELETE FROM repeats WHERE (segment, digest) IN
    (SELECT segment, digest FROM repeats WHERE segment < ? ORDER BY segment, digest LIMIT ${ROWS_PER_STEP})`
  return rows.run(sql, [cutoff]) > 0
}
