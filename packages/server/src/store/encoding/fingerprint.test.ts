import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { FINGERPRINT_WORDS, fingerprint, type Seed, sourceSeed, userHash } from './fingerprint.ts'

const SEED: Seed = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344]

function wordsOf(text: string, seed: Seed = SEED): Uint32Array {
  const words = new Uint32Array(FINGERPRINT_WORDS)
  fingerprint(text, seed, words, 0)
  return words
}

function bitsThatDiffer(a: Uint32Array, b: Uint32Array): number {
  let bits = 0
  for (let word = 0; word < FINGERPRINT_WORDS; word++) {
    for (let rest = ((a[word] as number) ^ (b[word] as number)) >>> 0; rest !== 0; rest &= rest - 1) bits++
  }
  return bits
}

test('a million similar ids have different fingerprints, and no more equal parts than by chance', () => {
  const count = 1_000_000
  const words = new Uint32Array(count * FINGERPRINT_WORDS)
  for (let at = 0; at < count; at++) fingerprint(`node-next-1700000000000-${at}`, SEED, words, at * FINGERPRINT_WORDS)
  for (let word = 0; word < FINGERPRINT_WORDS; word++) {
    // Two adjacent words have 2^64 values, so a million ids have a collision with a probability of 3 in 10^8.
    const pairs = new BigUint64Array(count)
    for (let at = 0; at < count; at++) {
      const base = at * FINGERPRINT_WORDS
      pairs[at] = (BigInt(words[base + word] as number) << 32n) | BigInt(words[base + ((word + 1) % FINGERPRINT_WORDS)] as number)
    }
    pairs.sort()
    for (let at = 1; at < count; at++) assert.notEqual(pairs[at], pairs[at - 1])
  }
})

test('every bit of a fingerprint is set for about half of the ids, and the first ones spread them evenly', () => {
  const count = 50_000
  const set = Array.from({ length: 128 }, () => 0)
  const chunks = Array.from({ length: 1_024 }, () => 0)
  for (let at = 0; at < count; at++) {
    const words = wordsOf(String(at))
    for (let bit = 0; bit < 128; bit++) if (((words[bit >>> 5] as number) >>> (bit & 31)) & 1) set[bit] = (set[bit] as number) + 1
    const chunk = (words[0] as number) >>> 22
    chunks[chunk] = (chunks[chunk] as number) + 1
  }
  // Five standard deviations: √(50,000)/2 = 112, and √(50,000/1,024) = 7.
  for (const [bit, times] of set.entries()) assert.ok(Math.abs(times - count / 2) < 560, `bit ${bit}: ${times}`)
  for (const [chunk, times] of chunks.entries()) assert.ok(Math.abs(times - count / 1_024) < 42, `chunk ${chunk}: ${times}`)
})

test('a change of one character, wherever it is, changes about half of the bits', () => {
  for (const length of [1, 2, 3, 8, 36, 100]) {
    let total = 0
    let least = 128
    let pairs = 0
    for (let at = 0; at < 2_000; at++) {
      const text = (at + randomUUID().repeat(3)).slice(0, length)
      const place = at % length
      const changed = text.slice(0, place) + String.fromCharCode(text.charCodeAt(place) ^ 1) + text.slice(place + 1)
      const seed = sourceSeed(`seed ${at}`, SEED)
      const bits = bitsThatDiffer(wordsOf(text, seed), wordsOf(changed, seed))
      total += bits
      least = Math.min(least, bits)
      pairs++
    }
    assert.ok(Math.abs(total / pairs - 64) < 1.5, `length ${length}: ${total / pairs} bits on average`)
    assert.ok(least > 30, `length ${length}: at least ${least} bits`)
  }
})

test('similar texts have different fingerprints', () => {
  const texts = [
    '',
    '\0',
    '\0\0',
    ' ',
    '0',
    '00',
    'a',
    'A',
    'aa',
    'ab',
    'ba',
    '\ud800',
    '\udfff',
    '\ufffd',
    'ä',
    'a\u0308',
    '\u0100',
    '\u0001',
    'x'.repeat(99),
    'x'.repeat(100),
  ]
  assert.equal(new Set(texts.map((text) => wordsOf(text).join())).size, texts.length)
})

test('another seed gives another fingerprint, and each source has a different seed', () => {
  const seeds: Seed[] = [SEED, [SEED[0] ^ 1, SEED[1], SEED[2], SEED[3]], [SEED[0], SEED[1], SEED[2], SEED[3] ^ 0x80000000]]
  seeds.push(sourceSeed('src_a', SEED), sourceSeed('src_b', SEED))
  for (const text of ['', 'a', randomUUID()]) {
    for (const [at, seed] of seeds.entries()) {
      for (const other of seeds.slice(at + 1)) assert.ok(bitsThatDiffer(wordsOf(text, seed), wordsOf(text, other)) > 25, text)
    }
  }
})

test('the same text has the same fingerprint, wherever it is written', () => {
  const into = new Uint32Array(20).fill(7)
  fingerprint('same', SEED, into, 9)
  assert.deepEqual(into.slice(9, 13), wordsOf('same'))
  assert.deepEqual(
    [...into.slice(0, 9), ...into.slice(13)],
    Array.from({ length: 16 }, () => 7),
  )
})

test('the hash of a user is never zero, which means no user', () => {
  for (let at = 0; at < 100_000; at++) assert.notEqual(userHash(`user ${at}`, SEED), 0)
})
