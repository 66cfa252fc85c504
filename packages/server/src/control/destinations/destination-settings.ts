// The schema of a destination's settings: those common to all kinds of destinations, and those of its kind (destinations/). No error
// message here may quote a value, because it may be a secret.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { listed } from '../../api/listed.ts'
import { nameProblem } from '../../api/resources/names.ts'
import {
  array,
  boolean,
  type Fields,
  type Infer,
  integer,
  invalidField,
  nullable,
  type ObjectOf,
  object,
  oneOf,
  optional,
  patchOf,
  type Schema,
  string,
  withDefault,
} from '../../api/schema.ts'
import { KINDS } from '../../destinations/kinds.ts'
import type { DestinationKind } from '../../destinations/port/kind.ts'
import { MAX_EXPRESSION, subscribeProblem } from '../../destinations/subscribe/parse-subscribe.ts'
import { type DestinationType, NO_FILTER } from '../../store/store.ts'
import { DEAD_LETTER } from './dead-letter-setting.ts'
import { RETRY_PATCH, RETRY_SETTINGS } from './retry-settings.ts'
import { VERSION_FIELD } from './versions.ts'

const KIB = 1024

/** In the integrations object of a message, these names stand for all destinations, so no destination can have one of them. */
export const RESERVED_NAMES = new Set(['All', 'Webhooks'])

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

const TIMEOUT = 'The timeout of one attempt, from connecting to the end of the response.'

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

const TYPES = Object.keys(KINDS) as DestinationType[]
/** The type of a destination whose request gives none. */
const DEFAULT_TYPE = 'webhook'

function typeField(type: DestinationType): Schema<DestinationType> {
  return type === DEFAULT_TYPE ? withDefault(oneOf([type]), type) : oneOf([type])
}

export function newDestinationFields(type: DestinationType) {
  const { settings, maxTimeoutMs } = KINDS[type]
  const timeoutMs = withDefault(integer({ min: 100, max: maxTimeoutMs, description: TIMEOUT }), maxTimeoutMs)
  return { type: typeField(type), ...COMMON, ...settings, timeoutMs }
}

const SCHEMAS = new Map(TYPES.map((type) => [type, object(newDestinationFields(type))] as const))

function schemaOf(type: DestinationType): Schema<NewDestinationInput> {
  return SCHEMAS.get(type) as Schema<NewDestinationInput>
}

/** The settings that a destination of the kind must be given, in addition to its name. */
function required({ settings }: DestinationKind): string[] {
  return Object.entries(settings).flatMap(([name, schema]) => ('optional' in schema || 'fallback' in schema ? [] : [name]))
}

const names = (fields: readonly string[]): string => listed(fields.map((name) => `\`${name}\``))
const kinds = Object.values(KINDS)
const neededText = listed(
  kinds.map((kind) => `${kind.noun.one} needs ${names(required(kind))}`),
  ', and ',
)
const ownText = kinds.map(({ noun, settings }) => `${names(Object.keys(settings))} are for ${noun.many}`).join('; ')
const timeoutText = listed(kinds.map(({ noun, maxTimeoutMs }) => `${maxTimeoutMs} for ${noun.one}`))

/** The settings of kinds, without those that all have. Each is optional, because a destination of another kind does not have it. */
function ownFields(some: readonly DestinationKind[]): Fields {
  const fields = some.flatMap((kind) => {
    const needed = new Set(required(kind))
    return Object.entries(kind.settings).map(([name, schema]) => [name, needed.has(name) ? optional(schema) : schema] as const)
  })
  return Object.fromEntries(fields)
}

/** All settings of all kinds. In the JSON Schema, the descriptions say which kind needs a setting: a choice of several schemas is harder to read. */
const ALL_FIELDS = {
  type: withDefault(
    oneOf(TYPES, {
      description: `${neededText.charAt(0).toUpperCase()}${neededText.slice(1)}. Each refuses the settings of the other kinds: ${ownText}.`,
    }),
    DEFAULT_TYPE,
  ),
  ...COMMON,
  ...ownFields(kinds.filter(({ type }) => type !== DEFAULT_TYPE)),
  timeoutMs: withDefault(
    integer({
      min: 100,
      max: Math.max(...kinds.map(({ maxTimeoutMs }) => maxTimeoutMs)),
      description: `${TIMEOUT} The default and maximum are ${timeoutText}.`,
    }),
    KINDS[DEFAULT_TYPE].maxTimeoutMs,
  ),
  ...ownFields([KINDS[DEFAULT_TYPE]]),
}

export const NEW_DESTINATION: Schema<NewDestinationInput> = {
  parse(value, path) {
    if (typeof value !== 'object' || value === null) return schemaOf(DEFAULT_TYPE).parse(value, path)
    const type = 'type' in value && value.type !== undefined ? ALL_FIELDS.type.parse(value.type, 'type') : DEFAULT_TYPE
    refuseOtherKinds(type, value)
    return schemaOf(type).parse(value, path)
  },
  toJsonSchema: () => object(ALL_FIELDS).toJsonSchema(),
}

export const DESTINATION_PATCH = object({
  ...patchOf(ALL_FIELDS),
  batch: optional(object(patchOf(BATCH_FIELDS))),
  retry: RETRY_PATCH,
  version: optional(VERSION_FIELD),
})

/** Throws if an update contains a setting of another kind, or changes the kind. */
export function assertFits(type: DestinationType, patch: DestinationPatch): void {
  if (patch.type !== undefined && patch.type !== type) throw invalidField('type', 'cannot be changed; create another destination')
  refuseOtherKinds(type, patch)
  if (patch.timeoutMs !== undefined) newDestinationFields(type).timeoutMs.parse(patch.timeoutMs, 'timeoutMs')
}

function refuseOtherKinds(type: DestinationType, given: object): void {
  for (const field of Object.keys(given)) {
    if (Object.hasOwn(KINDS[type].settings, field)) continue
    const other = kinds.find(({ settings }) => Object.hasOwn(settings, field))
    if (other !== undefined)
      throw invalidField(field, `is a setting of ${other.noun.many}, and this destination is ${KINDS[type].noun.one}`)
  }
}

export const FILTER_VIEW = object(FILTER_FIELDS)
export const BATCH_VIEW = object(BATCH_FIELDS)

function namesOf<T extends string>(name: Schema<T>) {
  return withDefault(array(name, { max: MAX_FILTER_NAMES, identity: (text) => text }), [])
}

/** The settings of its kind are not listed here: the kind reads them. */
export type NewDestinationInput = ObjectOf<typeof COMMON> & { type: DestinationType; timeoutMs: number }
export type DestinationPatch = Partial<Infer<typeof DESTINATION_PATCH>>
