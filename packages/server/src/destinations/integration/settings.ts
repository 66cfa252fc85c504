// The fields of an integration in requests and responses, in addition to those that every destination has. What its settings and mappings may contain
// is in its definition: check-settings.ts and subscriptions.ts.

import type { JsonObject } from '@switchyard/protocol'
import { anyObject, array, boolean, invalidField, nullable, object, optional, type Schema, string, withDefault } from '../../api/schema.ts'
import type { GivenSettings } from '../port/kind.ts'
import { MAX_EXPRESSION } from '../subscribe/parse-subscribe.ts'
import { type GivenSubscription, MAX_SUBSCRIPTIONS } from './subscriptions.ts'

/** The settings of an integration in a request. */
export type GivenIntegration = GivenSettings & {
  type?: 'integration'
  /** The slug. */
  integration?: string | undefined
  settings?: Readonly<JsonObject> | undefined
  subscriptions?: readonly GivenSubscription[] | undefined
}

/** An integration may make several requests in one attempt. */
export const MAX_INTEGRATION_TIMEOUT_MS = 30_000

const MAX_SETTINGS_LENGTH = 64 * 1024

const SETTINGS: Schema<JsonObject> = {
  parse(value, path) {
    anyObject().parse(value, path)
    const text = JSON.stringify(value)
    if (text.length > MAX_SETTINGS_LENGTH) throw invalidField(path, `must be at most ${MAX_SETTINGS_LENGTH} characters of JSON`)
    if (/\p{Surrogate}/u.test(text) || /\\ud[89a-f]/i.test(text.replaceAll('\\\\', '')))
      throw invalidField(path, 'must be valid Unicode, without unpaired surrogates')
    return value as JsonObject
  },
  toJsonSchema: () => ({
    type: 'object',
    additionalProperties: true,
    description:
      'The settings of the integration, such as an API key; GET /api/catalog/{slug} lists them. Encrypted in the store. Secrets are never shown. An update changes only the settings that it contains, and null removes one.',
  }),
}

const NAME = string({ min: 1, max: 200, description: 'The display name, unique in the destination; defaults to the name of the action.' })
const MAPPING = anyObject({
  description:
    'The fields of the action, in the language of Segment’s mapping kit, such as `{ "userId": { "@path": "$.userId" } }`; defaults to the default values of the fields.',
}) as Schema<JsonObject>
const SYNC_MODE = nullable(
  string({
    min: 1,
    max: 100,
    description:
      'How the action changes records of the tool, such as `upsert`; GET /api/catalog/{slug} lists the choices. null if the action has no sync modes. Defaults to the current one of the subscription, or to that of the action.',
  }),
)
const SUBSCRIPTION_FIELDS = {
  action: string({ min: 1, max: 200, description: 'The action to run, by its slug.' }),
  subscribe: string({
    min: 1,
    max: MAX_EXPRESSION,
    description: 'The expression that a message must match, such as `type = "track"`.',
  }),
  enabled: withDefault(boolean(), true),
}

export const INTEGRATION_SETTINGS = {
  integration: string({ min: 1, max: 200, description: 'The slug of the integration in the catalogue. It cannot be changed later.' }),
  settings: withDefault(SETTINGS, {}),
  subscriptions: optional(
    array(
      object({
        id: optional(
          string({ min: 1, max: 100, description: 'Assigned by the service. In an update, it identifies the subscription to change.' }),
        ),
        name: optional(NAME),
        ...SUBSCRIPTION_FIELDS,
        mapping: optional(MAPPING),
        syncMode: optional(SYNC_MODE),
      }),
      {
        max: MAX_SUBSCRIPTIONS,
        description:
          'Which actions run for which messages. A new integration gets the automatic presets by default. An update replaces the whole list.',
      },
    ),
  ),
}

export const SHOWN_SUBSCRIPTIONS = array(
  object(
    { id: string(), name: NAME, ...SUBSCRIPTION_FIELDS, enabled: boolean(), mapping: MAPPING, syncMode: SYNC_MODE },
    { title: 'Subscription' },
  ),
  {
    description:
      'Which actions run for which messages. For a viewer, constants that may be credentials, such as URLs, are replaced by (hidden).',
  },
)

export const SHOWN_INTEGRATION_SETTINGS = {
  integration: string({ description: 'The slug of the integration in the catalogue.' }),
  integrationName: string({
    description: 'The name of the integration in the catalogue, by which the `integrations` object of a message may refer to it.',
  }),
  integrationTitle: string({ description: 'The name of the tool, as the dashboard shows it.' }),
  integrationAliases: array(string(), {
    description:
      'Other names that Segment has published for the integration. The `integrations` object of a message may use them, like `integrationName` and `aliases`.',
  }),
  settings: anyObject({
    description: 'The settings that are not secret. For a viewer, values that may be credentials are replaced by (hidden).',
  }),
  secretSettings: array(string(), { description: 'The names of the secret settings that have a value.' }),
  subscriptions: SHOWN_SUBSCRIPTIONS,
}
