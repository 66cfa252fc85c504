// Messages judged by subscribe expressions, with all that routing sees of a message.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { validate } from '@segment/destination-subscriptions'
import type { JsonObject } from '@switchyard/protocol'
import fc from 'fast-check'
import type { SegmentContent } from '../../store/store.ts'
import { parseSubscribe } from './parse-subscribe.ts'
import { subscribeJudge } from './subscribe-judge.ts'

function content(about: Partial<SegmentContent> = {}): SegmentContent {
  const call = { sourceId: 's', receivedAtMs: 0, ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
  return { ...call, items: [], ...about }
}

function matches(expression: string, item: JsonObject, about: Partial<SegmentContent> = {}): boolean {
  return subscribeJudge(expression)(item, content(about))
}

test('an expression reads the message, and its context with that of the batch', () => {
  const order = { type: 'track', userId: 'u', event: 'Order Completed', properties: { total: 120, lines: [{ sku: 'a' }] } }
  assert.ok(matches('type = "track" and event = "Order Completed" and properties.total > 100', order))
  assert.ok(!matches('properties.total > 120', order))
  assert.ok(matches('properties.lines.0.sku = "a" and userId = "u" and name = null', order))
  assert.ok(matches('name = "Home" and traits.plan = null', { type: 'page', name: 'Home' }))
  assert.ok(matches('traits.plan = "pro"', { type: 'identify', traits: { plan: 'pro' } }))
  const batch = { context: { app: { name: 'shop' }, locale: 'de' } }
  assert.ok(matches('context.app.name = "shop" and context.locale = "en"', { ...order, context: { locale: 'en' } }, batch))
  assert.ok(!matches('context.app.name = "shop"', { ...order, context: { app: {} } }, batch))
  assert.ok(matches('context.ip = "192.0.2.1" and event = "Order Completed"', order, { ip: '192.0.2.1', browser: true }))
  assert.ok(matches('context.ip = null', order, { ip: '192.0.2.1' }))
})

test('the contexts of a message and its batch are not merged as a whole', () => {
  const large = new Proxy<JsonObject>(
    { app: { name: 'shop' }, direct: true },
    { ownKeys: () => assert.fail('all keys are read, of each message') },
  )
  const item = { type: 'track', context: { locale: 'de' } }
  assert.ok(matches('context.app.name = "shop" and context.locale = "de"', item, { context: large }))
  assert.ok(matches('context.ip = "192.0.2.1"', item, { context: large, ip: '192.0.2.1' }))
})

test('a message that sends unexpected types, or keys of the prototype, only fails to match', () => {
  const hostile = JSON.parse(
    '{"type":["track"],"event":{"a":1},"properties":"text","traits":null,"context":{"__proto__":{"a":"b"},"page":5}}',
  )
  for (const expression of [
    'type = "track"',
    'contains(event, "a")',
    'properties.a = "b"',
    'traits.a.b.c > 1',
    'context.a = "b"',
    'context.page.url != null',
  ])
    assert.equal(matches(expression, hostile, { context: { page: {} } }), false, expression)
})

test('an expression that this version cannot read matches nothing', () => {
  assert.equal(matches('some future syntax', { type: 'track' }), false)
})

test('the judge agrees with the package, which splits names again for each message', () => {
  const scalar = fc.oneof(fc.constantFrom('a', 'b', '', null, true, false, 0, 1, 1.5, -1), fc.string({ maxLength: 3 }))
  const tree = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'b', '0'), tie('value'), { noNullPrototype: true }),
    ),
  })).value
  const item = fc.record(
    {
      type: scalar,
      event: scalar,
      name: scalar,
      userId: scalar,
      properties: tree,
      traits: tree,
      context: fc.option(fc.dictionary(fc.constantFrom('a', 'b'), tree, { noNullPrototype: true }), { nil: undefined }),
    },
    { requiredKeys: [], noNullPrototype: true },
  )
  const field = fc.constantFrom(
    'type',
    'event',
    'name',
    'userId',
    'properties.a',
    'properties.a.b',
    'traits.b',
    'traits.a.b.a',
    'context.a',
    'context.b.a',
  )
  const test = fc.oneof(
    fc.tuple(field, fc.constantFrom('= "a"', '!= "b"', '= ""', '= 1', '!= 1')).map((parts) => parts.join(' ')),
    fc
      .tuple(
        fc.constantFrom('properties.a', 'traits.a.b', 'context.a'),
        fc.constantFrom('= null', '!= null', '= true', '= false', '> 0', '<= 1', '>= 1', '< 1.5'),
      )
      .map((parts) => parts.join(' ')),
    fc
      .tuple(fc.constantFrom('', '!'), fc.constantFrom('contains', 'match'), field, fc.constantFrom('"a*"', '"*a"'))
      .map(([not, name, path, text]) => `${not}${name}(${path}, ${text})`),
  )
  const list = (operator: string) => fc.array(test, { minLength: 1, maxLength: 3 }).map((tests) => tests.join(` ${operator} `))
  const expression = fc.oneof(
    list('and'),
    list('or'),
    fc.tuple(list('or'), list('or')).map(([a, b]) => `(${a}) and (${b})`),
  )
  fc.assert(
    fc.property(expression, item, (text, message) => {
      assert.equal(matches(text, message as JsonObject), validate(parseSubscribe(text), message as JsonObject), text)
    }),
    { numRuns: 2_000 },
  )
})
