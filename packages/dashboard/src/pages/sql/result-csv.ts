// The rows of a result as CSV (RFC 4180). A cell that a spreadsheet would run as a formula begins with an apostrophe. Pure.

import type { Result } from './chartable.ts'

export function csvOf({ columns, rows }: Pick<Result, 'columns' | 'rows'>): string {
  const lines = [columns.map(({ name }) => name), ...rows]
  return lines.map((cells) => `${cells.map(cellText).join(',')}\r\n`).join('')
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // Numbers beyond 2^53 are strings, and may be negative.
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
