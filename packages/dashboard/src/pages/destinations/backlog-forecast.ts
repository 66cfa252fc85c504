// When a destination will have sent what it is owed, from what is known: how much waits, how much came to an end in the last minutes,
// whether the breaker lets it, and how the backlog moved while somebody looked. Says no number where there is none to say. Pure.

import { count } from '../../text/format.ts'
import { type Hold, type HoldSettings, holdOf } from './destination-status.ts'

export interface Backlog extends HoldSettings {
  breaker: 'closed' | 'open' | 'probing'
  pending: number
  /** Share of the recent attempts that succeeded; null when there was none. */
  success: number | null
  oldestPendingAt: string | null
  retryWindowMs: number
  /** What came to an end lately; null while that is not known. */
  rate: Rate | null
  /** The backlog as this page saw it some time ago; null when it has just been opened. */
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
  /** Requests succeed, and none of their outcomes is written yet: those of one call to the tracking API are written together. */
  | { kind: 'sending'; attempts: number }
  /** `safeUntilMs`: before that time, no retry window of what waits can be over. */
  | { kind: 'stuck'; why: 'breaker' | 'failing' | 'waiting'; safeUntilMs: number | null }

/** Shorter than this, what was seen of the backlog is chance. */
const LEAST_SEEN_MS = 45_000
/** Minutes of the statistics that count as the present, the one under way included. */
const RATE_POINTS = 3

export function forecast(backlog: Backlog): Forecast {
  const { breaker, pending, success, oldestPendingAt, retryWindowMs, rate, earlier } = backlog
  if (pending === 0) return { kind: 'empty' }
  const hold = holdOf(backlog)
  if (hold !== null) return { kind: 'held', by: hold, isGrowing: earlier !== null && pending > earlier.pending }
  // A window begins with the first attempt, which is never before the message came.
  const safeUntilMs = oldestPendingAt === null ? null : Date.parse(oldestPendingAt) + retryWindowMs
  if (breaker !== 'closed') return { kind: 'stuck', why: 'breaker', safeUntilMs }
  if (rate === null) return { kind: 'unknown' }
  if (rate.settled === 0) {
    if (rate.attempts === 0) return { kind: 'stuck', why: 'waiting', safeUntilMs }
    return (success ?? 0) > 0 ? { kind: 'sending', attempts: rate.attempts } : { kind: 'stuck', why: 'failing', safeUntilMs }
  }
  const alone = { kind: 'draining', ms: (pending / rate.settled) * rate.overMs } as const
  // What is in flight is pending too: a backlog that is gone within seconds is none, whichever way it moves.
  if (earlier === null || earlier.agoMs < LEAST_SEEN_MS || alone.ms < 10_000) return alone
  // Seen for long enough, what really became less is better than what went out: new messages come on top of it.
  const less = earlier.pending - pending
  return less > 0 ? { kind: 'draining', ms: (pending / less) * earlier.agoMs } : { kind: 'growing' }
}

const STUCK_WORDS = {
  breaker: 'the breaker is open',
  failing: 'every attempt fails',
  waiting: 'nothing was due in the last minutes',
} as const

export function forecastText(forecast: Forecast): string {
  switch (forecast.kind) {
    case 'empty':
      return 'nothing waits'
    case 'held':
      if (forecast.by === 'disabled') return 'disabled: held until it is enabled'
      return `paused: held until it is resumed${forecast.isGrowing ? ', and growing' : ''}`
    case 'unknown':
      return 'not known yet'
    case 'growing':
      return 'growing: more comes in than goes out'
    case 'stuck':
      return `not draining: ${STUCK_WORDS[forecast.why]}`
    case 'sending':
      return `being sent: ${count(forecast.attempts)} ${forecast.attempts === 1 ? 'request' : 'requests'} in the last minutes, outcomes not written yet`
    case 'draining':
      return `${about(forecast.ms)} at the present rate`
  }
}

/** Of the statistics by minutes, the last: delivered and failed, not what expired, which empties the backlog by losing it. */
export function rateOf(points: readonly RatePoint[], nowMs: number): Rate | null {
  const recent = points.slice(-RATE_POINTS)
  // Minutes of rest before the work began say nothing of its pace.
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

/** No more exact than a forecast can be. */
function about(ms: number): string {
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
