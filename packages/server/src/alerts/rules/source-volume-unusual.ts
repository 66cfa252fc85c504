// Source Volume Unusual: a source sends several times as many messages as at the same hours of all past weeks, or only a fraction of them.

import { grouped, KEEP, MINUTE_MS, minuteOf, numberSetting, rule } from './rule.ts'
import type { SourceTraffic } from './source-silent.ts'
import { pastWeeks } from './usual-traffic.ts'

/** In steps of this many minutes, it is looked for when the volume became unusual. */
const STEP_MINUTES = 5
const LEAST_WEEKS = 2
/** If nothing came in this many minutes, the source is silent, which is another rule. */
const SILENT_MINUTES = 10

export const sourceVolumeUnusual = rule({
  id: 'source_volume_unusual',
  event: 'Source Volume Unusual',
  subject: 'source',
  severity: () => 'notice',
  sentences: [
    'Open when the messages of the last hour have been more than {factor} times the most, or less than the least divided by {factor}, of the same hours of past weeks, for {openAfterMinutes} minutes. Hours with fewer than {leastMessages} messages are ignored.',
    'Close when the volume has been usual for {closeAfterMinutes} minutes.',
  ],
  description:
    'A source sends many more or far fewer messages than at the same hours of the past four weeks. It needs two weeks of history.',
  settings: {
    openAfterMinutes: numberSetting(
      30,
      0,
      120,
      'Open an incident when the volume of the last hour has been unusual for this many minutes.',
    ),
    closeAfterMinutes: numberSetting(15, 0, 120, 'Close it when the volume has been usual for this many minutes.'),
    factor: numberSetting(
      3,
      2,
      1_000,
      'The volume is unusual if it is more than this many times the highest volume of past weeks, or less than the lowest divided by this number.',
    ),
    leastMessages: numberSetting(100, 1, 1_000_000_000, 'Ignore hours that had fewer messages than this in past weeks.'),
  },
  judge({ nowMs, minutes, usual, upSinceMs }: SourceTraffic, { openAfterMinutes, closeAfterMinutes, factor, leastMessages }) {
    const weeks = pastWeeks(usual, nowMs)
    // After an interruption, messages are missing, and then clients send again what they could not send.
    if (weeks.length < LEAST_WEEKS || nowMs - upSinceMs < (60 + openAfterMinutes) * MINUTE_MS) return KEEP
    const now = minuteOf(nowMs)
    const sumTo = (end: number, length: number): number => {
      let sum = 0
      for (let minute = end - length; minute < end; minute++) sum += minutes.get(minute)?.accepted ?? 0
      return sum
    }
    const [least, most] = [Math.min(...weeks.flat()), Math.max(...weeks.flat())]
    const isHigh = (count: number): boolean => count >= leastMessages && count > Math.max(most, leastMessages) * factor
    const isLow = (count: number): boolean => least >= leastMessages && count * factor < least
    const messages = sumTo(now, 60)
    const [high, low] = [isHigh(messages), isLow(messages)]
    if (low && sumTo(now, SILENT_MINUTES) === 0) return KEEP
    const isSame = (count: number): boolean => isHigh(count) === high && isLow(count) === low
    const longest = Math.max(openAfterMinutes, closeAfterMinutes)
    let ago = 0
    while (ago < longest && isSame(sumTo(now - ago - STEP_MINUTES, 60))) ago += STEP_MINUTES
    const sinceMs = (now - ago) * MINUTE_MS
    const details = { messages, usualLeast: least, usualMost: most, comparedWeeks: weeks.length }
    if (high || low) return { verdict: ago >= openAfterMinutes ? 'open' : 'keep', sinceMs, details }
    return { verdict: ago >= closeAfterMinutes ? 'close' : 'keep', sinceMs, details }
  },
  opened: (name, { messages, usualLeast, usualMost, comparedWeeks }) =>
    `The source "${name}" sent ${grouped(messages)} messages in the last hour. At the same hours of the past ${String(comparedWeeks)} weeks it sent between ${grouped(usualLeast)} and ${grouped(usualMost)}.`,
  closed: (name, { messages }) =>
    `The source "${name}" is sending about as many messages as usual again: ${grouped(messages)} in the last hour.`,
  link: (id) => `/sources/${id}`,
})
