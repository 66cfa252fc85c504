import assert from 'node:assert/strict'
import test from 'node:test'
import { featuresOf, MAX_FIELDS } from './message-features.ts'
import { DifferenceCounts } from './rank-differences.ts'

const ABOUT = { sourceId: 's', version: 1, bytes: 100 }
type Item = Parameters<typeof featuresOf>[0]

function ranked(failed: readonly Item[], delivered: readonly Item[], versions: readonly [number, number] = [1, 1]) {
  const counts = new DifferenceCounts()
  for (const message of failed) counts.add('failed', featuresOf(message, { ...ABOUT, version: versions[0] }))
  for (const message of delivered) counts.add('delivered', featuresOf(message, { ...ABOUT, version: versions[1] }))
  return counts.ranked(10).map(({ feature: { kind, path, value }, failed: f, delivered: d }) => [path.join('.'), kind, value, f, d])
}

const many = (count: number, of: (at: number) => object): Item[] => Array.from({ length: count }, (_, at) => ({ type: 'track', ...of(at) }))

test('the type, the presence and the value that separate messages are found, each field once, the best first', () => {
  const failed = many(20, (at) => ({ properties: { total: String(at), at, plan: 'free', address: { street: `s ${at}`, city: 'Lisbon' } } }))
  const delivered = many(30, (at) => ({ properties: { total: at, at, plan: at < 10 ? 'free' : 'paid' } }))
  assert.deepEqual(ranked(failed, delivered), [
    ['properties.address', 'presence', '', 20, 0],
    ['properties.total', 'type', 'string', 20, 0],
    ['properties.plan', 'value', '"free"', 20, 10],
  ])
})

test('elements of arrays, versions and sources count; without a difference, or with too few messages, nothing is listed', () => {
  const failed = many(5, () => ({ properties: { products: [{ price: 1 }, { price: null }] } }))
  const delivered = many(5, () => ({ properties: { products: [{ price: 1 }] } }))
  assert.deepEqual(ranked(failed, delivered, [2, 1]), [
    ['', 'version', '2', 5, 0],
    ['properties.products.[].price', 'type', 'null', 5, 0],
  ])
  assert.deepEqual(ranked(delivered, delivered), [])
  assert.deepEqual(ranked(failed.slice(0, 2), delivered), [])
})

test('chance is not listed: random values of a few messages differ, too', () => {
  const of = (seed: number) => many(4, (at) => ({ properties: { coin: (at + seed) % 2 === 0 } }))
  assert.deepEqual(ranked(of(0), of(1)), [])
})

test('hostile messages: names of prototypes, deep objects and 10,000 keys cost a bounded number of features', () => {
  const hostile = JSON.parse(
    '{"type":"track","properties":{"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":"x"}}',
  ) as Item
  const deep = JSON.parse(`{"type":"track","properties":${'{"a":'.repeat(90)}1${'}'.repeat(90)}}`) as Item
  const wide = { type: 'track', properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`key ${at}`, at])) }
  const long = { type: 'track', properties: { ['k'.repeat(10_000)]: 'v', text: 'v'.repeat(10_000) } }
  for (const message of [hostile, deep, wide, long]) assert.ok(featuresOf(message, ABOUT).size <= 3 * MAX_FIELDS + 10)
  assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false)
  assert.deepEqual(
    ranked(
      many(5, () => hostile),
      many(5, () => ({ properties: {} })),
    ).map(([path, kind]) => [path, kind]),
    [
      ['properties.__proto__', 'presence'],
      ['properties.constructor', 'presence'],
      ['properties.toString', 'presence'],
    ],
  )
  assert.deepEqual(
    ranked(
      many(5, () => wide),
      many(5, () => ({ properties: { 'key 1': 1 } })),
    )[0]?.[1],
    'presence',
  )
  for (const { path, value } of featuresOf(long, ABOUT).values()) assert.ok(value.length <= 100 && path.every((name) => name.length <= 100))
})
