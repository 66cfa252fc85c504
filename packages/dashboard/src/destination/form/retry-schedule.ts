// When the attempts of a delivery are made if none succeeds, by the rules of the service
// (packages/server/src/delivery/shipments/retry-policy.ts). The service makes each wait up to half shorter at random; here it is the longest. Pure.

import { writeDuration } from './durations.ts'

export interface RetryTimes {
  initialMs: number
  maxMs: number
  factor: number
  windowMs: number
}

/** More are counted, but not drawn. */
export const MAX_DRAWN = 200

export interface Schedule {
  /** The time of each attempt after the first attempt, which is at 0. At most MAX_DRAWN. */
  atMs: readonly number[]
  /** All attempts, drawn or not. */
  count: number
  /** The number of waits that are shorter than `maxMs`, and grow. */
  growing: number
}

export function scheduleOf({ initialMs, maxMs, factor, windowMs }: RetryTimes): Schedule {
  const atMs = [0]
  let now = 0
  let growing = 0
  for (let wait = initialMs; ; wait = Math.min(wait * factor, maxMs)) {
    const isLongest = wait >= maxMs || factor === 1
    if (!isLongest) growing++
    const left = windowMs - now
    if (isLongest && atMs.length >= MAX_DRAWN) return { atMs, count: atMs.length + countOf(left, wait), growing }
    if (wait <= left) now += wait
    // The last attempt is at the end of the window, unless that is too soon after the one before.
    else if (left >= wait / 2 && left > 0) now = windowMs
    else return { atMs, count: atMs.length, growing }
    atMs.push(now)
  }
}

function countOf(leftMs: number, waitMs: number): number {
  const whole = Math.floor(leftMs / waitMs)
  return whole + (leftMs - whole * waitMs >= waitMs / 2 ? 1 : 0)
}

/** The schedule in a sentence or two. */
export function scheduleText(times: RetryTimes): string {
  const { count, growing, atMs } = scheduleOf(times)
  const { initialMs, maxMs, factor, windowMs } = times
  const window = `until ${writeDuration(windowMs)} after the first attempt`
  if (count === 1) return `1 attempt: no retry fits into the retry window of ${writeDuration(windowMs)}.`
  const waits = atMs.slice(1, 4).map((at, index) => writeDuration(Math.round(at - (atMs[index] as number))))
  const isSteady = growing === 0
  const listed = isSteady ? `then every ${waits[0]}` : `then after ${waits.join(', ')}${count > 4 ? ' …' : ''}`
  const reachesMax = !isSteady && count > growing + 2
  return `Up to ${count.toLocaleString('en-US')} attempts: the first at once, ${listed}${reachesMax ? `, and from attempt ${growing + 2} on every ${writeDuration(maxMs)}` : ''}, ${window}. Each wait is up to half shorter, at random.${
    factor > 1 && maxMs === initialMs ? ' The waits do not grow, because the longest wait equals the first.' : ''
  }`
}

/** Where a time is on the time line, from 0 to 1. Logarithmic, so that the first attempts, seconds apart, and the last, hours apart, can be told apart. */
export function positionOf(ms: number, { initialMs, windowMs }: Pick<RetryTimes, 'initialMs' | 'windowMs'>): number {
  const unit = Math.min(initialMs, windowMs)
  return Math.log1p(ms / unit) / Math.log1p(windowMs / unit)
}

const STEPS_MS = [
  100, 500, 1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000, 43_200_000, 86_400_000, 259_200_000, 604_800_000,
  1_209_600_000,
]

/** Times to label on the time line: the end, and round numbers that are far enough from each other. */
export function labelsOf(times: Pick<RetryTimes, 'initialMs' | 'windowMs'>, gap: number): number[] {
  const labels: number[] = []
  let left = gap
  for (const ms of STEPS_MS) {
    const at = positionOf(ms, times)
    if (ms < times.initialMs || at < left || at > 1 - gap) continue
    labels.push(ms)
    left = at + gap
  }
  return [0, ...labels, times.windowMs]
}
