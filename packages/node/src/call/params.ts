// What people pass to the six calls. Names and shapes are those of @segment/analytics-node, so that its users change
// an import; `Events`, a user's own map of event names to properties, is ours.

import type { GroupTraits, Integrations, JsonObject, Message, MessageContext, UserTraits } from '@switchyard/protocol'

// oxlint-disable-next-line typescript/no-explicit-any -- free-form properties accept interfaces, which have no index signature
export type EventProperties = Record<string, any>

/** Event names and their properties: `{ 'Order Completed': { total: number } }`. */
export type EventCatalog = { [event: string]: EventProperties }

/** At least one of the two must be there. */
export type Identity = { userId: string; anonymousId?: string | undefined } | { userId?: string | undefined; anonymousId: string }

export interface CallOptions {
  /** Extra context; merged over what the library fills in. Not attributes of the user: those are traits. */
  context?: MessageContext | undefined
  /** When it happened; now, if omitted. Give it when importing past data. */
  timestamp?: Date | string | undefined
  /** Destinations to enable or disable for this call. */
  integrations?: Integrations | undefined
  /** Used to drop duplicates; made for you if omitted. Must be unique per event. */
  messageId?: string | undefined
}

export type IdentifyParams = CallOptions & Identity & { traits?: UserTraits | undefined }

type TrackOf<Event extends string, Properties> = {
  event: Event
} & (Partial<Properties> extends Properties ? { properties?: Properties | undefined } : { properties: Properties })

export type TrackParams<Events extends { [Event in keyof Events]: EventProperties } = EventCatalog> = CallOptions &
  Identity &
  { [Event in keyof Events & string]: TrackOf<Event, Events[Event]> }[keyof Events & string]

export type PageParams = CallOptions &
  Identity & {
    category?: string | undefined
    name?: string | undefined
    /** url, title, referrer and path are specially recognised; any other key is allowed. */
    properties?: EventProperties | undefined
  }

export type ScreenParams = PageParams

export type GroupParams = CallOptions & Identity & { groupId: string; traits?: GroupTraits | undefined }

export type AliasParams = CallOptions & {
  /** The new ID. */
  userId: string
  /** The ID to alias from. */
  previousId: string
}

/** A message with its type, as it was made elsewhere. Fields that this library does not know are sent, too. */
export type RawMessage = Message & JsonObject

export interface FlushParams {
  /** Resolve after this many milliseconds even if not everything is sent. */
  timeout?: number | undefined
  /** Take no further calls. */
  close?: boolean | undefined
}

export type CloseAndFlushParams = Pick<FlushParams, 'timeout'>

/** What became of the messages called before a flush and not reported by an earlier one. */
export interface FlushResult {
  delivered: number
  failed: number
  /** Still on the way when the timeout came. */
  pending: number
}

/** `void`, too, so that interfaces and functions declared with the public client's `Promise<void>` compile unchanged. */
export type Flushed = Promise<FlushResult & void>
