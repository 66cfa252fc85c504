// The settings of a destination: those that every kind has, and those of its kind (destinations/). No error message here may quote a
// value, because it may be a secret.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import {
  array,
  boolean,
  type Infer,
  integer,
  object,
  oneOf,
  optional,
  patchOf,
  type Schema,
  string,
  withDefault,
} from '../../api/schema.ts'
import { KINDS } from '../../destinations/kinds.ts'
import { NO_FILTER } from '../../store/store.ts'
import { nameProblem } from '../name.ts'

const KIB = 1024
const HOUR_MS = 3_600_000

/** What the integrations object of a message uses for all destinations: a destination of that name could not be told apart. */
const RESERVED_NAMES = new Set(['All', 'Webhooks'])

const BATCH_FIELDS = {
  size: integer({ min: 1, max: 1_000, description: 'Most messages in one request; 1 means off, one message each.' }),
  bytes: integer({ min: 1, max: 5 * KIB * KIB, description: 'Most bytes of a request body; a single larger message goes alone.' }),
  lingerMs: integer({ min: 0, max: 60_000, description: 'How long a batch that is not full waits for more.' }),
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
    object(TYPE_NAMES, { description: 'Filters by type. If allow is empty, every type passes that deny does not list.' }),
    NO_FILTER.types,
  ),
  events: withDefault(
    object(EVENT_NAMES, { description: 'Filters track messages by exact event name, in the same way.' }),
    NO_FILTER.events,
  ),
}
const FILTER = withDefault(
  object(FILTER_FIELDS, { description: 'Which messages it is sent. A change replaces the whole filter.' }),
  NO_FILTER,
)

const FIELDS = {
  type: withDefault(oneOf(['webhook']), 'webhook'),
  name: string({
    min: 1,
    max: 100,
    description: 'For people, and the key that a message’s integrations object may name it by (as well as Webhooks).',
    check: (name) =>
      RESERVED_NAMES.has(name)
        ? 'must not be All or Webhooks: in the integrations object of a message, these names stand for all destinations'
        : nameProblem(name),
  }),
  enabled: withDefault(boolean({ description: 'While false, nothing new is owed and what is owed is held.' }), true),
  paused: withDefault(
    boolean({ description: 'While true, nothing is sent. New messages are kept for the destination and sent when this is false again.' }),
    false,
  ),
  sourceIds: withDefault(
    array(string({ min: 1, max: 100 }), {
      max: 1_000,
      identity: (id) => id,
      description: 'The sources whose messages the destination gets.',
    }),
    [],
  ),
  ...KINDS.webhook.settings,
  batch: BATCH,
  timeoutMs: withDefault(integer({ min: 100, max: 5_000, description: 'For one attempt, from dialling to the end of the answer.' }), 5_000),
  retryWindowMs: withDefault(
    integer({ min: 1_000, max: 4 * HOUR_MS, description: 'How long retries go on, from the first attempt.' }),
    4 * HOUR_MS,
  ),
  maxInFlight: withDefault(integer({ min: 1, max: 1_000, description: 'Most requests under way at once.' }), 50),
  historical: withDefault(
    boolean({ description: 'Whether messages are sent that happened more than 24 h before they were received.' }),
    true,
  ),
  filter: FILTER,
}

export const NEW_DESTINATION = object(FIELDS)
export const DESTINATION_PATCH = object({ ...patchOf(FIELDS), batch: optional(object(patchOf(BATCH_FIELDS))) })
export const FILTER_VIEW = object(FILTER_FIELDS)
export const BATCH_VIEW = object(BATCH_FIELDS)

function namesOf<T extends string>(name: Schema<T>) {
  return withDefault(array(name, { max: MAX_FILTER_NAMES, identity: (text) => text }), [])
}

export type NewDestinationInput = Infer<typeof NEW_DESTINATION>
export type DestinationPatch = Infer<typeof DESTINATION_PATCH>
