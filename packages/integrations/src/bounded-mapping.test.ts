import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import * as fc from 'fast-check'
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
    fc.dictionary(KEY, tie('value'), { maxKeys: 2 }).map((value) => ({ '@flatten': { value, separator: '_' } })),
    fc
      .tuple(fc.dictionary(KEY, tie('value'), { maxKeys: 2 }), fc.dictionary(KEY, tie('value'), { maxKeys: 2 }))
      .map(([apply, mapping]) => ({ '@transform': { apply, mapping } })),
  ),
}))
const FIELDS = fc.dictionary(KEY, VALUE, { maxKeys: 4 })
const DATA = fc.record({
  userId: fc.constantFrom('u1', ''),
  total: fc.integer({ max: 9 }),
  nested: fc.dictionary(KEY, fc.constantFrom('x', 1, null), { maxKeys: 3 }),
  list: fc.array(fc.record({ total: fc.integer({ max: 9 }) }), { maxLength: 2 }),
})

test('a @transform around or beside all fields has the same result as with the library', () => {
  const own = ownTransform()
  const evaluated = (transform: (mapping: object, data: object) => unknown, mapping: object, data: object): string => {
    try {
      return JSON.stringify(transform(structuredClone(mapping), data))
    } catch (error) {
      return `failed: ${(error as Error).message}`
    }
  }
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
