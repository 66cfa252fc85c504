// The operations of the tracking API. The stage that serves it (ingest/) writes directly to the socket and has no schemas, so the API is
// described here by hand; e2e/control/api-description.test.ts compares this description with the service.

import { MAX_BATCH_MESSAGES, MAX_MESSAGE_ID_LENGTH, MESSAGE_TYPES, type MessageType, type RefusalCode } from '@switchyard/protocol'
import { WARNINGS } from '../../api/message-warnings.ts'
import type { JsonSchema } from '../../api/schema.ts'
import type { ApiErrorCode } from '../../errors.ts'
import { type Answer, getOperation, type Operation, objectSchema, type Parameter } from './operation.ts'
import { TRACKING } from './tags.ts'

interface Call {
  short: string
  summary: string
  fields: Readonly<Record<string, JsonSchema>>
  required: readonly string[]
  errors: readonly RefusalCode[]
  example: object
}

const text = (description: string): JsonSchema => ({ type: ['string', 'null'], description })
const anything = (description: string): JsonSchema => ({ type: ['object', 'null'], additionalProperties: true, description })

const CONTEXT = anything(
  'Information about the context of the call, such as `ip`, `userAgent`, `page`, `campaign` and `library`. With `direct: true`, the service sets `ip` to the address of the sender.',
)
const INTEGRATIONS = anything(
  'Turns destinations on or off by name: `true` or `false`. `Webhooks` stands for every webhook, `All` (or `all`) for all destinations that are not named.',
)
const WRITE_KEY = { type: 'string', description: 'A write key of the source, instead of Basic authentication.' }
const COMMON_FIELDS = {
  userId: text('The id of the user in your database.'),
  anonymousId: text('An id for a user that you do not know yet. Either `userId` or `anonymousId` is required, except for `alias`.'),
  messageId: {
    type: ['string', 'null'],
    minLength: 1,
    maxLength: MAX_MESSAGE_ID_LENGTH,
    description:
      'The id of the message, which is used to drop duplicates: a source accepts each messageId only once within 24 hours. Generated if left out.',
  },
  timestamp: text(
    'When the event happened, in ISO 8601. Defaults to the time of receipt. A message more than 24 hours old counts as historical.',
  ),
  context: CONTEXT,
  integrations: INTEGRATIONS,
}
const COMMON_ERRORS: readonly RefusalCode[] = ['message_id_invalid', 'id_not_string', 'context_not_object', 'integrations_not_object']
const PROPERTIES = anything('Free-form properties of the event.')

const CALLS: Readonly<Record<MessageType, Call>> = {
  identify: {
    short: 'i',
    summary: 'Identify a user, with their traits',
    fields: { traits: anything('What you know about the user, such as `name` and `email`.') },
    required: [],
    errors: ['no_user_anon_id', 'traits_not_object'],
    example: { userId: 'u-1', traits: { name: 'Ada', email: 'ada@example.com' } },
  },
  track: {
    short: 't',
    summary: 'Track an event: something that a user did',
    fields: { event: { type: 'string', minLength: 1, description: 'The name of the event.' }, properties: PROPERTIES },
    required: ['event'],
    errors: ['no_user_anon_id', 'event_required', 'properties_not_object'],
    example: { userId: 'u-1', event: 'Order Completed', properties: { total: 49.9 } },
  },
  page: {
    short: 'p',
    summary: 'Record a page view',
    fields: { name: text('The name of the page.'), category: text('The category of the page.'), properties: PROPERTIES },
    required: [],
    errors: ['no_user_anon_id', 'name_not_string', 'category_not_string', 'properties_not_object'],
    example: { anonymousId: 'a-1', name: 'Pricing', properties: { path: '/pricing' } },
  },
  screen: {
    short: 's',
    summary: 'Record a screen view in an app',
    fields: { name: text('The name of the screen.'), category: text('The category of the screen.'), properties: PROPERTIES },
    required: [],
    errors: ['no_user_anon_id', 'name_not_string', 'category_not_string', 'properties_not_object'],
    example: { userId: 'u-1', name: 'Welcome' },
  },
  group: {
    short: 'g',
    summary: 'Associate a user with a group',
    fields: {
      groupId: { type: 'string', minLength: 1, description: 'The id of the group in your database.' },
      traits: anything('What you know about the group.'),
    },
    required: ['groupId'],
    errors: ['no_user_anon_id', 'group_id_required', 'traits_not_object'],
    example: { userId: 'u-1', groupId: 'g-7', traits: { name: 'Analytical Engines' } },
  },
  alias: {
    short: 'a',
    summary: 'Merge two ids of one user',
    fields: {
      userId: { type: 'string', minLength: 1, description: 'The new id of the user.' },
      previousId: { type: 'string', minLength: 1, description: 'The former id of the user.' },
    },
    required: ['userId', 'previousId'],
    errors: ['user_id_required', 'previous_id_required'],
    example: { userId: 'u-1', previousId: 'a-1' },
  },
}

export const REQUEST_ERRORS: readonly ApiErrorCode[] = [
  'invalid_json',
  'invalid_request',
  'message_too_large',
  'invalid_write_key',
  'oauth_required',
  'invalid_access_token',
  'source_not_allowed',
  'source_disabled',
  'request_timeout',
  'unsupported_encoding',
  'rate_limited',
  'overloaded',
  'store_unavailable',
  'internal_error',
]
/** Only of requests with a batch. */
export const BATCH_ERRORS: readonly ApiErrorCode[] = ['batch_too_large', 'too_many_messages']
const MESSAGE_ERRORS = [...new Set([...COMMON_ERRORS, ...Object.values(CALLS).flatMap(({ errors }) => errors)])]

const WARNING: JsonSchema = {
  title: 'MessageWarning',
  type: 'object',
  properties: {
    index: { type: ['integer', 'null'], description: 'The index of the message in the batch; null if the field belongs to the batch.' },
    messageId: { type: ['string', 'null'] },
    code: { type: 'string', enum: Object.keys(WARNINGS) },
    field: { type: 'string' },
    message: { type: 'string' },
  },
  required: ['index', 'messageId', 'code', 'field', 'message'],
}
const WARNING_LIST: JsonSchema = {
  type: 'array',
  items: WARNING,
  maxItems: 10,
  description:
    'Accepted messages with a value that was ignored or is probably wrong, such as a timestamp that is not valid. Present only if there are any. The first ten are listed; GET /api/stats counts all.',
}
const SUCCESS = objectSchema('Accepted', { success: { type: 'boolean', const: true }, warnings: WARNING_LIST }, ['success'])
const ACCEPTED: Answer = {
  status: 200,
  description: 'The message is stored durably and will be delivered.',
  type: 'application/json',
  schema: SUCCESS,
  example: { success: true },
}
const REJECTED: JsonSchema = {
  title: 'RejectedMessage',
  type: 'object',
  properties: {
    index: { type: 'integer', description: 'The index of the message in the batch, from 0.' },
    messageId: { type: ['string', 'null'] },
    code: { type: 'string', enum: ['invalid_request', 'unknown_type', ...MESSAGE_ERRORS] },
    message: { type: 'string' },
  },
  required: ['index', 'messageId', 'code', 'message'],
}
const BATCH_ACCEPTED: Answer = {
  ...ACCEPTED,
  description:
    'The valid messages are stored durably and will be delivered. The response lists the invalid ones. If no message is valid, the status is 400.',
  schema: {
    title: 'BatchAnswer',
    type: 'object',
    properties: {
      success: { type: 'boolean', const: true },
      accepted: { type: 'integer', description: 'The number of accepted messages. Present only if some were rejected.' },
      rejected: { type: 'array', items: REJECTED, description: 'The rejected messages. Present only if some were rejected.' },
      warnings: WARNING_LIST,
    },
    required: ['success'],
  },
}
const BATCH_EXAMPLE = {
  batch: [
    { type: 'identify', userId: 'u-1', traits: { name: 'Ada' } },
    { type: 'track', userId: 'u-1', event: 'Order Completed', properties: { total: 49.9 } },
  ],
}

export function trackingOperations(): Operation[] {
  return [
    batchOperation('batch', 'postBatch', 'Send a batch of messages'),
    batchOperation(
      'import',
      'postImport',
      'The same as /v1/batch, under the name that client libraries use for historical imports',
      '/v1/batch',
    ),
    batchOperation('b', 'postB', 'Short form of /v1/batch, used by the browser client', '/v1/batch'),
    ...MESSAGE_TYPES.map((type) => callOperation(type, type)),
    ...MESSAGE_TYPES.map((type) => callOperation(type, CALLS[type].short)),
    pixelOperation(),
    settingsOperation(),
    metricsOperation(),
    beaconOperation(),
    sourceConfigOperation(),
  ]
}

function batchOperation(name: string, id: string, summary: string, aliasOf?: string): Operation {
  const properties = {
    batch: { type: 'array', maxItems: MAX_BATCH_MESSAGES, items: messageSchema(), description: 'The messages, each with its `type`.' },
    writeKey: WRITE_KEY,
    sentAt: text(
      'When the batch was sent, according to the clock of the sender. The service uses it to correct the timestamps of messages if that clock is wrong.',
    ),
    context: anything('Applies to all messages of the batch. Values in a message take precedence.'),
    integrations: anything('Applies to all messages of the batch. Values in a message take precedence.'),
  }
  const schema = objectSchema('Batch', properties, ['batch'])
  return {
    ...posted(name, id, summary, schema, BATCH_EXAMPLE),
    ...(aliasOf === undefined ? {} : { aliasOf }),
    answers: [BATCH_ACCEPTED],
    errors: [...REQUEST_ERRORS, ...BATCH_ERRORS, 'unknown_type', ...MESSAGE_ERRORS],
  }
}

function callOperation(type: MessageType, name: string): Operation {
  const { summary, errors, example } = CALLS[type]
  const isShort = name !== type
  const { properties, required } = callFields(type)
  const schema = objectSchema(`${titled(type)}Call`, { ...properties, writeKey: WRITE_KEY }, required)
  return {
    ...posted(name, `post${titled(name)}`, isShort ? `Short form of /v1/${type}, used by the browser client` : summary, schema, example),
    ...(isShort ? { aliasOf: `/v1/${type}` } : {}),
    answers: [ACCEPTED],
    errors: [...REQUEST_ERRORS, ...COMMON_ERRORS, ...errors],
  }
}

function posted(name: string, id: string, summary: string, schema: JsonSchema, example: object) {
  const body = { type: 'application/json', required: true, schema, example }
  return { method: 'post', path: `/v1/${name}`, id, tag: TRACKING, summary, security: 'tracking', parameters: [], body } as const
}

function messageSchema(): JsonSchema {
  return {
    title: 'MessageToSend',
    oneOf: MESSAGE_TYPES.map((type) => {
      const { properties, required } = callFields(type)
      return objectSchema(titled(type), { type: { type: 'string', const: type }, ...properties }, ['type', ...required])
    }),
  }
}

function callFields(type: MessageType) {
  const { fields, required } = CALLS[type]
  return { properties: { ...COMMON_FIELDS, ...fields }, required }
}

function pixelOperation(): Operation {
  const parameters: Parameter[] = [
    {
      name: 'type',
      in: 'path',
      required: true,
      description: 'The type of the message, or its short form.',
      schema: { type: 'string', enum: [...MESSAGE_TYPES, ...MESSAGE_TYPES.map((type) => CALLS[type].short)] },
      example: 'track',
    },
    {
      name: 'data',
      in: 'query',
      required: false,
      description: 'The call as base64-encoded JSON, including `writeKey`.',
      schema: { type: 'string', contentEncoding: 'base64', contentMediaType: 'application/json' },
    },
  ]
  return {
    ...getOperation('/v1/pixel/{type}', 'getPixel', TRACKING, 'Send a message by loading an image, for use in e-mails', {
      description: 'A transparent image of one pixel.',
      type: 'image/gif',
      schema: { type: 'string', format: 'binary' },
    }),
    description: 'The response is always the image, even if the call is not valid. `GET /api/rejections` shows rejected calls.',
    parameters,
  }
}

/** The write key, in a place other than the body and Basic authentication. */
function writeKeyIn(place: 'path' | 'query', description: string): Parameter {
  return { name: 'writeKey', in: place, required: place === 'path', description, schema: { type: 'string' }, example: 'WRITE_KEY' }
}

function settingsOperation(): Operation {
  const operation = getOperation(
    '/v1/projects/{writeKey}/settings',
    'getProjectSettings',
    TRACKING,
    'Retrieve the settings that the browser client loads when it starts',
    {
      description: 'The settings, in the format of the browser client. They tell it to send messages to this service.',
      type: 'application/json',
      schema: { ...objectSchema(undefined, { integrations: { type: 'object' } }, ['integrations']), additionalProperties: true },
    },
  )
  const unchanged = 'The settings have not changed: their `ETag` matches `If-None-Match`. Caches may keep them for five minutes.'
  return {
    ...operation,
    parameters: [writeKeyIn('path', 'A write key of the source.')],
    answers: [...operation.answers, { status: 304, description: unchanged }],
    errors: ['not_found', 'invalid_request'],
  }
}

function beaconOperation(): Operation {
  const batch = batchOperation(
    'batch',
    'postBeacon',
    'The same as /v1/batch, for RudderStack’s browser client, whose sendBeacon calls cannot set headers',
  )
  return {
    ...batch,
    path: '/beacon/v1/batch',
    aliasOf: '/v1/batch',
    parameters: [writeKeyIn('query', 'A write key of the source, if the body has none.')],
  }
}

function sourceConfigOperation(): Operation {
  const source = objectSchema(undefined, { source: { type: 'object', additionalProperties: true } }, ['source'])
  return {
    ...getOperation(
      '/v1/sourceConfig',
      'getSourceConfig',
      TRACKING,
      'Retrieve the settings that RudderStack’s browser client loads when it starts, if its `configUrl` is /v1 of this service',
      {
        description: 'A source without client-side destinations: the client sends everything to this service.',
        type: 'application/json',
        schema: { ...source, additionalProperties: true },
      },
    ),
    parameters: [writeKeyIn('query', 'A write key of the source, if it is not sent as Basic authentication.')],
    errors: ['not_found'],
  }
}

function metricsOperation(): Operation {
  return {
    method: 'post',
    path: '/v1/m',
    id: 'postM',
    tag: TRACKING,
    summary: 'Accept and discard the metrics that the browser client sends about itself',
    security: 'none',
    parameters: [],
    answers: [{ ...ACCEPTED, description: 'The request was read and discarded.' }],
    errors: ['request_timeout'],
  }
}

function titled(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
