// The Bloom filters of the runs, turned on their side: for each place of a filter, the bits of many runs lie in one word, so
// that one walk over the probes asks them all, and what is left of the word says which runs may hold the key. Asked one by
// one, 42 runs (20 million keys in a day) cost 6.7 µs a key and 85 runs 25 µs; so they cost 0.9 and 3.6, most of it for the
// chunks that are read in vain. Memory is the same: 2 bytes a key.

const PROBES = 8
export const BITS_PER_KEY = 16

/** Runs whose filters are of the same size, each in a column of its own. */
interface Slice {
  places: number
  /** One bit for each column at each place. */
  words: Uint8Array | Uint32Array
  width: number
  /** By column; those that are not live any more stay until the whole slice goes. */
  runs: number[]
  live: number
}

const NONE: readonly number[] = []

export class RunFilters {
  readonly #slices: Slice[] = []

  /** As it is kept with its run: one bit a place. `capacity` is a power of two. */
  static empty(capacity: number): Uint32Array {
    return new Uint32Array(Math.max(1, (capacity * BITS_PER_KEY) / 32))
  }

  static insert(filter: Uint32Array, words: Uint32Array, at: number): void {
    const mask = filter.length * 32 - 1
    let place = (words[at + 1] as number) & mask
    const step = (words[at + 2] as number) | 1
    for (let probe = 0; probe < PROBES; probe++) {
      filter[place >>> 5] = (filter[place >>> 5] as number) | (1 << (place & 31))
      place = (place + step) & mask
    }
  }

  /** Newer than all before. */
  add(run: number, filter: Uint32Array): void {
    const slice = this.#sliceFor(filter.length * 32)
    const column = 1 << slice.runs.length
    const { words } = slice
    for (let at = 0; at < filter.length; at++) {
      for (let rest = filter[at] as number, base = at * 32; rest !== 0; rest &= rest - 1) {
        const place = base + (31 - Math.clz32(rest & -rest))
        words[place] = (words[place] as number) | column
      }
    }
    slice.runs.push(run)
    slice.live |= column
  }

  remove(run: number): void {
    for (const [at, slice] of this.#slices.entries()) {
      const column = slice.runs.indexOf(run)
      if (column === -1) continue
      slice.live &= ~(1 << column)
      if (slice.live === 0 && slice.runs.length === slice.width) this.#slices.splice(at, 1)
      return
    }
  }

  /** The runs that may hold the key, newest first: for a new one, 6 in 10,000 of them. */
  candidates(words: Uint32Array, at: number): readonly number[] {
    let found: number[] | undefined
    for (let index = this.#slices.length - 1; index >= 0; index--) {
      const slice = this.#slices[index] as Slice
      const mask = slice.places - 1
      let place = (words[at + 1] as number) & mask
      const step = (words[at + 2] as number) | 1
      let left = slice.live
      for (let probe = 0; probe < PROBES && left !== 0; probe++) {
        left &= slice.words[place] as number
        place = (place + step) & mask
      }
      if (left === 0) continue
      found ??= []
      for (let column = slice.runs.length - 1; column >= 0; column--) {
        if ((left & (1 << column)) !== 0) found.push(slice.runs[column] as number)
      }
    }
    return found ?? NONE
  }

  #sliceFor(places: number): Slice {
    const last = this.#slices.at(-1)
    if (last !== undefined && last.places === places && last.runs.length < last.width) return last
    // The first is narrow: most stores never have more than eight runs in a day, and a word for each place is 32 MB.
    const width = last === undefined ? 8 : 32
    const slice: Slice = { places, words: width === 8 ? new Uint8Array(places) : new Uint32Array(places), width, runs: [], live: 0 }
    this.#slices.push(slice)
    return slice
  }
}
