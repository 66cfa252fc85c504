// Times as callers give them, and as everything here writes them: ISO 8601, UTC, with milliseconds.

const ISO_DATE = /^\d{4}-\d{2}-\d{2}/
const HAS_TIME_WITHOUT_ZONE = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/
const YEAR_0 = -62_167_219_200_000
const YEAR_9999_END = 253_402_300_799_999

/**
 * Milliseconds since the epoch, or undefined for what is not a time. Takes a Date, an ISO 8601 string or epoch
 * milliseconds. A string without a zone is read as UTC, never as the zone of the machine that happens to parse it.
 */
export function parseTime(value: unknown): number | undefined {
  let ms: number
  if (typeof value === 'string') {
    if (value.length > 40 || !ISO_DATE.test(value)) return undefined
    ms = Date.parse(HAS_TIME_WITHOUT_ZONE.test(value) ? `${value}Z` : value)
  } else if (typeof value === 'number') ms = value
  else if (value instanceof Date) ms = value.getTime()
  else return undefined
  return ms >= YEAR_0 && ms <= YEAR_9999_END ? Math.trunc(ms) : undefined
}

let lastMs = Number.NaN
let lastIso = ''

/** `2026-11-14T09:00:00.000Z`. Formatting costs about 1 µs and calls come many to a millisecond, so the last is kept. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastIso = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastIso
}
