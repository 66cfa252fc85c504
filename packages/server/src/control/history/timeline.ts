// The timeline of a message: entries with a time, a kind and a sentence, in order. The command line and the dashboard print the sentences
// unchanged. Pure functions. Text that a sender or receiver chose (event names, responses) is quoted with its control characters escaped,
// because a sentence may be printed on a terminal.

import { isoTime, type Violation } from '@switchyard/protocol'
import { violationText } from '../../api/violation-text.ts'
import type { DestinationHealth } from '../../delivery/delivery.ts'
import { traceIdOf } from '../../outbound/trace-context.ts'
import type { DeliveryDetail, FilterRule, MessageTrail, RequestRecord, SkipReason, WaitingFor } from '../../store/store.ts'

export const TIMELINE_KINDS = [
  'received',
  'duplicate',
  'owed',
  'skipped',
  'quarantined',
  'released',
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
  /** Null for an entry that describes the current state or is due now. */
  at: string | null
  what: TimelineKind
  sentence: string
  destinationId: string | null
  deliveryId: string | null
  /** The stable code of the reason that the sentence gives, if there is one. */
  reason: string | null
  /** Of an attempt, and of the next one of a delivery that is waiting. */
  attemptNumber: number | null
  /** The place of an attempt in the history of its delivery. */
  attemptIndex: number | null
  inBatch: boolean
}

interface DestinationNow {
  name: string
  enabled: boolean
  paused: boolean
  order?: object | null
  /** Of a warehouse. */
  load?: { everyMs: number }
}

/** The current state of the source and the destinations, which the sentences mention. */
export interface TimelineContext {
  sourceName: string | null
  /** Undefined if the destination was deleted. */
  destination: (id: string) => DestinationNow | undefined
  /** Undefined if there was no attempt since the service started. */
  breaker: (destinationId: string) => DestinationHealth['breaker'] | undefined
  /** Why the latest attempt for any message failed; null if it succeeded, or if it is not known. */
  failure: (destinationId: string) => string | null
  /** The subscribe expression that applied when the message was received; null if there was none, or if it is not known. */
  expression: (destinationId: string) => string | null
  /** Converts a schedule time, such as dueAtMs, to wall time. */
  wallMs: (scheduleMs: number) => number
}

type Entry = Omit<TimelineEntry, 'at'> & { atMs: number | null }

/** The fields of an entry that is only about the message. */
const OF_MESSAGE = { destinationId: null, deliveryId: null, reason: null, attemptNumber: null, attemptIndex: null, inBatch: false }

const MAX_QUOTED = 200
const MAX_EXPRESSION = 1_000

const SKIPS: Record<Exclude<SkipReason, 'filtered'>, string> = {
  no_destination: 'The source has no destination.',
  destination_disabled: 'The destination was disabled when the message was accepted.',
  destination_deleted: 'The destination was deleted before the message was accepted.',
  integrations_disabled: "The message's integrations object turns the destination off.",
  historical:
    'The timestamp of the message is more than 24 hours before it was received, and the destination does not accept historical messages.',
  quarantined: 'The message violates a tracking plan and is in quarantine.',
  about_destination: 'The alert is about this destination, so it is not sent to it.',
}

const FILTERED: Record<Exclude<FilterRule, 'subscribe'>, (type: string, event: string) => string> = {
  type_denied: (type) => `The destination's filter denies messages of type ${type}.`,
  type_not_allowed: (type) => `The destination's filter allows only some types, and ${type} is not one of them.`,
  event_denied: (_type, event) => `The destination's filter denies the event ${event}.`,
  conditional_filter: () => 'A conditional filter of the destination drops the message.',
  not_sampled: () => 'A conditional filter of the destination sends only a share of such messages, and the message is not part of it.',
  no_subscription: () => 'No subscription of the integration matches the message.',
  event_not_allowed: (_type, event) => `The destination's filter allows only some events, and ${event} is not one of them.`,
}

const CANCELLED: Readonly<Record<string, string>> = {
  destination_deleted: 'the destination was deleted.',
  message_deleted: 'the message was deleted.',
  dropped_by_transformation: 'the transformation dropped the message.',
  no_subscription: 'no subscription of the integration matches the message.',
  skipped_by_operator: 'somebody skipped it, so that later messages with the same key are sent.',
}
/** Reasons of attempts that ended before a request was built. */
const NOT_SENT = new Set(['mapping_failed', 'transformation_failed', 'dropped_by_transformation', 'no_subscription'])

type Skipped = MessageTrail['skips'][number]

/** Why a message was not sent to a destination. `item` is null if the message was purged, and `expression` if it is not known. */
export function skipSentence(
  { reason, rule }: Pick<Skipped, 'reason' | 'rule'>,
  item: Readonly<Record<string, unknown>> | null,
  expression: string | null = null,
): string {
  if (reason !== 'filtered') return SKIPS[reason]
  if (rule === 'subscribe') {
    const sentence = "The message does not match the destination's subscribe expression"
    return expression === null
      ? `${sentence}.`
      : `${sentence}: ${printable(truncated(expression.replaceAll(/\s+/g, ' ').trim(), MAX_EXPRESSION))}`
  }
  if (rule === undefined || item === null) return "The destination's filter excludes this type or event."
  return FILTERED[rule](String(item['type']), typeof item['event'] === 'string' ? quoted(item['event']) : 'without a name')
}

export function timelineOf(trail: MessageTrail, deliveries: readonly DeliveryDetail[], about: TimelineContext): TimelineEntry[] {
  const { content, index, skips, repeats, quarantine } = trail
  const item = content.items[index] ?? null
  const entries: Entry[] = [item?.['type'] === 'dead_letter' ? createdAsDeadLetter(trail, item) : received(trail, about)]
  if (quarantine !== undefined) entries.push(...quarantineEntries(trail, quarantine))
  // A released message was routed when it was released.
  const routedAtMs = quarantine?.atMs ?? content.receivedAtMs
  for (const skip of skips.filter(({ reason }) => reason !== 'quarantined')) {
    const { destinationId } = skip
    const where = destinationId === null ? 'Not sent to any destination.' : `Not sent to ${nameOf(about, destinationId)}.`
    const expression = destinationId === null ? null : about.expression(destinationId)
    const sentence = `${where} ${skipSentence(skip, item, expression)}`
    entries.push({ ...OF_MESSAGE, atMs: routedAtMs, what: 'skipped', sentence, destinationId, reason: skip.reason })
  }
  // Before it was released, it had no deliveries.
  const isReleased = quarantine?.state === 'released'
  for (const delivery of deliveries) {
    const orderPlace = isReleased && delivery.orderPlace === 'accepted' ? 'outside' : delivery.orderPlace
    entries.push(...deliveryEntries({ ...delivery, orderPlace }, item === null, about))
  }
  if (repeats !== null) {
    const sentence =
      repeats.count === 1
        ? 'Received again and dropped as a duplicate.'
        : `Received again ${repeats.count} times, most recently at this time. Each time it was dropped as a duplicate.`
    entries.push({ ...OF_MESSAGE, atMs: repeats.lastAtMs, what: 'duplicate', sentence })
  }
  if (item === null) {
    const sentence = 'The content of the message was deleted by a deletion request. This timeline shows the records that remain.'
    entries.push({ ...OF_MESSAGE, atMs: null, what: 'deleted', sentence })
  }
  return inOrder(entries).map(({ atMs, ...entry }) => Object.assign(entry, { at: atMs === null ? null : isoTime(atMs) }))
}

/** Sorted by time. Entries about the current state follow, and pending deliveries come last. */
function inOrder(entries: readonly Entry[]): Entry[] {
  const rank = ({ what, atMs }: Entry): number => (what === 'waiting' ? 2 : atMs === null ? 1 : 0)
  return [...entries].sort((a, b) => rank(a) - rank(b) || (a.atMs ?? 0) - (b.atMs ?? 0))
}

function received({ content, index }: MessageTrail, { sourceName }: TimelineContext): Entry {
  const { sourceId, browser, trace, receivedAtMs } = content
  // Nothing that identifies the user of a purged message is shown.
  const ip = content.items[index] == null ? null : content.ip
  const from = [
    ip === null ? '' : ` from ${ip}`,
    browser ? ', sent by a browser' : '',
    trace === null ? '' : `, in trace ${traceIdOf(trace)}`,
  ]
  const source = sourceName === null ? `${sourceId} (deleted)` : `${quoted(sourceName)} (${sourceId})`
  const sentence = `Received${from.join('')}, for the source ${source}.`
  return { ...OF_MESSAGE, atMs: receivedAtMs, what: 'received', sentence }
}

function quarantineEntries({ content, index }: MessageTrail, { state, atMs }: NonNullable<MessageTrail['quarantine']>): Entry[] {
  const entry = (at: number | null, what: TimelineKind, sentence: string): Entry => ({ ...OF_MESSAGE, atMs: at, what, sentence })
  const [first, ...others] = content.violations?.[index] ?? []
  const more = others.length === 0 ? '' : `; and ${others.length} more`
  const why = first === undefined ? '' : `: ${whyQuarantined(first, more)}`
  const entries = [
    entry(
      content.receivedAtMs,
      'quarantined',
      `Put in quarantine${why}.${state === 'held' ? ' It is not sent until it is released.' : ''}`,
    ),
  ]
  if (state === 'released') entries.push(entry(atMs, 'released', 'Released from quarantine.'))
  // Without a time, the message was purged, which has an entry of its own.
  if (state === 'expired')
    entries.push(entry(atMs, 'deleted', 'Deleted from quarantine, because nobody released it in time. It is not sent.'))
  if (state === 'deleted' && atMs !== null) entries.push(entry(atMs, 'deleted', 'Deleted from quarantine. It is not sent.'))
  return entries
}

function whyQuarantined({ code, rule, path, expected, found }: Violation, more: string): string {
  const short = (text: string): string => printable(truncated(text, MAX_QUOTED))
  const text = violationText({ code, path: short(path), expected: short(expected), found: short(found) })
  return code === 'unplanned_event' ? text : `it violates the rule ${quoted(rule)} (${text}${more})`
}

function createdAsDeadLetter({ content }: MessageTrail, { destination, reason, message }: Readonly<Record<string, unknown>>): Entry {
  const { name } = destination as { name: string }
  const original = (message as { messageId?: unknown } | null)?.messageId
  const of = typeof original === 'string' ? ` of the message ${quoted(original)}` : ''
  const sentence = `Created as a dead letter${of}, whose delivery to ${quoted(name)} was not successful (${String(reason)}).`
  return { ...OF_MESSAGE, atMs: content.receivedAtMs, what: 'received', sentence }
}

function deliveryEntries(delivery: DeliveryDetail, isPurged: boolean, about: TimelineContext): Entry[] {
  const { id: deliveryId, destinationId, history, state, replay, replayOf, replayJobId } = delivery
  const name = nameOf(about, destinationId)
  const entry = (atMs: number | null, what: TimelineKind, sentence: string, more: Partial<Entry> = {}): Entry => {
    return { ...OF_MESSAGE, atMs, what, sentence, destinationId, deliveryId, ...more }
  }
  const origin =
    replayOf === null ? '' : `, as a replay of the delivery ${replayOf}${replayJobId === null ? '' : ` by the job ${replayJobId}`}`
  const entries = [entry(delivery.owedAtMs, 'owed', `Queued for ${name}${replay ? ` again${origin}` : ''}${placeOf(delivery, about)}.`)]
  for (const [attemptIndex, request] of history.entries()) {
    // The time is the end of the attempt. With its start, the response would come before entries that happened while it was awaited.
    const atMs = request.startedAtMs + Math.round(request.totalMs)
    const { attempt: attemptNumber, reason } = request
    const inBatch = request.indexes.length > 1 || request.gathered !== undefined
    const sentence = `Attempt ${attemptNumber} to ${name}${inBatch ? ', in a batch' : ''}: ${attemptSentence(request)}`
    entries.push(entry(atMs, 'attempted', sentence, { reason, attemptNumber, attemptIndex, inBatch }))
  }
  if (state === 'pending') {
    const dueMs = delivery.atMs === null ? null : about.wallMs(delivery.atMs)
    const attemptNumber = delivery.attempts + 1
    const hold = holdOf(delivery, name, isPurged, about)
    const next = `Waiting for attempt ${attemptNumber} to ${name}`
    const load = about.destination(destinationId)?.load
    const isGathered = load !== undefined && dueMs === null && delivery.attempts === 0
    const due = isGathered
      ? `Waiting for the next load of ${name}: pending messages are loaded every ${load.everyMs / 1_000} s, or earlier if there are many.`
      : `${next}, due ${dueMs === null ? 'now' : `at ${isoTime(dueMs)}`}.`
    const sentence = hold === null ? due : hold.reason === 'breaker_open' ? `${next}. ${hold.sentence}` : hold.sentence
    entries.push(entry(dueMs, 'waiting', sentence, { reason: hold?.reason ?? null, attemptNumber }))
  } else {
    // A delivery ends after its last attempt, even if another clock recorded an earlier time.
    const atMs = Math.max(delivery.atMs ?? 0, ...entries.map((other) => other.atMs ?? 0))
    entries.push(entry(atMs, state, ended(delivery, name) + deadLetterSentence(delivery, about), { reason: delivery.reason }))
  }
  return entries
}

function attemptSentence({ url, status, error, reason, totalMs, address, responseStart, step, load }: RequestRecord): string {
  if (reason !== null && NOT_SENT.has(reason)) return `nothing was sent (${reason})${error === null ? '.' : `: ${error}`}`
  const ms = `${Math.round(totalMs)} ms`
  if (step?.method === null && reason === null) return `${quoted(step.subscription)} succeeded without a request after ${ms}.`
  const target = step?.method === null ? quoted(step.subscription) : `${shortUrl(url)}${address === null ? '' : ` (${address})`}`
  const where = step?.method == null ? target : `${quoted(step.subscription)}: ${step.method} ${target}`
  const answer = responseStart === null || responseStart === '' ? '' : ` The response began with ${quoted(responseStart)}.`
  if (reason === null && load !== undefined) return `loaded into ${shortUrl(url)} by ${load.id} (${load.rows} rows) after ${ms}.`
  if (reason === null) return `${where} answered ${status} after ${ms}.`
  return `${where} failed after ${ms} (${reason}). ${error ?? ''}`.trimEnd() + answer
}

function ended({ state, reason, attempts }: DeliveryDetail, name: string): string {
  const after = attempts === 0 ? 'without an attempt' : attempts === 1 ? 'after 1 attempt' : `after ${attempts} attempts`
  const on = attempts === 1 ? 'on the first attempt' : after
  if (state === 'delivered') return `Delivered to ${name} ${on}.`
  if (state === 'expired') return `Delivery to ${name} expired ${after}: the retry window ended${reason === null ? '' : ` (${reason})`}.`
  if (state === 'cancelled') return `Delivery to ${name} cancelled ${after}: ${CANCELLED[reason ?? ''] ?? `${reason ?? 'unknown reason'}.`}`
  return `Delivery to ${name} failed ${on}${reason === null ? '' : ` (${reason})`}. It is not retried automatically.`
}

function deadLetterSentence({ deadLetter, withheldFrom }: DeliveryDetail, about: TimelineContext): string {
  if (withheldFrom !== null)
    return ` No dead letter was created for ${nameOf(about, withheldFrom)}: the alert is about this destination, so it is not sent to it.`
  if (deadLetter === null) return ''
  return ` The dead letter ${deadLetter.messageId} was created for ${nameOf(about, deadLetter.destinationId)}.`
}

/** What a pending delivery waits for, other than its time. */
function holdOf(
  { destinationId: id, waitingFor }: DeliveryDetail,
  name: string,
  isPurged: boolean,
  about: TimelineContext,
): { reason: string; sentence: string } | null {
  const hold = (reason: string, sentence: string) => ({ reason, sentence })
  const destination = about.destination(id)
  if (isPurged)
    return hold(
      'message_deleted',
      `Still pending for ${name}, although the message was deleted. The delivery will be cancelled when it is due.`,
    )
  if (destination === undefined) return hold('destination_deleted', `Still pending for ${name}. The delivery is being cancelled.`)
  if (!destination.enabled)
    return hold('destination_disabled', `On hold: ${name} is disabled. The message is sent when the destination is enabled again.`)
  if (destination.paused)
    return hold('destination_paused', `On hold: ${name} is paused. The message is sent when the destination is resumed.`)
  if (waitingFor !== null) return { reason: waitingFor.isHeld ? 'key_held' : 'key_waiting', sentence: waitsFor(waitingFor, name) }
  const breaker = about.breaker(id)
  if (breaker !== 'open' && breaker !== 'probing') return null
  const failure = about.failure(id)
  const cause = failure === null ? '' : `${failure} `
  return hold('breaker_open', `${cause}The circuit breaker is open, because recent attempts failed: one probe is sent at a time.`)
}

function waitsFor({ messageId, key, isHeld }: WaitingFor, name: string): string {
  const message = messageId === null ? 'another message' : `the message ${quoted(messageId)}`
  const same = key === null ? 'which has the same key' : `which has the same key ${quoted(key)}`
  return isHeld
    ? `Waits for ${message}, ${same}: its delivery to ${name} failed, and the key is held until somebody resumes or skips it.`
    : `Waits for ${message}, ${same} and must end first at ${name}.`
}

/** What a delivery that was created later has to do with the order of an ordered destination. */
function placeOf({ destinationId, orderPlace }: DeliveryDetail, about: TimelineContext): string {
  if (about.destination(destinationId)?.order == null || orderPlace === 'accepted') return ''
  return orderPlace === 'resumed' ? ', at the head of its key' : ', outside the order of its key'
}

function nameOf({ destination }: TimelineContext, id: string): string {
  const name = destination(id)?.name
  return name === undefined ? `${id} (deleted)` : quoted(name)
}

/** The URL without its query, which may contain a secret. */
function shortUrl(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : `${url.slice(0, query)}?…`
}

/** In double quotes, truncated, with everything escaped that a terminal would interpret. */
export function quoted(text: string): string {
  return printable(JSON.stringify(truncated(text, MAX_QUOTED)))
}

function truncated(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}

function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escaped)
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')
}
