// The six kinds of messages as they travel from a client to the tracking API. Optional fields may be absent or null
// (the browser client sends `userId: null`); both mean "not given". What the service adds on the way to a webhook is
// not here: that is the delivery's shape, not the call's.

export const MESSAGE_TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias'] as const

export type MessageType = (typeof MESSAGE_TYPES)[number]

const TYPE_SET: ReadonlySet<unknown> = new Set(MESSAGE_TYPES)

export function isMessageType(value: unknown): value is MessageType {
  return TYPE_SET.has(value)
}

/** A JSON object of unknown content: free-form properties, traits and context values. */
export interface JsonObject {
  // oxlint-disable-next-line typescript/no-explicit-any -- takes interfaces, which have no index signature, and lets plugins read
  [key: string]: any
}

/** Destination name to on or off; an object counts as on. `All: false` turns off every destination not named. */
export interface Integrations {
  All?: boolean | undefined
  [destination: string]: boolean | JsonObject | undefined
}

/** Facts around a call that are not attributes of the user. The named keys are conventions; any other key is allowed. */
export interface MessageContext {
  active?: boolean | undefined
  app?: { name?: string | undefined; version?: string | undefined; build?: string | undefined; [key: string]: unknown } | undefined
  campaign?: JsonObject | undefined
  device?: { model?: string | undefined; type?: string | undefined; [key: string]: unknown } | undefined
  /** True when the call comes straight from the user's device, so that the service may fill `ip` from the connection. */
  direct?: boolean | undefined
  ip?: string | undefined
  library?: { name: string; version: string } | undefined
  locale?: string | undefined
  location?: JsonObject | undefined
  os?: { name?: string | undefined; version?: string | undefined; [key: string]: unknown } | undefined
  page?: PageContext | undefined
  referrer?: JsonObject | undefined
  timezone?: string | undefined
  traits?: JsonObject | undefined
  userAgent?: string | undefined
  // oxlint-disable-next-line typescript/no-explicit-any -- what people pass and read today must compile unchanged
  [key: string]: any
}

export interface PageContext {
  path?: string | undefined
  referrer?: string | undefined
  search?: string | undefined
  title?: string | undefined
  url?: string | undefined
  [key: string]: unknown
}

type Optional<T> = T | null | undefined

/** Conventional user traits; any other key is allowed. */
export interface UserTraits {
  id?: Optional<string | number>
  address?: Optional<JsonObject>
  age?: Optional<number>
  avatar?: Optional<string>
  birthday?: Optional<Date | string>
  company?: Optional<JsonObject>
  createdAt?: Optional<Date | string>
  description?: Optional<string>
  email?: Optional<string>
  firstName?: Optional<string>
  gender?: Optional<string>
  industry?: Optional<string>
  lastName?: Optional<string>
  name?: Optional<string>
  phone?: Optional<string | number>
  plan?: Optional<string>
  title?: Optional<string>
  username?: Optional<string>
  website?: Optional<string>
  // oxlint-disable-next-line typescript/no-explicit-any -- what people pass today must compile unchanged
  [trait: string]: any
}

/** Conventional group traits; any other key is allowed. */
export interface GroupTraits {
  id?: Optional<string | number>
  address?: Optional<JsonObject>
  avatar?: Optional<string>
  createdAt?: Optional<Date | string>
  description?: Optional<string>
  email?: Optional<string>
  employees?: Optional<string | number>
  industry?: Optional<string>
  name?: Optional<string>
  phone?: Optional<string | number>
  plan?: Optional<string>
  website?: Optional<string>
  // oxlint-disable-next-line typescript/no-explicit-any -- what people pass today must compile unchanged
  [trait: string]: any
}

interface MessageBase {
  messageId?: Optional<string>
  userId?: Optional<string>
  anonymousId?: Optional<string>
  /** When it happened, by the caller's clock. Not trusted to be well formed: see `parseTime`. */
  timestamp?: unknown
  context?: Optional<MessageContext>
  integrations?: Optional<Integrations>
}

export interface IdentifyMessage extends MessageBase {
  type: 'identify'
  traits?: Optional<UserTraits>
}

export interface TrackMessage extends MessageBase {
  type: 'track'
  event: string
  properties?: Optional<JsonObject>
}

export interface PageMessage extends MessageBase {
  type: 'page'
  name?: Optional<string>
  category?: Optional<string>
  properties?: Optional<JsonObject>
}

export interface ScreenMessage extends MessageBase {
  type: 'screen'
  name?: Optional<string>
  category?: Optional<string>
  properties?: Optional<JsonObject>
}

export interface GroupMessage extends MessageBase {
  type: 'group'
  groupId: string
  traits?: Optional<GroupTraits>
}

export interface AliasMessage extends MessageBase {
  type: 'alias'
  userId: string
  previousId: string
}

export type Message = IdentifyMessage | TrackMessage | PageMessage | ScreenMessage | GroupMessage | AliasMessage
