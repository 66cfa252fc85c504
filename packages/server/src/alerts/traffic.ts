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
const LATE_STEPS = 2
/** The largest number of subjects in one query of many rows. */
const SUBJECTS_AT_ONCE = 10
const HISTORY_HOURS = WEEKS * WEEK_HOURS + 28

/** Counts per minute or per hour, for all subjects of a kind. */
export class RecentCounts<Counts> {
  readonly #books: Pick<BooksStore, 'statsOf'>
  readonly #query: { kind: StatKind; stepMs: number; kept: number }
  readonly #convert: (counts: StatCounts) => Counts | null
  readonly #bySubject = new Map<string, Map<number, Counts>>()
  #readTo = Number.NEGATIVE_INFINITY

  /** `kept` is the number of minutes or hours that are kept. Those for which `convert` returns null are missing. */
  constructor(
    books: Pick<BooksStore, 'statsOf'>,
    query: { kind: StatKind; stepMs: number; kept: number },
    convert: (counts: StatCounts) => Counts | null,
  ) {
    this.#books = books
    this.#query = query
    this.#convert = convert
  }

  /** By subject, and then by the number of the minute or hour since 1970, in order. */
  async read(subjects: readonly string[], nowMs: number): Promise<ReadonlyMap<string, ReadonlyMap<number, Counts>>> {
    const { stepMs, kept } = this.#query
    const now = Math.floor(nowMs / stepMs)
    for (const id of this.#bySubject.keys()) if (!subjects.includes(id)) this.#bySubject.delete(id)
    const [known, unknown] = [subjects.filter((id) => this.#bySubject.has(id)), subjects.filter((id) => !this.#bySubject.has(id))]
    // A minute of the last reading may have got more counts.
    await this.#readFrom(known, Math.max(this.#readTo - LATE_STEPS, now - kept), now)
    for (let at = 0; at < unknown.length; at += SUBJECTS_AT_ONCE) {
      await this.#readFrom(unknown.slice(at, at + SUBJECTS_AT_ONCE), now - kept, now)
      await yieldToOthers()
    }
    this.#readTo = now
    for (const counts of this.#bySubject.values()) for (const at of counts.keys()) if (at < now - kept) counts.delete(at)
    return this.#bySubject
  }

  async #readFrom(subjects: readonly string[], first: number, last: number): Promise<void> {
    if (subjects.length === 0) return
    const { kind, stepMs } = this.#query
    const found = await this.#books.statsOf({ kind, fromMs: first * stepMs, toMs: (last + 1) * stepMs, stepMs, subjects })
    for (const id of subjects) if (!this.#bySubject.has(id)) this.#bySubject.set(id, new Map())
    for (const { subject, points } of found) {
      const own = this.#bySubject.get(subject)
      for (const { atMs, counts } of points) {
        const converted = this.#convert(counts)
        if (converted !== null) own?.set(Math.floor(atMs / stepMs), converted)
      }
    }
  }
}

/** The counts per hour of past weeks, and samples of minutes of past days, for sources. */
export class UsualTrafficOfSources {
  readonly #books: Pick<BooksStore, 'statsOf'>
  readonly #counts: RecentCounts<number>
  #hours: ReadonlyMap<string, ReadonlyMap<number, number>> = new Map()
  readonly #samples = new Map<string, { hour: number; samples: readonly HourSample[] }>()
  #readHour = Number.NEGATIVE_INFINITY

  constructor(books: Pick<BooksStore, 'statsOf'>) {
    this.#books = books
    this.#counts = new RecentCounts(books, { kind: 'source', stepMs: HOUR_MS, kept: HISTORY_HOURS }, (counts) => acceptedOf(counts) || null)
  }

  /** Must be called before `of`. Reads something at most once an hour, or if there is a new subject. */
  async read(subjects: readonly string[], nowMs: number): Promise<void> {
    const hour = hourOf(nowMs)
    for (const id of this.#samples.keys()) if (!subjects.includes(id)) this.#samples.delete(id)
    if (hour !== this.#readHour || subjects.some((id) => !this.#hours.has(id))) this.#hours = await this.#counts.read(subjects, nowMs)
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
}

function acceptedOf(counts: StatCounts): number {
  return countOf(counts, 'accepted') + countOf(counts, 'duplicates')
}
