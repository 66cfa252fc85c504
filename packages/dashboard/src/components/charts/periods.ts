// Counts over time, as the overview queries and shows them: the time steps of a period, which steps form one bar, their totals, and the
// comparison with the period before. Bars of hours and days follow the viewer's time zone. Pure.

import type { Answer } from '../../api/client.ts'
import { isoTime } from '../../url/local-time.ts'

export type Point = Answer<'GET /api/stats'>['data'][number]
export type Step = Answer<'GET /api/stats'>['step']

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

export const STEP_MS = { '1m': MINUTE_MS, '5m': 5 * MINUTE_MS, '1h': HOUR_MS, '1d': DAY_MS } as const satisfies Record<Step, number>

export interface Period {
  /** As in the address. */
  id: string
  /** Only of a custom period: when it begins and ends. The others end now. */
  fixed?: { fromMs: number; toMs: number }
  /** On the button. */
  short: string
  /** How long it is: `hour`, `24 hours`. */
  words: string
  lengthMs: number
  step: Step
  /** Returns the start of the bar that a time belongs to. */
  barOf: (ms: number) => number
  /** How often the counts are refreshed. */
  everyMs: number
}

export const PERIOD_IDS = ['15m', '1h', '6h', '24h', '7d', '30d'] as const
export type PeriodId = (typeof PERIOD_IDS)[number]

export const PERIODS: Readonly<Record<PeriodId, Period>> = {
  '15m': { id: '15m', short: '15 min', words: '15 minutes', lengthMs: 15 * MINUTE_MS, step: '1m', barOf: (ms) => ms, everyMs: 10_000 },
  '1h': { id: '1h', short: '1 hour', words: 'hour', lengthMs: HOUR_MS, step: '1m', barOf: (ms) => ms, everyMs: 10_000 },
  '6h': {
    id: '6h',
    short: '6 hours',
    words: '6 hours',
    lengthMs: 6 * HOUR_MS,
    step: '5m',
    barOf: (ms) => Math.floor(ms / (10 * MINUTE_MS)) * 10 * MINUTE_MS,
    everyMs: 20_000,
  },
  // Hours, not minutes: an answer with 288 steps would be a fifth of what the first load transfers.
  '24h': { id: '24h', short: '24 hours', words: '24 hours', lengthMs: DAY_MS, step: '1h', barOf: (ms) => ms, everyMs: 20_000 },
  '7d': { id: '7d', short: '7 days', words: '7 days', lengthMs: 7 * DAY_MS, step: '1h', barOf: (ms) => localHours(ms, 6), everyMs: 60_000 },
  // Hours, not days: the API's days are in UTC, and the viewer's days may begin at another hour.
  '30d': {
    id: '30d',
    short: '30 days',
    words: '30 days',
    lengthMs: 30 * DAY_MS,
    step: '1h',
    barOf: (ms) => localHours(ms, 24),
    everyMs: 120_000,
  },
}

/** The period that pages begin with: a day, or less for a young installation, whose chart of a day would be a single bar. */
export function defaultPeriod(ageMs: number): PeriodId {
  return (['1h', '6h'] as const).find((id) => ageMs < PERIODS[id].lengthMs) ?? '24h'
}

/** Completes "in the": `last 24 hours`, `chosen period`. */
export function whichPeriod({ fixed, words }: Pick<Period, 'fixed' | 'words'>): string {
  return fixed === undefined ? `last ${words}` : words
}

/** The period of an address: the name of one, or its start and end as `2026-11-15T09:00Z/2026-11-15T10:00Z`. */
export function periodOf(text: string | null, fallback: PeriodId = '24h'): Period {
  return customPeriod(text ?? '') ?? PERIODS[PERIOD_IDS.find((id) => id === text) ?? fallback]
}

/** The steps of custom periods, and how long the bars may be, shortest first. */
const BARS: readonly [step: Step, barMs: number][] = [
  ['1m', MINUTE_MS],
  ['1m', 5 * MINUTE_MS],
  ['5m', 10 * MINUTE_MS],
  ['5m', 30 * MINUTE_MS],
  ['1h', HOUR_MS],
  ['1h', 6 * HOUR_MS],
  ['1h', DAY_MS],
]
const LONGEST = ['1h', DAY_MS] as const
const MAX_BARS = 62
const MAX_CUSTOM_MS = 62 * DAY_MS

/** The name of a custom period in the address. */
export function customId(fromMs: number, toMs: number): string {
  const text = (ms: number): string => new Date(ms).toISOString().replace(/(:00)?\.\d+Z$/, 'Z')
  return `${text(fromMs)}/${text(toMs)}`
}

function customPeriod(text: string): Period | null {
  const [from, to, ...more] = text.split('/').map((each) => Date.parse(isoTime(each) ?? ''))
  if (from === undefined || to === undefined || more.length > 0 || !(to - from >= MINUTE_MS)) return null
  const toMs = Math.min(to, from + MAX_CUSTOM_MS)
  const [step, barMs] = BARS.find(([, ms]) => (toMs - from) / ms <= MAX_BARS) ?? LONGEST
  const stepMs = STEP_MS[step]
  const fixed = { fromMs: Math.floor(from / stepMs) * stepMs, toMs: Math.ceil(toMs / stepMs) * stepMs }
  const barOf = barMs > HOUR_MS ? (ms: number) => localHours(ms, barMs / HOUR_MS) : (ms: number) => Math.floor(ms / barMs) * barMs
  const lengthMs = fixed.toMs - fixed.fromMs
  return { id: customId(fixed.fromMs, fixed.toMs), fixed, short: 'Custom', words: 'chosen period', lengthMs, step, barOf, everyMs: 60_000 }
}

function localHours(ms: number, hours: number): number {
  const date = new Date(ms)
  return date.setHours(Math.floor(date.getHours() / hours) * hours, 0, 0, 0)
}

/**
 * Returns the start of the period and of the period before, and the end of a custom period. The current time step is the last one of a period
 * that ends now.
 */
export function span(
  { lengthMs, step, fixed }: Pick<Period, 'lengthMs' | 'step' | 'fixed'>,
  nowMs: number,
): { from: string; before: string; to?: string } {
  const stepMs = STEP_MS[step]
  const fromMs = fixed?.fromMs ?? Math.floor(nowMs / stepMs) * stepMs + stepMs - lengthMs
  const before = new Date(fromMs - lengthMs).toISOString()
  return { from: new Date(fromMs).toISOString(), before, ...(fixed && { to: new Date(fixed.toMs).toISOString() }) }
}

const COUNTED = ['accepted', 'duplicates', 'delivered', 'retried', 'failed', 'expired'] as const
export type Totals = Record<(typeof COUNTED)[number] | 'rejected', number>

export interface Bar extends Totals {
  /** The start of the bar, or of the period if that is later. */
  at: string
  /** The end of its last step. */
  until: string
}

export const NOTHING: Readonly<Totals> = { accepted: 0, duplicates: 0, rejected: 0, delivered: 0, retried: 0, failed: 0, expired: 0 }

export function totalsOf(points: readonly Point[]): Totals {
  const sum: Totals = { ...NOTHING }
  for (const point of points) addPoint(sum, point)
  return sum
}

function addPoint(sum: Totals, point: Point): void {
  for (const name of COUNTED) sum[name] += point[name] ?? 0
  for (const count of Object.values(point.rejected ?? {})) sum.rejected += count
}

/** Points that form one bar, with the start and end of the bar. */
export interface Slot<Row> {
  at: string
  until: string
  rows: Row[]
}

export function slotsOf<Row extends { at: string }>(points: readonly Row[], stepMs: number, barOf: Period['barOf']): Slot<Row>[] {
  const slots: Slot<Row>[] = []
  let key: number | undefined
  for (const point of points) {
    const atMs = Date.parse(point.at)
    if (slots.length === 0 || barOf(atMs) !== key) {
      key = barOf(atMs)
      slots.push({ at: point.at, until: point.at, rows: [] })
    }
    const slot = slots.at(-1) as Slot<Row>
    slot.rows.push(point)
    slot.until = new Date(atMs + stepMs).toISOString()
  }
  return slots
}

export function barsOf(points: readonly Point[], stepMs: number, barOf: Period['barOf']): Bar[] {
  return slotsOf(points, stepMs, barOf).map(({ rows, at, until }) => Object.assign(totalsOf(rows), { at, until }))
}

/** The share of delivery attempts that failed, and the number of attempts. Null if there were none. */
export function failureRate({ delivered, retried, failed, expired }: Totals): { rate: number; attempts: number } | null {
  const attempts = delivered + retried + failed + expired
  return attempts === 0 ? null : { rate: (retried + failed + expired) / attempts, attempts }
}

/** The change since the period before: `+12%`. `none` if there was nothing before; null if there is nothing in either period. */
export function change(now: number, before: number, share: (value: number) => string): string | null {
  if (before === 0) return now === 0 ? null : 'none'
  if (now === before) return 'no change'
  if (share(Math.abs(now - before) / before) === share(0)) return 'about the same'
  // From three times as many, a factor is easier to read than a percentage.
  if (now >= before * 3) return `${Math.round(now / before)}× as many`
  return now > before ? `+${share((now - before) / before)}` : `−${share((before - now) / before)}`
}
