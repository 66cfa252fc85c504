// Estimates when a destination's backlog will be empty, from the number of pending deliveries, the deliveries settled in the last minutes,
// the circuit breaker, and how the backlog changed while the page was open. Gives no number where none can be estimated. Pure.

import { count } from '../text/format.ts'
import { type Hold, type HoldSettings, holdOf } from './destination-status.ts'

export interface Backlog extends HoldSettings {
  breaker: 'closed' | 'open' | 'probing'
  pending: number
  /** Share of the recent attempts that succeeded; null if there were none. */
  success: number | null
  /** Deliveries settled in the last minutes; null while unknown. */
  rate: Rate | null
  /** An earlier size of the backlog, as seen by this page; null if the page has just been opened. */
  earlier: { pending: number; agoMs: number } | null
}

export interface Rate {
  settled: number
  attempts: number
  overMs: number
}

export type Forecast =
  | { kind: 'empty' | 'unknown' | 'growing' }
  | { kind: 'held'; by: Hold; isGrowing: boolean }
  | { kind: 'draining'; ms: number }
  /** Requests succeed, but no outcome is stored yet: the outcomes of one call to the tracking API are stored together. */
  | { kind: 'sending'; attempts: number }
  | { kind: 'stuck'; why: 'breaker' | 'failing' | 'waiting' }

/** Changes of the backlog over a shorter time than this may be chance. */
const MIN_OBSERVED_MS = 45_000
/** The number of one-minute points that count as the current rate, including the current minute. */
const RATE_POINTS = 3

export function forecast(backlog: Backlog): Forecast {
  const { breaker, pending, success, rate, earlier } = backlog
  if (pending === 0) return { kind: 'empty' }
  const hold = holdOf(backlog)
  if (hold !== null) return { kind: 'held', by: hold, isGrowing: earlier !== null && pending > earlier.pending }
  if (breaker !== 'closed') return { kind: 'stuck', why: 'breaker' }
  if (rate === null) return { kind: 'unknown' }
  if (rate.settled === 0) {
    if (rate.attempts === 0) return { kind: 'stuck', why: 'waiting' }
    return (success ?? 0) > 0 ? { kind: 'sending', attempts: rate.attempts } : { kind: 'stuck', why: 'failing' }
  }
  const fromRate = { kind: 'draining', ms: (pending / rate.settled) * rate.overMs } as const
  // Deliveries in flight are pending too, so a backlog that drains within seconds is normal even while it grows.
  if (earlier === null || earlier.agoMs < MIN_OBSERVED_MS || fromRate.ms < 10_000) return fromRate
  // Once observed for long enough, the real decrease is a better estimate than the rate: it includes new messages.
  const decrease = earlier.pending - pending
  return decrease > 0 ? { kind: 'draining', ms: (pending / decrease) * earlier.agoMs } : { kind: 'growing' }
}

const STUCK_REASONS = {
  breaker: 'circuit breaker open',
  failing: 'all recent attempts failed',
  waiting: 'no attempt was due in the last few minutes',
} as const

export function forecastText(forecast: Forecast): string {
  switch (forecast.kind) {
    case 'empty':
      return 'no pending deliveries'
    case 'held':
      return forecast.by === 'disabled' ? 'held while disabled' : `held while paused${forecast.isGrowing ? '; growing' : ''}`
    case 'unknown':
      return 'estimating …'
    case 'growing':
      return 'growing: messages arrive faster than they are delivered'
    case 'stuck':
      return `not draining: ${STUCK_REASONS[forecast.why]}`
    case 'sending':
      return `sending: ${count(forecast.attempts)} ${forecast.attempts === 1 ? 'request' : 'requests'} in the last few minutes, outcomes not stored yet`
    case 'draining':
      return `empty in ${approximately(forecast.ms)} at the current rate`
  }
}

/** The rate of the last minutes. Counts delivered and failed deliveries, but not expired ones: they shrink the backlog without being sent. */
export function rateOf(points: readonly RatePoint[], nowMs: number): Rate | null {
  const recent = points.slice(-RATE_POINTS)
  // Idle minutes before the first attempt would make the rate look too low.
  const begin = recent.findIndex(({ attempts = 0, delivered = 0, failed = 0 }) => attempts + delivered + failed > 0)
  const last = begin === -1 ? recent : recent.slice(begin)
  const [first] = last
  if (first === undefined) return null
  const sum = (of: (point: RatePoint) => number): number => last.reduce((total, point) => total + of(point), 0)
  return {
    settled: sum(({ delivered = 0, failed = 0 }) => delivered + failed),
    attempts: sum(({ attempts = 0 }) => attempts),
    overMs: Math.max(1_000, nowMs - Date.parse(first.at)),
  }
}

export interface RatePoint {
  at: string
  attempts?: number | undefined
  delivered?: number | undefined
  failed?: number | undefined
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Rounded, because a forecast is not exact. */
function approximately(ms: number): string {
  if (ms < 10_000) return 'a few seconds'
  if (ms < MINUTE) return 'less than a minute'
  if (ms < HOUR) return `about ${Math.round(ms / MINUTE)} min`
  if (ms < 10 * HOUR) {
    const tens = Math.round(ms / (10 * MINUTE))
    const [hours, minutes] = [Math.floor(tens / 6), (tens % 6) * 10]
    return minutes === 0 ? `about ${hours} h` : `about ${hours} h ${minutes} min`
  }
  return ms < 48 * HOUR ? `about ${Math.round(ms / HOUR)} h` : `about ${Math.round(ms / (24 * HOUR))} days`
}
