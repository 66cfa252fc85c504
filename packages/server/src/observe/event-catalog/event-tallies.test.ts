import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AT_MS, accepted } from '../fixtures/events.ts'
import {
  addToCounts,
  addToProperties,
  countsUntil,
  DAYS_KEPT,
  type EventCounts,
  type EventDelta,
  type EventProperties,
  eventKey,
  HOUR_MS,
  HOURS_KEPT,
  MAX_EVENT_NAME,
  MAX_PROPERTIES_PER_EVENT,
  MAX_PROPERTY_PATH,
  sum,
  sumUntil,
} from './event-documents.ts'
import { EventTallies } from './event-tallies.ts'

const track = (event: string, properties: object = {}) => ({ type: 'track', userId: 'u', event, properties })

function received(atMs: number, items: object[], repeated: number[] = [], sourceId = 's') {
  const event = accepted(sourceId, items, repeated)
  return { ...event, content: { ...event.content, receivedAtMs: atMs } }
}

function stored(deltas: readonly EventDelta[]) {
  const counts = new Map<string, EventCounts>()
  const properties = new Map<string, EventProperties>()
  for (const delta of deltas) {
    const key = delta.type === null ? 'other' : `${delta.type} ${delta.event}`
    counts.set(key, addToCounts(counts.get(key), delta))
    properties.set(key, addToProperties(properties.get(key), delta))
  }
  return { counts, properties }
}

test('counts of several nodes, written at any time and put back after failed writes, add up exactly', () => {
  const message = fc.record({
    node: fc.nat(2),
    hour: fc.nat(200),
    event: fc.constantFrom('A', 'B', '__proto__', ''),
    next: fc.constantFrom('nothing', 'nothing', 'write', 'fail'),
  })
  fc.assert(
    fc.property(fc.array(message, { maxLength: 60 }), (messages) => {
      const nodes = [new EventTallies(), new EventTallies(), new EventTallies()]
      const written: EventDelta[] = []
      for (const { node, hour, event, next } of messages) {
        const tallies = nodes[node] as EventTallies
        tallies.add(received(AT_MS + hour * HOUR_MS, [track(event), { type: 'page', userId: 'u' }, track(event)], [2]))
        if (next === 'nothing') continue
        const taken = tallies.take()
        if (next === 'fail') tallies.putBack(taken)
        else written.push(...taken)
      }
      for (const tallies of nodes) written.push(...tallies.take())
      const { counts } = stored(written)
      const last = Math.floor(AT_MS / HOUR_MS) + Math.max(0, ...messages.map(({ hour }) => hour))
      for (const name of new Set(messages.map(({ event }) => event))) {
        const own = messages.filter(({ event }) => event === name)
        const { total, firstMs, lastMs, hours, days } = counts.get(`track ${name}`) as EventCounts
        assert.equal(total, own.length)
        assert.equal(firstMs, AT_MS + Math.min(...own.map(({ hour }) => hour)) * HOUR_MS)
        assert.equal(lastMs, AT_MS + Math.max(...own.map(({ hour }) => hour)) * HOUR_MS)
        const byHour = countsUntil(hours, last, HOURS_KEPT)
        for (let back = 0; back < HOURS_KEPT; back++) {
          const expected = own.filter(({ hour }) => Math.floor(AT_MS / HOUR_MS) + hour === last - back).length
          assert.equal(byHour[HOURS_KEPT - 1 - back], expected)
        }
        assert.equal(sumUntil(hours, last - 3, 24), sum(countsUntil(hours, last - 3, 24)))
        assert.equal(sum(countsUntil(days, Math.floor(last / 24), DAYS_KEPT)), own.length)
      }
      assert.equal(counts.get('page null')?.total ?? 0, messages.length)
    }),
    { numRuns: 200 },
  )
})

test('duplicates and messages that the service makes itself are not counted', () => {
  const tallies = new EventTallies()
  tallies.add(received(AT_MS, [track('A'), track('A'), { type: 'delete', userId: 'u' }, { type: 'dead_letter', event: 'A' }], [1]))
  const taken = tallies.take()
  assert.deepEqual(
    taken.map(({ type, event, hours }) => [type, event, sum([...hours.values()])]),
    [['track', 'A', 1]],
  )
  assert.deepEqual(tallies.take(), [])
})

test('types are counted for each path; only the first element of an array is examined', () => {
  const tallies = new EventTallies()
  tallies.add(
    received(AT_MS, [
      track('A', { total: 1, products: [{ id: 'x' }, { other: 1 }], to: { city: 'Rome', geo: { at: { lat: 1 } } }, coupon: null }),
      track('A', { total: '1', ['__proto__']: true, constructor: [] }),
      { type: 'identify', userId: 'u', traits: { plan: 'pro' }, properties: { ignored: true } },
      { type: 'alias', userId: 'u', previousId: 'v' },
      { type: 'page', userId: 'u', properties: 'not an object' },
    ]),
  )
  const { properties } = stored(tallies.take())
  const shown = (key: string) =>
    Object.fromEntries((properties.get(key)?.properties ?? []).map(([path, , , counts]) => [path, counts.join('')]))
  assert.deepEqual(shown('track A'), {
    total: '110000',
    products: '000010',
    to: '000100',
    coupon: '000001',
    ['__proto__']: '001000',
    constructor: '000010',
    'products[].id': '100000',
    'to.city': '100000',
    'to.geo': '000100',
    'to.geo.at': '000100',
  })
  assert.deepEqual(shown('identify null'), { plan: '100000' })
  assert.deepEqual([shown('alias null'), shown('page null')], [{}, {}])
  assert.equal(properties.get('track A')?.examined, 2)
})

test('of a frequent event a sample is examined, and every kind of message is in it', () => {
  let seed = 1
  const tallies = new EventTallies({ random: () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647 })
  // Two kinds of messages take turns: a sample at regular intervals would see only one of them.
  const items = Array.from({ length: 320 }, (_, at) => track('A', at % 2 === 0 ? { even: 1 } : { odd: 1 }))
  for (let batch = 0; batch < 100; batch++) tallies.add(received(AT_MS, items))
  const { counts, properties } = stored(tallies.take())
  assert.equal(counts.get('track A')?.total, 32_000)
  const { examined, properties: seen } = properties.get('track A') as EventProperties
  assert.ok(examined > 200 && examined < 350, `${examined} examined`)
  for (const [path, , , own] of seen) assert.ok(Math.abs(sum(own) / examined - 0.5) < 0.1, `${path}: ${sum(own)} of ${examined}`)
})

test('names are limited in number and length: the rest is counted as other', () => {
  const tallies = new EventTallies({ maxEvents: 3, maxProperties: 250 })
  const many = Object.fromEntries(Array.from({ length: 250 }, (_, at) => [`p${at}`, at]))
  tallies.add(
    received(AT_MS, [track('A', many), track('x'.repeat(MAX_EVENT_NAME + 1)), track('B', many), track('C'), track('D'), track('A')]),
  )
  assert.equal(tallies.size, 3)
  const { counts, properties } = stored(tallies.take())
  assert.deepEqual(
    [...counts].map(([key, { total }]) => [key, total]),
    [
      ['track A', 2],
      ['track B', 1],
      ['track C', 1],
      ['other', 2],
    ],
  )
  const a = properties.get('track A') as EventProperties
  assert.deepEqual([a.properties.length, a.other], [MAX_PROPERTIES_PER_EVENT, 50])
  assert.equal(properties.get('track B')?.properties.length, 50)
})

test('paths that are too long are counted as other without looking them up, because a lookup reads the whole path', (t) => {
  const long = 'x'.repeat(MAX_PROPERTY_PATH + 1)
  const inside = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`p${at}`, at]))
  const tallies = new EventTallies()
  const get = t.mock.method(Map.prototype, 'get')
  tallies.add(received(AT_MS, [track('A', { short: 1, [long]: inside })]))
  const lookups = get.mock.calls.filter(({ arguments: [key] }) => typeof key === 'string' && key.length > MAX_PROPERTY_PATH)
  get.mock.restore()
  const [{ properties, otherProperties } = assert.fail()] = tallies.take()
  assert.deepEqual([[...properties.keys()], otherProperties, lookups.length], [['short'], 101, 0])
})

test('a stored event has at most 200 properties, and properties that are no longer sent are dropped', () => {
  const delta = (atMs: number, names: string[]): EventDelta => {
    const tallies = new EventTallies()
    tallies.add(received(atMs, [track('A', Object.fromEntries(names.map((name) => [name, 1])))]))
    return tallies.take()[0] as EventDelta
  }
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => prefix + at)
  let document = addToProperties(undefined, delta(AT_MS, names('a', 150)))
  document = addToProperties(document, delta(AT_MS + 1, names('b', 80)))
  assert.deepEqual([document.properties.length, document.other, document.examined], [200, 30, 2])
  document = addToProperties(document, delta(AT_MS + 91 * 24 * HOUR_MS, ['b0', 'c0']))
  assert.deepEqual(
    document.properties.map(([path]) => path),
    ['b0', 'c0'],
  )
})

test('keys are safe in a URL and differ by source, type and name', () => {
  const names = ['A', 'a', '../..', '\u0000', '\ud800', '\ud801', 'x'.repeat(10_000), '', 'é'.normalize('NFD'), 'é'.normalize('NFC')]
  const keys = names.flatMap((name) => [eventKey('src_1', 'track', name), eventKey('src_2', 'track', name)])
  keys.push(eventKey('src_1', 'page', null), eventKey('src_1', 'identify', null))
  assert.equal(new Set(keys).size, keys.length)
  for (const key of keys) assert.match(key, /^src_[12]\.[\w-]{22}$/)
})
