// Compares outbound messages with the shared vectors, with the fields documented in docs/guide/quick-start-receiver.md, and for
// arbitrary JSON.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isoTime, type JsonObject, parseTime } from '@switchyard/protocol'
import fc from 'fast-check'
import type { SegmentContent } from '../store/store.ts'
import { outboundMessage, timestampMs, withViolations } from './outbound-message.ts'

interface Vector {
  note: string
  call: JsonObject | null
  outbound: JsonObject
}

const vectorsFile = new URL('../../../webhook/vectors.json', import.meta.url)
const RECEIVED_AT = '2026-11-14T09:00:00.200Z'
const TIMES = { timestamp: RECEIVED_AT, receivedAt: RECEIVED_AT }

function contentOf(item: JsonObject, about: Partial<SegmentContent> = {}): SegmentContent {
  const receivedAtMs = Date.parse(RECEIVED_AT)
  const call = { sourceId: 's', receivedAtMs, ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
  return { ...call, items: [item], ...about }
}

/** The message as a receiver parses it. */
function sent(item: JsonObject, about: Partial<SegmentContent> = {}): JsonObject {
  return JSON.parse(JSON.stringify(outboundMessage(contentOf(item, about), 0))) as JsonObject
}

test('each shared vector produces its expected outbound message', () => {
  const { messages } = JSON.parse(readFileSync(vectorsFile, 'utf8')) as { messages: Vector[] }
  assert.ok(messages.length >= 4)
  for (const { note, call, outbound } of messages) {
    const item = call ?? { type: 'delete', userId: outbound['userId'], timestamp: outbound['timestamp'] }
    assert.deepEqual(sent(item, { sentAt: (outbound['sentAt'] as string | undefined) ?? null }), outbound, note)
  }
})

test('each type has its own fields, and no others', () => {
  const everything = {
    userId: 'u',
    anonymousId: 'a',
    messageId: 'm',
    event: 'e',
    name: 'n',
    category: 'c',
    groupId: 'g',
    previousId: 'p',
    properties: { path: '/', referrer: '', title: 't', url: 'http://x/' },
    traits: { plan: 'pro' },
    context: { app: { build: '1' } },
    integrations: { All: true },
    writeKey: 'secret',
    _metadata: { bundled: [] },
    version: 7,
    receivedAt: 'never',
    projectId: 'x',
    'User ID': 'forged',
  }
  const { userId, anonymousId, messageId, event, name, category, groupId, properties, traits, context, integrations } = everything
  const common = { version: 1, anonymousId, context, integrations, messageId, ...TIMES }
  const rows: Record<string, JsonObject> = {
    page: { ...common, userId, name, category, properties },
    screen: { ...common, userId, name, category, properties },
    identify: { ...common, userId, traits },
    track: { ...common, userId, event, properties },
    alias: { ...common, 'Previous ID': 'p', 'User ID': 'u' },
    group: { ...common, userId, groupId, traits },
    delete: { userId, timestamp: RECEIVED_AT },
  }
  for (const [type, row] of Object.entries(rows)) assert.deepEqual(sent({ ...everything, type }), { ...row, type }, type)
})

test('fields that the call did not have are left out, except for the objects that every message of its type has', () => {
  const call = { userId: 'u', messageId: 'm', event: 'e', groupId: 'g', previousId: 'p' }
  const bare = { version: 1, userId: 'u', messageId: 'm', context: {}, ...TIMES }
  assert.deepEqual(sent({ ...call, type: 'track' }), { ...bare, type: 'track', event: 'e', properties: {} })
  assert.deepEqual(sent({ ...call, type: 'page' }), { ...bare, type: 'page', properties: {} })
  assert.deepEqual(sent({ ...call, type: 'screen' }), { ...bare, type: 'screen' })
  assert.deepEqual(sent({ ...call, type: 'identify' }), { ...bare, type: 'identify', traits: {} })
  assert.deepEqual(sent({ ...call, type: 'group' }), { ...bare, type: 'group', groupId: 'g', traits: {} })
})

test('null counts as missing', () => {
  const call = {
    type: 'track',
    event: 'e',
    messageId: 'm',
    userId: null,
    anonymousId: 'a',
    properties: null,
    context: null,
    integrations: null,
  }
  const outbound = sent({ ...call, timestamp: null, sentAt: null, originalTimestamp: null })
  assert.deepEqual(outbound, {
    version: 1,
    type: 'track',
    anonymousId: 'a',
    event: 'e',
    properties: {},
    context: {},
    messageId: 'm',
    ...TIMES,
  })
})

test("a message's context and integrations override its batch's, key by key", () => {
  const own = { type: 'identify', userId: 'u', context: { app: { name: 'own' }, ip: '9.9.9.9' }, integrations: { A: true } }
  const batch = { context: { app: { name: 'batch', build: '1' }, locale: 'de' }, integrations: { A: false, B: false } }
  const outbound = sent(own, batch)
  assert.deepEqual(outbound['context'], { app: { name: 'own' }, locale: 'de', ip: '9.9.9.9' })
  assert.deepEqual(outbound['integrations'], { A: true, B: false })
  const inherited = sent({ type: 'identify', userId: 'u' }, batch)
  assert.deepEqual([inherited['context'], inherited['integrations']], [batch.context, batch.integrations])
})

test('context.ip is set for browser and direct calls if it is known and the call has none', () => {
  const ip = '203.0.113.7'
  const call = (context?: JsonObject): JsonObject => ({ type: 'identify', userId: 'u', ...(context && { context }) })
  const ipOf = (item: JsonObject, about: Partial<SegmentContent>): unknown => sent(item, about)['context'].ip
  assert.equal(ipOf(call(), { ip }), undefined)
  assert.equal(ipOf(call(), { ip, browser: true }), ip)
  assert.equal(ipOf(call({ locale: 'de' }), { ip, browser: true }), ip)
  assert.equal(ipOf(call({ direct: true }), { ip }), ip)
  assert.equal(ipOf(call(), { ip, context: { direct: true } }), ip)
  assert.equal(ipOf(call({ direct: 'true' }), { ip }), undefined)
  assert.equal(ipOf(call({ ip: '0.0.0.0' }), { ip, browser: true }), '0.0.0.0')
  assert.equal(ipOf(call({ direct: true }), { ip: null }), undefined)
})

test('a timestamp is corrected with sentAt', () => {
  const call = { type: 'identify', userId: 'u', timestamp: '2026-11-14T08:00:00.000Z' }
  const rows: [item: JsonObject, sentAt: string | null, timestamp: string, original: string | undefined, sent: string | undefined][] = [
    // The caller's clock is an hour slow. It sent the message one second after the event.
    [call, '2026-11-14T08:00:01.000Z', '2026-11-14T08:59:59.200Z', call.timestamp, '2026-11-14T08:00:01.000Z'],
    [
      { ...call, sentAt: '2026-11-14T08:00:02.000Z' },
      '2026-11-14T08:00:01.000Z',
      '2026-11-14T08:59:58.200Z',
      call.timestamp,
      '2026-11-14T08:00:02.000Z',
    ],
    [{ ...call, sentAt: 'soon' }, '2026-11-14T08:00:01.000Z', '2026-11-14T08:59:59.200Z', call.timestamp, '2026-11-14T08:00:01.000Z'],
    // Without sentAt, it is unchanged.
    [{ ...call, timestamp: '2001-02-03T04:05:06Z' }, null, '2001-02-03T04:05:06.000Z', '2001-02-03T04:05:06.000Z', undefined],
    [call, 'nonsense', call.timestamp, call.timestamp, undefined],
    // Without a valid time: the time of receipt.
    [{ ...call, timestamp: 'yesterday' }, RECEIVED_AT, RECEIVED_AT, undefined, RECEIVED_AT],
    [{ ...call, timestamp: '2026-13-01' }, null, RECEIVED_AT, undefined, undefined],
    // The client's own originalTimestamp is kept.
    [
      { ...call, originalTimestamp: '2026-11-14T07:00:00.000Z' },
      '2026-11-14T07:00:01.000Z',
      '2026-11-14T08:59:59.200Z',
      '2026-11-14T07:00:00.000Z',
      '2026-11-14T07:00:01.000Z',
    ],
    [{ ...call, originalTimestamp: '2026-11-14T07:00:00.000Z' }, null, call.timestamp, '2026-11-14T07:00:00.000Z', undefined],
    // Other time zones and formats.
    [{ ...call, timestamp: '2026-11-14T10:00:00+02:00' }, null, '2026-11-14T08:00:00.000Z', '2026-11-14T08:00:00.000Z', undefined],
    [{ ...call, timestamp: 1_000 }, null, '1970-01-01T00:00:01.000Z', '1970-01-01T00:00:01.000Z', undefined],
    // A result outside the supported years.
    [
      { ...call, timestamp: '0001-01-01T00:00:00Z' },
      '9999-01-01T00:00:00Z',
      '0001-01-01T00:00:00.000Z',
      '0001-01-01T00:00:00.000Z',
      '9999-01-01T00:00:00.000Z',
    ],
  ]
  for (const [item, sentAt, timestamp, original, sentOut] of rows) {
    const outbound = sent(item, { sentAt })
    const actual = [outbound['timestamp'], outbound['originalTimestamp'], outbound['sentAt'], outbound['receivedAt']]
    assert.deepEqual(actual, [timestamp, original, sentOut, RECEIVED_AT], JSON.stringify([item, sentAt]))
    assert.equal(timestampMs(contentOf(item, { sentAt }), 0), Date.parse(timestamp))
  }
})

test('times are parsed and formatted as in the protocol package', () => {
  const time = fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 })
  const text = fc.oneof(
    time.map((ms) => new Date(ms).toISOString()),
    fc.stringMatching(/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/),
    fc.stringMatching(/^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[012][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z$/),
    fc.string(),
  )
  fc.assert(
    fc.property(text, (timestamp) => {
      const ms = parseTime(timestamp)
      const { timestamp: out, originalTimestamp } = sent({ type: 'identify', userId: 'u', timestamp })
      assert.deepEqual([out, originalTimestamp], ms === undefined ? [RECEIVED_AT, undefined] : [isoTime(ms), isoTime(ms)])
    }),
    { numRuns: 2_000 },
  )
})

test('the outbound JSON is unchanged after a receiver parses and serialises it, for arbitrary data', () => {
  const key = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('__proto__', 'constructor', 'toJSON', '0', '10', '-1', 'ip', '\ud800'),
  )
  const json = fc
    .oneof(
      fc.json({ maxDepth: 3 }),
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc.constantFrom('-0', '1e400', '12345678901234567890', '"\\ud800"', '"\\u0000"'),
    )
    .map((text) => JSON.parse(text) as unknown)
  const object = fc.array(fc.tuple(key, json), { maxLength: 5 }).map((entries) => {
    return JSON.parse(`{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`) as JsonObject
  })
  const type = fc.constantFrom('track', 'identify', 'page', 'screen', 'group', 'alias')
  fc.assert(
    fc.property(type, object, object, object, object, fc.boolean(), (type, data, own, context, integrations, browser) => {
      const item = { type, userId: 'u', event: 'e', properties: data, traits: data, context: own, integrations: own }
      const about = { context, integrations, browser, ip: '10.0.0.1' }
      const text = JSON.stringify(outboundMessage(contentOf(item, about), 0))
      assert.equal(JSON.stringify(JSON.parse(text)), text)
      for (const name of [...Object.keys(own), ...Object.keys(context)]) {
        assert.ok(Object.hasOwn((JSON.parse(text) as JsonObject)['context'], name), name)
      }
    }),
    { numRuns: 200 },
  )
})

test('a key named __proto__ stays an ordinary key and sets no prototype', () => {
  const item = JSON.parse(
    '{"type":"track","userId":"u","event":"e","properties":{"__proto__":{"a":1}},"context":{"__proto__":{"direct":true}}}',
  )
  const batch = JSON.parse('{"__proto__":{"ip":"1.1.1.1"},"locale":"de"}') as JsonObject
  const outbound = outboundMessage(contentOf(item as JsonObject, { context: batch, ip: '2.2.2.2' }), 0)
  assert.match(JSON.stringify(outbound), /"properties":\{"__proto__":\{"a":1\}\},"context":\{"__proto__":\{"direct":true\},"locale":"de"\}/)
  assert.equal(Object.getPrototypeOf(outbound['context']), Object.prototype)
})

test('an index without a message throws', () => {
  const content = { ...contentOf({}), items: [null] }
  assert.throws(() => outboundMessage(content, 0), /no message at 0 of 1/)
  assert.throws(() => timestampMs(content, 5), /no message at 5 of 1/)
})

test('violations are added to the context, and never taken from the sender', () => {
  const violation = { rule: 'track e', code: 'wrong_type', path: 'properties.a', expected: 'a number', found: 'a string' } as const
  const shown = (item: JsonObject, about: Partial<SegmentContent> = {}): unknown => {
    const content = contentOf({ type: 'track', event: 'e', userId: 'u', ...item }, about)
    return JSON.parse(JSON.stringify(withViolations(outboundMessage(content, 0), content, 0)['context']))
  }
  assert.deepEqual(shown({ context: { app: 'x' } }, { violations: { 0: [violation] } }), { app: 'x', violations: [violation] })
  assert.deepEqual(shown({}, { violations: { 0: [violation] } }), { violations: [violation] })
  assert.deepEqual(shown({ context: { app: 'x', violations: 'made up' } }, { violations: { 1: [violation] } }), { app: 'x' })
  const deletion = contentOf({ type: 'delete', userId: 'u' }, { violations: { 0: [violation] } })
  assert.equal(withViolations(outboundMessage(deletion, 0), deletion, 0)['context'], undefined)
})
