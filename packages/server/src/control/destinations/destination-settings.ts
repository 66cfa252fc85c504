// The settings of a webhook destination: which values are taken, and why others are not. The one judge of URLs, headers
// and secrets at configuration; whether an address may be dialled is decided at the dial, by delivery. No sentence here
// may quote a value, which may be a secret.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { parseSigningSecret } from '@switchyard/webhook'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import { NO_FILTER } from '../../store/store.ts'
import { nameProblem } from '../name.ts'
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
  record,
  type Schema,
  string,
  withDefault,
} from '../schema.ts'

const KIB = 1024
const HOUR_MS = 3_600_000

const MAX_URL_LENGTH = 2_048
const MAX_HEADERS = 50
const MAX_HEADER_NAME_LENGTH = 128
const MAX_HEADER_VALUE_LENGTH = 4_096
/** Of all names and values. Servers commonly refuse more than 16 KB of headers, and Switchyard's own come on top. */
const MAX_HEADER_BYTES = 12 * KIB
const MAX_SHARED_SECRET_LENGTH = 1_024

/** What the integrations object of a message uses for all destinations: a destination of that name could not be told apart. */
const RESERVED_NAMES = new Set(['All', 'Webhooks'])

const REFUSED_HEADERS = new Set([
  // Switchyard's own
  'host',
  'content-length',
  'content-type',
  'user-agent',
  'x-signature',
  'x-attempt',
  'x-replay',
  'traceparent',
  'tracestate',
  // Of the connection, not of the message
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
])
const REFUSED_HEADER_PREFIXES = ['webhook-', 'proxy-']

/** RFC 9110, 5.6.2 */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export function urlProblem(text: string): string | null {
  // The URL parser drops or turns around what stands out of place (blanks, tabs, backslashes): what is kept must be what is dialled.
  if (!/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(text)) return 'must be a URL that begins with http:// or https://, without spaces'
  if (!URL.canParse(text)) return 'must be a valid URL'
  const url = new URL(text)
  if (text.includes(HIDDEN)) return 'must have its own query: what is in it only stands for it where it is not shown'
  if (text.includes('#')) return 'must not have a fragment (#…), which is never sent'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password; set an Authorization header instead'
  return null
}

export function headerNameProblem(name: string): string | null {
  if (name.length > MAX_HEADER_NAME_LENGTH) return `must have a name of at most ${MAX_HEADER_NAME_LENGTH} characters`
  if (!TOKEN.test(name)) return "must have a name of letters, digits and ! # $ % & ' * + - . ^ _ ` | ~"
  const lower = name.toLowerCase()
  if (REFUSED_HEADERS.has(lower) || REFUSED_HEADER_PREFIXES.some((prefix) => lower.startsWith(prefix))) {
    return 'is a header that Switchyard or the connection sets itself'
  }
  return null
}

function headersProblem(headers: Record<string, string>): string | null {
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  if (new Set(names).size < names.length) return 'must not name a header twice; upper and lower case are the same'
  const bytes = Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  return bytes > MAX_HEADER_BYTES ? `must have at most ${MAX_HEADER_BYTES} bytes of names and values in all` : null
}

function signingSecretProblem(secret: string): string | null {
  try {
    if (secret.startsWith('whsec_') && parseSigningSecret(secret).length > 0) return null
  } catch {
    // Told below, without the secret.
  }
  return 'must be whsec_ followed by base64'
}

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
    object(TYPE_NAMES, { description: 'By type; an empty allow lets every type through that deny does not name.' }),
    NO_FILTER.types,
  ),
  events: withDefault(object(EVENT_NAMES, { description: 'Of track messages, by exact event name, likewise.' }), NO_FILTER.events),
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
      RESERVED_NAMES.has(name) ? 'must not be All or Webhooks, which an integrations object uses for every destination' : nameProblem(name),
  }),
  enabled: withDefault(boolean({ description: 'While false, nothing new is owed and what is owed is held.' }), true),
  paused: withDefault(
    boolean({ description: 'While true, messages are owed to it as ever and nothing is sent; all of it goes out when it is false again.' }),
    false,
  ),
  sourceIds: withDefault(
    array(string({ min: 1, max: 100 }), { max: 1_000, identity: (id) => id, description: 'Whose messages it gets.' }),
    [],
  ),
  urls: array(string({ max: MAX_URL_LENGTH, format: 'uri', check: urlProblem }), {
    min: 1,
    max: 5,
    identity: (url) => new URL(url).href,
    description: 'Each message is posted to all of them at once; one success is enough.',
  }),
  headers: withDefault(
    record(
      string({
        max: MAX_HEADER_VALUE_LENGTH,
        check: (value) => {
          if (value === HIDDEN) return 'must have a value: this one only stands for it where it is not shown'
          return /^[\t\x20-\x7e]*$/.test(value) ? null : 'must have a value of visible ASCII characters, spaces and tabs'
        },
      }),
      { max: MAX_HEADERS, name: headerNameProblem, whole: headersProblem, description: 'Added to every request.' },
    ),
    {},
  ),
  sharedSecret: withDefault(
    nullable(string({ min: 1, max: MAX_SHARED_SECRET_LENGTH, writeOnly: true, description: 'Key of X-Signature; null for none.' })),
    null,
  ),
  signingSecrets: withDefault(
    array(string({ max: 200, check: signingSecretProblem }), {
      max: 2,
      writeOnly: true,
      identity: (secret) => secret,
      description: 'Keys of Standard Webhooks signatures, whsec_…; two while one is being replaced.',
    }),
    [],
  ),
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
