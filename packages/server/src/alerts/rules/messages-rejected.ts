// Messages Rejected: a noticeable share of the messages of a source is rejected.

import { grouped, MINUTE_MS, type Minutes, minuteOf, minutesSetting, numberSetting, rule, type SourceMinute, span } from './rule.ts'

export interface Rejections {
  nowMs: number
  minutes: Minutes<SourceMinute>
}

export const messagesRejected = rule({
  id: 'messages_rejected',
  event: 'Messages Rejected',
  subject: 'source',
  severity: () => 'warning',
  measure: { name: 'rejected', label: 'rejected messages' },
  sentences: [
    'Open when at least {leastRejected} messages, and {rejectedPercent} % of all, were rejected within {openAfterMinutes} minutes.',
    'Close when the share has been lower for {closeAfterMinutes} minutes.',
  ],
  description: 'Many messages of a source are rejected because they are invalid. The sender has to correct them.',
  settings: {
    openAfterMinutes: numberSetting(5, 1, 60, 'The period in which rejected messages are counted, in minutes.'),
    closeAfterMinutes: minutesSetting(10, 'Close it when the share has been lower for this many minutes.', 120),
    rejectedPercent: numberSetting(5, 1, 100, 'Open an incident only if at least this percentage of the messages was rejected.'),
    leastRejected: numberSetting(10, 1, 1_000_000_000, 'Open an incident only if at least this many messages were rejected.'),
  },
  judge({ nowMs, minutes }: Rejections, { openAfterMinutes, closeAfterMinutes, rejectedPercent, leastRejected }) {
    const now = minuteOf(nowMs)
    let [rejected, accepted, first, rejecting] = [0, 0, now, 0]
    let code: string | null = null
    for (let minute = now - openAfterMinutes; minute <= now; minute++) {
      const counts = minutes.get(minute)
      if (counts === undefined) continue
      accepted += counts.accepted
      rejected += counts.rejected
      if (counts.rejected === 0) continue
      rejecting++
      code = counts.code ?? code
      first = Math.min(first, minute)
    }
    const isShare = (of: Pick<SourceMinute, 'accepted' | 'rejected'>): boolean =>
      of.rejected > 0 && of.rejected * 100 >= rejectedPercent * (of.rejected + of.accepted)
    const last = Math.max(Number.NEGATIVE_INFINITY, ...[...minutes].filter(([, counts]) => isShare(counts)).map(([minute]) => minute))
    const details = { rejected, accepted, code, minutes: openAfterMinutes }
    // One bad batch is over before anybody could react: the rejections must go on.
    const isMet = rejected >= leastRejected && isShare({ rejected, accepted }) && rejecting >= Math.min(3, openAfterMinutes)
    return { verdict: isMet ? 'open' : now - last > closeAfterMinutes ? 'close' : 'keep', sinceMs: first * MINUTE_MS, details }
  },
  opened: (name, { rejected, accepted, code, minutes }) =>
    `${grouped(rejected)} of ${grouped(Number(rejected) + Number(accepted))} messages of the source "${name}" were rejected in the last ${span(Number(minutes) * MINUTE_MS)}` +
    `${code == null ? '' : `, most of them with ${String(code)}`}. The sender has to correct them.`,
  closed: (name) => `Messages of the source "${name}" are no longer rejected in large numbers.`,
  link: (id) => `/sources/${id}`,
})
