// The schema of a destination's settings: those common to all kinds of destinations, and those of its kind (destinations/). No error
// message here may quote a value, because it may be a secret.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { INTEGRATION_TIMEOUT_MS } from '../../api/configuration-export.ts'
import {
  array,
  boolean,
  type Infer,
  integer,
  invalidField,
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
import { type Destination, NO_FILTER } from '../../store/store.ts'
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

/** The longest timeout of an attempt, which is also the default. An integration may make several requests in one attempt. */
const MAX_TIMEOUT_MS = { webhook: 5_000, integration: INTEGRATION_TIMEOUT_MS }

function timeoutOf(type: Destination['type']) {
  const max = MAX_TIMEOUT_MS[type]
  return withDefault(
    integer({ min: 100, max, description: 'The timeout of one attempt, from connecting to the end of the response.' }),
    max,
  )
}

const COMMON = {
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
  batch: BATCH,
  ...RETRY_SETTINGS,
  deadLetter: withDefault(DEAD_LETTER, null),
  maxInFlight: withDefault(integer({ min: 1, max: 1_000, description: 'The maximum number of requests in flight.' }), 50),
  includeViolations: withDefault(
    boolean({
      description:
        'Whether a message that differs from the tracking plan of its source is sent with the list of violations, in `context.violations`.',
    }),
    false,
  ),
  historical: withDefault(
    boolean({ description: 'Whether to send historical messages, whose timestamp is more than 24 hours before they were received.' }),
    true,
  ),
  filter: FILTER,
  subscribe: withDefault(SUBSCRIBE, null),
}

export const NEW_DESTINATION_FIELDS = {
  webhook: { type: withDefault(oneOf(['webhook']), 'webhook'), ...COMMON, ...KINDS.webhook.settings, timeoutMs: timeoutOf('webhook') },
  integration: { type: oneOf(['integration']), ...COMMON, ...KINDS.integration.settings, timeoutMs: timeoutOf('integration') },
}
const SCHEMAS = { webhook: object(NEW_DESTINATION_FIELDS.webhook), integration: object(NEW_DESTINATION_FIELDS.integration) }

/** All settings of both kinds. In the JSON Schema, the descriptions say which kind needs a setting: a choice of two schemas is harder to read. */
const ALL_FIELDS = {
  ...NEW_DESTINATION_FIELDS.integration,
  ...NEW_DESTINATION_FIELDS.webhook,
  type: withDefault(
    oneOf(['webhook', 'integration'], {
      description:
        'A webhook needs `urls`, and an integration needs `integration`. Each refuses the settings of the other kind: `urls`, `headers`, `sharedSecret`, `signingSecrets`, `request`, `transformation`, `secrets`, `auth` and `tls` are for webhooks; `integration`, `settings` and `subscriptions` are for integrations.',
    }),
    'webhook',
  ),
  timeoutMs: withDefault(
    integer({
      min: 100,
      max: MAX_TIMEOUT_MS.integration,
      description:
        'The timeout of one attempt, from connecting to the end of the response. The default and maximum are 5000 for a webhook and 30000 for an integration.',
    }),
    MAX_TIMEOUT_MS.webhook,
  ),
  urls: optional(NEW_DESTINATION_FIELDS.webhook.urls),
  integration: optional(NEW_DESTINATION_FIELDS.integration.integration),
}

export const NEW_DESTINATION: Schema<NewDestinationInput> = {
  parse(value, path) {
    const type = typeof value === 'object' && value !== null && 'type' in value && value.type === 'integration' ? 'integration' : 'webhook'
    if (typeof value === 'object' && value !== null) {
      if ('type' in value && value.type !== undefined) ALL_FIELDS.type.parse(value.type, 'type')
      refuseOtherKind(type, value)
    }
    return SCHEMAS[type].parse(value, path)
  },
  toJsonSchema: () => object(ALL_FIELDS).toJsonSchema(),
}

export const DESTINATION_PATCH = object({
  ...patchOf(ALL_FIELDS),
  batch: optional(object(patchOf(BATCH_FIELDS))),
  retry: RETRY_PATCH,
  version: optional(VERSION_FIELD),
})

/** Throws if an update contains a setting of the other kind, or changes the kind. */
export function assertFits(type: Destination['type'], patch: DestinationPatch): void {
  if (patch.type !== undefined && patch.type !== type) throw invalidField('type', 'cannot be changed; create another destination')
  refuseOtherKind(type, patch)
  if (patch.timeoutMs !== undefined) NEW_DESTINATION_FIELDS[type].timeoutMs.parse(patch.timeoutMs, 'timeoutMs')
}

function refuseOtherKind(type: Destination['type'], given: object): void {
  const other = type === 'webhook' ? 'integration' : 'webhook'
  const field = Object.keys(given).find((name) => Object.hasOwn(KINDS[other].settings, name))
  if (field === undefined) return
  throw invalidField(
    field,
    type === 'webhook'
      ? 'is a setting of integrations, and this destination is a webhook'
      : 'is a setting of webhooks, and this destination is an integration',
  )
}

export const FILTER_VIEW = object(FILTER_FIELDS)
export const BATCH_VIEW = object(BATCH_FIELDS)

function namesOf<T extends string>(name: Schema<T>) {
  return withDefault(array(name, { max: MAX_FILTER_NAMES, identity: (text) => text }), [])
}

export type NewDestinationInput = Infer<typeof SCHEMAS.webhook> | Infer<typeof SCHEMAS.integration>
export type DestinationPatch = Infer<typeof DESTINATION_PATCH>
