// The bloom filter of a text column, for searches for one user. The hash is xxHash64 of the bytes. It is calculated with numbers of 32 bits, because
// calculating with BigInt is slower.

/** The salts that the Parquet format prescribes. */
const SALTS = [0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31]
const MIN_BYTES = 32
const MAX_BYTES = 1024 * 1024
/** The probability that a text that is not in the column passes the filter. */
const FALSE_POSITIVES = 0.01

export class BloomFilter {
  #hashes = new Uint32Array(1_024)
  #count = 0

  add(bytes: Uint8Array, from: number, to: number): void {
    if (this.#count * 2 === this.#hashes.length) {
      const larger = new Uint32Array(this.#hashes.length * 2)
      larger.set(this.#hashes)
      this.#hashes = larger
    }
    xxHash64(bytes, from, to)
    this.#hashes[this.#count * 2] = high
    this.#hashes[this.#count * 2 + 1] = low
    this.#count++
  }

  /** The filter as it is written to the file; undefined if there are no values. */
  blocks(): Uint32Array | undefined {
    if (this.#count === 0) return undefined
    const distinct = new Set<number>()
    // Numbers of 32 bits with a sign need no memory of their own.
    for (let at = 0; at < this.#count; at++) distinct.add((this.#hashes[at * 2] as number) | 0)
    const blocks = new Uint32Array(bytesFor(distinct.size) / 4)
    const blockCount = blocks.length / 8
    for (let at = 0; at < this.#count; at++) {
      const block = Math.floor(((this.#hashes[at * 2] as number) * blockCount) / 2 ** 32) * 8
      const key = this.#hashes[at * 2 + 1] as number
      for (let word = 0; word < 8; word++) {
        const place = block + word
        blocks[place] = (blocks[place] as number) | (1 << (Math.imul(key, SALTS[word] as number) >>> 27))
      }
    }
    return blocks
  }
}

/** The size by the formula of the format, rounded up to a power of two, which some readers require. */
function bytesFor(distinct: number): number {
  const bits = (-8 * distinct) / Math.log(1 - FALSE_POSITIVES ** (1 / 8))
  return Math.min(MAX_BYTES, Math.max(MIN_BYTES, 2 ** Math.ceil(Math.log2(bits / 8))))
}

/** The number that is being calculated, as two signed halves: the engine allocates memory for numbers that do not fit into 32 bits with a sign. */
let high = 0
let low = 0

// The primes of the hash: P1 to P5 of its specification.
const multiplyP1 = (): void => multiply(0x9e3779b1, 0x85ebca87)
const multiplyP2 = (): void => multiply(0xc2b2ae3d, 0x27d4eb4f)
const multiplyP3 = (): void => multiply(0x165667b1, 0x9e3779f9)
const multiplyP5 = (): void => multiply(0x27d4eb2f, 0x165667c5)
const addP4 = (): void => add(0x85ebca77, 0xc2b2ae63)

function set(newHigh: number, newLow: number): void {
  high = newHigh | 0
  low = newLow | 0
}

function multiply(otherHigh: number, otherLow: number): void {
  const a0 = low & 0xffff
  const a1 = low >>> 16
  const b0 = otherLow & 0xffff
  const b1 = otherLow >>> 16
  // Each sum is less than 2^32. Math.imul makes it an integer with a sign, of which >>> takes the bits.
  const middle = (Math.imul(a1, b0) + (Math.imul(a0, b0) >>> 16)) | 0
  const other = (Math.imul(a0, b1) + (middle & 0xffff)) | 0
  const upper = Math.imul(a1, b1) + (middle >>> 16) + (other >>> 16)
  high = (upper + Math.imul(low, otherHigh) + Math.imul(high, otherLow)) | 0
  low = Math.imul(low, otherLow)
}

function add(otherHigh: number, otherLow: number): void {
  const sum = (low >>> 0) + (otherLow >>> 0)
  high = (high + otherHigh + (sum > 0xffffffff ? 1 : 0)) | 0
  low = sum | 0
}

function mix(otherHigh: number, otherLow: number): void {
  high ^= otherHigh
  low ^= otherLow
}

/** Rotates to the left by fewer than 32 bits. */
function rotate(bits: number): void {
  const before = high
  high = (high << bits) | (low >>> (32 - bits))
  low = (low << bits) | (before >>> (32 - bits))
}

/** `x ^ (x >>> bits)` */
function mixShifted(bits: number): void {
  if (bits >= 32) {
    low ^= high >>> (bits - 32)
    return
  }
  low ^= (low >>> bits) | (high << (32 - bits))
  high ^= high >>> bits
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)
}

/** Uses the seed 0. The result is in `high` and `low`. */
function xxHash64(bytes: Uint8Array, from: number, to: number): void {
  const length = to - from
  let at = from
  if (length >= 32) at = hashStripes(bytes, from, to)
  else set(0x27d4eb2f, 0x165667c5)
  add(0, length)
  for (; at + 8 <= to; at += 8) {
    const [beforeHigh, beforeLow] = [high, low]
    set(wordAt(bytes, at + 4), wordAt(bytes, at))
    multiplyP2()
    rotate(31)
    multiplyP1()
    mix(beforeHigh, beforeLow)
    rotate(27)
    multiplyP1()
    addP4()
  }
  if (at + 4 <= to) {
    const [beforeHigh, beforeLow] = [high, low]
    set(0, wordAt(bytes, at))
    multiplyP1()
    mix(beforeHigh, beforeLow)
    rotate(23)
    multiplyP2()
    add(0x165667b1, 0x9e3779f9)
    at += 4
  }
  for (; at < to; at++) {
    const [beforeHigh, beforeLow] = [high, low]
    set(0, bytes[at] as number)
    multiplyP5()
    mix(beforeHigh, beforeLow)
    rotate(11)
    multiplyP1()
  }
  mixShifted(33)
  multiplyP2()
  mixShifted(29)
  multiplyP3()
  mixShifted(32)
}

/** The halves of the four lanes: P1 + P2, P2, 0 and -P1. */
const LANES = [0x60ea27ee, 0xadc0b5d6, 0xc2b2ae3d, 0x27d4eb4f, 0, 0, 0x61c8864e, 0x7a143579]
const lanes = new Int32Array(8)

/** Hashes the parts of 32 bytes. Returns where the rest begins. */
function hashStripes(bytes: Uint8Array, from: number, to: number): number {
  for (let half = 0; half < 8; half++) lanes[half] = (LANES[half] as number) | 0
  let at = from
  for (; at + 32 <= to; at += 32) {
    for (let lane = 0; lane < 8; lane += 2) {
      set(wordAt(bytes, at + lane * 4 + 4), wordAt(bytes, at + lane * 4))
      multiplyP2()
      add(lanes[lane] as number, lanes[lane + 1] as number)
      rotate(31)
      multiplyP1()
      lanes[lane] = high
      lanes[lane + 1] = low
    }
  }
  let [sumHigh, sumLow] = [0, 0]
  for (let lane = 0; lane < 8; lane += 2) {
    set(lanes[lane] as number, lanes[lane + 1] as number)
    rotate([1, 7, 12, 18][lane / 2] as number)
    add(sumHigh, sumLow)
    sumHigh = high
    sumLow = low
  }
  for (let lane = 0; lane < 8; lane += 2) {
    set(lanes[lane] as number, lanes[lane + 1] as number)
    multiplyP2()
    rotate(31)
    multiplyP1()
    mix(sumHigh, sumLow)
    multiplyP1()
    addP4()
    sumHigh = high
    sumLow = low
  }
  return at
}
