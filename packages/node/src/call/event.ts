// The event object a call becomes: the message as plugins and listeners see it and as it goes on the wire.
// Composing happens at the call and ends in JSON text, so that what the caller changes later changes nothing here.

import {
  type Integrations,
  isoTime,
  MAX_MESSAGE_BYTES,
  type MessageContext,
  type MessageType,
  parseMessage,
  parseTime,
  type RefusalCode,
  refusal,
} from '@switchyard/protocol'
import { platform } from '#platform'
import { LIBRARY } from '../version.ts'
import type { EventProperties } from './params.ts'

export interface AnalyticsEvent {
  type: MessageType
  messageId: string
  timestamp: Date | string
  userId?: string | null | undefined
  anonymousId?: string | null | undefined
  previousId?: string | null | undefined
  groupId?: string | null | undefined
  event?: string | undefined
  name?: string | undefined
  category?: string | undefined
  properties?: EventProperties | undefined
  traits?: EventProperties | undefined
  context: MessageContext
  integrations?: Integrations | undefined
}

/** A call's parameters as they come: typed for the compiler's users, anything for JavaScript's. */
export type RawParams = { [field: string]: unknown }

export interface ComposedMessage {
  ok: true
  json: string
  bytes: number
}

/** Why the event cannot become a message; the caller makes an error of it. */
export interface Uncomposed {
  ok: false
  code: RefusalCode | 'not_serializable'
  message: string
  field?: string | undefined
  reason?: unknown
}

export type Composed = ComposedMessage | Uncomposed

const libraryOnly = { library: LIBRARY }

/** The event of a call, unchecked: fields by type, an ID, a time, the library's context under the caller's own. */
export function eventOf(type: MessageType, params: RawParams, now: number): AnalyticsEvent {
  // One literal for each type, with no field that the type does not have: JSON.stringify pays for undefined ones, too.
  const messageId = params['messageId'] ?? platform.newId()
  const timestamp = isoTime(params['timestamp'] === undefined ? now : (parseTime(params['timestamp']) ?? now))
  const userId = params['userId'] ?? undefined
  const anonymousId = params['anonymousId'] ?? undefined
  const context = contextOf(params['context'])
  const integrations = params['integrations'] ?? undefined
  let event: unknown
  switch (type) {
    case 'track': {
      const properties = params['properties'] ?? {}
      event = { type, messageId, timestamp, userId, anonymousId, event: params['event'], properties, context, integrations }
      break
    }
    case 'identify':
      event = { type, messageId, timestamp, userId, anonymousId, traits: params['traits'] ?? {}, context, integrations }
      break
    case 'page':
    case 'screen': {
      const name = params['name'] ?? undefined
      const category = params['category'] ?? undefined
      const properties = params['properties'] ?? {}
      event = { type, messageId, timestamp, userId, anonymousId, name, category, properties, context, integrations }
      break
    }
    case 'group': {
      const groupId = params['groupId'] ?? undefined
      event = { type, messageId, timestamp, userId, anonymousId, groupId, traits: params['traits'] ?? {}, context, integrations }
      break
    }
    case 'alias':
      event = { type, messageId, timestamp, userId, previousId: params['previousId'] ?? undefined, context, integrations }
  }
  return event as AnalyticsEvent
}

/**
 * The event of a message that was made elsewhere: its own fields, known or not, and an ID where it has none. A copy of own
 * properties, so that a field named `__proto__` is one more field.
 */
export function enqueuedEvent(message: RawParams, now: number, isTimeless: boolean, historical: boolean): AnalyticsEvent {
  const event = { ...message }
  // What is checked is then not what would be sent.
  if (typeof event['toJSON'] === 'function')
    throw new TypeError('the message must not have a toJSON method; pass the object that it returns')
  event['messageId'] ??= platform.newId()
  if (isTimeless || (event['timestamp'] == null && event['originalTimestamp'] == null)) event['timestamp'] = isoTime(now)
  // Of a message from the past, it would correct the past by the present.
  if (historical) delete event['sentAt']
  return event as unknown as AnalyticsEvent
}

/** The caller's context over the library's. Anything but an object is left as it is, for the parser to refuse. */
function contextOf(context: unknown): unknown {
  if (context == null) return libraryOnly
  return typeof context === 'object' && !Array.isArray(context) ? { library: LIBRARY, ...context } : context
}

/** Checks an event as the service will, and turns it into the bytes the service will count. */
export function compose(event: AnalyticsEvent): Composed {
  const parsed = parseMessage(event)
  if (!parsed.ok) return parsed
  let json: string | undefined
  try {
    for (const field of ['properties', 'traits', 'context', 'integrations'] as const) {
      // A Date passes for an object until it becomes JSON, and then it is a string that the service would refuse.
      if (mayBecomeOther(event[field]) && !isJsonObject(event[field])) return refusal(`${field}_not_object`, field)
    }
    json = JSON.stringify(event)
    if (json === undefined) throw new TypeError('the message has no JSON representation')
  } catch (error) {
    // What V8 says of its stack would tell nobody what is wrong.
    const message =
      error instanceof RangeError ? 'the message is nested too deeply' : error instanceof Error ? error.message : String(error)
    return { ok: false, code: 'not_serializable', message, reason: error }
  }
  const bytes = platform.byteLength(json)
  if (bytes > MAX_MESSAGE_BYTES) {
    const tooLarge = refusal('message_too_large')
    return { ...tooLarge, message: `${tooLarge.message} This one has ${bytes} bytes.` }
  }
  return { ok: true, json, bytes }
}

/** Objects that JSON makes something else of: those with toJSON, and wrapped primitives. */
function mayBecomeOther(value: object | null | undefined): boolean {
  if (value == null) return false
  const { toJSON, valueOf } = value as { toJSON?: unknown; valueOf?: unknown }
  return typeof toJSON === 'function' || (typeof valueOf === 'function' && typeof valueOf.call(value) !== 'object')
}

function isJsonObject(value: unknown): boolean {
  // Undefined where toJSON gives undefined, whatever the types say.
  const json = JSON.stringify(value) as string | undefined
  return json !== undefined && json.startsWith('{')
}

/** The event of a message's text, in the form that plugins written for the public client expect: a Date as timestamp, and objects whose fields they can set. */
export function revive(event: AnalyticsEvent): AnalyticsEvent {
  const ms = parseTime(event.timestamp)
  // One that was enqueued may have no time, or one that is none.
  if (ms !== undefined) event.timestamp = new Date(ms)
  event.context ??= {}
  event.integrations ??= {}
  return event
}

/** The event as it is sent, without empty `integrations`. A copy, because plugins still hold the event. */
export function withoutEmptyIntegrations(event: AnalyticsEvent): AnalyticsEvent {
  const { integrations } = event
  const isEmpty = integrations != null && Object.getPrototypeOf(integrations) === Object.prototype && Object.keys(integrations).length === 0
  if (!isEmpty) return event
  return Object.assign(Object.create(Object.getPrototypeOf(event) as object | null), event, { integrations: undefined }) as AnalyticsEvent
}
