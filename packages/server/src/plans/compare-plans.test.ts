import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonObject, PlanRule, TrackingPlan } from '@switchyard/protocol'
import { comparePlans } from './compare-plans.ts'

const plan = (rules: Partial<PlanRule>[], more: Partial<TrackingPlan> = {}): TrackingPlan => ({
  name: 'shop',
  unplanned: 'allow',
  rules: rules.map((rule) => ({ type: 'track', event: 'Ordered', mode: 'observe', schema: {}, ...rule })),
  ...more,
})
const lines = (before: TrackingPlan, after: TrackingPlan): string[] =>
  comparePlans(before, after).map(({ kind, rule, path, change }) => `${kind} ${rule ?? '-'} ${path ?? '-'}: ${change}`)
const schemas = (before: JsonObject, after: JsonObject): string[] =>
  lines(plan([{ schema: before }]), plan([{ schema: after }])).map((line) => line.replace('track Ordered ', ''))

test('rules and settings that were added, removed and changed', () => {
  const before = plan([{ event: 'A', owner: 'web' }, { event: 'B' }])
  const after = plan(
    [
      { event: 'A', mode: 'strip', description: 'First' },
      { event: 'C', schema: { properties: { a: {}, b: {} }, required: ['a'] } },
      { type: 'identify', schema: { properties: { a: true } } },
    ],
    { unplanned: 'observe', description: 'All events' },
  )
  assert.deepEqual(lines(before, after), [
    'changed - -: unplanned is observe instead of allow',
    'changed - -: description added: All events',
    'changed track A -: mode is strip instead of observe',
    'changed track A -: description added: First',
    'changed track A -: owner removed',
    'removed track B -: rule removed, with 0 properties',
    'added track C -: new rule, with 2 properties (1 required)',
    'added identify -: new rule, with 1 trait (0 required)',
  ])
  assert.deepEqual(lines(after, after), [])
})

test('properties, types, values, formats and other keywords, also nested', () => {
  const before = {
    type: 'object',
    properties: {
      total: { type: 'string' },
      currency: { type: 'string', enum: ['EUR', 'USD'] },
      old: { type: 'boolean' },
      products: { type: 'array', items: { type: 'object', properties: { price: { type: 'integer' } }, required: ['price'] } },
      link: { type: 'string' },
      note: { type: 'string', maxLength: 5 },
    },
    required: ['total', 'old'],
    additionalProperties: false,
  }
  const after = {
    type: 'object',
    properties: {
      total: { type: ['number', 'null'] },
      currency: { type: 'string', enum: ['SEK', 'EUR'] },
      products: { type: 'array', items: { type: 'object', properties: { price: { type: 'number' }, sku: true } } },
      link: { type: 'string', format: 'uri' },
      note: { type: 'string', maxLength: 9, pattern: '^a' },
    },
    required: ['note', 'total'],
  }
  assert.deepEqual(
    schemas(before, after),
    [
      'changed properties: other properties: anything instead of not allowed',
      'changed properties.currency: also allows SEK, no longer allows USD',
      'changed properties.link: a string in the format uri instead of a string',
      'changed properties.note: now required',
      'changed properties.note: maxLength is 9 instead of 5',
      'changed properties.note: pattern added: "^a"',
      'removed properties.old: removed; it was a boolean, required',
      'changed properties.products.*.price: no longer required',
      'changed properties.products.*.price: a number instead of an integer',
      'added properties.products.*.sku: new: anything, optional',
      'changed properties.total: a number or null instead of a string',
    ].sort(byPath),
  )
})

/** The change of the object itself comes last. */
function byPath(left: string, right: string): number {
  return Number(left.includes('properties: ')) - Number(right.includes('properties: '))
}

test('the order of keywords, names and values is no change', () => {
  const before = { type: ['string', 'null'], enum: ['a', 'b', null] }
  assert.deepEqual(
    schemas(
      { properties: { a: before, b: {} }, required: ['a', 'b'] },
      { required: ['b', 'a'], properties: { b: {}, a: { enum: [null, 'b', 'a'], type: ['null', 'string'] } } },
    ),
    [],
  )
  assert.deepEqual(schemas({ type: ['string', 'null'] }, { type: ['null', 'string'] }), [])
  assert.equal(schemas({ type: 'string', enum: ['a'] }, { enum: ['a'] }).length, 1)
})
