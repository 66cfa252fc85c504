// The parameters of the calls. Names and types are those of @segment/analytics-node, so that its users need only change
// an import; only `Events`, a map of event names to properties, is an addition.

import type { GroupTraits, Integrations, JsonObject, Message, MessageContext, UserTraits } from '@switchyard/protocol'

// oxlint-disable-next-line typescript/no-explicit-any -- free-form properties accept interfaces, which have no index signature
export type EventProperties = Record<string, any>

/** A map of event names to their properties: `{ 'Order Completed': { total: number } }`. */
export type EventCatalog = { [event: string]: EventProperties }

/** At least one of the two IDs is required. */
export type Identity = { userId: string; anonymousId?: string | undefined } | { userId?: string | undefined; anonymousId: string }

export interface CallOptions {
  /** Additional context; overrides the context that the library sets. Not for attributes of the user: those are traits. */
  context?: MessageContext | undefined
  /** When the event happened. Default: the current time. Set it when importing past data. */
  timestamp?: Date | string | undefined
  /** Destinations to enable or disable for this call. */
  integrations?: Integrations | undefined
  /** Unique ID of the message, by which the service drops duplicates. Default: a random UUID. */
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
    /** The keys url, title, referrer and path have a defined meaning; any other key is allowed. */
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

/** A complete message from elsewhere, including its type. Fields that this library does not know are sent, too. */
export type RawMessage = Message & JsonObject

export interface FlushParams {
  /** Maximum time to wait in milliseconds. Default: no limit. */
  timeout?: number | undefined
  /** Close the client, so that it accepts no further calls. Default: false. */
  close?: boolean | undefined
}

export type CloseAndFlushParams = Pick<FlushParams, 'timeout'>

/** Outcomes of the messages of calls made before the flush that no earlier flush has reported. */
export interface FlushResult {
  /** Messages that the service has stored. It delivers them to destinations afterwards; `switchyard trace` shows how that went. */
  stored: number
  failed: number
  /** Messages without an outcome when the timeout expired. */
  pending: number
  /** @deprecated The same number as `stored`. The property is not enumerable. */
  readonly delivered: number
}

/** Includes `void`, so that interfaces and functions declared with the public client's `Promise<void>` compile unchanged. */
export type Flushed = Promise<FlushResult & void>
