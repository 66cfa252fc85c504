// How often a message was sent again. Each row counts one set of messages that were sent again together.

import { FINGERPRINT_WORDS } from '../encoding/fingerprint.ts'
import { indexOfFingerprint } from '../encoding/segment-keys.ts'

export interface RepeatRow {
  count: number
  last_at: number
  fingerprints: Uint8Array
}

/** Returns null if the message was never sent again. */
export function repeatsIn(rows: Iterable<RepeatRow>, fingerprint: Uint32Array): { count: number; lastAtMs: number } | null {
  let count = 0
  let lastAtMs = 0
  for (const row of rows) {
    const times = occurrences(row.fingerprints, fingerprint)
    if (times === 0) continue
    count += row.count * times
    lastAtMs = Math.max(lastAtMs, row.last_at)
  }
  return count === 0 ? null : { count, lastAtMs }
}

/** A call may contain the same message more than once. */
function occurrences(fingerprints: Uint8Array, fingerprint: Uint32Array): number {
  const words = new Uint32Array(new Uint8Array(fingerprints).buffer)
  const next = (from: number): number => indexOfFingerprint(words, fingerprint, FINGERPRINT_WORDS, from)
  let times = 0
  for (let at = next(0); at !== -1; at = next(at + 1)) times++
  return times
}
