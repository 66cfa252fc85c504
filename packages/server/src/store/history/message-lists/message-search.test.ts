import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasProperty, hasText } from './message-search.ts'

test('a text is found in ids, names and email addresses, in upper or lower case, and nowhere else', () => {
  const item = {
    type: 'track',
    userId: 'User-1',
    event: 'Order Completed',
    properties: { email: 'Ann@example.com', secret: 'hidden' },
    context: { traits: { name: 'Ann Lee' }, page: { url: 'elsewhere' } },
  }
  for (const text of ['user-1', 'ORDER', 'ann@', 'lee']) assert.equal(hasText(item, text), true, text)
  for (const text of ['hidden', 'elsewhere', 'track']) assert.equal(hasText(item, text), false, text)
  assert.equal(hasText({ userId: 7, event: ['x'], traits: null }, 'x'), false)
})

const ITEM = JSON.parse(`{
  "userId": "u", "__proto__": { "polluted": "yes" },
  "properties": { "plan": "Professional", "total": 10, "paid": true, "none": null, "empty": [], "tags": ["a", "Blue"], "items": [{ "sku": "1" }, { "sku": "2" }], "object": { "a": 1 } }
}`) as Record<string, unknown>

const cases: [path: string, value: string | undefined, expected: boolean][] = [
  ['properties.plan', 'prof', true],
  ['plan', 'SION', true],
  ['plan', 'free', false],
  ['userId', 'u', true],
  ['total', '1', false],
  ['total', '10', true],
  ['paid', 'TRUE', true],
  ['none', 'null', true],
  ['empty', undefined, true],
  ['empty', '', false],
  ['tags', 'blue', true],
  ['items.sku', '2', true],
  ['items.sku', '3', false],
  ['object', undefined, true],
  ['object', 'object', false],
  ['plan.length', undefined, false],
  ['constructor', undefined, false],
  ['toString', undefined, false],
  ['__proto__.polluted', 'yes', true],
  ['properties.__proto__', undefined, false],
]
for (const [path, value, expected] of cases) {
  test(`${path}${value === undefined ? '' : `=${value}`} is ${expected ? 'found' : 'not found'}`, () => {
    assert.equal(hasProperty(ITEM, { path: path.split('.'), value }), expected)
  })
}
