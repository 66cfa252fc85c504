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

type CountsBySubject<Counts> = ReadonlyMap<string, ReadonlyMap<number, Counts>>

/**
 * Returns a function that reads counts per minute or per hour, for all subjects of a kind: by subject, and then by the number of the minute or hour
 * since 1970, in order. `kept` is the number of minutes or hours that are kept. Those for which `convert` returns null are missing.
 */
export function recentCounts<Counts>(
  books: Pick<BooksStore, 'statsOf'>,
  { kind, stepMs, kept }: { kind: StatKind; stepMs: number; kept: number },
  convert: (counts: StatCounts) => Counts | null,
): (subjects: readonly string[], nowMs: number) => Promise<CountsBySubject<Counts>> {
  const bySubject = new Map<string, Map<number, Counts>>()
  let readTo = Number.NEGATIVE_INFINITY

  async function readFrom(subjects: readonly string[], first: number, last: number): Promise<void> {
    if (subjects.length === 0) return
    const found = await books.statsOf({ kind, fromMs: first * stepMs, toMs: (last + 1) * stepMs, stepMs, subjects })
    for (const id of subjects) if (!bySubject.has(id)) bySubject.set(id, new Map())
    for (const { subject, points } of found) {
      for (const { atMs, counts } of points) {
        const converted = convert(counts)
        if (converted !== null) bySubject.get(subject)?.set(Math.floor(atMs / stepMs), converted)
      }
    }
  }

  return async (subjects, nowMs) => {
    const now = Math.floor(nowMs / stepMs)
    for (const id of bySubject.keys()) if (!subjects.includes(id)) bySubject.delete(id)
    const [known, unknown] = [subjects.filter((id) => bySubject.has(id)), subjects.filter((id) => !bySubject.has(id))]
    // A minute of the last reading may have got more counts.
    await readFrom(known, Math.max(readTo - LATE_STEPS, now - kept), now)
    for (let at = 0; at < unknown.length; at += SUBJECTS_AT_ONCE) {
      await readFrom(unknown.slice(at, at + SUBJECTS_AT_ONCE), now - kept, now)
      await yieldToOthers()
    }
    readTo = now
    for (const counts of bySubject.values()) for (const at of counts.keys()) if (at < now - kept) counts.delete(at)
    return bySubject
  }
}

/** The counts per hour of past weeks, and samples of minutes of past days, for sources. */
export function usualTrafficOf(books: Pick<BooksStore, 'statsOf'>) {
  const readHours = recentCounts(books, { kind: 'source', stepMs: HOUR_MS, kept: HISTORY_HOURS }, (counts) => acceptedOf(counts) || null)
  const samplesOf = new Map<string, { hour: number; samples: readonly HourSample[] }>()
  let hoursOf: CountsBySubject<number> = new Map()
  let readHour = Number.NEGATIVE_INFINITY

  function of(subject: string): UsualTraffic {
    const hours = hoursOf.get(subject) ?? new Map<number, number>()
    // They are added in order.
    return { hours, firstHour: hours.keys().next().value ?? Number.POSITIVE_INFINITY, samples: [] }
  }

  return {
    of,
    /** Must be called before `of`. Reads something at most once an hour, or if there is a new subject. */
    async read(subjects: readonly string[], nowMs: number): Promise<void> {
      const hour = hourOf(nowMs)
      for (const id of samplesOf.keys()) if (!subjects.includes(id)) samplesOf.delete(id)
      if (hour !== readHour || subjects.some((id) => !hoursOf.has(id))) hoursOf = await readHours(subjects, nowMs)
      readHour = hour
    },
    /** With samples, which are read at most once an hour, and only for sources that pause. */
    async withSamples(subject: string, nowMs: number): Promise<UsualTraffic> {
      const hour = hourOf(nowMs)
      let known = samplesOf.get(subject)
      if (known?.hour !== hour) {
        known = { hour, samples: await readSamples(books, subject, nowMs, of(subject).firstHour) }
        samplesOf.set(subject, known)
      }
      return { ...of(subject), samples: known.samples }
    },
  }
}

async function readSamples(
  books: Pick<BooksStore, 'statsOf'>,
  subject: string,
  nowMs: number,
  firstHour: number,
): Promise<readonly HourSample[]> {
  const samples: HourSample[] = []
  for (let daysAgo = 1; daysAgo <= SAMPLED_DAYS; daysAgo++) {
    const [first = 0] = sampledHours(nowMs, daysAgo)
    if (first < firstHour) break
    const query = { kind: 'source', fromMs: first * HOUR_MS, toMs: (first + 3) * HOUR_MS, stepMs: MINUTE_MS } as const
    const [found] = await books.statsOf({ ...query, subjects: [subject] })
    const minutes = new Map(found?.points.map(({ atMs, counts }) => [minuteOf(atMs), acceptedOf(counts)]) ?? [])
    // Counts per minute are dropped with the messages: the hours before that have none.
    if (minutes.size > 0) samples.push(...sampleHours(minutes, nowMs, daysAgo))
  }
  return samples
}

function acceptedOf(counts: StatCounts): number {
  return countOf(counts, 'accepted') + countOf(counts, 'duplicates')
}
