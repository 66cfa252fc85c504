// The only place where a received signature meets a computed one. Time spent here depends on how many there are and on
// their lengths, both of which the sender knows, and never on their contents. No signature may be compared with === elsewhere.

import { timingSafeEqual } from 'node:crypto'

/**
 * Whether any received digest equals any computed one. Every pair is compared even after a match, so that the time does
 * not tell which secret or which entry matched. Digests are compared as the text of the header, not decoded: base64 has
 * several spellings of the same bytes, and only the one the service writes may pass.
 */
export function matchesAny(received: readonly string[], computed: readonly string[]): boolean {
  let matches = 0
  for (const digest of computed) {
    const expected = Buffer.from(digest, 'latin1')
    for (const text of received) {
      const candidate = Buffer.from(text, 'latin1')
      // Unequal lengths make timingSafeEqual throw; the length of a digest is no secret.
      if (candidate.length === expected.length && timingSafeEqual(candidate, expected)) matches += 1
    }
  }
  return matches > 0
}
