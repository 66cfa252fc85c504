// From the bytes of a request to the messages in it and what is wrong with the others. Pure: no HTTP, no store, no clock.
// Whether a message is good is decided by the protocol's parser alone; here are the envelope, the sizes and the depth.

import { isAscii, isUtf8 } from 'node:buffer'
import {
  isoTime,
  type JsonObject,
  MAX_BATCH_MESSAGES,
  MAX_MESSAGE_BYTES,
  type MessageType,
  parseMessage,
  parseTime,
} from '@switchyard/protocol'
import type { ApiErrorCode } from '../errors.ts'
import { writeStoredBody } from '../store/port/stored-messages.ts'
import { isTooDeep, MAX_DEPTH, mayBeDeep, scanBatch } from './scan-json.ts'

/** What a path takes: many messages, or one whose type the path names. */
export type Route = 'batch' | MessageType

/** The whole request is refused. */
export interface RequestProblem {
  ok: false
  code: ApiErrorCode
  /** Where there is more to say than the code's usual sentence. */
  message?: string
  /** How many messages that concerns, as far as it is known. */
  count: number
  sample: string
}

export interface Body {
  ok: true
  fields: JsonObject
  /** What was parsed: the body without a byte order mark. */
  bytes: Buffer
  /** Whether something in it may be nested too deep. */
  deep: boolean
}

/** One message that is not taken. */
export interface RejectedMessage {
  /** Its place in the batch. */
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
  /** The bytes that all of this can be read from again. */
  body: Buffer
  rejected: readonly RejectedMessage[]
  /** Of the rejected, by code: how many, and the start of the first. */
  rejections: ReadonlyMap<string, { count: number; sample: string }>
  /** Good messages that are dropped because of whom they are about. */
  suppressed: number
}

interface Envelope {
  batch: readonly unknown[]
  sentAt: string | null
  context: JsonObject | null
  integrations: JsonObject | null
  deepItems: ReadonlySet<number> | null
  /** Null when the request's bytes do not say the same as the envelope. */
  bytes: Buffer | null
}

const SAMPLE_BYTES = 1_024
const WRITE_KEY = /("writeKey"\s*:\s*")((?:[^"\\]|\\.)*)("?)/gi
const TOO_DEEP = {
  ok: false,
  code: 'invalid_request',
  message: `The message is nested too deeply. At most ${MAX_DEPTH} levels are allowed.`,
} as const
const NONE_REJECTED: ParsedRequest['rejected'] = []
const NO_REJECTIONS: ParsedRequest['rejections'] = new Map()

export function parseBody(given: Buffer): Body | RequestProblem {
  // Some Windows programs write a byte order mark, which JSON.parse does not take.
  const bytes = given[0] === 0xef && given[1] === 0xbb && given[2] === 0xbf ? given.subarray(3) : given
  const text = decoded(bytes)
  let fields: unknown
  try {
    fields = text === undefined ? undefined : JSON.parse(text)
  } catch {
    fields = undefined
  }
  if (text === undefined || fields === undefined) return { ok: false, code: 'invalid_json', count: 1, sample: sampleOfBytes(bytes) }
  if (!isObject(fields)) return { ok: false, code: 'invalid_request', count: 1, sample: sampleOfBytes(bytes) }
  return { ok: true, fields, bytes, deep: mayBeDeep(text) }
}

/** How many messages a request says that it has. */
export function countOf(route: Route, { fields }: Body): number {
  const batch: unknown = route === 'batch' ? fields['batch'] : undefined
  return Array.isArray(batch) ? batch.length : 1
}

/** `isSuppressed` is asked of good messages only. */
export function parseRequest(
  route: Route,
  body: Body,
  isSuppressed: ((item: JsonObject) => boolean) | null,
  newMessageId: () => string,
): ParsedRequest | RequestProblem {
  const envelope = route === 'batch' ? batchOf(body) : callOf(route, body)
  return envelope.ok === false ? envelope : judged(envelope, isSuppressed, newMessageId)
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
  let deepItems: ReadonlySet<number> | null = null
  // In a body that is not larger than a message may be, none can be too large.
  if (deep || bytes.length > MAX_MESSAGE_BYTES) {
    const scan = scanBatch(bytes, MAX_MESSAGE_BYTES)
    if (scan.oversized) {
      return { ok: false, code: 'message_too_large', count: batch.length, sample: sampleOfBytes(bytes.subarray(scan.oversized.start)) }
    }
    if (scan.deepEnvelope)
      return wrongShape(bytes, `A field beside batch is nested too deeply. At most ${MAX_DEPTH} levels are allowed.`, batch.length)
    deepItems = scan.deepItems
  }
  const common = { batch, context: context ?? null, integrations: integrations ?? null, deepItems }
  if (sentAt == null || typeof sentAt === 'string') return { ...common, sentAt: sentAt ?? null, bytes }
  // A time as a number is understood too, and stored as what all the others are.
  const sentAtMs = parseTime(sentAt)
  return { ...common, sentAt: sentAtMs === undefined ? null : isoTime(sentAtMs), bytes: null }
}

/** The key is how the call came, not part of what it says. */
function callOf(type: MessageType, { fields, bytes, deep }: Body): Envelope & { ok?: never } {
  const { writeKey: _, ...call } = fields
  const deepItems = deep && isTooDeep(bytes) ? new Set([0]) : null
  return { batch: [{ ...call, type }], sentAt: null, context: null, integrations: null, deepItems, bytes: null }
}

function judged(envelope: Envelope, isSuppressed: ((item: JsonObject) => boolean) | null, newMessageId: () => string): ParsedRequest {
  const { batch, sentAt, context, integrations, deepItems } = envelope
  const messageIds: string[] = []
  let items: JsonObject[] | undefined
  let rejected: RejectedMessage[] | undefined
  let rejections: Map<string, { count: number; sample: string }> | undefined
  let suppressed = 0
  for (let index = 0; index < batch.length; index++) {
    const item = batch[index]
    const result = deepItems?.has(index) ? TOO_DEEP : parseMessage(item)
    if (!result.ok) {
      items ??= batch.slice(0, index) as JsonObject[]
      const { code, message } = result
      rejected ??= []
      rejected.push({ index, messageId: messageIdOf(item), code, message })
      rejections ??= new Map()
      const same = rejections.get(code)
      if (same) same.count++
      else rejections.set(code, { count: 1, sample: sampleOf(item) })
      continue
    }
    const message = result.message as JsonObject
    if (isSuppressed?.(message)) {
      items ??= batch.slice(0, index) as JsonObject[]
      suppressed++
      continue
    }
    const messageId: unknown = message['messageId']
    if (typeof messageId === 'string') {
      messageIds.push(messageId)
      items?.push(message)
    } else {
      items ??= batch.slice(0, index) as JsonObject[]
      const made = newMessageId()
      messageIds.push(made)
      items.push({ ...message, messageId: made })
    }
  }
  const unchanged = items === undefined && envelope.bytes !== null
  const accepted = items ?? (batch as readonly JsonObject[])
  return {
    ok: true,
    items: accepted,
    messageIds,
    sentAt,
    context,
    integrations,
    body: unchanged ? (envelope.bytes as Buffer) : writeStoredBody({ batch: accepted, sentAt, context, integrations }),
    rejected: rejected ?? NONE_REJECTED,
    rejections: rejections ?? NO_REJECTIONS,
    suppressed,
  }
}

// Most bodies are ASCII, and then a copy is all that decoding is.
function decoded(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

function wrongShape(bytes: Buffer, message?: string, count = 1): RequestProblem {
  const problem: RequestProblem = { ok: false, code: 'invalid_request', count, sample: sampleOfBytes(bytes) }
  return message === undefined ? problem : { ...problem, message }
}

/** Only a well-formed ID is repeated to the sender. */
function messageIdOf(item: unknown): string | null {
  const messageId = isObject(item) ? item['messageId'] : undefined
  return typeof messageId === 'string' && messageId.length <= 100 ? messageId : null
}

function sampleOf(item: unknown): string {
  try {
    return sampleOfBytes(Buffer.from(JSON.stringify(item).slice(0, SAMPLE_BYTES)))
  } catch (error) {
    // Nested so deep that it cannot be written.
    if (error instanceof RangeError) return ''
    throw error
  }
}

/** At most 1 KB of the start, not cut within a character. A key is shown by its first letters: it may be the right one of another source. */
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

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
