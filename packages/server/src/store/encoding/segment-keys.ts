// The keys column of a segment: for each message, the fingerprint of its messageId and the hashes of its user. With these, duplicates, a messageId
// and the messages of a user are found without reading bodies.

import type { JsonObject } from '@switchyard/protocol'
import { FINGERPRINT_WORDS, fingerprint, type Seed, userHash } from './fingerprint.ts'

/** The fingerprint, the hash of the userId, and the hash of the anonymousId (for an alias, of the previousId). */
export const KEY_WORDS = FINGERPRINT_WORDS + 2

export function writeKeys(
  messageIds: readonly string[],
  items: readonly (JsonObject | null)[],
  seed: Seed,
  into: Uint32Array,
  at: number,
): void {
  let base = at
  for (let index = 0; index < messageIds.length; index++, base += KEY_WORDS) {
    fingerprint(messageIds[index] as string, seed, into, base)
    const item = items[index]
    const { userId, anonymousId, previousId } = item ?? {}
    into[base + FINGERPRINT_WORDS] = typeof userId === 'string' ? userHash(userId, seed) : 0
    const other = previousId ?? anonymousId
    into[base + FINGERPRINT_WORDS + 1] = typeof other === 'string' ? userHash(other, seed) : 0
  }
}

export function fingerprintAt(keys: Uint8Array, index: number): Uint32Array {
  return new Uint32Array(copyOf(keys.subarray(index * KEY_WORDS * 4, (index * KEY_WORDS + FINGERPRINT_WORDS) * 4)))
}

/** Whether there is a fingerprint at `at`. Duplicates have none. */
export function isKey(words: Uint32Array, at: number): boolean {
  return words[at] !== 0 || words[at + 1] !== 0 || words[at + 2] !== 0 || words[at + 3] !== 0
}

/** Clears the fingerprint of a duplicate, so that a search for its messageId does not find this copy. */
export function clearFingerprint(words: Uint32Array, at: number): void {
  words.fill(0, at, at + FINGERPRINT_WORDS)
}

/** Clears the hashes of the message's user. */
export function clearUser(words: Uint32Array, at: number): void {
  words.fill(0, at + FINGERPRINT_WORDS, at + KEY_WORDS)
}

/** The indexes of messages that may be of a user whose hash is in the set. */
export function candidates(keys: Uint8Array, hashes: ReadonlySet<number>): number[] {
  const words = new Uint32Array(copyOf(keys))
  const found: number[] = []
  for (let base = 0, index = 0; base < words.length; base += KEY_WORDS, index++) {
    if (hashes.has(words[base + FINGERPRINT_WORDS] as number) || hashes.has(words[base + FINGERPRINT_WORDS + 1] as number))
      found.push(index)
  }
  return found
}

export function indexOfKey(keys: Uint8Array, fingerprintWords: Uint32Array): number {
  return indexOfFingerprint(new Uint32Array(copyOf(keys)), fingerprintWords, KEY_WORDS)
}

/** The index of the fingerprint among entries of `stride` words, starting at the entry `from`. Returns -1 if it is not found. */
export function indexOfFingerprint(words: Uint32Array, fingerprintWords: Uint32Array, stride: number, from = 0): number {
  for (let base = from * stride, index = from; base < words.length; base += stride, index++) {
    if (
      words[base] === fingerprintWords[0] &&
      words[base + 1] === fingerprintWords[1] &&
      words[base + 2] === fingerprintWords[2] &&
      words[base + 3] === fingerprintWords[3]
    ) {
      return index
    }
  }
  return -1
}

/** Copies to new memory, which is aligned for 32-bit words. A Buffer may begin at any offset of a larger one. */
function copyOf(keys: Uint8Array): ArrayBuffer {
  return new Uint8Array(keys).buffer
}
