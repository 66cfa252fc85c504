// What happened to a message, told in order: entries of a time, a kind and a sentence, which the command line and the
// dashboard print as they are. Pure. Whatever a sender or receiver chose (event names, answers) is quoted with its control
// characters written out, because a sentence may end up on a terminal.

import { isoTime } from '@switchyard/protocol'
import type { DestinationHealth } from '../../delivery/delivery.ts'
import { traceIdOf } from '../../outbound/trace-context.ts'
import type { DeliveryDetail, FilterRule, MessageTrail, RequestRecord, SkipReason } from '../../store/store.ts'

export const TIMELINE_KINDS = [
  'received',
  'duplicate',
  'owed',
  'skipped',
  'attempted',
  'delivered',
  'failed',
  'expired',
  'cancelled',
  'deleted',
  'waiting',
] as const
export type TimelineKind = (typeof TIMELINE_KINDS)[number]

export interface TimelineEntry {
  /** Null for what holds now or is due at once. */
  at: string | null
  what: TimelineKind
  sentence: string
  destinationId: string | null
  deliveryId: string | null
}

/** What the story needs to know of the present. */
export interface TimelineContext {
  sourceName: string | null
  /** Undefined for one that was deleted. */
  destination: (id: string) => { name: string; enabled: boolean; paused: boolean } | undefined
  /** Undefined where nothing was attempted since the start. */
  breaker: (destinationId: string) => DestinationHealth['breaker'] | undefined
  /** A time of the schedule, as dueAtMs, by the wall clock. */
  wallMs: (scheduleMs: number) => number
}

type Entry = Omit<TimelineEntry, 'at'> & { atMs: number | null }

const MAX_QUOTED = 200

const SKIPS: Record<Exclude<SkipReason, 'filtered'>, string> = {
  no_destination: 'The source has no destination.',
  destination_disabled: 'The destination was disabled when the message was accepted.',
  destination_deleted: 'The destination was deleted before the message was accepted.',
  integrations_disabled: "The message's integrations object turns the destination off.",
  historical: 'The message happened more than 24 h before it was received, and the destination takes no historical messages.',
}

const FILTERED: Record<FilterRule, (type: string, event: string) => string> = {
  type_denied: (type) => `The destination's filter denies messages of type ${type}.`,
  type_not_allowed: (type) => `The destination's filter allows some types, and ${type} is not one of them.`,
  event_denied: (_type, event) => `The destination's filter denies the event ${event}.`,
  event_not_allowed: (_type, event) => `The destination's filter allows some events, and ${event} is not one of them.`,
}

const CANCELLED: Readonly<Record<string, string>> = {
  destination_deleted: 'the destination was deleted.',
  message_deleted: 'the message was deleted.',
}

type Skipped = MessageTrail['skips'][number]

/** Why a message is not owed to a destination. `item`: null where it was purged. */
export function skipSentence({ reason, rule }: Pick<Skipped, 'reason' | 'rule'>, item: Readonly<Record<string, unknown>> | null): string {
  if (reason !== 'filtered') return SKIPS[reason]
  if (rule === undefined || item === null) return "The destination's filter does not let this type or event through."
  return FILTERED[rule](String(item['type']), typeof item['event'] === 'string' ? quoted(item['event']) : 'without a name')
}

export function timelineOf(trail: MessageTrail, deliveries: readonly DeliveryDetail[], about: TimelineContext): TimelineEntry[] {
  const { content, index, skips, repeats } = trail
  const item = content.items[index] ?? null
  const entries: Entry[] = [received(trail, about)]
  for (const skip of skips) {
    const { destinationId } = skip
    const where = destinationId === null ? 'Goes nowhere.' : `Not sent to ${nameOf(about, destinationId)}.`
    const sentence = `${where} ${skipSentence(skip, item)}`
    entries.push({ atMs: content.receivedAtMs, what: 'skipped', sentence, destinationId, deliveryId: null })
  }
  for (const delivery of deliveries) entries.push(...deliveryEntries(delivery, item === null, about))
  if (repeats !== null) {
    const sentence =
      repeats.count === 1
        ? 'Came again, and was dropped as a duplicate.'
        : `Came again for the last time of ${repeats.count}. Each time it was dropped as a duplicate.`
    entries.push({ atMs: repeats.lastAtMs, what: 'duplicate', sentence, destinationId: null, deliveryId: null })
  }
  if (item === null) {
    const sentence = 'Its content was deleted, as was asked for its user. What is told here is what was kept beside it.'
    entries.push({ atMs: null, what: 'deleted', sentence, destinationId: null, deliveryId: null })
  }
  return inOrder(entries).map(({ atMs, what, sentence, destinationId, deliveryId }) => {
    return { at: atMs === null ? null : isoTime(atMs), what, sentence, destinationId, deliveryId }
  })
}

/** By time; what has none is about now, and what is to come comes last. */
function inOrder(entries: readonly Entry[]): Entry[] {
  const rank = ({ what, atMs }: Entry): number => (what === 'waiting' ? 2 : atMs === null ? 1 : 0)
  return [...entries].sort((a, b) => rank(a) - rank(b) || (a.atMs ?? 0) - (b.atMs ?? 0))
}

function received({ content, index }: MessageTrail, { sourceName }: TimelineContext): Entry {
  const { sourceId, browser, trace, receivedAtMs } = content
  // Of a purged message, nothing that could lead to its user.
  const ip = content.items[index] == null ? null : content.ip
  const from = [ip === null ? '' : ` from ${ip}`, browser ? ', by a browser' : '', trace === null ? '' : `, in trace ${traceIdOf(trace)}`]
  const source = sourceName === null ? `${sourceId} (deleted)` : `${quoted(sourceName)} (${sourceId})`
  const sentence = `Received${from.join('')}, for the source ${source}.`
  return { atMs: receivedAtMs, what: 'received', sentence, destinationId: null, deliveryId: null }
}

function deliveryEntries(delivery: DeliveryDetail, isPurged: boolean, about: TimelineContext): Entry[] {
  const { id: deliveryId, destinationId, history, state, replay, replayOf, replayJobId } = delivery
  const name = nameOf(about, destinationId)
  const entry = (atMs: number | null, what: TimelineKind, sentence: string): Entry => ({ atMs, what, sentence, destinationId, deliveryId })
  const origin =
    replayOf === null ? '' : `: a replay of the delivery ${replayOf}${replayJobId === null ? '' : ` by the job ${replayJobId}`}`
  const entries = [entry(delivery.owedAtMs, 'owed', `Owed to ${name}${replay ? ` once more${origin}` : ''}.`)]
  for (const request of history) {
    // Told when it was over, or a receiver's answer would stand before what happened while it was waited for.
    const atMs = request.startedAtMs + Math.round(request.totalMs)
    const batch = request.indexes.length > 1 || request.gathered !== undefined ? ', in a batch' : ''
    entries.push(entry(atMs, 'attempted', `Attempt ${request.attempt} at ${name}${batch}: ${attemptSentence(request)}`))
  }
  if (state === 'pending') {
    const dueMs = delivery.atMs === null ? null : about.wallMs(delivery.atMs)
    entries.push(entry(dueMs, 'waiting', waiting(delivery, name, dueMs, isPurged, about)))
  } else {
    // Recorded after its last attempt was over, if by another clock.
    const atMs = Math.max(delivery.atMs ?? 0, ...entries.map((other) => other.atMs ?? 0))
    entries.push(entry(atMs, state, ended(delivery, name)))
  }
  return entries
}

function attemptSentence({ url, status, error, reason, totalMs, address, responseStart }: RequestRecord): string {
  const where = `POST ${shortUrl(url)}${address === null ? '' : ` (${address})`}`
  const ms = `${Math.round(totalMs)} ms`
  const answer = responseStart === null || responseStart === '' ? '' : ` Its answer began with ${quoted(responseStart)}.`
  if (reason === null) return `${where} answered ${status} after ${ms}.`
  return `${where} failed after ${ms} (${reason}). ${error ?? ''}`.trimEnd() + answer
}

function ended({ state, reason, attempts }: DeliveryDetail, name: string): string {
  const after = attempts === 0 ? 'without an attempt' : attempts === 1 ? 'at the first attempt' : `after ${attempts} attempts`
  if (state === 'delivered') return `Delivered to ${name} ${after}.`
  if (state === 'expired') return `Given up at ${name} ${after}: the time for retries is over${reason === null ? '' : ` (${reason})`}.`
  if (state === 'cancelled') return `Cancelled at ${name} ${after}: ${CANCELLED[reason ?? ''] ?? `${reason ?? 'for no known reason'}.`}`
  return `Failed at ${name} ${after}${reason === null ? '' : ` (${reason})`}. It is not tried again by itself.`
}

function waiting(
  { destinationId, attempts }: DeliveryDetail,
  name: string,
  dueMs: number | null,
  isPurged: boolean,
  about: TimelineContext,
): string {
  const destination = about.destination(destinationId)
  if (isPurged) return `Still counted as pending at ${name}, though the message was deleted: it is cancelled when its turn comes.`
  if (destination === undefined) return `Still counted as pending at ${name}: it is being cancelled.`
  if (!destination.enabled) return `Held: ${name} is disabled. It is sent when the destination is enabled again.`
  if (destination.paused) return `Held: ${name} is paused. It is sent when the destination is resumed.`
  const breaker = about.breaker(destinationId)
  const turn = `attempt ${attempts + 1} at ${name}`
  if (breaker === 'open' || breaker === 'probing')
    return `Waits for ${turn}, which fails again and again and is probed with one request at a time.`
  return dueMs === null ? `Waits for ${turn}, which is due at once.` : `Waits for ${turn}, due at ${isoTime(dueMs)}.`
}

function nameOf({ destination }: TimelineContext, id: string): string {
  const name = destination(id)?.name
  return name === undefined ? `${id} (deleted)` : quoted(name)
}

/** Without its query, which may hold a secret. */
function shortUrl(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : `${url.slice(0, query)}?…`
}

/** In double quotes, cut, with everything that a terminal would act on written out. */
export function quoted(text: string): string {
  const short = text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text
  return JSON.stringify(short).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escaped)
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')
}
