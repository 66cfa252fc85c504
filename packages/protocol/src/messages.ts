// The six types of messages as a client sends them to the tracking API. Optional fields may be absent or null
// (the browser client sends `userId: null`); both mean "not set". The fields that the service adds before it delivers a
// message to a webhook are not included.

export const MESSAGE_TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias'] as const

export type MessageType = (typeof MESSAGE_TYPES)[number]

const TYPE_SET: ReadonlySet<unknown> = new Set(MESSAGE_TYPES)

export function isMessageType(value: unknown): value is MessageType {
  return TYPE_SET.has(value)
}

/** A JSON object of unknown content: free-form properties, traits and context values. */
export interface JsonObject {
  // oxlint-disable-next-line typescript/no-explicit-any -- accepts interfaces, which have no index signature, and lets plugins read fields
  [key: string]: any
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Switches destinations on or off by name; an object counts as on. `All: false` switches off every destination that is not named. */
export interface Integrations {
  All?: boolean | undefined
  [destination: string]: boolean | JsonObject | undefined
}

/** Information about the circumstances of a call, such as device or page. Not for attributes of the user: those are traits. Keys not listed here are allowed. */
export interface MessageContext {
  active?: boolean | undefined
  app?: { name?: string | undefined; version?: string | undefined; build?: string | undefined; [key: string]: unknown } | undefined
  campaign?: JsonObject | undefined
  device?: { model?: string | undefined; type?: string | undefined; [key: string]: unknown } | undefined
  /** True if the call comes directly from the user's device, so that the service may set `ip` from the connection. */
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

/** Attributes of a user. The keys listed here are conventions; any other key is allowed. */
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

/** Attributes of a group. The keys listed here are conventions; any other key is allowed. */
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
  /** When the event happened, by the caller's clock. May be malformed: parse it with `parseTime`. */
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

export interface ScreenMessage extends Omit<PageMessage, 'type'> {
  type: 'screen'
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
