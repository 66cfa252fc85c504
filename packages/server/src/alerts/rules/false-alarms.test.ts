// How often the rules about sources are wrong, on simulated months of traffic with daily and weekly rhythm, from the first day of each source.
// The traffic is drawn from a seeded generator, so the counts are the same in every run.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { DAY_MS, MINUTE_MS, minuteOf, type Rule, type SourceMinute } from './rule.ts'
import { RECENT_MINUTES, type SourceTraffic, sourceSilent } from './source-silent.ts'
import { sourceVolumeUnusual } from './source-volume-unusual.ts'
import { type HourSample, hourOf, SAMPLED_DAYS, sampledHours, sampleHours, type UsualTraffic } from './usual-traffic.ts'

/** A Monday, 00:00. */
const START_MS = Date.UTC(2026, 0, 5)
const DAYS = 60

type Random = () => number

function seeded(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}

function poisson(mean: number, random: Random): number {
  if (mean === 0) return 0
  if (mean > 12) return Math.max(0, Math.round(mean + Math.sqrt(mean) * (random() + random() + random() + random() - 2) * 1.73))
  const limit = Math.exp(-mean)
  let count = -1
  for (let product = 1; product >= limit; count++) product *= random()
  return count
}

/** The messages of a minute, given the day (0 is a Monday), the minute of the day, and a factor that is drawn anew each day. */
type Traffic = (day: number, minute: number, busy: number, random: Random) => number

const wave = (minute: number, peakHour: number): number => (1 + Math.cos(((minute / 60 - peakHour) / 12) * Math.PI)) / 2
const isWeekend = (day: number): boolean => day % 7 >= 5

function sessions(): Traffic {
  let [isOn, left] = [false, 0]
  return (_day, minute, _busy, random) => {
    if (left-- <= 0) {
      isOn = !isOn
      left = Math.ceil(-Math.log(1 - random()) * (isOn ? 30 : 20 + 60 * (1 - wave(minute, 15))))
    }
    return isOn ? poisson(3, random) : 0
  }
}

const SOURCES: Readonly<Record<string, () => Traffic>> = {
  'every minute': () => () => 1,
  'every minute, now and then late': () => (_day, _minute, _busy, random) => (random() < 0.01 ? 0 : 1),
  'once a minute on average': () => (_day, _minute, _busy, random) => poisson(1, random),
  'web shop': () => (day, minute, busy, random) => poisson(20 * busy * (0.02 + wave(minute, 19)) * (isWeekend(day) ? 1.4 : 1), random),
  'large web shop': () => (day, minute, busy, random) =>
    poisson(300 * busy * (0.05 + wave(minute, 20)) * (isWeekend(day) ? 1.3 : 1), random),
  'small web shop': () => (day, minute, busy, random) => poisson(0.4 * busy * wave(minute, 19) * (isWeekend(day) ? 1.4 : 1), random),
  'business application, in office hours only': () => (day, minute, busy, random) =>
    !isWeekend(day) && minute >= 540 && minute < 1_080 ? poisson(6 * busy, random) : 0,
  'business application, quiet at night': () => (day, minute, busy, random) =>
    poisson((isWeekend(day) ? 0.3 : 8) * busy * (0.03 + wave(minute, 13) ** 3), random),
  'nightly job': () => (_day, minute, busy, random) => (minute >= 180 && minute < 200 ? poisson(25 * busy, random) : 0),
  'job every five minutes': () => (_day, minute, _busy, random) => (minute % 5 === 0 ? poisson(10, random) + 1 : 0),
  'weekly report': () => (day, minute, _busy, random) => (day % 7 === 0 && minute >= 360 && minute < 420 ? poisson(4, random) : 0),
  'sessions of some users': sessions,
  'growing by two percent a day': () => (day, minute, busy, random) => poisson(5 * 1.02 ** day * busy * (0.1 + wave(minute, 15)), random),
  'a public holiday now and then': () => (day, minute, busy, random) =>
    poisson((day % 30 === 17 ? 0.4 : 1) * 20 * busy * (0.05 + wave(minute, 14)) * (isWeekend(day) ? 0.5 : 1), random),
}

const usualValues = ({ settings }: Rule<SourceTraffic>) =>
  Object.fromEntries(Object.entries(settings).map(([name, { fallback }]) => [name, fallback]))
const VALUES = { silent: usualValues(sourceSilent), volume: usualValues(sourceVolumeUnusual) }

interface Outcome {
  /** In the first day, in which nothing is known of a source but its last hours. */
  firstDay: number
  silent: number
  volume: number
  /** When the first incident after the stop was opened, in minutes after it; null if there was none. */
  noticedAfter: number | null
}

/** Runs both rules over the traffic of a source. From `stopDay` at 11:30 on it sends nothing. */
function simulate(traffic: Traffic, seed: number, { days = DAYS, stopDay = Number.POSITIVE_INFINITY } = {}): Outcome {
  const random = seeded(seed)
  const minutes = new Map<number, SourceMinute>()
  const accepted = new Map<number, number>()
  const hours = new Map<number, number>()
  const stopAt = stopDay * 1_440 + 690
  const outcome: Outcome = { firstDay: 0, silent: 0, volume: 0, noticedAfter: null }
  const open = { silent: false, volume: false }
  const first = minuteOf(START_MS)
  let sampledAt = -1
  let samples: readonly HourSample[] = []
  // Samples are made when a rule asks for them, and stay the same for the hour.
  const usual: UsualTraffic = {
    hours,
    firstHour: hourOf(START_MS),
    get samples() {
      if (sampledAt !== hourOf(nowMs)) samples = samplesAt(accepted, nowMs)
      sampledAt = hourOf(nowMs)
      return samples
    },
  }
  let nowMs = START_MS
  let busy = 1
  const judge = (name: 'silent' | 'volume', rule: Rule<SourceTraffic>, at: number): void => {
    const { verdict } = rule.judge({ nowMs, minutes, usual, upSinceMs: START_MS - DAY_MS }, VALUES[name])
    if (verdict === 'open' && !open[name]) {
      if (at > stopAt) outcome.noticedAfter ??= at - stopAt
      else outcome[at < 1_440 ? 'firstDay' : name]++
      open[name] = true
    }
    if (verdict === 'close') open[name] = false
  }
  const end = Number.isFinite(stopAt) ? stopAt + 120 : days * 1_440
  for (let at = 0; at < end; at++) {
    const minute = first + at
    nowMs = minute * MINUTE_MS
    if (at % 1_440 === 0) busy = Math.exp(0.2 * (random() + random() + random() - 1.5))
    // The rules are asked at the start of each minute: what they see of it is empty.
    judge('silent', sourceSilent, at)
    if (at % 10 === 0) judge('volume', sourceVolumeUnusual, at)
    const count = at < stopAt ? traffic(Math.floor(at / 1_440), at % 1_440, busy, random) : 0
    minutes.delete(minute - RECENT_MINUTES - 1)
    if (count === 0) continue
    minutes.set(minute, { accepted: count, rejected: 0, code: null })
    accepted.set(minute, count)
    hours.set(Math.floor(minute / 60), (hours.get(Math.floor(minute / 60)) ?? 0) + count)
  }
  return outcome
}

function samplesAt(accepted: ReadonlyMap<number, number>, nowMs: number): HourSample[] {
  const samples: HourSample[] = []
  for (let daysAgo = 1; daysAgo <= SAMPLED_DAYS; daysAgo++) {
    const [first = 0] = sampledHours(nowMs, daysAgo)
    if (first >= hourOf(START_MS)) samples.push(...sampleHours(accepted, nowMs, daysAgo))
  }
  return samples
}

suite('false alarms', () => {
  const months = (DAYS * DAY_MS) / (30 * DAY_MS)
  for (const [name, make] of Object.entries(SOURCES)) {
    test(`${name}: fewer than one false alarm a month`, (t) => {
      const { firstDay, silent, volume } = simulate(make(), 1)
      const found = `${silent} × Source Silent, ${volume} × Source Volume Unusual in ${months} months, and ${firstDay} on the first day`
      t.diagnostic(found)
      assert.ok(silent + volume < months && firstDay <= 2, found)
    })
  }
})

suite('a source that stops', () => {
  for (const [name, most] of [
    ['every minute', 5],
    ['every minute, now and then late', 5],
    ['large web shop', 5],
    ['web shop', 10],
    ['business application, in office hours only', 10],
    ['once a minute on average', 30],
  ] as const) {
    test(`${name}: is noticed within ${most} minutes`, (t) => {
      for (const stopDay of [9, 22]) {
        const { noticedAfter } = simulate(SOURCES[name]!(), stopDay, { stopDay })
        t.diagnostic(`noticed ${noticedAfter} minutes after the stop on day ${stopDay}`)
        assert.ok(noticedAfter !== null && noticedAfter <= most, `noticed after ${noticedAfter} minutes, on day ${stopDay}`)
      }
    })
  }
  for (const [perMinute, known, most] of [
    [5, 15, 8],
    [20, 6, 5],
    [600, 5, 4],
  ] as const) {
    test(`on its first day, after ${known} minutes with ${perMinute} messages each: is noticed within ${most} minutes`, (t) => {
      const traffic: Traffic = (_day, minute, _busy, random) => (minute >= 690 - known ? poisson(perMinute, random) : 0)
      const { noticedAfter } = simulate(traffic, 1, { stopDay: 0 })
      t.diagnostic(`noticed ${noticedAfter} minutes after the stop`)
      assert.ok(noticedAfter !== null && noticedAfter <= most, `noticed after ${noticedAfter} minutes`)
    })
  }
})
