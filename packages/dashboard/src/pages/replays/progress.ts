// The progress of a replay job as text and percentages. Pure.

import type { Answer } from '../../api/client.ts'

export type Job = Answer<'GET /api/replays'>['data'][number]
export type Outcome = keyof Job['outcomes']

export const OUTCOMES = ['delivered', 'pending', 'failed', 'expired', 'cancelled'] as const satisfies readonly Outcome[]

const JOB_STATE_COLORS = { running: 'blue', paused: 'yellow', finished: 'teal', cancelled: 'gray' } as const

export function jobStateColor({ state, outcomes }: Pick<Job, 'state' | 'outcomes'>): string {
  return state === 'finished' && outcomes.failed + outcomes.expired > 0 ? 'orange' : JOB_STATE_COLORS[state]
}

export const SKIP_REASONS: Readonly<Record<keyof Job['skippedReasons'], string>> = {
  already_replayed: 'already replayed: pending again, or delivered since',
  not_found: 'no delivery with this id',
  still_pending: 'still pending',
  message_gone: 'message no longer stored',
  destination_gone: 'destination deleted',
  already_loaded: 'rows are in the warehouse already',
  user_suppressed: 'user suppressed',
  user_deleted: 'user deleted since',
  filtered: 'excluded by a filter of the destination',
  integrations_disabled: 'excluded by the integrations of the message',
  historical: 'about a time long before the message was received',
  unreadable: 'not readable in the archive',
}

/** Whether the job may change without an action of a user. */
export function canStillChange({ state, outcomes }: Pick<Job, 'state' | 'outcomes'>): boolean {
  return state === 'running' || outcomes.pending > 0
}

export function hasEnded({ state }: Pick<Job, 'state'>): boolean {
  return state === 'finished' || state === 'cancelled'
}

/** Percentages of the total in the order of OUTCOMES, then the skipped ones. The rest has not been processed yet. */
export function shares({
  total,
  outcomes,
  skipped,
}: Pick<Job, 'total' | 'outcomes' | 'skipped'>): { name: Outcome | 'skipped'; count: number; percent: number }[] {
  const share = (name: Outcome | 'skipped', count: number) => ({ name, count, percent: total === 0 ? 0 : (count / total) * 100 })
  return [...OUTCOMES.map((name) => share(name, outcomes[name])), share('skipped', skipped)].filter(({ count }) => count > 0)
}

/** Deliveries that were queued and are still pending are not done. */
export function donePercent({ total, done, outcomes }: Pick<Job, 'total' | 'done' | 'outcomes'>): number {
  return total === 0 ? 100 : Math.min(100, Math.floor(((done - outcomes.pending) / total) * 100))
}

/** What became of the deliveries: "All 50 delivered", "0 of 50 delivered, 50 failed or expired", "40% done: 20 of 50 delivered, 30 pending". */
export function outcomeSentence(job: Pick<Job, 'total' | 'done' | 'outcomes' | 'skipped'>): string {
  const { total, outcomes, skipped } = job
  const { delivered, pending, failed, expired, cancelled } = outcomes
  if (total > 0 && delivered === total) return `All ${total.toLocaleString()} delivered`
  const percent = donePercent(job)
  const parts = [
    `${delivered.toLocaleString()} of ${total.toLocaleString()} delivered`,
    ...(
      [
        [failed + expired, 'failed or expired'],
        [pending, 'pending'],
        [cancelled, 'cancelled'],
        [skipped, 'skipped'],
      ] as const
    ).flatMap(([count, word]) => (count === 0 ? [] : [`${count.toLocaleString()} ${word}`])),
  ]
  return `${percent < 100 ? `${percent}% done: ` : ''}${parts.join(', ')}`
}

/** The time that remains at the job's rate limit; null if unknown. */
export function remainingMs({ state, total, done, ratePerSecond }: Pick<Job, 'state' | 'total' | 'done' | 'ratePerSecond'>): number | null {
  return state !== 'running' || ratePerSecond === null ? null : (Math.max(0, total - done) / ratePerSecond) * 1_000
}

export const MAX_RATE = 100_000

/** Null for no limit. */
export function isRate(ratePerSecond: number | null): boolean {
  return ratePerSecond === null || (Number.isInteger(ratePerSecond) && ratePerSecond >= 1 && ratePerSecond <= MAX_RATE)
}

export function rateText(ratePerSecond: number | null): string {
  return ratePerSecond === null ? 'no rate limit' : `at most ${ratePerSecond.toLocaleString()} per second`
}

/** The selection of deliveries in one line. */
export function selectionText({ states, reason, total }: Pick<Job, 'states' | 'reason' | 'total'>): string {
  if (states === null) return total === 1 ? '1 delivery by id' : `${total.toLocaleString()} deliveries by id`
  return `${states.join(' or ')}${reason === null ? '' : ` with ${reason}`}`
}
