import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import { type LearnedPlan, PlanLearner } from './learn-plan.ts'

function learn(messages: readonly JsonObject[]): LearnedPlan {
  const learner = new PlanLearner()
  for (const message of messages) learner.add(message)
  return learner.learned('shop')
}

/** Tracks with these properties, from so many users in turn. */
const tracks = (properties: readonly JsonObject[], users = 4): JsonObject[] =>
  properties.map((each, index) => ({ type: 'track', event: 'Ordered', userId: `u${index % users}`, properties: each }))

const schemaOf = (properties: readonly JsonObject[], users?: number): JsonObject =>
  learn(tracks(properties, users)).plan.rules[0]?.schema as JsonObject
const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))

test('types, required properties, integers and numbers, null, nested objects and arrays of objects', () => {
  const schema = schemaOf([
    { total: 5, quantity: 1, gift: true, note: null, items: [{ sku: 'a', price: 1.5 }, { sku: 'b' }], ship: { fast: false } },
    { total: 5.5, quantity: 2, gift: false, note: 'for you', coupon: null, items: [], ship: { fast: true, floor: 2 } },
  ])
  assert.deepEqual(schema, {
    type: 'object',
    properties: {
      coupon: {},
      gift: { type: 'boolean' },
      items: {
        type: 'array',
        items: {
          type: 'object',
          properties: { price: { type: 'number' }, sku: { type: 'string' } },
          required: ['sku'],
          additionalProperties: false,
        },
      },
      note: { type: ['string', 'null'] },
      quantity: { type: 'integer' },
      ship: {
        type: 'object',
        properties: { fast: { type: 'boolean' }, floor: { type: 'integer' } },
        required: ['fast'],
        additionalProperties: false,
      },
      total: { type: 'number' },
    },
    required: ['gift', 'items', 'note', 'quantity', 'ship', 'total'],
    additionalProperties: false,
  })
})

test('formats, if all strings have them', () => {
  const { properties } = schemaOf([
    {
      at: '2026-11-14T09:00:00Z',
      mail: 'a.b+c@example.com',
      page: 'https://example.com/a?b=1#c',
      ref: '3f1d9c9e-8d5c-4a7e-9f57-6a0f0b6a2f11',
      mixed: 'a@example.com',
      day: '2026-02-30T09:00:00Z',
    },
    {
      at: '2026-11-14T09:00:00.123+01:00',
      mail: 'x@y.org',
      page: 'http://localhost:3000',
      ref: 'C0FFEE00-8d5c-4a7e-9f57-6a0f0b6a2f11',
      mixed: 'a',
      day: '2026-02-28T09:00:00Z',
    },
  ])
  const formats = Object.entries(properties as JsonObject).map(([name, { format }]) => [name, format])
  assert.deepEqual(Object.fromEntries(formats), {
    at: 'date-time',
    mail: 'email',
    page: 'uri',
    ref: 'uuid',
    mixed: undefined,
    day: undefined,
  })
})

test('an enum, if there are few strings, each sent several times and by several users', () => {
  const values = (name: string, of: (index: number) => unknown, users?: number): unknown =>
    schemaOf(
      times(24, (index) => ({ [name]: of(index) })),
      users,
    )['properties'][name].enum
  const pick =
    (...texts: unknown[]) =>
    (index: number) =>
      texts[Math.floor(index / 4) % texts.length]
  assert.deepEqual(values('currency', pick('USD', 'EUR')), ['EUR', 'USD'])
  assert.deepEqual(values('currency', pick('USD', 'EUR'), 1), ['EUR', 'USD'], 'one user in all')
  assert.deepEqual(values('currency', pick('USD', null, 'EUR')), ['EUR', 'USD', null])
  assert.equal(values('currency', pick('USD')), undefined, 'one value')
  assert.equal(values('currency', pick('USD', 1)), undefined, 'other types')
  assert.equal(
    values('currency', (index) => (index === 7 ? 'SEK' : 'USD')),
    undefined,
    'a value that was sent once',
  )
  assert.equal(
    values('word', (index) => String.fromCharCode(97 + index)),
    undefined,
    'many values',
  )
  // Each user has a nickname, and nobody else sends it.
  assert.equal(
    values('nick', (index) => ['ann', 'ben', 'cem', 'dee'][index % 4]),
    undefined,
    'a value for each user',
  )
  for (const name of ['firstName', 'user_id', 'Emails', 'phone-number', 'shipping.city', 'lastname'])
    assert.equal(values(name, pick('one', 'two')), undefined, name)
  for (const text of ['a@b.co', '+49 30 1234', 'Ann Smith', 'a1b2c3d4', 'J**n', 'https://x.org', '3f1d9c9e-8d5c', '', 'x'.repeat(41)])
    assert.equal(values('kind', pick('one', text)), undefined, text)
  for (const text of ['credit_card', 'v2.1', 'same day', 'A+', 'größe l', 'en-GB']) assert.ok(values('kind', pick('one', text)), text)
})

test('names of properties that look personal or generated are not in the plan, but their values have a schema', () => {
  const { properties, required, additionalProperties } = schemaOf([
    { 'ann@example.com': 1, order_10452: 2, ok: 1, constructor: 3 },
    JSON.parse('{ "__proto__": 2.5, "ok": 2 }') as JsonObject,
  ])
  assert.deepEqual(properties, { ok: { type: 'integer' } })
  assert.deepEqual([required, additionalProperties], [['ok'], { type: 'number' }])
  const many = schemaOf([
    Object.fromEntries(times(300, (index) => [`n${'abcdefghij'[index % 10]}${index % 30}${'x'.repeat(index)}`, 'text'])),
  ])
  assert.ok(Object.keys(many['properties']).length <= 200)
  assert.deepEqual(many['additionalProperties'], { type: 'string' })
})

test('a rule for each event and type, in a stable order; events with generated names are left out and allowed', () => {
  const of = (type: string, more: JsonObject = {}): JsonObject => ({ type, userId: 'u', ...more })
  const messages = [
    of('track', { event: 'b' }),
    of('page', { name: 'Home', properties: { title: 'x' } }),
    of('track', { event: 'a', properties: null }),
    of('group', { groupId: 'g', traits: { size: 3 } }),
    of('identify', { traits: { plan: 'pro' } }),
    of('alias', { previousId: 'x' }),
    of('delete'),
  ]
  const { plan, messages: count, leftOut } = learn(messages)
  assert.deepEqual(
    plan.rules.map(({ type, event }) => [type, event]),
    [
      ['track', 'a'],
      ['track', 'b'],
      ['identify', undefined],
      ['page', undefined],
      ['group', undefined],
    ],
  )
  assert.deepEqual([plan.name, plan.unplanned, count, leftOut], ['shop', 'observe', 5, { events: 0, messages: 0 }])
  assert.deepEqual(plan, learn(messages.map((_, index) => messages.at(-1 - index) as JsonObject)).plan)

  const generated = learn([of('track', { event: 'Order 123456 shipped' }), of('track', { event: 'ok' })])
  assert.deepEqual([generated.plan.unplanned, generated.plan.rules.length, generated.leftOut], ['allow', 1, { events: 1, messages: 1 }])
})

test('memory and the size of the plan are bounded, and what is not described is allowed', () => {
  const letters = (index: number): string => index.toString(36).replaceAll(/\d/g, (digit) => 'ABCDEFGHIJ'[Number(digit)] as string)
  const wide = times(2_100, (event) => ({
    type: 'track',
    event: letters(event),
    userId: 'u',
    properties: Object.fromEntries(times(30, (index) => [letters(event * 30 + index), { deep: index }])),
  }))
  const { plan, leftOut } = learn(wide)
  assert.ok(JSON.stringify(plan).length < 1_000_000)
  assert.equal(plan.rules.length + leftOut.events, 2_100)
  assert.equal(plan.unplanned, 'allow')
  let nested: JsonObject = { end: 1 }
  for (let depth = 0; depth < 2_000; depth++) nested = { nested }
  assert.ok(JSON.stringify(schemaOf([nested, { nested: 1 }])).length < 2_000)
})

test('a learned schema accepts every message that it was learned from', () => {
  const ajv = addFormats.default(new Ajv2020({ strict: false }))
  const text = fc.oneof(
    fc.constantFrom('red', 'blue', 'green', '', 'a@b.co'),
    fc.emailAddress(),
    fc.webUrl({ withFragments: true, withQueryParameters: true }),
    fc.uuid(),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc.string({ unit: 'binary' }),
  )
  const { value } = fc.letrec<{ value: unknown; object: JsonObject }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
      tie('object'),
      fc.array(tie('value'), { maxLength: 4 }),
    ),
    object: fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', 'kind', '__proto__', 'toString', 'id12345'), text), tie('value'), {
      maxKeys: 5,
    }),
  }))
  const properties = fc.dictionary(fc.constantFrom('a', 'b', 'kind', 'é'), value, { maxKeys: 5 })
  fc.assert(
    fc.property(fc.array(properties, { minLength: 1, maxLength: 30 }), fc.integer({ min: 1, max: 5 }), (sent, users) => {
      const read = sent.map((each) => JSON.parse(JSON.stringify(each)) as JsonObject)
      const validate = ajv.compile(schemaOf(read, users))
      for (const each of read) assert.ok(validate(each), JSON.stringify(validate.errors))
    }),
    { numRuns: 60 },
  )
})
