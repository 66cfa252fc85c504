// How mappings and templates read a message. These functions replace three of the mapping kit's own (mapping-kit.ts), with the same results
// for every ordinary message. They differ in what a hostile message or mapping can do: only an object's own properties are read, so no path
// reaches a prototype; flattening is linear (the kit's needs 6 s for 5,000 keys); and the amount that one evaluation may read is limited.

/** In characters of JSON, roughly. Messages have at most 32 KB, so only a mapping that copies the same values many times reaches this. */
const MAX_READ = 1_000_000

let left = MAX_READ
let perItem = 0
let secrets: Readonly<Record<string, string>> = {}

/**
 * Starts to count anew. `itemSize` is charged for each element of an array that is read, because @arrayPath writes that much for it. `given` are
 * the secrets of the destination that the evaluation may read.
 */
export function beginReading(itemSize: number, given: Readonly<Record<string, string>> = {}): void {
  left = MAX_READ
  perItem = itemSize
  secrets = given
}

export class TooMuch extends Error {
  constructor() {
    super(`results in more than ${MAX_READ} characters for this message`)
  }
}

/** The same separators as in the mapping kit: `a.b`, `a[0]`, `a['b']`. */
const SEPARATORS = /\[(?="|'|\d)|\.|(?<="|'|\d)]+/g

export function segmentsOf(path: string): string[] {
  return path
    .split(SEPARATORS)
    .filter((segment) => segment !== '')
    .map((segment) => segment.replaceAll(/['"]/g, ''))
}

/** Returns undefined if there is no value. Like the mapping kit, returns what ends the walk early: null, false, 0 or ''. */
export function readSegments(from: unknown, segments: readonly string[]): unknown {
  let value = from
  for (const key of segments) {
    if (!value) return value
    value = Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined
  }
  return value
}

export function isSecretPath(segments: readonly string[]): boolean {
  return segments[0] === 'secrets'
}

/** Reads a secret if the path begins with `secrets`, otherwise the message. All secrets together cannot be read. */
export function readValue(from: unknown, segments: readonly string[], own: Readonly<Record<string, string>>): unknown {
  if (!isSecretPath(segments)) return readSegments(from, segments)
  return segments.length === 2 ? readSegments(own, segments.slice(1)) : undefined
}

/** Replaces `get` of the mapping kit. */
export function boundedGet(from: unknown, path: unknown): unknown {
  const value = path === '' || path === '.' ? from : typeof path === 'string' ? readValue(from, segmentsOf(path), secrets) : undefined
  charge(value)
  if (perItem > 0 && Array.isArray(value)) spend(value.length * perItem)
  return value
}

function spend(amount: number): void {
  left -= amount
  if (left < 0) throw new TooMuch()
}

function charge(value: unknown): void {
  if (typeof value === 'string') return spend(value.length + 2)
  if (typeof value !== 'object' || value === null) return spend(5)
  for (const [key, inner] of Object.entries(value)) {
    spend(key.length + 4)
    charge(inner)
  }
}

/** Replaces `flattenObject` of the mapping kit. */
export function flattenObject(input: unknown, prefix = '', separator = '.', keepArrays = false): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  flattenInto(result, input, prefix, separator, keepArrays)
  return result
}

function flattenInto(result: Record<string, unknown>, input: unknown, prefix: string, separator: string, keepArrays: boolean): void {
  if (typeof input === 'object' && input !== null && !(keepArrays && Array.isArray(input))) {
    for (const [key, value] of Object.entries(input)) {
      flattenInto(result, value, prefix === '' ? key : `${prefix}${separator}${key}`, separator, keepArrays)
    }
    return
  }
  spend(prefix.length + 4)
  if (prefix !== '__proto__') result[prefix] = input
}
