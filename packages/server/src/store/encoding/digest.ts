// One number for a set of fingerprints: under it stands how often just those messages came again.

import { FINGERPRINT_WORDS } from './fingerprint.ts'

/** Fingerprints are hashes already, so their sums tell sets apart. 53 bits of them, which a number holds. */
export function digestOf(words: Uint32Array): number {
  let high = 0
  let low = 0
  for (let at = 0; at < words.length; at += FINGERPRINT_WORDS) {
    high = (high + (words[at] as number)) >>> 0
    low = (low + (words[at + 1] as number)) >>> 0
  }
  return high * 2 ** 21 + (low >>> 11)
}
