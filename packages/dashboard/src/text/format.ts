// Formats numbers, sizes and times in the viewer's language and time zone.

const number = new Intl.NumberFormat()
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })

export function count(value: number): string {
  return Math.abs(value) >= 100_000 ? compact.format(value) : number.format(value)
}

export function exactCount(value: number): string {
  return number.format(value)
}

/** `1 delivery`, `2,000 deliveries`, `3 days`. */
export function plural(value: number, one: string, many = /[^aeiou]y$/.test(one) ? `${one.slice(0, -1)}ies` : `${one}s`): string {
  return `${number.format(value)} ${value === 1 ? one : many}`
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export function share(value: number): string {
  return percent.format(value)
}

export const UNITS: readonly [name: string, ms: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

/** `1 h 5 min`, `350 ms`: at most the two largest units. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms * 10) / 10 >= 10 ? Math.round(ms) : Math.round(ms * 10) / 10} ms`
  const at = UNITS.findIndex(([, unit]) => ms >= unit)
  const [name, unit] = UNITS[at] as [string, number]
  if (name === 's') return `${Math.round(ms / 100) / 10} s`
  const whole = Math.floor(ms / unit)
  const [nextName, nextUnit] = UNITS[at + 1] as [string, number]
  const rest = Math.floor((ms - whole * unit) / nextUnit)
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${nextName}`
}

/** Keeps numbers and their units on one line, for durations within a sentence. */
export function withUnbrokenUnits(text: string): string {
  return text.replaceAll(/(\d) (?=(?:ms|s|min|h|d)\b)/g, '$1\u00a0')
}

export function ago(iso: string, nowMs: number = Date.now()): string {
  const ms = nowMs - Date.parse(iso)
  if (ms < -1_000) return `in ${duration(-ms)}`
  return ms < 1_000 ? 'now' : `${duration(Math.floor(ms / 1_000) * 1_000)} ago`
}

/** `05:26`, or with the day if that is not today: `19 Nov, 05:26`. */
export function clockTime(iso: string, nowMs: number = Date.now()): string {
  const at = new Date(iso)
  const isToday = at.toDateString() === new Date(nowMs).toDateString()
  return at.toLocaleString(undefined, {
    ...(isToday ? {} : { day: 'numeric', month: 'short' }),
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
}

export function dateTime(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
}

/** With milliseconds, for events that follow each other closely. */
export function preciseTime(iso: string): string {
  return new Date(iso).toLocaleString(undefined, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hourCycle: 'h23',
  })
}

export function bytes(value: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let at = 0
  let left = value
  while (left >= 1_000 && at < units.length - 1) {
    left /= 1_000
    at++
  }
  return `${at === 0 ? left : left.toFixed(1)} ${units[at]}`
}
