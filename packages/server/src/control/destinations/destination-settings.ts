// The schema of a destination's settings: those common to all kinds of destinations, and those of its kind (destinations/). No error
// message here may quote a value, because it may be a secret.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import {
  array,
  boolean,
  type Infer,
  integer,
  nullable,
  object,
  oneOf,
  optional,
  patchOf,
  type Schema,
  string,
  withDefault,
} from '../../api/schema.ts'
import { KINDS } from '../../destinations/kinds.ts'
import { MAX_EXPRESSION, subscribeProblem } from '../../destinations/subscribe/parse-subscribe.ts'
import { NO_FILTER } from '../../store/store.ts'
import { nameProblem } from '../name.ts'
import { DEAD_LETTER } from './dead-letter-setting.ts'
import { RETRY_PATCH, RETRY_SETTINGS } from './retry-settings.ts'
import { VERSION_FIELD } from './versions.ts'

const KIB = 1024

/** In the integrations object of a message, these names stand for all destinations, so no destination can have one of them. */
const RESERVED_NAMES = new Set(['All', 'Webhooks'])

const BATCH_FIELDS = {
  size: integer({ min: 1, max: 1_000, description: 'The maximum number of messages in one request. 1 turns batching off.' }),
  bytes: integer({
    min: 1,
    max: 5 * KIB * KIB,
    description: 'The maximum size of a request body in bytes. A single message that is larger is sent alone.',
  }),
  lingerMs: integer({ min: 0, max: 60_000, description: 'How long a batch that is not full waits for more messages, in milliseconds.' }),
}
const BATCH_DEFAULTS = { size: 1, bytes: 512_000, lingerMs: 1_000 }

const BATCH = withDefault(
  object({
    size: withDefault(BATCH_FIELDS.size, BATCH_DEFAULTS.size),
    bytes: withDefault(BATCH_FIELDS.bytes, BATCH_DEFAULTS.bytes),
    lingerMs: withDefault(BATCH_FIELDS.lingerMs, BATCH_DEFAULTS.lingerMs),
  }),
  BATCH_DEFAULTS,
)

const MAX_FILTER_NAMES = 1_000
const TYPE_NAMES = { allow: namesOf(oneOf(MESSAGE_TYPES)), deny: namesOf(oneOf(MESSAGE_TYPES)) }
const EVENT_NAMES = { allow: namesOf(string({ min: 1, max: 1_000 })), deny: namesOf(string({ min: 1, max: 1_000 })) }
const FILTER_FIELDS = {
  types: withDefault(
    object(TYPE_NAMES, {
      description: 'Filters messages by type. A type in `deny` is never sent. If `allow` is not empty, only the types in it are sent.',
    }),
    NO_FILTER.types,
  ),
  events: withDefault(
    object(EVENT_NAMES, { description: 'Filters track messages by exact event name. The same rules apply as for `types`.' }),
    NO_FILTER.events,
  ),
}
const FILTER = withDefault(
  object(FILTER_FIELDS, { description: 'Which messages are sent to the destination. An update replaces the whole filter.' }),
  NO_FILTER,
)

export const SUBSCRIBE = nullable(
  string({
    min: 1,
    max: MAX_EXPRESSION,
    description:
      'An expression that a message must match to be sent, such as `type = "track" and properties.total > 100`. It must also pass the filter. Null to send every message that passes the filter.',
    check: subscribeProblem,
  }),
)

const FIELDS = {
  type: withDefault(oneOf(['webhook']), 'webhook'),
  name: string({
    min: 1,
    max: 100,
    description:
      'The display name. The `integrations` object of a message refers to the destination by this name, and to all webhooks as `Webhooks`.',
    check: (name) =>
      RESERVED_NAMES.has(name)
        ? 'must not be All or Webhooks: in the integrations object of a message, these names stand for all destinations'
        : nameProblem(name),
  }),
  enabled: withDefault(
    boolean({
      description: 'If false, new messages are not sent to the destination, and its pending deliveries wait until it is enabled again.',
    }),
    true,
  ),
  paused: withDefault(
    boolean({ description: 'If true, nothing is sent. New messages stay pending and are sent when the destination is resumed.' }),
    false,
  ),
  sourceIds: withDefault(
    array(string({ min: 1, max: 100 }), {
      max: 1_000,
      identity: (id) => id,
      description: 'The sources whose messages are sent to the destination.',
    }),
    [],
  ),
  ...KINDS.webhook.settings,
  batch: BATCH,
  timeoutMs: withDefault(
    integer({ min: 100, max: 5_000, description: 'The timeout of one attempt, from connecting to the end of the response.' }),
    5_000,
  ),
  ...RETRY_SETTINGS,
  deadLetter: withDefault(DEAD_LETTER, null),
  maxInFlight: withDefault(integer({ min: 1, max: 1_000, description: 'The maximum number of requests in flight.' }), 50),
  historical: withDefault(
    boolean({ description: 'Whether to send historical messages, whose timestamp is more than 24 hours before they were received.' }),
    true,
  ),
  filter: FILTER,
  subscribe: withDefault(SUBSCRIBE, null),
}

export const NEW_DESTINATION = object(FIELDS)
export const DESTINATION_PATCH = object({
  ...patchOf(FIELDS),
  batch: optional(object(patchOf(BATCH_FIELDS))),
  retry: RETRY_PATCH,
  version: optional(VERSION_FIELD),
})
export const FILTER_VIEW = object(FILTER_FIELDS)
export const BATCH_VIEW = object(BATCH_FIELDS)

function namesOf<T extends string>(name: Schema<T>) {
  return withDefault(array(name, { max: MAX_FILTER_NAMES, identity: (text) => text }), [])
}

export type NewDestinationInput = Infer<typeof NEW_DESTINATION>
export type DestinationPatch = Infer<typeof DESTINATION_PATCH>
