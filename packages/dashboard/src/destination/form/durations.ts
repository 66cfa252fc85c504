// Parses and writes durations as people type them: 5 s, 1h30m, 250 ms, 4 hours. Pure.

import { UNITS as WRITTEN_UNITS } from '../../text/format.ts'

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
}
const PART = /(\d+(?:\.\d+)?)\s*([a-z]+)\s*/y

/** Returns milliseconds, or null if the text is not a duration. A number without a unit is not a duration. */
export function parseDuration(text: string): number | null {
  const rest = text.trim().toLowerCase()
  if (rest === '') return null
  let ms = 0
  PART.lastIndex = 0
  while (PART.lastIndex < rest.length) {
    const found = PART.exec(rest)
    if (found === null) return null
    const [, amount = '', unit = ''] = found
    const size = UNITS[unit] ?? UNITS[unit.replace(/s$/, '')]
    if (size === undefined) return null
    ms += Number(amount) * size
  }
  const rounded = Math.round(ms)
  return Math.abs(rounded - ms) < 1e-6 && Number.isSafeInteger(rounded) ? rounded : null
}

/** Writes the exact value, so that parsing it returns the same number. */
export function writeDuration(ms: number): string {
  if (ms === 0) return '0 s'
  const parts: string[] = []
  let left = ms
  for (const [unit, size] of [...WRITTEN_UNITS, ['ms', 1] as const]) {
    const whole = Math.floor(left / size)
    if (whole > 0) parts.push(`${whole} ${unit}`)
    left -= whole * size
  }
  return parts.join(' ')
}
