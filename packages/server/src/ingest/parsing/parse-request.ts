// Parses the bytes of a request into valid messages, and reports what is wrong with the others. Pure: no HTTP, no store, no
// clock. Only the parser of the protocol package decides whether a message is valid; this file checks the envelope, sizes and depth.

import { isAscii, isUtf8 } from 'node:buffer'
import {
  isObject,
  isoTime,
  type JsonObject,
  MAX_BATCH_MESSAGES,
  MAX_MESSAGE_BYTES,
  MESSAGE_TYPES,
  type MessageType,
  type PlanVerdict,
  parseMessage,
  parseTime,
  REFUSALS,
} from '@switchyard/protocol'
import { bytesProblem } from '../../api/json-problem.ts'
import type { ApiErrorCode } from '../../errors.ts'
import { tooLargeMerged } from '../../outbound/merged-size.ts'
import { isTooDeep, MAX_DEPTH, mayBeDeep, scanBatch } from '../../store/port/scan-json.ts'
import { MAX_HASHED_VALUES, type Protect, TooManyHashedValues } from '../privacy/privacy.ts'
import { TimeWarnings, type Warnings } from './time-warnings.ts'

/** What a path accepts: a batch, or one message of the type that is in the path. */
export type Route = 'batch' | MessageType

/** The whole request is rejected. */
export interface RequestProblem {
  ok: false
  code: ApiErrorCode
  /** Replaces the default message of the code. */
  message?: string
  /** The number of messages in the request, as far as it is known. */
  count: number
  sample: string
}

export interface Body {
  ok: true
  fields: JsonObject
  /** The body without a byte order mark. */
  bytes: Buffer
  /** Whether something in it may be nested too deeply. */
  deep: boolean
}

/** One message of the request that was rejected. */
export interface RejectedMessage {
  /** Its index in the batch. */
  index: number
  messageId: string | null
  code: string
  message: string
}

export interface ParsedRequest {
  ok: true
  items: readonly JsonObject[]
  messageIds: readonly string[]
  sentAt: string | null
  context: JsonObject | null
  integrations: JsonObject | null
  /** The bytes of the request, if all of the above can be parsed again from them; otherwise null. */
  bytes: Buffer | null
  rejected: readonly RejectedMessage[]
  /** The rejected messages by code: their number, and the start of the first one. */
  rejections: ReadonlyMap<string, { count: number; sample: string }>
  /** The number of valid messages that are dropped because their user is suppressed. */
  suppressed: number
  /** How messages differ from the tracking plan, by their index in `items`; null if all are as planned. */
  verdicts: ReadonlyMap<number, PlanVerdict> | null
  /** Values of accepted messages that were ignored or are probably wrong; null if there are none. */
  warnings: Warnings | null
}

/** Judges a message by the tracking plan of its source: see `createPlanJudge`. */
export type Judge = (message: JsonObject) => PlanVerdict | null

interface Envelope {
  batch: readonly unknown[]
  sentAt: string | null
  context: JsonObject | null
  integrations: JsonObject | null
  deepItems: ReadonlySet<number> | null
  /** The indexes of messages that are too large with the context and integrations of the batch. */
  largeItems: ReadonlySet<number> | null
  /** The bytes of the request; null if they differ from the envelope and must be written again. */
  bytes: Buffer | null
}

const SAMPLE_BYTES = 1_024
const WRITE_KEY = /("writeKey"\s*:\s*")((?:[^"\\]|\\.)*)("?)/gi
const TOO_DEEP = {
  ok: false,
  code: 'invalid_request',
  message: `The message is nested too deeply. At most ${MAX_DEPTH} levels are allowed.`,
} as const
const TOO_LARGE_MERGED = {
  ok: false,
  code: 'message_too_large',
  message: `${REFUSALS.message_too_large} The context and integrations of the batch count for each message, because they are merged into it. Send less data in them.`,
} as const

const NONE_REJECTED: ParsedRequest['rejected'] = []
const NO_REJECTIONS: ParsedRequest['rejections'] = new Map()

export function parseBody(given: Buffer): Body | RequestProblem {
  // Some Windows programs write a byte order mark, which JSON.parse rejects.
  const bytes = given[0] === 0xef && given[1] === 0xbb && given[2] === 0xbf ? given.subarray(3) : given
  const text = decode(bytes)
  let fields: unknown
  try {
    fields = text === undefined ? undefined : JSON.parse(text)
  } catch {
    fields = undefined
  }
  if (text === undefined || fields === undefined)
    return { ok: false, code: 'invalid_json', message: bytesProblem('The request body', bytes), count: 1, sample: sampleOfBytes(bytes) }
  if (!isObject(fields)) return { ok: false, code: 'invalid_request', count: 1, sample: sampleOfBytes(bytes) }
  return { ok: true, fields, bytes, deep: mayBeDeep(text) }
}

/** Returns the number of messages in a request, valid or not. */
export function countOf(route: Route, { fields }: Body): number {
  const batch: unknown = route === 'batch' ? fields['batch'] : undefined
  return Array.isArray(batch) ? batch.length : 1
}

/**
 * `isSuppressed` is only called for valid messages. `protect` applies the privacy rules of the source, `judge` its tracking plan; null if it has none.
 * Without `nowMs`, a timestamp in the future is found only if the sender says when it sent the request.
 */
export function parseRequest(
  route: Route,
  body: Body,
  isSuppressed: ((item: JsonObject) => boolean) | null,
  newMessageId: () => string,
  protect: Protect | null = null,
  judge: Judge | null = null,
  nowMs = Number.NaN,
): ParsedRequest | RequestProblem {
  const envelope = route === 'batch' ? batchOf(body) : callOf(route, body)
  if (envelope.ok === false) return envelope
  const warnings = new TimeWarnings(nowMs, route === 'batch' ? body.fields['sentAt'] : null)
  if (protect === null) return parseMessages(envelope, isSuppressed, newMessageId, null, judge, warnings)
  try {
    return parseMessages(protectedEnvelope(envelope, protect), isSuppressed, newMessageId, protect, judge, warnings)
  } catch (error) {
    if (!(error instanceof TooManyHashedValues)) throw error
    const message = `The privacy rules of the source apply to more than ${MAX_HASHED_VALUES} values of the request. Send fewer messages per request.`
    return { ok: false, code: 'invalid_request', count: envelope.batch.length, sample: '', message }
  }
}

/** The bytes of the request are never stored for such a source: they contain the values as they were sent, perhaps in keys that occur twice. */
function protectedEnvelope(envelope: Envelope, protect: Protect): Envelope {
  const shared: Partial<Pick<Envelope, 'context' | 'integrations'>> = { context: envelope.context, integrations: envelope.integrations }
  protect(shared)
  return { ...envelope, context: shared.context ?? null, integrations: shared.integrations ?? null, bytes: null }
}

function batchOf({ fields, bytes, deep }: Body): (Envelope & { ok?: never }) | RequestProblem {
  const { batch, sentAt, context, integrations } = fields
  if (!Array.isArray(batch)) return wrongShape(bytes)
  if (context != null && !isObject(context))
    return wrongShape(bytes, 'The field context of a batch must be an object. Send an object or leave the field out.', batch.length)
  if (integrations != null && !isObject(integrations)) {
    return wrongShape(bytes, 'The field integrations of a batch must be an object. Send an object or leave the field out.', batch.length)
  }
  if (batch.length > MAX_BATCH_MESSAGES) return { ok: false, code: 'too_many_messages', count: batch.length, sample: sampleOfBytes(bytes) }
  const shared = { context: context ?? null, integrations: integrations ?? null }
  let deepItems: ReadonlySet<number> | null = null
  let largeItems: ReadonlySet<number> | null = null
  // If the whole body is smaller than the limit for a message, no message in it can be too large, not even with what the batch shares.
  if (deep || bytes.length > MAX_MESSAGE_BYTES) {
    const scan = scanBatch(bytes, MAX_MESSAGE_BYTES)
    if (scan.oversized) {
      return { ok: false, code: 'message_too_large', count: batch.length, sample: sampleOfBytes(bytes.subarray(scan.oversized.start)) }
    }
    if (scan.deepEnvelope)
      return wrongShape(bytes, `A field other than batch is nested too deeply. At most ${MAX_DEPTH} levels are allowed.`, batch.length)
    deepItems = scan.deepItems
    if (shared.context !== null || shared.integrations !== null)
      largeItems = tooLargeMerged(batch, scan.itemBytes, shared, MAX_MESSAGE_BYTES)
  }
  const common = { batch, ...shared, deepItems, largeItems }
  if (sentAt == null || typeof sentAt === 'string') return { ...common, sentAt: sentAt ?? null, bytes }
  // sentAt may also be a number. It is stored as an ISO 8601 text like all other times.
  const sentAtMs = parseTime(sentAt)
  return { ...common, sentAt: sentAtMs === undefined ? null : isoTime(sentAtMs), bytes: null }
}

/** The write key is authentication and not part of the message, so it is removed. */
function callOf(type: MessageType, { fields, bytes, deep }: Body): Envelope & { ok?: never } {
  const { writeKey: _, ...call } = fields
  const deepItems = deep && isTooDeep(bytes) ? new Set([0]) : null
  return { batch: [{ ...call, type }], sentAt: null, context: null, integrations: null, deepItems, largeItems: null, bytes: null }
}

function parseMessages(
  envelope: Envelope,
  isSuppressed: ((item: JsonObject) => boolean) | null,
  newMessageId: () => string,
  protect: Protect | null,
  judge: Judge | null,
  warnings: TimeWarnings,
): ParsedRequest {
  const { batch, sentAt, context, integrations, deepItems, largeItems } = envelope
  const messageIds: string[] = []
  let items: JsonObject[] | undefined
  let rejected: RejectedMessage[] | undefined
  let rejections: Map<string, { count: number; sample: string }> | undefined
  let suppressed = 0
  let verdicts: Map<number, PlanVerdict> | null = null
  for (let index = 0; index < batch.length; index++) {
    const item = batch[index]
    const result = deepItems?.has(index) ? TOO_DEEP : largeItems?.has(index) ? TOO_LARGE_MERGED : parseMessage(item)
    if (!result.ok) {
      items ??= batch.slice(0, index) as JsonObject[]
      const { code, message } = result
      rejected ??= []
      rejected.push({ index, messageId: messageIdOf(item), code, message })
      rejections ??= new Map()
      const same = rejections.get(code)
      if (same) same.count++
      else rejections.set(code, { count: 1, sample: protect === null ? sampleOf(item) : sampleOfIds(item) })
      continue
    }
    let message = result.message as JsonObject
    let dropped = isSuppressed?.(message) ?? false
    if (protect !== null && !dropped) {
      protect(message)
      // The operator may have named the user by the hash.
      dropped = isSuppressed?.(message) ?? false
    }
    if (dropped) {
      items ??= batch.slice(0, index) as JsonObject[]
      suppressed++
      continue
    }
    warnings.check(message, index)
    const verdict = judge === null ? null : judge(message)
    if (verdict !== null) {
      verdicts ??= new Map()
      verdicts.set(messageIds.length, verdict)
      if (verdict.stripped !== null) {
        items ??= batch.slice(0, index) as JsonObject[]
        message = verdict.stripped
      }
    }
    const messageId: unknown = message['messageId']
    if (typeof messageId === 'string') {
      messageIds.push(messageId)
      items?.push(message)
    } else {
      items ??= batch.slice(0, index) as JsonObject[]
      const generated = newMessageId()
      messageIds.push(generated)
      items.push({ ...message, messageId: generated })
    }
  }
  const accepted = items ?? (batch as readonly JsonObject[])
  return {
    ok: true,
    items: accepted,
    messageIds,
    sentAt,
    context,
    integrations,
    bytes: items === undefined ? envelope.bytes : null,
    rejected: rejected ?? NONE_REJECTED,
    rejections: rejections ?? NO_REJECTIONS,
    suppressed,
    verdicts,
    warnings: warnings.result,
  }
}

// Most bodies are ASCII. For those, decoding is a plain copy.
function decode(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

function wrongShape(bytes: Buffer, message?: string, count = 1): RequestProblem {
  const problem: RequestProblem = { ok: false, code: 'invalid_request', count, sample: sampleOfBytes(bytes) }
  return message === undefined ? problem : { ...problem, message }
}

/** Only a well-formed id is included in the response. */
function messageIdOf(item: unknown): string | null {
  const messageId = isObject(item) ? item['messageId'] : undefined
  return typeof messageId === 'string' && messageId.length <= 100 ? messageId : null
}

function sampleOf(item: unknown): string {
  try {
    return sampleOfBytes(Buffer.from(JSON.stringify(item).slice(0, SAMPLE_BYTES)))
  } catch (error) {
    // It is nested too deeply for JSON.stringify.
    if (error instanceof RangeError) return ''
    throw error
  }
}

/** The rules of a source match valid messages. In one that is not valid, the same value may be anywhere. */
function sampleOfIds(item: unknown): string {
  const type = isObject(item) && MESSAGE_TYPES.some((known) => known === item['type']) ? item['type'] : undefined
  return sampleOf({ type, messageId: messageIdOf(item) ?? undefined })
}

/**
 * Returns at most the first 1 KB, not cut within a character. Only the first characters of a write key are shown, because it may be a valid key
 * of another source.
 */
export function sampleOfBytes(bytes: Buffer): string {
  let end = Math.min(bytes.length, SAMPLE_BYTES)
  while (end > 0 && end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes
    .toString('utf8', 0, end)
    .replaceAll(
      WRITE_KEY,
      (_, start: string, key: string, quote: string) => `${start}${key.slice(0, Math.min(4, key.length >> 1))}…${quote}`,
    )
}
