// The story of a message as the page tells it: the API's entries with the attempts that they are about, long rows of attempts folded,
// where the message is in a sentence, and how soon to look again. Pure.

import type { Answer } from '../../api/client.ts'

export type MessageStory = Answer<'GET /api/messages/{id}'>
export type StoryEntry = MessageStory['story'][number]
export type StoryDelivery = MessageStory['deliveries'][number]
export type StoryAttempt = StoryDelivery['attempts'][number]

export interface ToldEntry extends StoryEntry {
  /** Of what was attempted: the attempt itself. */
  attempt: StoryAttempt | null
  /** Of what waits: when its next attempt is due. Undefined: it does not wait. */
  dueAt?: string | null
}

/** Every entry with its attempt. An entry is told when its attempt was over, and a destination of several URLs has several of one number. */
export function toldEntries(story: readonly StoryEntry[], deliveries: readonly StoryDelivery[]): ToldEntry[] {
  const left = new Map(deliveries.map(({ id, attempts }) => [id, [...attempts]]))
  const dueAt = new Map(deliveries.map(({ id, nextAttemptAt }) => [id, nextAttemptAt]))
  return story.map((entry) => {
    if (entry.what === 'waiting') {
      return { ...entry, sentence: entry.sentence.replace(DUE, '.'), attempt: null, dueAt: dueAt.get(entry.deliveryId ?? '') ?? null }
    }
    const attempts = entry.what === 'attempted' ? left.get(entry.deliveryId ?? '') : undefined
    if (attempts === undefined) return { ...entry, attempt: null }
    const at = attempts.findIndex((attempt) => endOf(attempt) === Date.parse(entry.at ?? ''))
    const [attempt = null] = attempts.splice(Math.max(at, 0), 1)
    return { ...entry, attempt }
  })
}

/** The time in UTC, which the page tells in the viewer's zone and counts down to. */
const DUE = /, due (?:at \S+Z|now)\.$/

function endOf({ startedAt, timings }: StoryAttempt): number {
  return Date.parse(startedAt) + Math.round(timings.totalMs)
}

export type Folded = { kind: 'entry'; entry: ToldEntry; also: ToldEntry[] } | { kind: 'fold'; count: number }

/** What was decided for several destinations at the same moment is one item: `also` holds all but the first. */
export function grouped(entries: readonly ToldEntry[]): Folded[] {
  const rows: Folded[] = []
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

const LEAST_FOLDED = 4

/** Of a long row of attempts, the first and the last ones; what lies between can be unfolded. Nothing but attempts is ever folded. */
export function folded(rows: readonly Folded[], keep = 3): Folded[] {
  const result: Folded[] = []
  let run: Folded[] = []
  const flush = (): void => {
    const middle = run.length - keep * 2
    if (middle < LEAST_FOLDED) result.push(...run)
    else result.push(...run.slice(0, keep), { kind: 'fold', count: middle }, ...run.slice(-keep))
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

/** Where the message is, in a sentence or two. A replay counts in the place of what it repeats. */
export function whereabouts({ deliveries, skips, purged }: Pick<MessageStory, 'deliveries' | 'skips' | 'purged'>): string {
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
        ? 'It goes nowhere.'
        : skips.length === 1
          ? `It goes nowhere. ${skip.message}`
          : 'It goes nowhere: no destination takes it.',
    )
  } else {
    const delivered = of('delivered')
    const to =
      states.length === 1
        ? 'its destination'
        : delivered === states.length
          ? `all ${states.length} destinations`
          : `${delivered} of ${states.length} destinations`
    const parts = [
      delivered === 0 ? '' : `delivered to ${to}`,
      part(of('pending'), 'waits', 'wait'),
      part(of('failed'), 'failed', 'failed'),
      part(of('expired'), 'expired', 'expired'),
      part(of('cancelled'), 'was cancelled', 'were cancelled'),
    ]
    const only = states.length === 1 && delivered === 0 ? SINGLE[states[0] as string] : undefined
    sentences.push(only ?? `${capital(parts.filter((text) => text !== '').join(', '))}.`)
    const skipped = skips.filter(({ destinationId }) => destinationId !== null).length
    if (skipped > 0) sentences.push(`Not sent to ${skipped === 1 ? 'one other' : `${skipped} others`}, and below is why.`)
  }
  if (purged) sentences.push('Its content was deleted.')
  return sentences.join(' ')
}

const SINGLE: Readonly<Record<string, string>> = {
  pending: 'It waits to be delivered to its destination.',
  failed: 'It failed at its destination, and is not tried again by itself.',
  expired: 'It was given up: the time for retries is over.',
  cancelled: 'Its delivery was cancelled.',
}

function part(count: number, one: string, many: string): string {
  return count === 0 ? '' : `${count} ${count === 1 ? one : many}`
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** How soon something may have changed; undefined when nothing is pending any more. */
export function lookAgainMs(deliveries: readonly { state: string; nextAttemptAt: string | null }[], nowMs: number): number | undefined {
  const pending = deliveries.filter(({ state }) => state === 'pending')
  if (pending.length === 0) return undefined
  const soonest = Math.min(...pending.map(({ nextAttemptAt }) => (nextAttemptAt === null ? nowMs : Date.parse(nextAttemptAt))))
  return soonest - nowMs > 30_000 ? 10_000 : 2_000
}

/** What a message is called in a list: its event, else its type. */
export function titleOf({ type, event }: { type: string | null; event: string | null }): string {
  if (type === null) return 'A deleted message'
  return event === null ? type : `${type}: ${event}`
}

/** Whether a delivery can be sent again, or why not. */
export function replayRefusal({ state }: { state: string }, isMessageGone: boolean, isDestinationGone: boolean): string | null {
  if (state === 'pending') return 'It is still pending: it is sent by itself.'
  if (isMessageGone) return 'The message is no longer stored, so there is nothing to send.'
  if (isDestinationGone) return 'The destination was deleted.'
  return null
}

/** The sentence of an attempt without what is shown below it: where it went, and what came back. */
export function attemptTitle(sentence: string, { url }: Pick<StoryAttempt, 'url'>): string {
  const end = sentence.indexOf(`: POST ${url.split('?')[0]}`)
  return end === -1 ? sentence : `${sentence.slice(0, end)}.`
}

/** That it was taken, and to how many it went. */
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
  const routed = to === 0 ? 'no destination' : to === 1 ? 'one destination' : `${to} destinations`
  return `${valid} Routed to ${routed}${not === 0 ? '' : `, not to ${not === 1 ? 'one other' : `${not} others`}`}.`
}

/** Why a delivery is not sent yet. */
export function waitingOf(story: readonly StoryEntry[], deliveryId: string): string | null {
  const entry = story.find(({ what, deliveryId: id }) => what === 'waiting' && id === deliveryId)
  return entry === undefined ? null : entry.sentence.replace(DUE, '.')
}

/** What it came to, without the way there. */
export function outcomes(story: readonly StoryEntry[]): StoryEntry[] {
  return story.filter(({ what }) => what !== 'received' && what !== 'owed' && what !== 'attempted')
}
