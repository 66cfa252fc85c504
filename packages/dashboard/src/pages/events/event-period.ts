// The counts of an event in the time range of the dashboard. The event catalogue keeps them per hour for 7 days and per day, in UTC, for 90 days. Pure.

import { type Period, type Slot, slotsOf, span } from '../../components/charts/periods.ts'

export interface EventPoint {
  at: string
  count: number
}

export interface EventSeries {
  slots: Slot<EventPoint>[]
  step: 'hour' | 'day'
  /** When the first bar begins, if that is before the time range, because no counts are kept for shorter times. Otherwise null. */
  beginsAt: string | null
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Per hour if the counts per hour reach back far enough, otherwise per day. */
export function eventSeries(hours: readonly EventPoint[], days: readonly EventPoint[], period: Period, nowMs: number): EventSeries {
  const { from, to } = span(period, nowMs)
  const [fromMs, toMs] = [Date.parse(from), to === undefined ? Number.POSITIVE_INFINITY : Date.parse(to)]
  const isPerHour = hours[0] !== undefined && Date.parse(hours[0].at) <= fromMs
  const [points, stepMs] = isPerHour ? [hours, HOUR_MS] : [days, DAY_MS]
  const within = points.filter(({ at }) => Date.parse(at) + stepMs > fromMs && Date.parse(at) < toMs)
  // Days in UTC are not combined, because they may begin at another hour than the viewer's days.
  const slots = slotsOf(within, stepMs, isPerHour ? period.barOf : (ms) => ms)
  const first = slots[0]?.at
  const isEarlier = first !== undefined && Date.parse(first) < fromMs
  return { slots, step: isPerHour ? 'hour' : 'day', beginsAt: isEarlier ? first : null }
}
