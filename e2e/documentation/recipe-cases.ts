// The stand-ins for the services of docs/guide/recipes: what each checks, what it answers, and what it must receive.

import type { Answer, Arrival } from '../system/receiver.ts'

/** The error of the real service for a wrong request. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, text: string) {
    super(text)
    this.status = status
  }
}

function must(condition: unknown, status: number, text: string): asserts condition {
  if (!condition) throw new Refusal(status, text)
}

type Json = Record<string, unknown>
type StandIn = (arrival: Arrival) => Answer

function jsonOf({ headers, bytes }: Arrival, type = 'application/json'): unknown {
  must(headers['content-type'] === type, 415, `content type ${headers['content-type']}`)
  return JSON.parse(bytes.toString())
}

function linesOf({ headers, bytes }: Arrival, types: readonly string[]): Json[] {
  must(types.includes(headers['content-type'] ?? ''), 406, `content type ${headers['content-type']}`)
  const text = bytes.toString()
  must(text.endsWith('\n'), 400, 'must be terminated by a newline')
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as Json)
}

const isText = (value: unknown, max = Infinity): value is string => typeof value === 'string' && value !== '' && value.length <= max
const isTime = (value: unknown): boolean => isText(value) && !Number.isNaN(Date.parse(value))

export const AT = '2026-11-14T09:00:00.123Z'
export const ORDER = {
  type: 'track',
  messageId: 'order-1',
  userId: 'ann & <!channel>',
  event: 'Order Completed',
  timestamp: AT,
  properties: { orderId: 'o-1', total: 12.5, currency: 'EUR', products: [{ sku: 's-1', price: 12.5, quantity: 1, colour: 'red' }] },
}
const FAILED = { type: 'track', messageId: 'failed-1', userId: 'ben', event: 'Payment Failed', timestamp: AT, properties: { amount: 3 } }
const USER = { type: 'identify', messageId: 'user-1', userId: 'cy/?x', timestamp: AT, traits: { email: 'cy@example.com', name: 'Cy' } }
export const MESSAGES = [ORDER, FAILED, USER]
const ALL = { batch: true } as const

interface Case {
  /** Values for the placeholders. */
  placeholders: Record<string, string>
  standIn: StandIn
  /** The bodies that the stand-in must have received, in the order of the messages. */
  expected: unknown[]
  /** The messages are in one request. */
  batch?: true
}

export const CASES: Record<string, (read: (value: unknown) => void) => Case> = {
  slack: (read) => ({
    placeholders: { SLACK_WORKSPACE: 'T000', SLACK_APP: 'B000', SLACK_TOKEN: 'XXXX' },
    standIn(arrival) {
      must(arrival.method === 'POST' && arrival.path === '/services/T000/B000/XXXX', 404, 'no_service')
      const body = jsonOf(arrival) as Json
      must(isText(body['text'], 40_000) || Array.isArray(body['blocks']), 400, 'no_text')
      must(!/<[!@#]/.test(String(body['text'])), 400, 'a value notifies the channel')
      read(body)
      return { status: 200, headers: { 'content-type': 'text/html' }, body: 'ok' }
    },
    expected: [{ text: '*Order Completed* by ann &amp; &lt;!channel>: 12.5 EUR' }],
  }),

  discord: (read) => ({
    placeholders: { DISCORD_ID: '1234', DISCORD_TOKEN: 'abcd' },
    standIn(arrival) {
      must(arrival.method === 'POST' && arrival.path === '/api/webhooks/1234/abcd', 401, '{"message":"Invalid Webhook Token","code":50027}')
      const body = jsonOf(arrival) as Json
      must(isText(body['content'], 2_000) || Array.isArray(body['embeds']), 400, '{"message":"Cannot send an empty message","code":50006}')
      read(body)
      return { status: 204 }
    },
    expected: [{ content: '**Order Completed** by ann & <!channel>: 12.5 EUR', allowed_mentions: { parse: [] } }],
  }),

  pagerduty: (read) => ({
    placeholders: { PAGERDUTY_INTEGRATION_KEY: '0123456789abcdef0123456789abcdef' },
    standIn(arrival) {
      must(arrival.method === 'POST' && arrival.path === '/v2/enqueue', 404, 'Not Found')
      const body = jsonOf(arrival) as Json
      const payload = (body['payload'] ?? {}) as Json
      const problems = [
        /^[0-9a-zA-Z]{32}$/.test(String(body['routing_key'])) || "'routing_key' is invalid",
        ['trigger', 'acknowledge', 'resolve'].includes(String(body['event_action'])) || "'event_action' is invalid",
        isText(body['dedup_key'], 255) || "'dedup_key' is too long",
        isText(payload['summary'], 1_024) || "'payload.summary' is missing or blank",
        isText(payload['source']) || "'payload.source' is missing or blank",
        ['critical', 'error', 'warning', 'info'].includes(String(payload['severity'])) || "'payload.severity' is invalid",
        isTime(payload['timestamp']) || "'payload.timestamp' is invalid",
        typeof payload['custom_details'] === 'object' || "'payload.custom_details' is invalid",
      ].filter((problem) => problem !== true)
      must(problems.length === 0, 400, JSON.stringify({ status: 'invalid event', message: 'Event object is invalid', errors: problems }))
      read([body['dedup_key'], payload])
      return { status: 202, body: JSON.stringify({ status: 'success', message: 'Event processed', dedup_key: body['dedup_key'] }) }
    },
    expected: [
      [
        'failed-1',
        { summary: 'Payment Failed for ben', source: 'switchyard', severity: 'error', timestamp: AT, custom_details: { amount: 3 } },
      ],
    ],
  }),

  'google-analytics': (read) => ({
    placeholders: { GA4_MEASUREMENT_ID: 'G-ABC1234567', GA4_API_SECRET: 'ga-secret' },
    standIn(arrival) {
      const { pathname, searchParams } = new URL(arrival.path, 'http://stand-in')
      must(arrival.method === 'POST' && pathname === '/mp/collect', 404, 'not found')
      must(/^G-[A-Z0-9]+$/.test(searchParams.get('measurement_id') ?? '') && searchParams.get('api_secret') === 'ga-secret', 403, 'secret')
      const body = jsonOf(arrival) as { client_id: string; user_id?: string; events: { name: string; params: Json }[] }
      must(isText(body.client_id), 400, 'client_id is required')
      must(Array.isArray(body.events) && body.events.length >= 1 && body.events.length <= 25, 400, 'events')
      for (const { name, params } of body.events) {
        must(/^[A-Za-z][A-Za-z0-9_]{0,39}$/.test(name), 400, `name ${name}`)
        must(Object.keys(params).length <= 25, 400, 'params')
        for (const [key, value] of Object.entries(params)) {
          must(/^[A-Za-z][A-Za-z0-9_]{0,39}$/.test(key), 400, `param ${key}`)
          must(key === 'items' ? Array.isArray(value) : ['string', 'number'].includes(typeof value), 400, `value of ${key}`)
        }
      }
      read(body)
      return { status: 204 }
    },
    expected: [
      {
        client_id: 'ann & <!channel>',
        user_id: 'ann & <!channel>',
        events: [
          {
            name: 'order_completed',
            params: { transaction_id: 'o-1', currency: 'EUR', value: 12.5, items: [{ item_id: 's-1', price: 12.5, quantity: 1 }] },
          },
        ],
      },
      { client_id: 'ben', user_id: 'ben', events: [{ name: 'payment_failed', params: {} }] },
    ],
  }),

  posthog: (read) => ({
    placeholders: { POSTHOG_PROJECT_KEY: 'phc_key' },
    standIn(arrival) {
      must(arrival.method === 'POST' && arrival.path === '/i/v0/e/', 404, 'not found')
      const { api_key: key, ...body } = jsonOf(arrival) as Json
      must(key === 'phc_key', 401, '{"type":"authentication_error"}')
      must(isText(body['event'], 200), 400, 'event is required')
      must(isText(body['distinct_id'], 200), 400, 'distinct_id is required')
      must(isTime(body['timestamp']), 400, 'timestamp')
      must(typeof body['properties'] === 'object', 400, 'properties')
      read(body)
      return { status: 200, body: '{"status":"Ok"}' }
    },
    expected: [
      { event: 'Order Completed', distinct_id: ORDER.userId, timestamp: AT, properties: { ...ORDER.properties, $lib: 'switchyard' } },
      { event: 'Payment Failed', distinct_id: 'ben', timestamp: AT, properties: { amount: 3, $lib: 'switchyard' } },
      { event: '$identify', distinct_id: USER.userId, timestamp: AT, properties: { $set: USER.traits, $lib: 'switchyard' } },
    ],
  }),

  clickhouse: (read) => ({
    ...ALL,
    placeholders: { CLICKHOUSE_USER: 'writer', CLICKHOUSE_PASSWORD: 'clickhouse-password' },
    standIn(arrival) {
      const { headers, method, path } = arrival
      must(
        headers['x-clickhouse-user'] === 'writer' && headers['x-clickhouse-key'] === 'clickhouse-password',
        403,
        'Code: 516. AUTHENTICATION_FAILED',
      )
      must(method === 'POST', 500, 'Code: 164. Cannot execute query in readonly mode')
      const { searchParams } = new URL(path, 'http://stand-in')
      must(/^INSERT INTO events FORMAT JSONEachRow$/.test(searchParams.get('query') ?? ''), 400, 'Code: 62. SYNTAX_ERROR')
      // Without it, ClickHouse does not read ISO 8601 with a Z.
      must(searchParams.get('date_time_input_format') === 'best_effort', 400, 'Code: 27. CANNOT_PARSE_INPUT_ASSERTION_FAILED')
      const columns = new Set(['message_id', 'type', 'event', 'user_id', 'timestamp', 'properties'])
      for (const row of linesOf(arrival, [headers['content-type'] ?? ''])) {
        for (const [column, value] of Object.entries(row)) {
          must(columns.has(column), 400, `Code: 117. Unknown field found while parsing JSONEachRow format: ${column}`)
          must(typeof value === 'string', 400, `Code: 27. Cannot parse ${column}`)
        }
        read(row)
      }
      return { status: 200 }
    },
    expected: [
      {
        message_id: 'order-1',
        type: 'track',
        event: 'Order Completed',
        user_id: ORDER.userId,
        timestamp: AT,
        properties: JSON.stringify(ORDER.properties),
      },
      { message_id: 'failed-1', type: 'track', event: 'Payment Failed', user_id: 'ben', timestamp: AT, properties: '{"amount":3}' },
      { message_id: 'user-1', type: 'identify', user_id: USER.userId, timestamp: AT },
    ],
  }),

  elasticsearch: (read) => ({
    ...ALL,
    placeholders: { ELASTICSEARCH_API_KEY: 'ZWxhc3RpYw==' },
    standIn(arrival) {
      must(arrival.headers['authorization'] === 'ApiKey ZWxhc3RpYw==', 401, '{"error":{"type":"security_exception"}}')
      must(arrival.method === 'POST' && arrival.path === '/_bulk', 404, 'not found')
      const lines = linesOf(arrival, ['application/x-ndjson', 'application/json'])
      must(lines.length % 2 === 0, 400, 'Malformed action/metadata line')
      const items: unknown[] = []
      for (let at = 0; at < lines.length; at += 2) {
        const [[action, meta] = ['', {}], ...more] = Object.entries(lines[at] as Json) as [string, Json][]
        must(more.length === 0 && ['index', 'create'].includes(action), 400, 'Malformed action/metadata line, expected index or create')
        must(isText(meta['_index']) && isText(meta['_id'], 512), 400, 'index is missing')
        const document = lines[at + 1] as Json
        read([meta['_id'], document['messageId'], document['type']])
        items.push({ [action]: { ...meta, status: 201 } })
      }
      return { status: 200, body: JSON.stringify({ took: 1, errors: false, items }) }
    },
    expected: [
      ['order-1', 'order-1', 'track'],
      ['failed-1', 'failed-1', 'track'],
      ['user-1', 'user-1', 'identify'],
    ],
  }),

  loki: (read) => ({
    ...ALL,
    placeholders: { LOKI_USER: '1234', LOKI_PASSWORD: 'loki-token' },
    standIn(arrival) {
      must(arrival.headers['authorization'] === `Basic ${btoa('1234:loki-token')}`, 401, 'invalid credentials')
      must(arrival.method === 'POST' && arrival.path === '/loki/api/v1/push', 404, '404 page not found')
      const { streams } = jsonOf(arrival) as { streams: { stream: Record<string, string>; values: [string, string][] }[] }
      for (const { stream, values } of streams) {
        const labels = Object.entries(stream)
        must(labels.length > 0, 400, 'error at least one label pair is required per stream')
        must(
          labels.every(([name, value]) => /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) && isText(value)),
          400,
          'invalid labels',
        )
        for (const [time, line] of values) {
          must(/^\d{19}$/.test(time), 400, 'unix nanoseconds as text are expected')
          must(Math.abs(Number(time.slice(0, -6)) - Date.parse(AT)) < 60_000, 400, 'has timestamp too old')
          must(isText(line, 256_000), 400, 'the line must be text')
          read([stream, JSON.parse(line)])
        }
      }
      return { status: 204 }
    },
    expected: [ORDER, FAILED, USER].map(({ type, messageId, userId, ...message }) => [
      { service_name: 'switchyard', type },
      'event' in message ? { event: message.event, userId, messageId, properties: message.properties } : { userId, messageId },
    ]),
  }),

  postgrest: (read) => ({
    ...ALL,
    placeholders: { POSTGREST_TOKEN: 'header.claims.signature' },
    standIn(arrival) {
      must(arrival.headers['authorization'] === 'Bearer header.claims.signature', 401, '{"code":"PGRST301"}')
      const { pathname, searchParams } = new URL(arrival.path, 'http://stand-in')
      must(arrival.method === 'POST' && pathname === '/events', 404, '{"code":"PGRST205"}')
      must(searchParams.get('on_conflict') === 'message_id', 400, '{"code":"42P10"}')
      const prefer = new Set((arrival.headers['prefer'] ?? '').split(', '))
      const columns = (searchParams.get('columns') ?? '').split(',')
      const rows = jsonOf(arrival) as Json[]
      const keys = new Set(rows.map((row) => Object.keys(row).join()))
      must(
        keys.size === 1 || (columns.length > 1 && prefer.has('missing=default')),
        400,
        '{"code":"PGRST102","message":"All object keys must match"}',
      )
      for (const row of rows) {
        must(
          Object.keys(row).every((key) => columns.includes(key)),
          400,
          '{"code":"PGRST204"}',
        )
        must(isText(row['message_id']) && isText(row['type']) && isTime(row['sent_at']), 400, '{"code":"23502"}')
        read(row)
      }
      must(prefer.has('return=minimal') && prefer.has('resolution=ignore-duplicates'), 400, 'prefer')
      return { status: 201 }
    },
    expected: [
      { message_id: 'order-1', type: 'track', event: ORDER.event, user_id: ORDER.userId, sent_at: AT, properties: ORDER.properties },
      { message_id: 'failed-1', type: 'track', event: FAILED.event, user_id: 'ben', sent_at: AT, properties: { amount: 3 } },
      { message_id: 'user-1', type: 'identify', user_id: USER.userId, sent_at: AT },
    ],
  }),

  'oauth2-api': (read) => ({
    placeholders: { OAUTH_CLIENT_ID: 'client', OAUTH_CLIENT_SECRET: 'oauth-secret' },
    standIn(arrival) {
      const { method, path, headers, bytes } = arrival
      if (path === '/oauth2/token') {
        must(headers['authorization'] === `Basic ${btoa('client:oauth-secret')}`, 401, '{"error":"invalid_client"}')
        must(headers['content-type']?.startsWith('application/x-www-form-urlencoded'), 400, '{"error":"invalid_request"}')
        const form = new URLSearchParams(bytes.toString())
        must(form.get('grant_type') === 'client_credentials', 400, '{"error":"unsupported_grant_type"}')
        must(form.get('scope') === 'customers:write', 400, '{"error":"invalid_scope"}')
        const token = { access_token: 'access', token_type: 'Bearer', expires_in: 3_600 }
        return { headers: { 'content-type': 'application/json', 'cache-control': 'no-store' }, body: JSON.stringify(token) }
      }
      must(headers['authorization'] === 'Bearer access', 401, 'invalid_token')
      must(method === 'PUT', 405, 'use PUT')
      const body = jsonOf(arrival) as Json
      must(isText(body['email']) && isTime(body['updated_at']), 422, 'email and updated_at are required')
      read([path, headers['x-request-id'], body])
      return { status: 200, body: '{}' }
    },
    expected: [['/v1/customers/cy%2F%3Fx', 'user-1', { ...USER.traits, updated_at: AT }]],
  }),
}
