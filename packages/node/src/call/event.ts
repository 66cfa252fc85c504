// Turns a call into an event object, as plugins and listeners see it, and into JSON, as it is sent. Both happen during the
// call, so later changes to the caller's objects have no effect on the message.

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

/** Unchecked parameters of a call: JavaScript callers can pass anything. */
export type RawParams = { [field: string]: unknown }

export interface ComposedMessage {
  ok: true
  json: string
  bytes: number
}

/** Why the event is not a valid message; the caller creates an error from it. */
export interface InvalidMessage {
  ok: false
  code: RefusalCode | 'not_serializable'
  message: string
  field?: string | undefined
  reason?: unknown
}

export type Composed = ComposedMessage | InvalidMessage

/** The context of a message whose call has none. */
export const LIBRARY_CONTEXT = { library: LIBRARY }

/** Creates the event of a call without validating it: the fields of its type, an ID, a time, and the library's context, which the caller's context overrides. */
export function eventOf(type: MessageType, params: RawParams, now: number): AnalyticsEvent {
  // One object literal for each type, with only the fields of that type, because JSON.stringify spends time on undefined fields, too.
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
 * Creates the event of an enqueued message: all its fields, known or not, with an ID if it has none. Copies own properties, so
 * that a field named `__proto__` is treated like any other field.
 */
export function enqueuedEvent(message: RawParams, now: number, hasInvalidTimestamp: boolean, historical: boolean): AnalyticsEvent {
  const event = { ...message }
  // With toJSON, the JSON that is sent would differ from the object that is validated.
  if (typeof event['toJSON'] === 'function')
    throw new TypeError('the message must not have a toJSON method; pass the object that it returns')
  event['messageId'] ??= platform.newId()
  if (hasInvalidTimestamp || (event['timestamp'] == null && event['originalTimestamp'] == null)) event['timestamp'] = isoTime(now)
  // The service would use sentAt to correct the timestamp of the past event by the current time.
  if (historical) delete event['sentAt']
  return event as unknown as AnalyticsEvent
}

/** Merges the caller's context over the library's. A value that is not an object is returned unchanged, and the parser rejects it. */
function contextOf(context: unknown): unknown {
  if (context == null) return LIBRARY_CONTEXT
  return typeof context === 'object' && !Array.isArray(context) ? { library: LIBRARY, ...context } : context
}

/** Validates an event as the service does, and converts it to JSON. Counts its bytes as the service does. */
export function compose(event: AnalyticsEvent): Composed {
  const parsed = parseMessage(event)
  if (!parsed.ok) return parsed
  let json: string | undefined
  try {
    for (const field of ['properties', 'traits', 'context', 'integrations'] as const) {
      // A Date is an object here, but a string in JSON, which the service would reject.
      if (mayNotStayObject(event[field]) && !isJsonObject(event[field])) return refusal(`${field}_not_object`, field)
    }
    json = JSON.stringify(event)
    if (json === undefined) throw new TypeError('the message has no JSON representation')
  } catch (error) {
    // V8's message about its stack size does not help users.
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

/** Whether JSON.stringify may convert an object to something other than an object: true for objects with toJSON and wrapped primitives. */
function mayNotStayObject(value: object | null | undefined): boolean {
  if (value == null) return false
  const { toJSON, valueOf } = value as { toJSON?: unknown; valueOf?: unknown }
  return typeof toJSON === 'function' || (typeof valueOf === 'function' && typeof valueOf.call(value) !== 'object')
}

function isJsonObject(value: unknown): boolean {
  // Despite its type, JSON.stringify returns undefined if toJSON does.
  const json = JSON.stringify(value) as string | undefined
  return json !== undefined && json.startsWith('{')
}

/** Converts a parsed event to the form that plugins written for the public client expect: a Date as timestamp, and context and integrations always as objects. */
export function revive(event: AnalyticsEvent): AnalyticsEvent {
  const ms = parseTime(event.timestamp)
  // An enqueued message may have no timestamp, or an invalid one.
  if (ms !== undefined) event.timestamp = new Date(ms)
  event.context ??= {}
  event.integrations ??= {}
  return event
}

/** Returns the event without `integrations` if they are empty, as a copy, because plugins still use the event. */
export function withoutEmptyIntegrations(event: AnalyticsEvent): AnalyticsEvent {
  const { integrations } = event
  const isEmpty = integrations != null && Object.getPrototypeOf(integrations) === Object.prototype && Object.keys(integrations).length === 0
  if (!isEmpty) return event
  return Object.assign(Object.create(Object.getPrototypeOf(event) as object | null), event, { integrations: undefined }) as AnalyticsEvent
}
