// Source Silent: a source sends nothing, although it sent at this time of the week in past weeks. How long it has to be silent depends on the
// source: long enough that its own pauses in comparable hours make a pause of that length very unlikely.

import {
  grouped,
  HOUR_MS,
  KEEP,
  MINUTE_MS,
  type Minutes,
  minuteOf,
  minutesSetting,
  type RuleVerdict,
  rule,
  type SourceMinute,
  span,
} from './rule.ts'
import { hourOf, type Pauses, pastWeeks, type UsualTraffic, usualPauses, WEEK_HOURS, WEEKS } from './usual-traffic.ts'

export interface SourceTraffic {
  nowMs: number
  /** The last RECENT_MINUTES. */
  minutes: Minutes<SourceMinute>
  usual: UsualTraffic
  /** Since when the service has been running, and its store has been available. Nothing before that says anything about the source. */
  upSinceMs: number
}

/** How many minutes a rule about sources gets. Pauses that are longer are judged by the day. */
export const RECENT_MINUTES = 240
/** A pause is too long if it is that unlikely, even if the source sends only half as much as usual. */
const UNLIKELY = 1e-4
/** A pause must be longer than the longest one so far by this factor; by the second one if the source sends in bursts, whose pauses vary more. */
const LONGER = 1.6
const LONGER_IN_BURSTS = 3
const LONGEST_JUDGED_MINUTES = 180
const LONGEST_JUDGED_IN_BURSTS = 60
/** A source that is new is compared with its last hour, once it has sent for this long. */
const LEAST_KNOWN_MINUTES = 5
/**
 * For a new source: each minute counts as many times as there were messages in its weakest minute, up to this many times. Five minutes without a
 * pause say little about a source that sends once a minute, but much about one that never sends fewer than 20 messages.
 */
const MOST_EVIDENCE = 20
const DAY_HOURS = 24
/** For sources that send now and then: nothing in a whole day (and two hours more, for those that are late), although there were at least this many in past weeks. */
const SILENT_HOURS = 26
const LEAST_PER_DAY = 10

export const sourceSilent = rule({
  id: 'source_silent',
  event: 'Source Silent',
  subject: 'source',
  severity: ({ silentMs, comparedWeeks }) => (Number(silentMs) >= HOUR_MS && Number(comparedWeeks) > 0 ? 'critical' : 'warning'),
  sentences: [
    'Open when nothing has arrived for at least {openAfterMinutes} minutes, and for longer than the source usually pauses.',
    'Close when messages have arrived for {closeAfterMinutes} minutes.',
  ],
  description:
    'A source sends nothing, although it sent messages at the same hours of past weeks. A new source is compared with its last hour and the day before.',
  settings: {
    openAfterMinutes: minutesSetting(
      3,
      'Open an incident after at least this many minutes without a message. Sources with longer usual pauses get more time.',
    ),
    closeAfterMinutes: minutesSetting(0, 'Close it when the source has been sending again for this many minutes.', 60),
  },
  judge(traffic: SourceTraffic, { openAfterMinutes, closeAfterMinutes }) {
    const { nowMs, minutes, upSinceMs } = traffic
    const now = minuteOf(nowMs)
    const sent = (minute: number): boolean => (minutes.get(minute)?.accepted ?? 0) > 0
    let last = now
    while (last > now - RECENT_MINUTES && !sent(last)) last--
    if (last === now - RECENT_MINUTES) return judgeDay(traffic)
    const pause = now - Math.max(last, minuteOf(upSinceMs)) - 1
    const sinceMs = (last + 1) * MINUTE_MS
    if (pause < Math.max(1, openAfterMinutes)) {
      const isBack =
        closeAfterMinutes === 0 ||
        [...minutes.keys()].some((minute) => minute <= now - closeAfterMinutes && minute > now - closeAfterMinutes - 5 && sent(minute))
      return { verdict: now - last <= 2 && isBack ? 'close' : 'keep', sinceMs, details: { silentMs: 0 } }
    }
    const usual = usualPause(traffic, last)
    if (usual === null) return KEEP
    const { allowed, perHour, weeks } = usual
    const verdict = pause >= Math.max(openAfterMinutes, allowed) ? 'open' : 'keep'
    return { verdict, sinceMs, details: { silentMs: nowMs - sinceMs, usualPerHour: perHour, comparedWeeks: weeks } }
  },
  opened: (name, { silentMs, usualPerHour, comparedWeeks }) =>
    `The source "${name}" has sent nothing for ${span(silentMs)}. ` +
    (comparedWeeks === 0
      ? `Before that it sent about ${grouped(usualPerHour)} messages an hour.`
      : `At this time of the week it sent at least ${grouped(usualPerHour)} messages ${Number(silentMs) >= SILENT_HOURS * HOUR_MS ? 'a day' : 'an hour'} in the past ${comparedWeeks === 1 ? 'week' : `${String(comparedWeeks)} weeks`}.`),
  closed: (name, { forMs }) => `The source "${name}" is sending again. It was silent for ${span(forMs)}.`,
  link: (id) => `/sources/${id}`,
})

/** How many whole minutes without a message are usual now; null if that cannot be said. */
function usualPause(traffic: SourceTraffic, last: number): { allowed: number; perHour: number; weeks: number } | null {
  const { nowMs, usual } = traffic
  const weeks = pastWeeks(usual, nowMs)
  if (weeks.length === 0) return usualPauseOfNew(traffic, last)
  const perHour = Math.min(...weeks.flat())
  if (perHour === 0) return null
  const allowed = allowedPause(usualPauses(usual.samples, perHour) ?? { emptyShare: Math.exp(-perHour / 60), longest: 0, minutes: 60 })
  return allowed === null ? null : { allowed, perHour, weeks: weeks.length }
}

/**
 * A source that was not there a week ago: its hour before the pause. If it was there a day ago, it must have sent then too. Only a pause that began
 * within the hour is judged, so that a source that rests at night or at weekends is not expected in the morning.
 */
function usualPauseOfNew(
  { nowMs, minutes, usual }: SourceTraffic,
  last: number,
): { allowed: number; perHour: number; weeks: number } | null {
  const now = minuteOf(nowMs)
  if (now - last > 60) return null
  let first = last
  for (const [minute, { accepted }] of minutes) if (accepted > 0 && minute < first) first = minute
  const known = last - first + 1
  if (known < LEAST_KNOWN_MINUTES) return null
  let [count, empty, pause, longest, least] = [0, 0, 0, 0, MOST_EVIDENCE]
  for (let minute = first; minute <= last; minute++) {
    const own = minutes.get(minute)?.accepted ?? 0
    count += own
    pause = own > 0 ? 0 : pause + 1
    if (own === 0) empty++
    longest = Math.max(longest, pause)
    // The source may have started or stopped in the middle of the first and the last minute.
    if (minute > first && minute < last) least = Math.min(least, own)
  }
  const perHour = Math.round((count * 60) / known)
  const wasKnownYesterday = usual.firstHour <= hourOf(nowMs) - DAY_HOURS - 1
  const yesterday = usual.samples.filter(({ daysAgo }) => daysAgo === 1)
  if (wasKnownYesterday && (yesterday.length === 0 || yesterday.some((sample) => sample.count * 4 < perHour))) return null
  for (const sample of wasKnownYesterday ? yesterday : []) longest = Math.max(longest, sample.longestPause)
  const allowed = allowedPause({ emptyShare: (empty + 1) / (known * Math.max(1, least) + 2), longest, minutes: known })
  return allowed === null ? null : { allowed, perHour, weeks: 0 }
}

/** How many whole minutes without a message are usual; null if pauses are so long that minutes say nothing. */
function allowedPause({ emptyShare, longest, minutes }: Pauses): number | null {
  // With half the messages, the share of empty minutes is the square root of the usual share.
  const unlikely = Math.ceil(Math.log(UNLIKELY) / Math.log(Math.sqrt(emptyShare)))
  // If messages came one by one, the longest of all pauses would be about this long.
  const expectedLongest = Math.log(minutes) / -Math.log(emptyShare)
  const inBursts = longest > 2 * expectedLongest + 1
  const allowed = Math.max(unlikely, Math.ceil(longest * (inBursts ? LONGER_IN_BURSTS : LONGER)) + 1)
  return allowed <= (inBursts ? LONGEST_JUDGED_IN_BURSTS : LONGEST_JUDGED_MINUTES) ? allowed : null
}

function judgeDay({ nowMs, upSinceMs, usual: { hours, firstHour } }: SourceTraffic): RuleVerdict {
  if (nowMs - upSinceMs < SILENT_HOURS * HOUR_MS) return KEEP
  const hour = hourOf(nowMs)
  const sum = (first: number, end: number): number => {
    let count = 0
    for (let at = first; at < end; at++) count += hours.get(at) ?? 0
    return count
  }
  if (sum(hour - SILENT_HOURS, hour + 1) > 0) return KEEP
  const weeks: number[] = []
  for (let week = 1; week <= WEEKS; week++) {
    const end = hour - week * WEEK_HOURS - 1
    if (end - DAY_HOURS < firstHour) break
    weeks.push(sum(end - DAY_HOURS, end))
  }
  const perDay = Math.min(...weeks)
  if (weeks.length < 2 || perDay < LEAST_PER_DAY) return KEEP
  const last = Math.max(...hours.keys())
  const sinceMs = (last + 1) * HOUR_MS
  return { verdict: 'open', sinceMs, details: { silentMs: nowMs - sinceMs, usualPerHour: perDay, comparedWeeks: weeks.length } }
}
