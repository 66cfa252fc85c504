// Which type a value gives to a new column, and whether a value fits a column. Nothing is converted by guessing: `"12"` does not fit a number column,
// and a time that the column could not hold to the digit does not fit a timestamp column.

import { parseTime } from '@switchyard/protocol'
import type { Cell, ColumnType, EngineName } from '../warehouse.ts'

export const UNFIT: unique symbol = Symbol('unfit')

export type Fitted = Cell | typeof UNFIT

/** A date and a time. The hour may be missing a zone: it is read as UTC, as everywhere in the service. */
const WITH_TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/
const FRACTION = /[.,](\d+)/
const YEAR_1 = -62_135_596_800_000
/** Beyond this, a fraction of a millisecond is not exact in a number. */
const EXACT_MICROSECONDS = 2 ** 42
const CLICKHOUSE_FROM = Date.UTC(1900, 0, 1)
const CLICKHOUSE_TO = Date.UTC(2299, 11, 31)

/** The type of a column whose first value this is. */
export function typeOf(value: unknown, engine: EngineName): ColumnType {
  if (typeof value === 'boolean') return 'boolean'
  // Files of one table must not disagree about a type, so a column of a lake starts with the type that holds all numbers.
  if (typeof value === 'number') return engine !== 'parquet' && Number.isSafeInteger(value) ? 'bigint' : 'double'
  if (typeof value === 'string' && parseTimestamp(value, engine) !== undefined) return 'timestamp'
  return 'text'
}

/** The cell of a value that is neither null nor an object that is flattened. */
export function fit(value: unknown, type: ColumnType, engine: EngineName): Fitted {
  switch (type) {
    case 'text':
      return fitText(value, engine)
    case 'double':
      return typeof value === 'number' ? value : UNFIT
    case 'bigint':
      return Number.isSafeInteger(value) ? (value as number) : UNFIT
    case 'boolean':
      return typeof value === 'boolean' ? value : UNFIT
    case 'timestamp':
      return (typeof value === 'string' ? parseTimestamp(value, engine) : undefined) ?? UNFIT
  }
}

/** Whether it is text that UTF-8 can hold. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as Utf16Text).isWellFormed()
}

/** The text with a replacement character for each lone surrogate. */
export function wellFormed(text: string): string {
  return (text as unknown as Utf16Text).toWellFormed()
}

/** Methods of ES2024. The project's `lib` setting does not declare them yet. */
interface Utf16Text {
  isWellFormed: () => boolean
  toWellFormed: () => string
}

function fitText(value: unknown, engine: EngineName): Fitted {
  if (typeof value === 'string') return isWellFormed(value) && !(engine === 'postgres' && value.includes('\0')) ? value : UNFIT
  // JSON escapes NUL and lone surrogates, so every engine can hold it.
  return typeof value === 'number' ? String(value) : jsonText(value)
}

/** JSON text of any depth: `JSON.stringify` overflows the stack at some thousand levels, which a message of 32 KB can have. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  const parts: string[] = []
  // Texts on the stack are written as they are, everything else as JSON.
  const stack: ({ text: string } | { value: unknown })[] = [{ value }]
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    if ('text' in top) parts.push(top.text)
    else if (typeof top.value !== 'object' || top.value === null) parts.push(JSON.stringify(top.value) ?? 'null')
    else {
      const inner = top.value
      const isList = Array.isArray(inner)
      stack.push({ text: isList ? ']' : '}' })
      const members = Object.entries(inner) as [string, unknown][]
      for (let at = members.length - 1; at >= 0; at--) {
        const [key, member] = members[at] as [string, unknown]
        stack.push({ value: member }, { text: `${at === 0 ? '' : ','}${isList ? '' : `${JSON.stringify(key)}:`}` })
      }
      stack.push({ text: isList ? '[' : '{' })
    }
  }
  return parts.join('')
}

/** The times of a message are parsed for each of its rows, so the last ones are kept. */
const parsed = new Map<string, number | undefined>()
const MAX_PARSED = 64

/** Milliseconds, with microseconds as a fraction. Undefined if it is not a date with a time, or has more digits than engines keep. */
export function parseTimestamp(text: string, engine: EngineName): number | undefined {
  if (text.length < 16 || text.length > 40) return undefined
  let ms = parsed.get(text)
  if (ms === undefined && !parsed.has(text)) {
    ms = WITH_TIME.test(text) ? parseExactly(text) : undefined
    if (parsed.size >= MAX_PARSED) parsed.clear()
    parsed.set(text, ms)
  }
  if (ms === undefined) return undefined
  return engine === 'clickhouse' && (ms < CLICKHOUSE_FROM || Math.floor(ms) > CLICKHOUSE_TO) ? undefined : ms
}

function parseExactly(text: string): number | undefined {
  const ms = parseTime(text)
  if (ms === undefined || ms < YEAR_1) return undefined
  const digits = text.length > 23 ? FRACTION.exec(text)?.[1] : undefined
  if (digits === undefined || digits.length <= 3) return ms
  if (/[1-9]/.test(digits.slice(6))) return undefined
  const micros = Number(digits.slice(3, 6).padEnd(3, '0'))
  if (micros === 0) return ms
  return Math.abs(ms) < EXACT_MICROSECONDS ? ms + micros / 1_000 : undefined
}

/** The microseconds of a timestamp cell. */
export function microseconds(ms: number): bigint {
  const whole = Math.floor(ms)
  return BigInt(whole) * 1_000n + BigInt(Math.round((ms - whole) * 1_000))
}

/** `2026-11-17T10:00:00.123456Z`, which PostgreSQL and ClickHouse read. */
export function timestampText(ms: number): string {
  const whole = Math.floor(ms)
  const micros = Math.round((ms - whole) * 1_000)
  const text = new Date(whole).toISOString()
  return micros === 0 ? text : `${text.slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}

export function foundType(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value
}
