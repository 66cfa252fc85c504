// Times as callers give them, and as everything here writes them: ISO 8601, UTC, with milliseconds.

// Date, time and zone. Everything that Date.parse would read by rules of its own is left out: those use the machine's time zone.
const ISO_8601 = /^(\d{4}-(\d\d)-(\d\d))(?:[Tt ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(?:[Zz]|UTC|GMT|([+-]\d\d)(?::?(\d\d))?)?|[Zz])?$/
const YEAR_0 = -62_167_219_200_000
const YEAR_9999_END = 253_402_300_799_999

/**
 * Milliseconds since the epoch, or undefined for what is not a time. Takes a Date, an ISO 8601 string or epoch
 * milliseconds. A string without a zone is read as UTC, never as the zone of the machine that happens to parse it, and a
 * day that the calendar does not have (30 February) is no time.
 */
export function parseTime(value: unknown): number | undefined {
  let ms: number
  if (typeof value === 'string') ms = value.length > 40 ? Number.NaN : parseIso(value)
  else if (typeof value === 'number') ms = value
  else if (value instanceof Date) ms = value.getTime()
  else return undefined
  return ms >= YEAR_0 && ms <= YEAR_9999_END ? Math.trunc(ms) : undefined
}

function parseIso(text: string): number {
  const parts = ISO_8601.exec(text)
  if (parts === null) return Number.NaN
  const [, date, month, day, time = '00:00', offsetHours, offsetMinutes = '00'] = parts
  // Date.parse takes every day up to the 31st, and moves those that a month does not have into the next one.
  if (Number(day) > 28 && Number(day) > daysOf(Number(text.slice(0, 4)), Number(month))) return Number.NaN
  return Date.parse(`${date}T${time.replace(',', '.')}${offsetHours === undefined ? 'Z' : `${offsetHours}:${offsetMinutes}`}`)
}

function daysOf(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
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
