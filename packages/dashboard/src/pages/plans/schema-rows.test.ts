import assert from 'node:assert/strict'
import { test } from 'node:test'
import { schemaNotes, schemaRows } from './schema-rows.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    total: { type: 'number', minimum: 0, description: 'With tax' },
    currency: { type: 'string', enum: ['EUR', 'USD'] },
    coupon: { type: ['string', 'null'], maxLength: 20 },
    products: {
      type: 'array',
      minItems: 1,
      maxItems: 50,
      items: { type: 'object', properties: { sku: { type: 'string', format: 'uuid' } }, required: ['sku'], additionalProperties: false },
    },
    tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$' } },
    shipping: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    special: { if: {}, not: { const: 3 } },
  },
  required: ['total', 'currency'],
  additionalProperties: false,
}

test('each property has a row with its type and limits in words', () => {
  const rows = schemaRows(SCHEMA)
  assert.deepEqual(
    rows.map(({ path, type, isRequired, limits }) => [path, type, isRequired, limits.join('; ')]),
    [
      ['total', 'number', true, 'at least 0'],
      ['currency', 'string', true, 'one of "EUR", "USD"'],
      ['coupon', 'string or null', false, 'at most 20 characters'],
      ['products', 'array of object', false, '1 to 50 elements'],
      ['products[].sku', 'string', true, 'format uuid'],
      ['tags', 'array of string', false, 'each matches ^[a-z]+$'],
      ['shipping', 'string or number', false, ''],
      ['special', 'any', false, 'further conditions: if, not'],
    ],
  )
  assert.equal(rows[0]?.description, 'With tax')
  assert.deepEqual(schemaNotes(SCHEMA), ['Other properties are not planned.'])
})

test('says what a table cannot show', () => {
  assert.deepEqual(schemaNotes({ allOf: [], $ref: '#/$defs/a' }), [
    'Other properties are allowed.',
    'Further conditions: allOf, $ref. The schema below has them in full.',
  ])
})

test('hostile schemas are bounded', () => {
  let deep: object = { type: 'string' }
  for (let at = 0; at < 1_000; at++) deep = { properties: { a: deep } }
  assert.ok(schemaRows(deep).length <= 8)
  assert.equal(schemaRows({ properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`p${at}`, true])) }).length, 500)
  assert.deepEqual(schemaRows({ properties: 'x' }), [])
  assert.deepEqual(schemaRows(null), [])
})
