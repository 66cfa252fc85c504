// The counts over time that rules need, kept in memory by the node that evaluates the rules. Each is read from the store once, and from then on
// only what is new, so that an evaluation costs the same however long the history is.

import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { countOf, type StatCounts } from '../store/port/stat-counts.ts'
import type { BooksStore, StatKind } from '../store/store.ts'
import { HOUR_MS, MINUTE_MS, minuteOf } from './rules/rule.ts'
import {
  type HourSample,
  hourOf,
  SAMPLED_DAYS,
  sampledHours,
  sampleHours,
  type UsualTraffic,
  WEEK_HOURS,
  WEEKS,
} from './rules/usual-traffic.ts'

/** Other nodes write their counts every five seconds. */
const LATE_MINUTES = 2
/** The largest number of subjects in one query of many rows. */
const SUBJECTS_AT_ONCE = 10
const HISTORY_HOURS = WEEKS * WEEK_HOURS + 28

/** The counts of the last minutes, for all subjects of a kind. */
export class RecentMinutes<Counts> {
  readonly #books: Pick<BooksStore, 'statsOf'>
  readonly #kind: StatKind
  readonly #kept: number
  readonly #convert: (counts: StatCounts) => Counts
  readonly #bySubject = new Map<string, Map<number, Counts>>()
  #readTo = Number.NEGATIVE_INFINITY

  constructor(books: Pick<BooksStore, 'statsOf'>, kind: StatKind, kept: number, convert: (counts: StatCounts) => Counts) {
    this.#books = books
    this.#kind = kind
    this.#kept = kept
    this.#convert = convert
  }

  async read(subjects: readonly string[], nowMs: number): Promise<ReadonlyMap<string, ReadonlyMap<number, Counts>>> {
    const now = minuteOf(nowMs)
    for (const id of this.#bySubject.keys()) if (!subjects.includes(id)) this.#bySubject.delete(id)
    const [known, unknown] = [subjects.filter((id) => this.#bySubject.has(id)), subjects.filter((id) => !this.#bySubject.has(id))]
    // A minute of the last reading may have got more counts.
    await this.#readFrom(known, Math.max(this.#readTo - LATE_MINUTES, now - this.#kept), now)
    for (let at = 0; at < unknown.length; at += SUBJECTS_AT_ONCE) {
      await this.#readFrom(unknown.slice(at, at + SUBJECTS_AT_ONCE), now - this.#kept, now)
    }
    this.#readTo = now
    for (const minutes of this.#bySubject.values()) {
      for (const minute of minutes.keys()) if (minute < now - this.#kept) minutes.delete(minute)
    }
    return this.#bySubject
  }

  async #readFrom(subjects: readonly string[], first: number, last: number): Promise<void> {
    if (subjects.length === 0) return
    const query = { kind: this.#kind, fromMs: first * MINUTE_MS, toMs: (last + 1) * MINUTE_MS, stepMs: MINUTE_MS }
    const found = await this.#books.statsOf({ ...query, subjects })
    for (const id of subjects) if (!this.#bySubject.has(id)) this.#bySubject.set(id, new Map())
    for (const { subject, points } of found) {
      const minutes = this.#bySubject.get(subject)
      for (const { atMs, counts } of points) minutes?.set(minuteOf(atMs), this.#convert(counts))
    }
  }
}

/** The counts per hour of past weeks, and samples of minutes of past days, for sources. */
export class UsualTrafficOfSources {
  readonly #books: Pick<BooksStore, 'statsOf'>
  readonly #hours = new Map<string, Map<number, number>>()
  readonly #samples = new Map<string, { hour: number; samples: readonly HourSample[] }>()
  #readHour = Number.NEGATIVE_INFINITY

  constructor(books: Pick<BooksStore, 'statsOf'>) {
    this.#books = books
  }

  /** Must be called before `of`. Reads something at most once an hour. */
  async read(subjects: readonly string[], nowMs: number): Promise<void> {
    const hour = hourOf(nowMs)
    for (const id of this.#hours.keys()) if (!subjects.includes(id)) this.#forget(id)
    const unknown = subjects.filter((id) => !this.#hours.has(id))
    if (hour !== this.#readHour) await this.#readFrom([...this.#hours.keys()], Math.max(this.#readHour - 1, hour - HISTORY_HOURS), hour)
    for (let at = 0; at < unknown.length; at += SUBJECTS_AT_ONCE) {
      await this.#readFrom(unknown.slice(at, at + SUBJECTS_AT_ONCE), hour - HISTORY_HOURS, hour)
      await yieldToOthers()
    }
    this.#readHour = hour
  }

  /** With samples, which are read at most once an hour, and only for sources that pause. */
  async withSamples(subject: string, nowMs: number): Promise<UsualTraffic> {
    const hour = hourOf(nowMs)
    let known = this.#samples.get(subject)
    if (known?.hour !== hour) {
      const samples: HourSample[] = []
      const { firstHour } = this.of(subject)
      for (let daysAgo = 1; daysAgo <= SAMPLED_DAYS; daysAgo++) {
        const [first = 0] = sampledHours(nowMs, daysAgo)
        if (first < firstHour) break
        const query = { kind: 'source', fromMs: first * HOUR_MS, toMs: (first + 3) * HOUR_MS, stepMs: MINUTE_MS } as const
        const [found] = await this.#books.statsOf({ ...query, subjects: [subject] })
        const minutes = new Map(found?.points.map(({ atMs, counts }) => [minuteOf(atMs), acceptedOf(counts)]) ?? [])
        // Counts per minute are dropped with the messages: the hours before that have none.
        if (minutes.size > 0) samples.push(...sampleHours(minutes, nowMs, daysAgo))
      }
      known = { hour, samples }
      this.#samples.set(subject, known)
    }
    return { ...this.of(subject), samples: known.samples }
  }

  of(subject: string): UsualTraffic {
    const hours = this.#hours.get(subject) ?? new Map<number, number>()
    // They are added in order.
    return { hours, firstHour: hours.keys().next().value ?? Number.POSITIVE_INFINITY, samples: [] }
  }

  #forget(id: string): void {
    this.#hours.delete(id)
    this.#samples.delete(id)
  }

  async #readFrom(subjects: readonly string[], first: number, last: number): Promise<void> {
    if (subjects.length === 0) return
    const found = await this.#books.statsOf({
      kind: 'source',
      fromMs: first * HOUR_MS,
      toMs: (last + 1) * HOUR_MS,
      stepMs: HOUR_MS,
      subjects,
    })
    for (const id of subjects) if (!this.#hours.has(id)) this.#hours.set(id, new Map())
    for (const { subject, points } of found) {
      const hours = this.#hours.get(subject)
      for (const { atMs, counts } of points) {
        const accepted = acceptedOf(counts)
        if (accepted > 0) hours?.set(hourOf(atMs), accepted)
      }
      for (const hour of hours?.keys() ?? []) if (hour < last - HISTORY_HOURS) hours?.delete(hour)
    }
  }
}

function acceptedOf(counts: StatCounts): number {
  return countOf(counts, 'accepted') + countOf(counts, 'duplicates')
}
