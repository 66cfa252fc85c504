// Random numbers from a seed: the same seed gives the same sequence. A run with real processes does not repeat exactly, but the
// faults, their order and the number of messages between them do.

export interface Random {
  /** From 0, inclusive, to 1, exclusive. */
  next(): number
  /** A whole number from `least` to `most`, inclusive. */
  int(least: number, most: number): number
  pick<T>(values: readonly T[]): T
  chance(share: number): boolean
  /** A sequence of its own, for something that draws at moments that the seed does not determine, such as a receiver. */
  fork(): Random
}

/** Mulberry32. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    int,
    pick<T>(values: readonly T[]): T {
      if (values.length === 0) throw new RangeError('pick needs at least one value.')
      return values[int(0, values.length - 1)] as T
    },
    chance: (share) => next() < share,
    fork: () => seededRandom(Math.floor(next() * 2 ** 32)),
  }
}
