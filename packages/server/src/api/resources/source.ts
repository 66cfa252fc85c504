// A source, described once: an application or website that sends messages.

import { array, boolean, invalidField, nullable, object, oneOf, optional, type Schema, string, time, withDefault } from '../schema.ts'
import { displayName, ORIGIN, urlSafeId } from './names.ts'
import { MAX_PATH_LENGTH, PRIVACY_ACTIONS, type PrivacyRule, ruleProblem } from './privacy-path.ts'
import { addedLater, readOnly, resource, type Stored } from './resource.ts'

export const MAX_WRITE_KEYS = 100
const MAX_RULES = 100

export const WRITE_KEY = urlSafeId('A write key.')
const writeKeys = (description: string) => array(WRITE_KEY, { min: 1, max: MAX_WRITE_KEYS, identity: (key) => key, description })

const RULE_FIELDS = object(
  {
    path: string({
      min: 1,
      max: MAX_PATH_LENGTH,
      description:
        'The path of the values in a message, such as `traits.email`. `*` stands for all elements of an array and all keys of an object. A backslash makes a dot, star or backslash part of a key.',
    }),
    action: oneOf(PRIVACY_ACTIONS, {
      description:
        '`drop` removes the value. `hash` replaces it with its HMAC-SHA-256 in lowercase hex, with a key of the source. `mask` keeps the first and the last character and replaces each one between them with `*`.',
    }),
  },
  { title: 'PrivacyRule' },
)
const RULE: Schema<PrivacyRule> = {
  ...RULE_FIELDS,
  parse(value, path) {
    const rule = RULE_FIELDS.parse(value, path)
    const found = ruleProblem(rule)
    if (found !== null) throw invalidField(`${path}.${found.field}`, found.problem)
    return rule
  },
}
export const PRIVACY = array(RULE, {
  max: MAX_RULES,
  identity: ({ path }) => path,
  description:
    'The privacy rules: which values are dropped, hashed or masked before a message is stored. The rules are applied in this order. They do not change stored messages.',
})

export const SOURCE = resource(
  {
    id: readOnly(string()),
    name: displayName(),
    description: addedLater(withDefault(nullable(string({ max: 500, description: 'What the source is for.' })), null)),
    enabled: withDefault(boolean({ description: 'Whether messages with a write key of the source are accepted.' }), true),
    requireOAuth: withDefault(boolean({ description: 'Whether requests need an access token in addition to the write key.' }), false),
    writeKeys: {
      create: optional(writeKeys('The write keys. If left out, one is generated.')),
      patch: writeKeys('The new write keys. They replace all existing ones.'),
      view: array(string(), {
        description:
          'The write keys with which senders identify the source. Viewers, who cannot send, get only the last characters of each key, after `…`.',
      }),
    },
    origin: addedLater(withDefault(nullable(ORIGIN), null)),
    privacy: addedLater({ create: withDefault(PRIVACY, []), patch: nullable(PRIVACY), view: PRIVACY }),
    builtIn: addedLater(
      readOnly(
        withDefault(
          boolean({
            description:
              'Whether this is the source `system`, whose messages the service makes itself. It has no write keys and cannot be changed or deleted.',
          }),
          false,
        ),
      ),
    ),
    createdAt: readOnly(time()),
  },
  { title: 'Source', description: 'An application or website that sends messages.' },
)

export type Source = Stored<typeof SOURCE>
