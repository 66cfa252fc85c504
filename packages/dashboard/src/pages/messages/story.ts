// The timeline of a message as the page shows it: the API's entries (`story`) with their attempts, long series of attempts collapsed, a
// summary of the state, and how soon to refresh. Pure.

import type { Answer } from '../../api/client.ts'
import { capitalized, plural } from '../../text/format.ts'

export type MessageStory = Answer<'GET /api/messages/{id}'>
export type StoryEntry = MessageStory['story'][number]
export type StoryDelivery = MessageStory['deliveries'][number]
export type StoryAttempt = StoryDelivery['attempts'][number]

export interface TimelineEntry extends StoryEntry {
  /** The attempt that the entry is about, if it is about one. */
  attempt: StoryAttempt | null
  /** When the next attempt of a waiting delivery is due. Undefined if it is not waiting. */
  dueAt?: string | null
  /** When the delivery expires; null if it does not expire. */
  expiresAt?: string | null
}

/** Adds to each entry its attempt, or when the next one is due. Their sentences leave out what the page shows beside them. */
export function timelineEntries(story: readonly StoryEntry[], deliveries: readonly StoryDelivery[]): TimelineEntry[] {
  const byId = new Map(deliveries.map((delivery) => [delivery.id, delivery]))
  return story.map((entry) => {
    const delivery = byId.get(entry.deliveryId ?? '')
    if (delivery === undefined) return { ...entry, attempt: null }
    const sentence = shortSentence(entry, delivery)
    if (entry.what === 'waiting') return { ...entry, sentence, attempt: null, dueAt: delivery.nextAttemptAt, expiresAt: delivery.expiresAt }
    return { ...entry, sentence, attempt: delivery.attempts[entry.attemptIndex ?? -1] ?? null }
  })
}

/** Without the URL, the response and the due time, which the page shows as an attempt and as a countdown. */
function shortSentence({ what, sentence, reason, attemptNumber, inBatch }: StoryEntry, delivery: StoryDelivery): string {
  const { destinationId, destinationName } = delivery
  const which = `${attemptNumber} to ${destinationName === null ? `${destinationId} (deleted)` : `"${destinationName}"`}`
  if (what === 'attempted') return `Attempt ${which}${inBatch ? ', in a batch' : ''}.`
  return what === 'waiting' && reason === null ? `Waiting for attempt ${which}.` : sentence
}

export type TimelineRow = { kind: 'entry'; entry: TimelineEntry; also: TimelineEntry[] } | { kind: 'collapsed'; count: number }

/** Combines decisions for several destinations at the same time into one row: `also` has all but the first. */
export function grouped(entries: readonly TimelineEntry[]): TimelineRow[] {
  const rows: TimelineRow[] = []
  for (const entry of entries) {
    const last = rows.at(-1)
    const isSame =
      last?.kind === 'entry' &&
      (entry.what === 'owed' || entry.what === 'skipped') &&
      last.entry.what === entry.what &&
      last.entry.at === entry.at
    if (isSame) last.also.push(entry)
    else rows.push({ kind: 'entry', entry, also: [] })
  }
  return rows
}

const MIN_COLLAPSED = 4

/** Collapses the middle of a long series of attempts; the first and the last `keep` stay. Other entries are never collapsed. */
export function collapsed(rows: readonly TimelineRow[], keep = 3): TimelineRow[] {
  const result: TimelineRow[] = []
  let run: TimelineRow[] = []
  const flush = (): void => {
    const middle = run.length - keep * 2
    if (middle < MIN_COLLAPSED) result.push(...run)
    else result.push(...run.slice(0, keep), { kind: 'collapsed', count: middle }, ...run.slice(-keep))
    run = []
  }
  for (const row of rows) {
    if (row.kind === 'entry' && row.entry.what === 'attempted') run.push(row)
    else {
      flush()
      result.push(row)
    }
  }
  flush()
  return result
}

/** Summarizes the state of the message in a sentence or two. A replay counts instead of the delivery that it repeats. */
export function summaryOf({ deliveries, skips, purged }: Pick<MessageStory, 'deliveries' | 'skips' | 'purged'>): string {
  const newest = new Map<string, StoryDelivery>()
  for (const delivery of deliveries) {
    const known = newest.get(delivery.destinationId)
    if (known === undefined || delivery.replayedBy === null) newest.set(delivery.destinationId, delivery)
  }
  const states = [...newest.values()].map(({ state }) => state)
  const of = (state: string): number => states.filter((each) => each === state).length
  const sentences: string[] = []
  if (states.length === 0) {
    const [skip] = skips
    sentences.push(
      skip === undefined
        ? 'Not sent to any destination.'
        : skips.length === 1
          ? `Not sent to any destination. ${skip.message}`
          : 'Not sent to any destination. The timeline below shows why.',
    )
  } else {
    const delivered = of('delivered')
    const to =
      states.length === 1
        ? '1 destination'
        : delivered === states.length
          ? `all ${states.length} destinations`
          : `${delivered} of ${states.length} destinations`
    const others = ['pending', 'failed', 'expired', 'cancelled'].filter((state) => of(state) > 0)
    const parts = [...(delivered === 0 ? [] : [`delivered to ${to}`]), ...others.map((state) => `${of(state)} ${state}`)]
    const only = states.length === 1 && delivered === 0 ? SINGLE[states[0] as string] : undefined
    sentences.push(only ?? `${capitalized(parts.join(', '))}.`)
    const skipped = skips.filter(({ destinationId }) => destinationId !== null).length
    if (skipped > 0) sentences.push(`Not sent to ${plural(skipped, 'other destination')}; the timeline below shows why.`)
  }
  if (purged) sentences.push('The content was deleted.')
  return sentences.join(' ')
}

const SINGLE: Readonly<Record<string, string>> = {
  pending: 'Delivery to its destination is pending.',
  failed: 'Delivery to its destination failed. It is not retried automatically.',
  expired: 'The delivery expired: its retry window ended.',
  cancelled: 'The delivery was cancelled.',
}

/** The title of a message: its type, and its event if it has one. */
export function titleOf({ type, event }: { type: string | null; event: string | null }): string {
  if (type === null) return 'Deleted message'
  return event === null ? type : `${type}: ${event}`
}

/** Says that the message was stored, and to how many destinations it was routed. */
export function routingSentence({
  type,
  deliveries,
  skips,
  purged,
}: Pick<MessageStory, 'type' | 'deliveries' | 'skips' | 'purged'>): string {
  const to = new Set(deliveries.filter(({ replay }) => !replay).map(({ destinationId }) => destinationId)).size
  const not = skips.filter(({ destinationId }) => destinationId !== null).length
  const valid = purged || type === null ? 'Validated and stored.' : `Validated as ${type} and stored.`
  if (to === 0 && not === 0) return `${valid} Routed to no destination.`
  const routed = to === 0 ? 'no destination' : plural(to, 'destination')
  return `${valid} Routed to ${routed}${not === 0 ? '' : `, skipped for ${not} ${not === 1 ? 'other' : 'others'}`}.`
}

/** Returns why a delivery is not sent yet, from its timeline entry. */
export function waitingOf(story: readonly StoryEntry[], delivery: StoryDelivery): string | null {
  const entry = story.find(({ what, deliveryId }) => what === 'waiting' && deliveryId === delivery.id)
  return entry === undefined ? null : shortSentence(entry, delivery)
}

/** The entries that say how it ended, without receipt, routing and attempts. */
export function outcomes(story: readonly StoryEntry[]): StoryEntry[] {
  return story.filter(({ what }) => what !== 'received' && what !== 'owed' && what !== 'attempted')
}
