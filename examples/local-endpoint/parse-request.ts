// From the bytes of a request to the messages in it and what is wrong with the others. Pure: no HTTP, no output.
// Whether a message is good is decided by the protocol's parser alone.

import { isMessageType, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES, type Message, type MessageType, parseMessage } from '@switchyard/protocol'
import { type Problem, problem } from './problems.ts'

type Fields = { [field: string]: unknown }

/** One message that was not taken. */
export interface RejectedMessage {
  /** Its place in the batch. */
  index: number
  messageId: string | null
  code: string
  message: string
}

export type ParsedRequest = { ok: true; writeKey: string; messages: Message[]; rejected: RejectedMessage[] } | Problem

// JSON.parse takes any depth, and JSON.stringify, which prints and counts, runs out of stack at some thousand levels.
const MAX_DEPTH = 500
const TOO_DEEP = { ok: false, code: 'invalid_request', message: `A message may be nested at most ${MAX_DEPTH} levels deep.` } as const

/** What a path takes: many messages, or one whose type the path names. */
export type Route = 'batch' | MessageType

export function routeOf(path: string): Route | undefined {
  if (path === '/v1/batch' || path === '/v1/import') return 'batch'
  const type = path.startsWith('/v1/') ? path.slice('/v1/'.length) : undefined
  return isMessageType(type) ? type : undefined
}

export function parseRequest(route: Route, bytes: Uint8Array, authorization: string | undefined): ParsedRequest {
  let body: unknown
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return problem('invalid_json')
  }
  if (!isObject(body)) return problem('invalid_request')
  const writeKey = basicUser(authorization) ?? body['writeKey']
  if (typeof writeKey !== 'string' || writeKey.trim() === '') return problem('invalid_write_key')
  if (route !== 'batch') {
    // The key is how the call came, not part of what it says.
    const { writeKey: _, ...fields } = body
    return { ok: true, writeKey, ...judge([{ ...fields, type: route }]) }
  }
  const { batch, context, integrations } = body
  if (!Array.isArray(batch)) return problem('invalid_request')
  if (context != null && !isObject(context)) return problem('invalid_request', 'context, where a batch has one, must be an object.')
  if (integrations != null && !isObject(integrations))
    return problem('invalid_request', 'integrations, where a batch has one, must be an object.')
  if (batch.length > MAX_BATCH_MESSAGES) return problem('too_many_messages')
  if (batch.some(isTooLarge)) return problem('message_too_large')
  return { ok: true, writeKey, ...judge(batch.map((item: unknown) => withDefaults(item, { context, integrations }))) }
}

/** The user name of Basic authentication. Some clients leave out the colon behind it. */
function basicUser(authorization: string | undefined): string | undefined {
  const encoded = /^basic +(\S+)\s*$/i.exec(authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  return Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)[0] || undefined
}

function judge(items: unknown[]): { messages: Message[]; rejected: RejectedMessage[] } {
  const messages: Message[] = []
  const rejected: RejectedMessage[] = []
  for (const [index, item] of items.entries()) {
    const result = isDeeperThan(item, MAX_DEPTH) ? TOO_DEEP : parseMessage(item)
    if (result.ok) messages.push(result.message)
    else rejected.push({ index, messageId: messageIdOf(item), code: result.code, message: result.message })
  }
  return { messages, rejected }
}

// The service counts the bytes as they were sent. Here they are counted after JSON.stringify, which is the same for
// what clients send and differs for JSON written with spaces or needless escapes: not worth a second parser in an example.
function isTooLarge(item: unknown): boolean {
  return !isDeeperThan(item, MAX_DEPTH) && Buffer.byteLength(JSON.stringify(item)) > MAX_MESSAGE_BYTES
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner, levels - 1))
}

/** A batch's own context and integrations apply to every message, under the message's own. */
function withDefaults(item: unknown, defaults: { context: Fields | null | undefined; integrations: Fields | null | undefined }): unknown {
  if (!isObject(item)) return item
  // Spread, never Object.assign: a key named __proto__ in the JSON must stay a key.
  const merged = { ...item }
  for (const field of ['context', 'integrations'] as const) {
    const own = item[field]
    if (defaults[field] && (own == null || isObject(own))) merged[field] = { ...defaults[field], ...own }
  }
  return merged
}

/** Only a well-formed ID is repeated to the sender. */
function messageIdOf(item: unknown): string | null {
  const messageId = isObject(item) ? item['messageId'] : undefined
  return typeof messageId === 'string' && messageId.length <= 100 ? messageId : null
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
