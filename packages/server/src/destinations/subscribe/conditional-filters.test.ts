import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import type { ConditionalFilter } from '../../model/configuration.ts'
import type { SegmentContent } from '../../model/messages.ts'
import { compiledFilters } from './conditional-filters.ts'

const CONTENT: SegmentContent = {
  sourceId: 's',
  receivedAtMs: 0,
  ip: null,
  browser: false,
  sentAt: null,
  context: { tenant: 'shop' },
  integrations: null,
  trace: null,
  items: [],
}

function filterOf(about: Partial<ConditionalFilter> & Pick<ConditionalFilter, 'action'>): ConditionalFilter {
  return { name: null, enabled: true, when: null, share: null, path: null, fields: null, ...about }
}

function reduced(message: JsonObject, ...filters: ConditionalFilter[]): JsonObject | undefined {
  return compiledFilters(filters).reduced?.(message, message, CONTENT)
}

test('a drop filter excludes the messages that match, also by the context of their batch, but never a deletion request or a dead letter', () => {
  const { exclusion, reduced: none } = compiledFilters([
    filterOf({ action: 'drop', when: 'event = "Internal" and context.tenant = "shop"' }),
    filterOf({ action: 'drop', when: 'type = "page"', enabled: false }),
  ])
  assert.equal(none, null)
  assert.equal(exclusion({ type: 'track', event: 'Internal' }, CONTENT), 'conditional_filter')
  assert.equal(exclusion({ type: 'track', event: 'Internal' }, { ...CONTENT, context: null }), null)
  assert.equal(exclusion({ type: 'track', event: 'Other' }, CONTENT), null)
  assert.equal(exclusion({ type: 'page' }, CONTENT), null, 'the filter is disabled')
  const all = compiledFilters([filterOf({ action: 'drop' })])
  assert.deepEqual(
    ['track', 'delete', 'dead_letter'].map((type) => all.exclusion({ type }, CONTENT)),
    ['conditional_filter', null, null],
  )
})

test('a sample is the same for equal values, has about its share, and is all or nothing at its ends', () => {
  const sent = (filter: ConditionalFilter, items: readonly JsonObject[]): number => {
    const { exclusion } = compiledFilters([filter])
    return items.filter((item) => exclusion(item, CONTENT) === null).length
  }
  const messages = Array.from({ length: 10_000 }, (_, index) => ({ type: 'track', messageId: `m-${index}`, userId: `u-${index % 100}` }))
  for (const share of [0.1, 0.5]) {
    const count = sent(filterOf({ action: 'sample', share }), messages)
    assert.ok(Math.abs(count / messages.length - share) < 0.03, `${count} of ${messages.length} for ${share}`)
  }
  assert.deepEqual(
    [sent(filterOf({ action: 'sample', share: 0 }), messages), sent(filterOf({ action: 'sample', share: 1 }), messages)],
    [0, 10_000],
  )
  const byUser = filterOf({ action: 'sample', share: 0.5, path: 'userId' })
  for (const user of ['u-1', 'u-2', 'u-3', 'u-4']) {
    const of = messages.filter(({ userId }) => userId === user)
    assert.ok([0, of.length].includes(sent(byUser, of)), user)
  }
  assert.equal(
    compiledFilters([filterOf({ action: 'sample', share: 0 })]).exclusion({ type: 'track', messageId: 'm' }, CONTENT),
    'not_sampled',
  )
})

test('a sample by a path in the context reads the context that receivers get, with that of the batch and the address of a browser', () => {
  const { exclusion } = compiledFilters([filterOf({ action: 'sample', share: 0.5, path: 'context.device.id' })])
  const isSent = (index: number, deviceOf: 'item' | 'batch', id: string): boolean => {
    const context = { device: { id } }
    const item = { type: 'track', messageId: `m-${index}`, ...(deviceOf === 'item' ? { context } : {}) }
    return exclusion(item, { ...CONTENT, context: deviceOf === 'batch' ? context : { device: { id: 'other' } } }) === null
  }
  const devices = Array.from({ length: 40 }, (_, index) => `d-${index}`)
  const sent = devices.filter((id, index) => isSent(index, 'item', id))
  assert.ok(sent.length > 0 && sent.length < devices.length)
  for (const id of devices)
    for (let index = 0; index < 20; index++) assert.equal(isSent(index, 'batch', id), sent.includes(id), `${id} in message ${index}`)

  const byAddress = compiledFilters([filterOf({ action: 'sample', share: 0.5, path: 'context.ip' })])
  const byContext = compiledFilters([filterOf({ action: 'sample', share: 0.5, path: 'context' })])
  for (const ip of ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'])
    for (const filters of [byAddress, byContext]) {
      const results = Array.from({ length: 20 }, (_, index) =>
        filters.exclusion({ type: 'track', messageId: `m-${index}` }, { ...CONTENT, browser: true, ip }),
      )
      assert.equal(new Set(results).size, 1, ip)
    }
})

test('properties are removed from copies: by path, in lists, and in the message itself', () => {
  const message = {
    type: 'track',
    userId: 'u',
    'User ID': 'u',
    properties: { email: 'e', total: 5, products: [{ id: 1, price: 2 }, { id: 3, price: 4 }, 'x'] },
    context: { traits: { email: 'e', plan: 'p' }, ip: '1.2.3.4' },
  }
  const before = structuredClone(message)
  const fields = {
    properties: ['email', 'missing'],
    'properties.products': ['price'],
    'context.traits': ['email'],
    '': ['userId'],
    'a.b': ['c'],
  }
  assert.deepEqual(reduced(message, filterOf({ action: 'drop_properties', fields })), {
    type: 'track',
    properties: { total: 5, products: [{ id: 1 }, { id: 3 }, 'x'] },
    context: { traits: { plan: 'p' }, ip: '1.2.3.4' },
  })
  assert.deepEqual(reduced(message, filterOf({ action: 'allow_properties', fields: { properties: ['total'], 'context.traits': [] } })), {
    ...before,
    properties: { total: 5 },
    context: { traits: {}, ip: '1.2.3.4' },
  })
  const conditional = filterOf({ action: 'drop_properties', fields: { properties: ['email'] }, when: 'event = "Other"' })
  assert.equal(reduced(message, conditional), message, 'it does not match')
  for (const type of ['delete', 'dead_letter'])
    assert.deepEqual(reduced({ type, userId: 'u' }, filterOf({ action: 'drop_properties', fields: { '': ['userId'] } })), {
      type,
      userId: 'u',
    })
  assert.deepEqual(message, before)
})

test('of a dead letter, the message in it loses properties, and nothing else', () => {
  const letterOf = (message: JsonObject | null): JsonObject => ({ type: 'dead_letter', messageId: 'l', destination: { id: 'd' }, message })
  const filters = [
    filterOf({
      action: 'drop_properties',
      when: 'type = "track" and context.tenant = "shop"',
      fields: { properties: ['email'], '': ['destination'] },
    }),
    filterOf({ action: 'drop_properties', when: 'userId = "u"', fields: { '': ['userId'] } }),
    filterOf({ action: 'allow_properties', when: 'type = "identify"', fields: { traits: ['plan'] } }),
  ]
  for (const [message, sent] of [
    [
      { type: 'track', userId: 'u', properties: { email: 'e', total: 5 } },
      { type: 'track', properties: { total: 5 } },
    ],
    [
      { type: 'identify', traits: { email: 'e', plan: 'p' } },
      { type: 'identify', traits: { plan: 'p' } },
    ],
    [
      { type: 'alias', 'User ID': 'u', 'Previous ID': 'p' },
      { type: 'alias', 'Previous ID': 'p' },
    ],
    [
      { type: 'delete', userId: 'u' },
      { type: 'delete', userId: 'u' },
    ],
    [letterOf({ type: 'track', properties: { email: 'e' } }), letterOf({ type: 'track', properties: {} })],
    [null, null],
  ] as const)
    assert.deepEqual(reduced(letterOf(message), ...filters), letterOf(sent))
})

test('keys of Object.prototype are ordinary keys', () => {
  const message = JSON.parse('{"type":"track","properties":{"__proto__":{"x":1},"constructor":2}}') as JsonObject
  const dropped = reduced(
    message,
    filterOf({ action: 'drop_properties', fields: { 'properties.__proto__': ['x'], constructor: ['name'] } }),
  )
  assert.equal(JSON.stringify(dropped), '{"type":"track","properties":{"__proto__":{},"constructor":2}}')
})
