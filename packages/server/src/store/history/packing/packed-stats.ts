// Counts per hour that are over are packed: one row holds two weeks of a source or destination, as compressed columns of numbers, because a row
// per hour would take twenty times the space. Counts that follow from others (deliveries from attempts, attempts from their latencies) are
// stored as differences, which are mostly zero. Buckets of latencies are merged by threes: percentiles of packed hours are accurate to
// within 16 %. Packing again adds to what is there, so hours that arrive late are not lost. Pure.

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { addCounts, bucketOfName, latencyName, type StatCounts } from '../../port/stat-counts.ts'

const HOUR_MS = 3_600_000
/** Two weeks: a row of one week would leave half of its last page in SQLite empty. */
const HOURS = 336
export const FORTNIGHT_MS = HOURS * HOUR_MS

/** What a row of a fortnight holds before anything is packed into it. */
const EMPTY = '{}'
const MERGED_BUCKETS = 3
/** From which counts a count is predicted; by default from none. */
const PREDICTED: Readonly<Record<string, string>> = { delivered: 'attempts', owed: 'attempts' }
const LATENCIES = ' latencies'
const END_OF_NAME = 0

/** The counts of each hour of a fortnight, by its place in the fortnight. */
export type Fortnight = Map<number, StatCounts>

export function fortnightOf(atMs: number): number {
  return Math.floor(atMs / FORTNIGHT_MS) * FORTNIGHT_MS
}

export function addHour(fortnight: Fortnight, atMs: number, counts: Readonly<StatCounts>): void {
  const at = (atMs - fortnightOf(atMs)) / HOUR_MS
  const sum = fortnight.get(at) ?? {}
  addCounts(sum, counts)
  fortnight.set(at, sum)
}

export function packFortnight(fortnight: Fortnight): string {
  const columns = new Map<string, Float64Array>()
  const columnOf = (name: string): Float64Array => {
    const column = columns.get(name) ?? new Float64Array(HOURS)
    columns.set(name, column)
    return column
  }
  const latencies = new Float64Array(HOURS)
  for (const [at, counts] of fortnight) {
    for (const [name, count] of Object.entries(counts)) {
      const bucket = bucketOfName(name)
      const column = columnOf(bucket === null ? name : latencyName(mergedBucket(bucket)))
      column[at] = (column[at] as number) + count
      if (bucket !== null) latencies[at] = (latencies[at] as number) + count
    }
  }
  const bytes: number[] = []
  for (const [name, column] of [...columns].sort(([a], [b]) => (a < b ? -1 : 1))) {
    bytes.push(...Buffer.from(name), END_OF_NAME)
    const from = predictor(name, latencies, columns)
    for (let at = 0; at < HOURS; at++) putNumber(bytes, (column[at] as number) - (from?.[at] ?? 0))
  }
  return deflateRawSync(Buffer.from(bytes), { level: 9 }).toString('base64')
}

export function unpackFortnight(doc: string): Fortnight {
  const fortnight: Fortnight = new Map()
  if (doc === EMPTY) return fortnight
  const bytes = inflateRawSync(Buffer.from(doc, 'base64'))
  const differences = new Map<string, Float64Array>()
  const latencies = new Float64Array(HOURS)
  for (let place = 0; place < bytes.length; ) {
    const end = bytes.indexOf(END_OF_NAME, place)
    const name = bytes.toString('utf8', place, end)
    place = end + 1
    const column = new Float64Array(HOURS)
    for (let at = 0; at < HOURS; at++) {
      let zigzag = 0
      let factor = 1
      for (;;) {
        const byte = bytes[place++] as number
        zigzag += (byte % 128) * factor
        factor *= 128
        if (byte < 128) break
      }
      column[at] = zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
    }
    differences.set(name, column)
    if (bucketOfName(name) !== null) for (let at = 0; at < HOURS; at++) latencies[at] = (latencies[at] as number) + (column[at] as number)
  }
  // Those that are predicted by the sum of others come before those that are predicted by them.
  const columns = new Map<string, Float64Array>()
  const names = [...differences.keys()].sort((a, b) => Number(a in PREDICTED) - Number(b in PREDICTED))
  for (const name of names) {
    const column = differences.get(name) as Float64Array
    const from = predictor(name, latencies, columns)
    for (let at = 0; at < HOURS; at++) column[at] = (column[at] as number) + (from?.[at] ?? 0)
    columns.set(name, column)
  }
  for (const [name, column] of columns) {
    for (let at = 0; at < HOURS; at++) {
      if (column[at] === 0) continue
      const counts = fortnight.get(at) ?? {}
      counts[name] = column[at] as number
      fortnight.set(at, counts)
    }
  }
  return fortnight
}

/** The numbers from which those of a column differ little. */
function predictor(name: string, latencies: Float64Array, columns: ReadonlyMap<string, Float64Array>): Float64Array | undefined {
  const by = name === 'attempts' ? LATENCIES : Object.hasOwn(PREDICTED, name) ? (PREDICTED[name] as string) : ''
  return by === LATENCIES ? latencies : columns.get(by)
}

/** The middle one of the buckets that are merged. Merging it again changes nothing. */
function mergedBucket(bucket: number): number {
  return bucket - (bucket % MERGED_BUCKETS) + 1
}

/** As few bytes as the number needs, with its sign in the lowest bit. */
function putNumber(bytes: number[], value: number): void {
  let left = value >= 0 ? value * 2 : -value * 2 - 1
  while (left >= 128) {
    bytes.push((left % 128) + 128)
    left = Math.floor(left / 128)
  }
  bytes.push(left)
}

/** The hours of a fortnight that are in a period, in order. */
export function hoursWithin(fortnightMs: number, doc: string, fromMs: number, toMs: number): { at: number; counts: StatCounts }[] {
  return [...unpackFortnight(doc)]
    .map(([at, counts]) => ({ at: fortnightMs + at * HOUR_MS, counts }))
    .filter(({ at }) => at >= fromMs && at < toMs)
    .sort((a, b) => a.at - b.at)
}
