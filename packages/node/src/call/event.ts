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
  userId?: string | undefined
  anonymousId?: string | undefined
  previousId?: string | undefined
  groupId?: string | undefined
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
  const { context } = params
  const time = params['timestamp'] === undefined ? now : (parseTime(params['timestamp']) ?? now)
  const fields = {
    type,
    messageId: params['messageId'] ?? platform.newId(),
    timestamp: isoTime(time),
    userId: params['userId'] ?? undefined,
    anonymousId: params['anonymousId'] ?? undefined,
    previousId: undefined as unknown,
    groupId: undefined as unknown,
    event: undefined as unknown,
    name: undefined as unknown,
    category: undefined as unknown,
    properties: undefined as unknown,
    traits: undefined as unknown,
    // Anything but an object is left as it is for the parser to refuse.
    context: context == null ? libraryOnly : typeof context === 'object' && !Array.isArray(context) ? { library: LIBRARY, ...context } : context,
    integrations: params['integrations'] ?? undefined,
  }
  switch (type) {
    case 'track':
      fields.event = params['event']
      fields.properties = params['properties'] ?? {}
      break
    case 'identify':
      fields.traits = params['traits'] ?? {}
      break
    case 'page':
    case 'screen':
      fields.name = params['name'] ?? undefined
      fields.category = params['category'] ?? undefined
      fields.properties = params['properties'] ?? {}
      break
    case 'group':
      fields.groupId = params['groupId'] ?? undefined
      fields.traits = params['traits'] ?? {}
      break
    case 'alias':
      fields.previousId = params['previousId'] ?? undefined
      break
  }
  return fields as AnalyticsEvent
}

/** Checks an event as the service will, and turns it into the bytes the service will count. */
export function compose(event: AnalyticsEvent): Composed {
  const parsed = parseMessage(event)
  if (!parsed.ok) return parsed
  let json: string
  try {
    for (const field of ['properties', 'traits', 'context', 'integrations'] as const) {
      // A Date passes for an object until it becomes JSON, and then it is a string that the service would refuse.
      const value = event[field] as { toJSON?: unknown } | undefined
      if (typeof value?.toJSON === 'function' && !isJsonObject(value)) return refusal(`${field}_not_object`, field)
    }
    json = JSON.stringify(event)
  } catch (error) {
    return { ok: false, code: 'not_serializable', message: error instanceof Error ? error.message : String(error), reason: error }
  }
  const bytes = platform.byteLength(json)
  if (bytes > MAX_MESSAGE_BYTES) {
    const tooLarge = refusal('message_too_large')
    return { ...tooLarge, message: `${tooLarge.message} This one has ${bytes}.` }
  }
  return { ok: true, json, bytes }
}

function isJsonObject(value: unknown): boolean {
  return JSON.stringify(value)?.startsWith('{') === true
}

/** The event a JSON text stands for. Its time is a Date again: plugins written for the public client call its methods. */
export function eventFromJson(json: string): AnalyticsEvent {
  const event = JSON.parse(json) as AnalyticsEvent
  event.timestamp = new Date(event.timestamp)
  return event
}
