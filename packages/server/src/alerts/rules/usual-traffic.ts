// What is usual for a source at a time of the week: the counts of the same hours of past weeks, and how long its pauses are in hours with about
// as many messages. Pure functions over counts that the store keeps.

import { HOUR_MS, type Minutes } from './rule.ts'

/** An hour of the past days whose minutes are known. */
export interface HourSample {
  daysAgo: number
  count: number
  /** Minutes without a message. */
  empty: number
  /** The longest run of minutes without a message that touches the hour. */
  longestPause: number
}

export interface UsualTraffic {
  /** Accepted messages by number of the hour since 1970. Hours without messages are missing. */
  hours: ReadonlyMap<number, number>
  /** The first hour with messages, as far as the counts reach; infinity if there is none. */
  firstHour: number
  /** Hours of the last days, at about the same time of day. */
  samples: readonly HourSample[]
}

export const WEEK_HOURS = 7 * 24
/** How many past weeks are compared with. */
export const WEEKS = 4
/** How many past days are looked at for pauses. */
export const SAMPLED_DAYS = 14

export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS)
}

/** The hours of a past day whose minutes are sampled: the same hour, and one before and after, because people are not punctual and clocks change. */
export function sampledHours(nowMs: number, daysAgo: number): number[] {
  const hour = hourOf(nowMs) - daysAgo * 24
  return [hour - 1, hour, hour + 1]
}

/** Samples the hours of one day, given their minutes. */
export function sampleHours(minutes: Minutes<number>, nowMs: number, daysAgo: number): HourSample[] {
  const hours = sampledHours(nowMs, daysAgo)
  const samples = hours.map((): HourSample => ({ daysAgo, count: 0, empty: 0, longestPause: 0 }))
  const first = (hours[0] ?? 0) * 60
  let pause = 0
  for (let at = 0; at < hours.length * 60; at++) {
    const sample = samples[Math.floor(at / 60)] as HourSample
    const count = minutes.get(first + at) ?? 0
    sample.count += count
    pause = count > 0 ? 0 : pause + 1
    if (pause === 0) continue
    sample.empty++
    // A pause counts for every hour that it touches.
    const start = Math.floor((at - pause + 1) / 60)
    for (let touched = start; touched <= Math.floor(at / 60); touched++) {
      const one = samples[touched] as HourSample
      one.longestPause = Math.max(one.longestPause, pause)
    }
  }
  return samples
}

/** The counts of the same hour of past weeks, with the hours before and after it; one list for each week that the source was known in. */
export function pastWeeks({ hours, firstHour }: UsualTraffic, nowMs: number): number[][] {
  const weeks: number[][] = []
  for (let week = 1; week <= WEEKS; week++) {
    const hour = hourOf(nowMs) - week * WEEK_HOURS
    if (hour - 1 < firstHour) break
    weeks.push([hour - 1, hour, hour + 1].map((one) => hours.get(one) ?? 0))
  }
  return weeks
}

export interface Pauses {
  /** The share of minutes without a message. */
  emptyShare: number
  /** The longest run of them. */
  longest: number
  /** In how many minutes. */
  minutes: number
}

/** The usual pauses in hours with about as many messages as expected: from half to twice as many. Null if there are no such hours. */
export function usualPauses(samples: readonly HourSample[], expected: number): Pauses | null {
  const comparable = samples.filter(({ count }) => count > 0 && count * 2 >= expected && count <= expected * 2)
  if (comparable.length === 0) return null
  const empty = comparable.reduce((sum, sample) => sum + sample.empty, 0)
  const byDay = new Map<number, number>()
  for (const { daysAgo, longestPause } of comparable) byDay.set(daysAgo, Math.max(byDay.get(daysAgo) ?? 0, longestPause))
  const longest = [...byDay.values()].sort((a, b) => b - a)
  const minutes = comparable.length * 60
  // One day with an outage of its own does not count.
  return { emptyShare: (empty + 1) / (minutes + 2), longest: longest[longest.length >= 5 ? 1 : 0] as number, minutes }
}
