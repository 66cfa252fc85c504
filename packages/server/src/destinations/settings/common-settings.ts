// The settings that all destinations have, described once. Each kind adds its own. The control API and the command line read this description. No
// error message here may quote a value, because it may be a secret.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { nameProblem, ORIGIN } from '../../api/resources/names.ts'
import { addedLater, readOnly, resource } from '../../api/resources/resource.ts'
import { array, boolean, integer, nullable, object, oneOf, patchOf, type Schema, string, time, withDefault } from '../../api/schema.ts'
import { NO_FILTER } from '../../model/configuration.ts'
import { MAX_EXPRESSION, subscribeProblem } from '../subscribe/parse-subscribe.ts'
import { CONDITIONAL_FILTERS } from './conditional-filter-settings.ts'
import { ORDER_SETTING } from './order-settings.ts'
import { RETRY_SETTINGS } from './retry-settings.ts'

const KIB = 1024

/** In the integrations object of a message, these names stand for all destinations, so no destination can have one of them. */
export const RESERVED_NAMES = new Set(['All', 'Webhooks'])

const BATCH_FIELDS = {
  size: integer({
    min: 1,
    max: 5_000,
    description: 'The maximum number of messages in one request, for a webhook at most 1,000. 1 turns batching off.',
  }),
  bytes: integer({
    min: 1,
    max: 5 * KIB * KIB,
    description: 'The maximum size of a request body in bytes. A single message that is larger is sent alone.',
  }),
  lingerMs: integer({ min: 0, max: 60_000, description: 'How long a batch that is not full waits for more messages.' }),
}
const BATCH_DEFAULTS = { size: 1, bytes: 512_000, lingerMs: 1_000 }

const BATCH = {
  create: withDefault(
    object({
      size: withDefault(BATCH_FIELDS.size, BATCH_DEFAULTS.size),
      bytes: withDefault(BATCH_FIELDS.bytes, BATCH_DEFAULTS.bytes),
      lingerMs: withDefault(BATCH_FIELDS.lingerMs, BATCH_DEFAULTS.lingerMs),
    }),
    BATCH_DEFAULTS,
  ),
  patch: object(patchOf(BATCH_FIELDS)),
  view: object(BATCH_FIELDS),
}

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

const MAX_ALIASES = 100

function aliasProblem(alias: string): string | null {
  return alias.toLowerCase() === 'all'
    ? 'must not be All: in the integrations object of a message, this name stands for all destinations'
    : nameProblem(alias)
}

/** What all destinations have, of whatever kind. The timeout is missing: its limits depend on the kind. */
export const COMMON_SETTINGS = resource(
  {
    id: readOnly(string()),
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
    aliases: addedLater(
      withDefault(
        array(string({ min: 1, max: 200, check: aliasProblem }), {
          max: MAX_ALIASES,
          identity: (alias) => alias,
          description:
            'More names by which the `integrations` object of a message may refer to the destination, such as the name that it had in another system. If one of them is false there, the message is not sent, unless the name of the destination is true. An update replaces the whole list.',
        }),
        [],
      ),
    ),
    origin: addedLater(withDefault(nullable(ORIGIN), null)),
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
    deadLetter: withDefault(
      nullable(
        string({
          min: 1,
          max: 100,
          description:
            'The id of the dead-letter destination. For each delivery that fails or expires, a message of the type `dead_letter`, which contains the original message, is sent there. Null for none.',
        }),
      ),
      null,
    ),
    maxInFlight: withDefault(
      integer({
        min: 1,
        max: 1_000,
        description: 'The maximum number of requests in flight. Of emails, at most 20 are in flight, even if it is larger.',
      }),
      50,
    ),
    order: addedLater(ORDER_SETTING),
    includeViolations: addedLater(
      withDefault(
        boolean({
          description:
            'Whether a message that differs from the tracking plan of its source is sent with the list of violations, in `context.violations`.',
        }),
        false,
      ),
    ),
    historical: withDefault(
      boolean({ description: 'Whether to send historical messages, whose timestamp is more than 24 hours before they were received.' }),
      true,
    ),
    filter: withDefault(
      object(FILTER_FIELDS, { description: 'Which messages are sent to the destination. An update replaces the whole filter.' }),
      NO_FILTER,
    ),
    conditionalFilters: addedLater(withDefault(CONDITIONAL_FILTERS, [])),
    subscribe: withDefault(
      nullable(
        string({
          min: 1,
          max: MAX_EXPRESSION,
          description:
            'An expression that a message must match to be sent, such as `type = "track" and properties.total > 100`. It must also pass the filter. Null to send every message that passes the filter.',
          check: subscribeProblem,
        }),
      ),
      null,
    ),
    version: readOnly(
      integer({
        description:
          'The number of the current version of `request` and `transformation`, or of `subscriptions`. Each change of one of them creates a new version.',
      }),
    ),
    createdAt: readOnly(time()),
  },
  { title: 'Destination', description: 'A webhook or an integration that messages are sent to.' },
)

function namesOf<T extends string>(name: Schema<T>) {
  return withDefault(array(name, { max: MAX_FILTER_NAMES, identity: (text) => text }), [])
}
