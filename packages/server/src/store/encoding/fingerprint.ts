// Fingerprints of messageIds, by which duplicates are found: 128 bits of a seeded hash, computed without allocation. Two different ids have the same
// fingerprint with a probability of 2^-128 per pair, which is about 10^-21 for 10^9 messages. The seed is secret and differs by source, so
// nobody can construct an id that suppresses another message. SHA-1 and SHA-256 of node:crypto take 1.5 µs per id, this takes 0.5 µs
// (bench/service/dedup.ts).

/** The number of 32-bit words of a fingerprint. */
export const FINGERPRINT_WORDS = 4

export type Seed = readonly [number, number, number, number]

/** Writes the fingerprint of a text to `into`, starting at `at`. */
export function fingerprint(text: string, seed: Seed, into: Uint32Array, at: number): void {
  let a = seed[0]
  let b = seed[1]
  let c = seed[2]
  let d = seed[3]
  const length = text.length
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i)
    a = Math.imul(a ^ unit, 0x9e3779b1)
    b = Math.imul(b ^ unit, 0x85ebca77)
    c = Math.imul(c ^ unit, 0xc2b2ae3d)
    d = Math.imul(d ^ unit, 0x27d4eb2f)
    a ^= d >>> 15
    b ^= a >>> 13
    c ^= b >>> 16
    d ^= c >>> 14
  }
  // Each word is mixed with the others and with the length, so that every bit of the result depends on every code unit.
  a = mix(a ^ length ^ Math.imul(b, 0x7feb352d))
  b = mix(b ^ c ^ a)
  c = mix(c ^ d ^ b)
  d = mix(d ^ a ^ c)
  into[at] = mix(a ^ d)
  into[at + 1] = b
  into[at + 2] = c
  into[at + 3] = d
}

/** 32 bits of the same hash, to find a user's messages without reading all messages. Zero means no user, so it is never returned. */
export function userHash(text: string, seed: Seed): number {
  fingerprint(text, seed, scratch, 0)
  return (scratch[0] as number) || 1
}

/** Returns a different seed for each source. */
export function sourceSeed(sourceId: string, seed: Seed): Seed {
  fingerprint(sourceId, seed, scratch, 0)
  return [scratch[0] as number, scratch[1] as number, scratch[2] as number, scratch[3] as number]
}

export type SourceSeeds = (sourceId: string) => Seed

/** Like sourceSeed, but remembers the seeds. */
export function sourceSeeds(seed: Seed): SourceSeeds {
  const seeds = new Map<string, Seed>()
  return (sourceId) => {
    const known = seeds.get(sourceId)
    if (known !== undefined) return known
    const own = sourceSeed(sourceId, seed)
    seeds.set(sourceId, own)
    return own
  }
}

/**
 * One number for a set of fingerprints. It is the key under which the store counts how often exactly these messages were sent again. Fingerprints
 * are hashes, so their sums differ for different sets. 53 bits of a sum are used, because a JavaScript number holds no more.
 */
export function digestOf(words: Uint32Array): number {
  let high = 0
  let low = 0
  for (let at = 0; at < words.length; at += FINGERPRINT_WORDS) {
    high = (high + (words[at] as number)) >>> 0
    low = (low + (words[at + 1] as number)) >>> 0
  }
  return high * 2 ** 21 + (low >>> 11)
}

const scratch = new Uint32Array(FINGERPRINT_WORDS)

function mix(word: number): number {
  let mixed = word
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
