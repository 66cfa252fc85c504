// The only place where received signatures are compared with computed ones. The time it takes depends on their number and
// lengths, both of which the sender knows, and never on their contents. Do not compare signatures with === elsewhere.

import { timingSafeEqual } from 'node:crypto'

/**
 * Whether any received digest equals any computed one. Every pair is compared even after a match, so that the time does
 * not reveal which secret or which entry matched. Digests are compared as header text, not decoded, because base64 can encode
 * the same bytes in several ways, and only the encoding that the service writes is valid.
 */
export function matchesAny(received: readonly string[], computed: readonly string[]): boolean {
  let matches = 0
  for (const digest of computed) {
    const expected = Buffer.from(digest, 'latin1')
    for (const text of received) {
      const candidate = Buffer.from(text, 'latin1')
      // timingSafeEqual throws for unequal lengths. The length of a digest is not secret.
      if (candidate.length === expected.length && timingSafeEqual(candidate, expected)) matches += 1
    }
  }
  return matches > 0
}
