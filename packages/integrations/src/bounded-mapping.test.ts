import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import * as fc from 'fast-check'
import { compiledMapping, useCompiled } from './bounded-mapping.ts'
import { readCatalog, readIntegration } from './catalog.ts'
import { ROOT_TRANSFORM_FIELD, require } from './definitions.ts'
import { integrationOf, MESSAGE, runSend } from './fixtures/integrations.ts'
import { library } from './library.ts'

const PAYLOAD = { data: { type: 'object', label: 'Data', description: 'Data.', additionalProperties: true } } as const

function keep(seen: unknown[]) {
  return integrationOf({
    fields: PAYLOAD,
    perform: (_, { payload }) => void seen.push(payload['data']),
    performBatch: (_, { payload }) => void seen.push(...payload.map(({ data }) => data)),
  })
}

test('a mapping reads no prototype, and ordinary values as before', async () => {
  const seen: unknown[] = []
  const data = {
    name: { '@path': '$.constructor.name' },
    inherited: { '@template': 'x{{properties.toString}}' },
    total: { '@path': "$.properties['total']" },
    flat: { '@flatten': { value: { '@path': '$.nested' }, separator: '_' } },
  }
  await runSend(keep(seen), { mapping: { data }, messages: [{ ...MESSAGE, nested: { a: { b: 1 }, c: [2, 3] } }] })
  assert.deepEqual(seen, [{ inherited: 'x', total: 12, flat: { a_b: 1, c_0: 2, c_1: 3 } }])
})

test('flattening 20,000 keys takes time in proportion to the keys', async () => {
  const flattened = (count: number): number => {
    const keys = Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))
    const startedAt = process.cpuUsage()
    const mapping = { data: { '@flatten': { value: { '@path': '$.properties' }, separator: '.' } } }
    const { data } = library().transform(mapping, { properties: keys }) as { data: object }
    assert.equal(Object.keys(data).length, count)
    return process.cpuUsage(startedAt).user
  }
  flattened(2_000)
  // The library's own function takes about 300 ms for 2,000 keys, and a hundred times as long for ten times as many.
  const micros = flattened(20_000)
  assert.ok(micros < 5_000_000, `${micros} µs of CPU time`)
})

test('what one message may read is limited: it fails alone, also in a batch', async () => {
  const seen: unknown[] = []
  const copies = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`copy${at}`, { '@path': '$.properties' }]))
  const huge = { ...MESSAGE, properties: { text: 'x'.repeat(30_000) } }
  const { results } = await runSend(keep(seen), { mapping: { data: copies }, messages: [MESSAGE, huge, MESSAGE] })
  assert.deepEqual(
    results.map((result) => (result.kind === 'failed' ? [result.code, result.message] : result.kind)),
    ['success', ['invalid_payload', 'The mapping results in more than 1000000 characters for this message.'], 'success'],
  )
  assert.equal(seen.length, 2)
})

/** The library's own kit, loaded a second time beside the bounded one. */
function ownTransform(): (mapping: object, data: object) => unknown {
  const folder = join(dirname(require.resolve('@segment/actions-core')), '/')
  const take = (): [string, NodeJS.Module | undefined][] => {
    const found = Object.entries(require.cache).filter(([path]) => path.startsWith(folder))
    for (const [path] of found) delete require.cache[path]
    return found
  }
  const bounded = take()
  const { transform } = require(join(folder, 'mapping-kit')) as { transform: (mapping: object, data: object) => unknown }
  take()
  for (const [path, loaded] of bounded) require.cache[path] = loaded
  return transform
}

/** Not as a literal: an object with `then` could be taken for a promise. */
function branches(exists: unknown, some: unknown, other: unknown): object {
  return {
    '@if': Object.fromEntries(Object.entries({ exists, some, else: other }).map(([key, value]) => [key === 'some' ? 'then' : key, value])),
  }
}

const KEY = fc.constantFrom('userId', 'event', 'total', 'nested', 'list', 'missing')
const PATH = fc.array(KEY, { minLength: 1, maxLength: 2 }).map((keys) => keys.join('.'))
const { value: VALUE } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom('text', 5, true, null),
    PATH.map((path) => ({ '@path': `$.${path}` })),
    PATH.map((path) => ({ '@template': `<{{${path}}}>` })),
    PATH.map((path) => ({ '@arrayPath': [`$.${path}`, { item: { '@path': '$.total' } }] })),
    fc.dictionary(KEY, tie('value'), { maxKeys: 3 }),
    fc.tuple(PATH, tie('value')).map(([path, other]) => ({ '@if': { blank: { '@path': `$.${path}` }, else: other } })),
    fc.tuple(PATH, tie('value'), tie('value')).map(([path, some, other]) => branches({ '@path': `$.${path}` }, some, other)),
    fc.dictionary(KEY, tie('value'), { maxKeys: 2 }).map((value) => ({ '@flatten': { value, separator: '_' } })),
    fc
      .tuple(fc.dictionary(KEY, tie('value'), { maxKeys: 2 }), fc.dictionary(KEY, tie('value'), { maxKeys: 2 }))
      .map(([apply, mapping]) => ({ '@transform': { apply, mapping } })),
  ),
}))
const RICH = {
  messageId: 'm1',
  type: 'track',
  event: 'Order Completed',
  userId: 'u1',
  anonymousId: 'a1',
  groupId: 'g1',
  timestamp: '2026-11-14T09:00:00.000Z',
  traits: { email: 'a@example.com', address: { city: 'Graz' }, tags: ['a', 'b'] },
  properties: { total: 12.5, revenue: 0, currency: '', products: [{ sku: 'a', price: 6.25 }, { sku: 'b' }], coupon: null },
  context: { ip: '192.0.2.7', page: { url: 'https://shop.example/' }, traits: { plan: 'pro' }, device: { id: 'd1' } },
}
const FIELDS = fc.dictionary(KEY, VALUE, { maxKeys: 4 })
const DATA = fc.record({
  userId: fc.constantFrom('u1', ''),
  total: fc.integer({ max: 9 }),
  nested: fc.dictionary(KEY, fc.constantFrom('x', 1, null), { maxKeys: 3 }),
  list: fc.array(fc.record({ total: fc.integer({ max: 9 }) }), { maxLength: 2 }),
})

type Transform = (mapping: object, data: object) => unknown

function evaluated(transform: Transform, mapping: object, data: object): string {
  try {
    return JSON.stringify(transform(structuredClone(mapping), data))
  } catch (error) {
    // Without the lines of the stack, which the kit makes part of some messages.
    return `failed: ${(error as Error).message.replaceAll(/\n +at .*/g, '')}`
  }
}

/** As a run of an action evaluates its mapping. */
const compiled: Transform = (mapping, data) => {
  library()
  const found = compiledMapping(mapping)
  if (found !== null) useCompiled(mapping, found)
  return library().transform(mapping, data)
}

test('a compiled mapping has the same result as the library, in the same order, or the same error', () => {
  const own = ownTransform()
  fc.assert(
    fc.property(FIELDS, DATA, (fields, data) => {
      assert.equal(evaluated(compiled, fields, data), evaluated(own, fields, data))
    }),
    { numRuns: 2_000 },
  )
  const unusual: readonly object[] = [
    { a: { '@path': '$.' }, b: { '@path': '' }, c: { '@path': '$.list[0].total' }, d: { '@path': "$.nested['a']" } },
    { a: { '@path': { '@template': '$.{{userId}}' } } },
    { a: { '@literal': { '@path': '$.total' } }, b: { '@literal': '{{total}}' }, c: [{ '@path': '$.total' }, { '@path': '$.missing' }] },
    { a: branches({ '@path': '$.nested' }, { '@path': '$.nested' }, 1), b: branches('', 1, 2) },
    { a: branches({ '@path': '$.missing' }, 1, ''), b: { '@if': {} } },
    { a: { '@arrayPath': [{ '@path': '$.list' }, { n: { '@path': '$.total' }, all: { '@template': '{{total}}' } }] } },
    { a: { '@arrayPath': ['$.nested', {}] }, b: { '@arrayPath': ['$.userId', { x: 1 }] }, c: { '@arrayPath': ['$.list'] } },
    { a: { '@arrayPath': ['$.list', { n: { '@case': { operator: 'upper', value: { '@path': '$.total' } } } }] } },
    { a: { '@path': '$.total', _metadata: {} }, b: { '@path': '$.total', other: 1 } },
    { a: { '@unknown': 1 }, b: { x: { '@case': { operator: 'upper', value: { '@path': '$.userId' } } }, y: undefined } },
    { '@path': '$.nested' },
    { a: { '@merge': { direction: 'left', objects: [{ '@path': '$.nested' }, { z: 1 }] } }, '@b': 1 },
  ]
  const data = { userId: 'u1', total: 5, nested: { a: 1, b: null, c: { d: [1, { e: 2 }] } }, list: [{ total: 1 }, { total: 2 }] }
  for (const mapping of unusual) assert.equal(evaluated(compiled, mapping, data), evaluated(own, mapping, data), JSON.stringify(mapping))
})

test('the compiled mapping of every preset has the same result as the library, and shares nothing with the message', async () => {
  const own = ownTransform()
  const integrations = await Promise.all((await readCatalog()).map(({ slug }) => readIntegration(slug)))
  const mappings = integrations.flatMap((integration) => integration?.presets.map(({ mapping }) => mapping) ?? [])
  assert.ok(mappings.length > 400)
  for (const mapping of mappings) {
    for (const message of [RICH, { ...RICH, type: 'identify', context: {}, properties: undefined }, {}]) {
      const before = JSON.stringify(message)
      assert.equal(evaluated(compiled, mapping, message), evaluated(own, mapping, message), JSON.stringify(mapping))
      assert.equal(JSON.stringify(message), before)
    }
  }
  const mapping = { a: { '@path': '$.properties' }, b: { '@path': '$.properties' } }
  const { a, b } = compiled(mapping, RICH) as { a: object; b: object }
  assert.ok(a !== b && a !== RICH.properties)
})

test('the library takes the same values for objects as before', () => {
  library()
  const file = join(dirname(require.resolve('@segment/actions-core')), 'real-type-of.js')
  const { isObject, realTypeOf } = require(file) as { isObject: (value: unknown) => boolean; realTypeOf: (value: unknown) => string }
  const made = [Object.create(null), new Date(0), new Map(), new Error('x'), new URL('https://a.example/'), Buffer.alloc(1)]
  const values = [...made, {}, [], null, undefined, 'text', 5, true, () => 0, { [Symbol.toStringTag]: 'Other' }, AbortSignal.abort()]
  for (const value of values) assert.equal(isObject(value), realTypeOf(value) === 'object', realTypeOf(value))
})

test('a @transform around or beside all fields has the same result as with the library', () => {
  const own = ownTransform()
  const bounded: typeof own = (mapping, data) => library().transform(mapping, data)
  fc.assert(
    fc.property(FIELDS, FIELDS, DATA, (apply, fields, data) => {
      const beside = { [ROOT_TRANSFORM_FIELD]: { '@transform': { apply } }, ...fields }
      const expected = evaluated(own, { '@transform': { apply, mapping: fields } }, data)
      assert.equal(evaluated(own, beside, data), expected)
      assert.equal(evaluated(bounded, beside, data), expected)
    }),
    { numRuns: 500 },
  )
})

test('fields read what a @transform beside them results in, also to form batches, and count towards one limit', async () => {
  const seen: unknown[][] = []
  const integration = integrationOf({
    fields: {
      ...PAYLOAD,
      list: { type: 'string', label: 'List', description: 'List.' },
      batch_keys: { type: 'string', multiple: true, label: 'Keys', description: 'Keys.', default: ['list'] },
    },
    perform: (_, { payload }) => void seen.push([payload['list']]),
    performBatch: (_, { payload }) => void seen.push(payload.map(({ list }) => list)),
  })
  const root = { '@transform': { apply: { of: { '@path': '$.properties.list' } } } }
  const mapping: JsonObject = { [ROOT_TRANSFORM_FIELD]: root, list: { '@path': '$.of' } }
  const messages = ['a', 'b', 'a'].map((list) => Object.assign({}, MESSAGE, { properties: { list } }))
  const { results } = await runSend(integration, { mapping, messages })
  assert.deepEqual(
    results.map(({ kind }) => kind),
    ['success', 'success', 'success'],
  )
  assert.deepEqual(
    seen.sort((one, other) => other.length - one.length),
    [['a', 'a'], ['b']],
  )
  const copies = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`copy${at}`, { '@path': '$.of' }]))
  const huge = { ...MESSAGE, properties: { list: 'x'.repeat(30_000) } }
  const { results: limited } = await runSend(integration, { mapping: { ...mapping, data: copies }, messages: [huge] })
  assert.deepEqual(limited[0]?.kind === 'failed' && limited[0].code, 'invalid_payload')
})
