// Parsing bytes into messages. The most important property: the stored bytes can be parsed into exactly the accepted messages.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import fc from 'fast-check'
import { readStoredBody, writeStoredBody } from '../../store/port/stored-messages.ts'
import { type Body, type ParsedRequest, parseBody, parseRequest, type RequestProblem, type Route } from './parse-request.ts'

const good = { type: 'track', userId: 'u', event: 'e', messageId: 'm' }
const ABOUT = { sourceId: 's', receivedAtMs: 0, ip: null, browser: false, trace: null }

function parse(route: Route, json: unknown, suppressed: string[] = []): ParsedRequest | RequestProblem {
  const body = parseBody(Buffer.isBuffer(json) ? json : Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)))
  let made = 0
  return body.ok
    ? parseRequest(
        route,
        body,
        (item) => suppressed.includes(item['userId'] as string),
        () => `made-${made++}`,
      )
    : body
}

function parsed(route: Route, json: unknown, suppressed: string[] = []): ParsedRequest {
  const result = parse(route, json, suppressed)
  assert.ok(result.ok, JSON.stringify(result))
  return result
}

function assertReadsBack({ bytes, sentAt, context, integrations, items, messageIds }: ParsedRequest): void {
  const body = bytes ?? writeStoredBody({ batch: items, sentAt, context, integrations })
  assert.deepEqual(readStoredBody(body, ABOUT), { ...ABOUT, sentAt, context, integrations, items: [...items] })
  assert.deepEqual(
    items.map((item) => item['messageId'] as string),
    messageIds,
  )
}

test('a batch that needs no changes is stored as the bytes that were received', () => {
  const body = parseBody(Buffer.from(JSON.stringify({ batch: [good, good], sentAt: 'x', context: { a: 1 }, writeKey: 'k' }))) as Body
  const result = parseRequest('batch', body, null, () => assert.fail()) as ParsedRequest
  assert.equal(result.bytes, body.bytes)
  assertReadsBack(result)
})

test('a message without an id gets one and is stored with it', () => {
  const { messageId: _, ...nameless } = good
  const result = parsed('batch', { batch: [good, nameless, { ...good, messageId: null }] })
  assert.deepEqual(result.messageIds, ['m', 'made-0', 'made-1'])
  assertReadsBack(result)
})

test('a single call is stored as a batch of one, with the type from its path and without its write key', () => {
  const result = parsed('track', { ...good, type: 'nonsense', writeKey: 'k', sentAt: 'then', context: { a: 1 } })
  assert.deepEqual(result.items, [{ userId: 'u', event: 'e', messageId: 'm', sentAt: 'then', context: { a: 1 }, type: 'track' }])
  assert.deepEqual([result.sentAt, result.context], [null, null])
  assertReadsBack(result)
})

test('invalid messages and those of suppressed users are left out, and the others keep their order', () => {
  const batch = [
    { ...good, messageId: '1' },
    5,
    { ...good, messageId: '2', userId: 'gone' },
    { ...good, messageId: '3', type: 'x' },
    { ...good, messageId: '4' },
  ]
  const result = parsed('batch', { batch, integrations: { All: true } }, ['gone'])
  assert.deepEqual(result.messageIds, ['1', '4'])
  assert.equal(result.suppressed, 1)
  assert.deepEqual(
    result.rejected.map(({ index, messageId, code }) => [index, messageId, code]),
    [
      [1, null, 'invalid_request'],
      [3, '3', 'unknown_type'],
    ],
  )
  assert.deepEqual(
    [...result.rejections],
    [
      ['invalid_request', { count: 1, sample: '5' }],
      ['unknown_type', { count: 1, sample: JSON.stringify(batch[3]) }],
    ],
  )
  assertReadsBack(result)
})

test('a numeric sentAt is stored as text', () => {
  const result = parsed('batch', { batch: [good], sentAt: 1_000 })
  assert.equal(result.sentAt, '1970-01-01T00:00:01.000Z')
  assertReadsBack(result)
  assertReadsBack(parsed('batch', { batch: [good], sentAt: { a: 1 } }))
})

test('a byte order mark is removed before parsing and storing', () => {
  const result = parsed('batch', Buffer.from(`\ufeff${JSON.stringify({ batch: [good] })}`))
  assert.equal(result.bytes?.[0], 0x7b)
  assertReadsBack(result)
})

test('all accepted messages can be parsed again from the stored bytes', () => {
  const key = fc.constantFrom(
    'type',
    'messageId',
    'userId',
    'event',
    'properties',
    'context',
    'integrations',
    'sentAt',
    '__proto__',
    'writeKey',
    '0',
    'é',
  )
  const value = fc.oneof(
    fc.constantFrom<unknown>('track', 'identify', 'u', 'gone', null, 0, {}, { a: [1] }, '\ud800', '\u0000'),
    fc.jsonValue({ maxDepth: 2 }),
  )
  const rendered = fc.array(fc.tuple(key, value), { maxLength: 6 }).map((pairs) => {
    return `{${pairs.map(([name, each]) => `${JSON.stringify(name)}: ${JSON.stringify(each)}`).join()}}`
  })
  const item = fc.oneof({ weight: 3, arbitrary: fc.constant(JSON.stringify(good)) }, { weight: 1, arbitrary: rendered })
  const envelope = fc
    .tuple(fc.array(item, { maxLength: 4 }), rendered)
    .map(([items, rest]) => `${rest.slice(0, -1)}${rest === '{}' ? '' : ','}"batch":[${items.join()}]}`)
  fc.assert(
    fc.property(fc.oneof(envelope, rendered), fc.constantFrom<Route>('batch', 'identify', 'track'), (json, route) => {
      const result = parse(route, json, ['gone'])
      if (result.ok) assertReadsBack(result)
    }),
    { numRuns: 2_000 },
  )
})

test('a body that is not UTF-8 JSON or has the wrong shape is rejected as a whole', () => {
  const rows: [json: unknown, code: string][] = [
    ['', 'invalid_json'],
    ['{"batch":[', 'invalid_json'],
    ['{"batch":[]} x', 'invalid_json'],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'invalid_json'],
    [Buffer.from('{"batch":[],"a":"\0"}'), 'invalid_json'],
    [Buffer.from('{"batch":[]}', 'utf16le'), 'invalid_json'],
    ['[]', 'invalid_request'],
    ['null', 'invalid_request'],
    ['"batch"', 'invalid_request'],
    ['{}', 'invalid_request'],
    [{ batch: {} }, 'invalid_request'],
    [{ batch: [good], context: [] }, 'invalid_request'],
    [{ batch: [good], integrations: 'all' }, 'invalid_request'],
    ['{"__proto__":{"batch":[]}}', 'invalid_request'],
    [{ batch: Array.from({ length: MAX_BATCH_MESSAGES + 1 }, () => 0) }, 'too_many_messages'],
  ]
  for (const [json, code] of rows) {
    const result = parse('batch', json)
    assert.equal(result.ok ? 'ok' : result.code, code, String(json).slice(0, 50))
  }
  assert.ok(parse('batch', { batch: Array.from({ length: MAX_BATCH_MESSAGES }, () => good) }).ok)
})

test('one message over 32 KB, measured in bytes as sent, causes its batch to be rejected', () => {
  const sized = (bytes: number): string => {
    const empty = JSON.stringify({ ...good, properties: { filler: '' } })
    // A space makes it larger as sent, but not after it is serialised again.
    return empty.replace('""', `"${'x'.repeat(bytes - empty.length - 1)}" `)
  }
  assert.ok(parse('batch', `{"batch":[${sized(MAX_MESSAGE_BYTES)},${sized(MAX_MESSAGE_BYTES)}]}`).ok)
  const over = parse('batch', `{"batch":[${JSON.stringify(good)},${sized(MAX_MESSAGE_BYTES + 1)}]}`)
  assert.ok(!over.ok)
  assert.deepEqual([over.code, over.count, over.sample.length], ['message_too_large', 2, 1_024])
  assert.ok(over.sample.startsWith('{"type":"track"') && over.sample.includes('xxx'))
})

test('a message that is nested too deeply is rejected, and the others are not', () => {
  const deep = (levels: number): string =>
    JSON.stringify(good).replace('}', `,"properties":{"a":${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}}}`)
  assert.equal(parsed('batch', `{"batch":[${deep(500)}]}`).items.length, 1)
  const result = parsed('batch', `{"batch":[${JSON.stringify(good)},${deep(501)},${deep(10_000)}]}`)
  assert.deepEqual(
    [result.items.length, [...result.rejections.keys()], result.rejected.map(({ index }) => index)],
    [1, ['invalid_request'], [1, 2]],
  )
  assert.match(result.rejected[0]?.message ?? '', /500 levels/)
  assertReadsBack(result)
  assert.equal(parsed('track', deep(501)).rejected.length, 1)
  assert.equal(parsed('track', deep(500)).rejected.length, 0)
  const envelope = parse('batch', `{"batch":[${JSON.stringify(good)}],"context":{"a":${'['.repeat(600)}${']'.repeat(600)}}}`)
  assert.equal(envelope.ok ? 'ok' : envelope.code, 'invalid_request')
})

test('a sample contains only the first characters of a write key', () => {
  for (const text of ['{"writeKey":"abcd-secret","batch":5}', '{"batch":5,"WriteKey" : "abcd-sec\\"ret"}', '{"writeKey":"abcd-secret']) {
    const { sample } = parse('batch', Buffer.from(text)) as RequestProblem
    assert.match(sample, /"abcd…/)
    assert.doesNotMatch(sample, /sec|ret/)
  }
})

test('a sample is the start of the message, never cut within a character', () => {
  const message = { type: 'é'.repeat(2_000) }
  const [rejection] = parsed('batch', { batch: [message] }).rejections.values()
  assert.ok(rejection)
  assert.ok(Buffer.byteLength(rejection.sample) <= 1_024 && Buffer.byteLength(rejection.sample) > 1_000)
  assert.ok(JSON.stringify(message).startsWith(rejection.sample))
})

test('ten thousand keys, lone surrogates and escaped NUL are kept unchanged', () => {
  const context: JsonObject = { '\ud800': '\udfff', nul: '\u0000' }
  for (let key = 0; key < 10_000; key++) context[`k${key}`] = key
  const result = parsed('batch', { batch: [{ ...good, properties: { '\ud800': '\u0000' } }], context })
  assert.deepEqual(result.context, context)
  assertReadsBack(result)
})
