// Backlog Growing: deliveries wait for a long time and their number does not go down, although the destination responds. While a destination
// fails, its backlog grows too; that is the same cause, which destination-failing.ts reports.

import { grouped, HOUR_MS, KEEP, MINUTE_MS, minutesSetting, numberSetting, PENDING, pendingText, rule, span } from './rule.ts'

export interface Backlog {
  nowMs: number
  isActive: boolean
  isFailing: boolean
  oldestPendingAtMs: number | null
  /** The number of pending deliveries at some times, oldest first. The last one is now. */
  pending: readonly { atMs: number; count: number }[]
}

export const backlogGrowing = rule({
  id: 'backlog_growing',
  event: 'Backlog Growing',
  subject: 'destination',
  severity: ({ oldestMs }) => (Number(oldestMs) > HOUR_MS ? 'critical' : 'warning'),
  measure: PENDING,
  sentences: [
    'Open when at least {leastPending} deliveries are pending, the oldest for {openAfterMinutes} minutes, and there are no fewer than {openAfterMinutes} minutes before.',
    'Close when the backlog has become smaller over {closeAfterMinutes} minutes.',
  ],
  description: 'A destination responds, but more slowly than new messages arrive, so its backlog grows.',
  settings: {
    openAfterMinutes: minutesSetting(
      10,
      'Open an incident when the oldest delivery has waited for this many minutes and the backlog has not become smaller in that time.',
      60,
    ),
    closeAfterMinutes: minutesSetting(5, 'Close it when the backlog has become smaller over this many minutes.', 60),
    leastPending: numberSetting(1_000, 1, 1_000_000_000, 'Ignore backlogs with fewer pending deliveries than this.'),
  },
  judge({ nowMs, isActive, isFailing, oldestPendingAtMs, pending }: Backlog, { openAfterMinutes, closeAfterMinutes, leastPending }) {
    const count = pending.at(-1)?.count ?? 0
    const waitMs = oldestPendingAtMs === null ? 0 : Math.max(0, nowMs - oldestPendingAtMs)
    const at = (ms: number): number | undefined => {
      let count: number | undefined
      for (const reading of pending) if (reading.atMs <= ms) count = reading.count
      return count
    }
    const before = at(nowMs - openAfterMinutes * MINUTE_MS)
    const details = { pending: count, pendingBefore: before ?? null, oldestMs: waitMs }
    const sinceMs = oldestPendingAtMs ?? nowMs
    if (!isActive || count < leastPending / 2) return { verdict: 'close', sinceMs, details }
    if (isFailing) return KEEP
    if (count >= leastPending && waitMs >= openAfterMinutes * MINUTE_MS && before !== undefined && count >= before)
      return { verdict: 'open', sinceMs, details }
    const lately = at(nowMs - closeAfterMinutes * MINUTE_MS)
    return { verdict: lately !== undefined && count < lately * 0.9 ? 'close' : 'keep', sinceMs, details }
  },
  opened: (name, { pending, oldestMs, pendingBefore }) =>
    `The backlog of the destination "${name}" is growing: ${grouped(pending)} deliveries are pending${pendingBefore == null ? '' : ` (${grouped(pendingBefore)} some minutes ago)`}, and the oldest has waited for ${span(oldestMs)}. ` +
    'Raise its limit of requests in flight, send batches, or ask the operator of the receiver for more capacity.',
  closed: (name, { pending }) => `The backlog of the destination "${name}" is getting smaller: ${pendingText(pending)}`,
  link: (id) => `/destinations/${id}`,
})
