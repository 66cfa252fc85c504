// The tracking API as operations. It is served by another stage, which writes straight to the socket and has no schemas of
// its own; so it is described here, and e2e/api-description.test.ts holds the description against what is served.

import { MAX_BATCH_MESSAGES, MAX_MESSAGE_ID_LENGTH, MESSAGE_TYPES, type MessageType, type RefusalCode } from '@switchyard/protocol'
import type { JsonSchema } from '../../api/schema.ts'
import type { ApiErrorCode } from '../../errors.ts'
import type { Answer, Operation, Parameter } from './operation.ts'
import { TRACKING } from './tags.ts'

interface Call {
  short: string
  summary: string
  fields: Readonly<Record<string, JsonSchema>>
  required: readonly string[]
  refusals: readonly RefusalCode[]
  example: object
}

const text = (description: string): JsonSchema => ({ type: ['string', 'null'], description })
const anything = (description: string): JsonSchema => ({ type: ['object', 'null'], additionalProperties: true, description })

const CONTEXT = anything(
  'Information about the circumstances of the call: `ip`, `userAgent`, `page`, `campaign`, `library` … `direct: true` fills `ip` from the connection.',
)
const INTEGRATIONS = anything('Destination name to on or off. `Webhooks` stands for every webhook, `All` (or `all`) for what is not named.')
const WRITE_KEY = { type: 'string', description: 'Instead of Basic authentication.' }
const COMMON_FIELDS = {
  userId: text('The user in your database.'),
  anonymousId: text('A user you do not know yet. One of the two ids is required, except for alias.'),
  messageId: {
    type: ['string', 'null'],
    minLength: 1,
    maxLength: MAX_MESSAGE_ID_LENGTH,
    description: 'Identifies duplicates: within 24 hours, a source accepts each messageId once. Generated if absent.',
  },
  timestamp: text('When it happened, ISO 8601. A time long past is a historical import.'),
  context: CONTEXT,
  integrations: INTEGRATIONS,
}
const COMMON_REFUSALS: readonly RefusalCode[] = ['message_id_invalid', 'id_not_string', 'context_not_object', 'integrations_not_object']
const PROPERTIES = anything('Free-form.')

const CALLS: Readonly<Record<MessageType, Call>> = {
  identify: {
    short: 'i',
    summary: 'Says who a user is',
    fields: { traits: anything('What is known of the user.') },
    required: [],
    refusals: ['no_user_anon_id', 'traits_not_object'],
    example: { userId: 'u-1', traits: { name: 'Ada', email: 'ada@example.com' } },
  },
  track: {
    short: 't',
    summary: 'Says what a user did',
    fields: { event: { type: 'string', minLength: 1, description: 'What happened.' }, properties: PROPERTIES },
    required: ['event'],
    refusals: ['no_user_anon_id', 'event_required', 'properties_not_object'],
    example: { userId: 'u-1', event: 'Order Completed', properties: { total: 49.9 } },
  },
  page: {
    short: 'p',
    summary: 'Says which page a user looked at',
    fields: { name: text('Of the page.'), category: text('Of the page.'), properties: PROPERTIES },
    required: [],
    refusals: ['no_user_anon_id', 'name_not_string', 'category_not_string', 'properties_not_object'],
    example: { anonymousId: 'a-1', name: 'Pricing', properties: { path: '/pricing' } },
  },
  screen: {
    short: 's',
    summary: 'Says which screen of an app a user looked at',
    fields: { name: text('Of the screen.'), category: text('Of the screen.'), properties: PROPERTIES },
    required: [],
    refusals: ['no_user_anon_id', 'name_not_string', 'category_not_string', 'properties_not_object'],
    example: { userId: 'u-1', name: 'Welcome' },
  },
  group: {
    short: 'g',
    summary: 'Says to which group a user belongs',
    fields: {
      groupId: { type: 'string', minLength: 1, description: 'The group in your database.' },
      traits: anything('What is known of the group.'),
    },
    required: ['groupId'],
    refusals: ['no_user_anon_id', 'group_id_required', 'traits_not_object'],
    example: { userId: 'u-1', groupId: 'g-7', traits: { name: 'Analytical Engines' } },
  },
  alias: {
    short: 'a',
    summary: 'Says that two ids are one user',
    fields: {
      userId: { type: 'string', minLength: 1, description: 'The id from now on.' },
      previousId: { type: 'string', minLength: 1, description: 'The id until now.' },
    },
    required: ['userId', 'previousId'],
    refusals: ['user_id_required', 'previous_id_required'],
    example: { userId: 'u-1', previousId: 'a-1' },
  },
}

const REQUEST_ERRORS: readonly ApiErrorCode[] = [
  'invalid_json',
  'invalid_request',
  'message_too_large',
  'invalid_write_key',
  'oauth_required',
  'invalid_access_token',
  'source_not_allowed',
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
const EVERY_REFUSAL = [...new Set([...COMMON_REFUSALS, ...Object.values(CALLS).flatMap(({ refusals }) => refusals)])]

const SUCCESS: JsonSchema = {
  title: 'Success',
  type: 'object',
  properties: { success: { type: 'boolean', const: true } },
  required: ['success'],
}
const TAKEN: Answer = {
  status: 200,
  description: 'Stored, and it will be delivered. Said only after the message is durable.',
  type: 'application/json',
  schema: SUCCESS,
  example: { success: true },
}
const REJECTED: JsonSchema = {
  title: 'RejectedMessage',
  type: 'object',
  properties: {
    index: { type: 'integer', description: 'Its place in the batch.' },
    messageId: { type: ['string', 'null'] },
    code: { type: 'string', enum: ['invalid_request', 'unknown_type', ...EVERY_REFUSAL] },
    message: { type: 'string' },
  },
  required: ['index', 'messageId', 'code', 'message'],
}
const BATCH_TAKEN: Answer = {
  ...TAKEN,
  description:
    'Stored, and it will be delivered. Messages that were not good are named; the others are taken. When none was good it is 400.',
  schema: {
    title: 'BatchAnswer',
    type: 'object',
    properties: {
      success: { type: 'boolean', const: true },
      accepted: { type: 'integer', description: 'Only there when some were rejected.' },
      rejected: { type: 'array', items: REJECTED, description: 'Only there when some were rejected.' },
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
    batchOperation('batch', 'postBatch', 'Sends many messages at once'),
    batchOperation('import', 'postImport', 'The same as /v1/batch, by the name that clients use for historical imports', '/v1/batch'),
    batchOperation('b', 'postB', 'The short form of /v1/batch, of the browser client', '/v1/batch'),
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
    batch: { type: 'array', maxItems: MAX_BATCH_MESSAGES, items: messageSchema(), description: 'Messages, each with its `type`.' },
    writeKey: WRITE_KEY,
    sentAt: text('When the batch was sent, by the sender’s clock. With it, times are corrected for clocks that are wrong.'),
    context: anything('Applies to all messages. Values in a message take precedence.'),
    integrations: anything('Applies to all messages. Values in a message take precedence.'),
  }
  const schema = { title: 'Batch', type: 'object', properties, required: ['batch'] }
  return {
    ...posted(name, id, summary, schema, BATCH_EXAMPLE),
    ...(aliasOf === undefined ? {} : { aliasOf }),
    answers: [BATCH_TAKEN],
    errors: [...REQUEST_ERRORS, 'batch_too_large', 'too_many_messages', 'unknown_type', ...EVERY_REFUSAL],
  }
}

function callOperation(type: MessageType, name: string): Operation {
  const { summary, refusals, example } = CALLS[type]
  const isShort = name !== type
  const { properties, required } = callSchema(type)
  const schema = {
    title: `${titled(type)}Call`,
    type: 'object',
    properties: { ...(properties as object), writeKey: WRITE_KEY },
    ...(required === undefined ? {} : { required }),
  }
  return {
    ...posted(name, `post${titled(name)}`, isShort ? `The short form of /v1/${type}, of the browser client` : summary, schema, example),
    ...(isShort ? { aliasOf: `/v1/${type}` } : {}),
    answers: [TAKEN],
    errors: [...REQUEST_ERRORS, ...COMMON_REFUSALS, ...refusals],
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
      const { properties, required } = callSchema(type)
      return {
        title: titled(type),
        type: 'object',
        properties: { type: { type: 'string', const: type }, ...(properties as object) },
        required: ['type', ...((required as string[] | undefined) ?? [])],
      }
    }),
  }
}

function callSchema(type: MessageType): JsonSchema {
  const { fields, required } = CALLS[type]
  return { properties: { ...COMMON_FIELDS, ...fields }, ...(required.length > 0 ? { required } : {}) }
}

function pixelOperation(): Operation {
  const parameters: Parameter[] = [
    {
      name: 'type',
      in: 'path',
      required: true,
      description: 'The type of the call, or its short form.',
      schema: { type: 'string', enum: [...MESSAGE_TYPES, ...MESSAGE_TYPES.map((type) => CALLS[type].short)] },
      example: 'track',
    },
    {
      name: 'data',
      in: 'query',
      required: false,
      description: 'The call as JSON with `writeKey` in it, in base64.',
      schema: { type: 'string', contentEncoding: 'base64', contentMediaType: 'application/json' },
    },
  ]
  return {
    method: 'get',
    path: '/v1/pixel/{type}',
    id: 'getPixel',
    tag: TRACKING,
    summary: 'Accepts a call as the URL of an image, for e-mails',
    description: 'Always answers with the image. What was wrong with a call is counted and shown by `GET /api/rejections`.',
    security: 'none',
    parameters,
    answers: [
      { status: 200, description: 'An image of one transparent pixel.', type: 'image/gif', schema: { type: 'string', format: 'binary' } },
    ],
    errors: [],
  }
}

function settingsOperation(): Operation {
  return {
    method: 'get',
    path: '/v1/projects/{writeKey}/settings',
    id: 'getProjectSettings',
    tag: TRACKING,
    summary: 'The settings that the browser client loads when it starts',
    security: 'none',
    parameters: [
      {
        name: 'writeKey',
        in: 'path',
        required: true,
        description: 'A write key of the source.',
        schema: { type: 'string' },
        example: 'WRITE_KEY',
      },
    ],
    answers: [
      {
        status: 200,
        description: 'Settings in the form that the browser client reads; they name this service as the place to send to.',
        type: 'application/json',
        schema: {
          type: 'object',
          properties: { integrations: { type: 'object' } },
          required: ['integrations'],
          additionalProperties: true,
        },
      },
      { status: 304, description: 'They are still those of the `ETag` in `If-None-Match`. Caches may keep them for five minutes.' },
    ],
    errors: ['not_found', 'invalid_request'],
  }
}

function beaconOperation(): Operation {
  const batch = batchOperation(
    'batch',
    'postBeacon',
    'The same as /v1/batch for sendBeacon, which has no headers, of RudderStack’s browser client',
  )
  return {
    ...batch,
    path: '/beacon/v1/batch',
    aliasOf: '/v1/batch',
    parameters: [
      {
        name: 'writeKey',
        in: 'query',
        required: false,
        description: 'A write key of the source, where the body has none.',
        schema: { type: 'string' },
        example: 'WRITE_KEY',
      },
    ],
  }
}

function sourceConfigOperation(): Operation {
  return {
    method: 'get',
    path: '/v1/sourceConfig',
    id: 'getSourceConfig',
    tag: TRACKING,
    summary: 'The settings that RudderStack’s browser client loads when it starts, if its `configUrl` is /v1 of this service',
    security: 'none',
    parameters: [
      {
        name: 'writeKey',
        in: 'query',
        required: false,
        description: 'A write key of the source, where it does not come as Basic authentication.',
        schema: { type: 'string' },
        example: 'WRITE_KEY',
      },
    ],
    answers: [
      {
        status: 200,
        description: 'A source without destinations of its own: everything goes to this service.',
        type: 'application/json',
        schema: {
          type: 'object',
          properties: { source: { type: 'object', additionalProperties: true } },
          required: ['source'],
          additionalProperties: true,
        },
      },
    ],
    errors: ['not_found'],
  }
}

function metricsOperation(): Operation {
  return {
    method: 'post',
    path: '/v1/m',
    id: 'postM',
    tag: TRACKING,
    summary: 'Accepts the metrics that the browser client sends about itself, and drops them',
    security: 'none',
    parameters: [],
    answers: [{ ...TAKEN, description: 'Read and dropped.' }],
    errors: ['request_timeout'],
  }
}

function titled(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
