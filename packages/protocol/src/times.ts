// Parses the times that callers pass, and formats times as ISO 8601 in UTC, with milliseconds.

// Date, time and zone. Formats that Date.parse reads by implementation-defined rules do not match, because those rules use the machine's time zone.
const ISO_8601 = /^(\d{4}-(\d\d)-(\d\d))(?:[Tt ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(?:[Zz]|UTC|GMT|([+-]\d\d)(?::?(\d\d))?)?|[Zz])?$/
const YEAR_0 = -62_167_219_200_000
const YEAR_9999_END = 253_402_300_799_999

/**
 * Returns milliseconds since the epoch, or undefined if the value is not a valid time. Accepts a Date, an ISO 8601 string or
 * epoch milliseconds. A string without a zone is read as UTC, never in the time zone of the machine. A day that does not
 * exist (30 February) is invalid.
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
  // Date.parse accepts every day up to the 31st, and moves a day that the month does not have into the next month.
  if (Number(day) > 28 && Number(day) > daysOf(Number(text.slice(0, 4)), Number(month))) return Number.NaN
  return Date.parse(`${date}T${time.replace(',', '.')}${offsetHours === undefined ? 'Z' : `${offsetHours}:${offsetMinutes}`}`)
}

function daysOf(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
}

let lastMs = Number.NaN
let lastIso = ''

/** Formats a time as `2026-11-14T09:00:00.000Z`. Keeps the last result, because formatting costs about 1 µs and there can be many calls within a millisecond. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastIso = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastIso
}
