import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameOf, outcomeSentence, outcomesOf, outcomeText, pathsIn, type Row, valueAt } from './message-row.ts'
import { searchOf, suggestionsFor } from './suggestions.ts'

const NAMES = new Map([
  ['d1', 'CRM'],
  ['d2', 'Warehouse'],
])
const delivery = (destinationId: string, state: Row['deliveries'][number]['state'], reason: string | null = null) => {
  return { id: `${destinationId}-0`, destinationId, state, reason }
}

test('what needs attention comes first, and a replay counts instead of the delivery that it repeats', () => {
  const deliveries = [delivery('d2', 'delivered'), delivery('d1', 'failed', 'http_500')]
  const outcomes = outcomesOf({ deliveries }, NAMES)
  assert.deepEqual(
    outcomes.map(({ name, state }) => [name, state]),
    [
      ['CRM', 'failed'],
      ['Warehouse', 'delivered'],
    ],
  )
  assert.equal(outcomeText(outcomes), 'failed: CRM')
  assert.match(outcomeSentence(outcomes[0] as never), /^CRM: failed\. .*500/)
  const replayed = outcomesOf({ deliveries: [...deliveries, delivery('d1', 'delivered')] }, NAMES)
  assert.equal(outcomeText(replayed), 'delivered')
})

test('the outcome in words', () => {
  const text = (...states: Row['deliveries'][number]['state'][]) =>
    outcomeText(outcomesOf({ deliveries: states.map((state, at) => delivery(`d${at + 1}`, state)) }, NAMES))
  assert.equal(text(), 'no destination')
  assert.equal(text('pending', 'pending'), 'pending: 2 destinations')
  assert.equal(text('delivered', 'expired'), 'expired: Warehouse')
  assert.equal(text(null, 'delivered'), 'unknown')
})

const message = { type: 'track', properties: { plan: 'pro', total: 7, items: [{ sku: 'a' }], 'a.b': 1, deep: { x: null } }, traits: {} }

test('values and paths of properties', () => {
  assert.equal(valueAt(message, 'properties.plan'), 'pro')
  assert.equal(valueAt(message, 'total'), '7')
  assert.equal(valueAt(message, 'constructor'), '')
  assert.equal(valueAt(null, 'plan'), '')
  assert.deepEqual(pathsIn([message, null]), ['properties.deep.x', 'properties.items.sku', 'properties.plan', 'properties.total'])
  assert.equal(nameOf({ type: 'page', event: null, message: { name: 'Pricing' } }), 'Pricing')
  assert.equal(nameOf({ type: null, event: null, message: null }), 'Content deleted')
})

test('suggestions are events, users and properties that contain the text', () => {
  const row = { userId: 'ann-pro', anonymousId: null, message } as unknown as Row
  const known = { events: ['Order Completed', 'Product Viewed'], matching: [row, row], others: [] }
  assert.deepEqual(suggestionsFor('pro', known), [
    { kind: 'event', value: 'Product Viewed' },
    { kind: 'user', value: 'ann-pro' },
    ...['deep.x', 'items.sku', 'plan', 'total'].map((name) => ({ kind: 'property', value: `properties.${name}` })),
  ])
  assert.deepEqual(suggestionsFor('properties.plan=p', known), [{ kind: 'property', value: 'properties.plan=pro' }])
  assert.deepEqual(suggestionsFor(' ', known), [])
})

test('what Enter searches for', () => {
  assert.deepEqual(searchOf(' ann '), { search: 'ann', property: null })
  assert.deepEqual(searchOf('plan=pro'), { search: null, property: 'plan=pro' })
  assert.deepEqual(searchOf('properties.plan'), { search: null, property: 'properties.plan' })
  assert.deepEqual(searchOf('ann@example.com'), { search: 'ann@example.com', property: null })
  assert.deepEqual(searchOf('a = b'), { search: 'a = b', property: null })
  assert.deepEqual(searchOf(''), { search: null, property: null })
})
