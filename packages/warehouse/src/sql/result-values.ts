// Values of DuckDB as JSON: numbers where JSON can hold them exactly, times as ISO 8601, everything else as DuckDB writes it.

import {
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
} from '@duckdb/node-api'
import type { SqlValue } from './protocol.ts'

export function jsonValue(value: unknown): SqlValue {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      // JSON has no NaN and no infinity.
      return Number.isFinite(value) ? value : String(value)
    case 'bigint':
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
    case 'object':
      return value === null ? null : objectValue(value)
    default:
      return null
  }
}

function objectValue(value: object): SqlValue {
  if (value instanceof DuckDBTimestampTZValue || value instanceof DuckDBTimestampValue) return timeOf(value.micros, String(value))
  if (value instanceof DuckDBDecimalValue) return decimalOf(String(value))
  if (value instanceof DuckDBListValue) return value.items.map(jsonValue)
  if (value instanceof DuckDBStructValue) return entriesOf(Object.entries(value.entries))
  if (value instanceof DuckDBMapValue) return value.entries.map(({ key, value: of }) => entriesOf(Object.entries({ key, value: of })))
  return (value as { toString(): string }).toString()
}

function entriesOf(entries: readonly [string, unknown][]): SqlValue {
  return Object.fromEntries(entries.map(([name, each]) => [name, jsonValue(each)]))
}

/** Microseconds since 1970, with as many digits as are needed. */
function timeOf(micros: bigint, text: string): string {
  const ms = Number(micros >= 0n ? micros / 1_000n : (micros - 999n) / 1_000n)
  const rest = Number(micros - BigInt(ms) * 1_000n)
  // Infinity, and years that a date of JavaScript does not have.
  if (Math.abs(ms) > 8.64e15) return text
  const iso = new Date(ms).toISOString()
  return rest === 0 ? iso : iso.replace('Z', `${String(rest).padStart(3, '0')}Z`)
}

function decimalOf(text: string): number | string {
  const number = Number(text)
  const digits = text.replace(/^-?0*\.?0*|\./g, '')
  return digits.length <= 15 ? number : text
}
