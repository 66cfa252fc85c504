import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planYaml, readPlan } from './plan-yaml.ts'

const PLAN = {
  name: 'Shop',
  description: null,
  unplanned: 'observe',
  rules: [
    {
      type: 'track',
      event: 'Order Completed',
      owner: null,
      mode: 'observe',
      schema: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
    },
  ],
}

test('a plan that is written and read again is the same', () => {
  const text = planYaml(PLAN, ['Web shop'])
  assert.equal(
    text,
    `name: Shop
sources:
  - Web shop
unplanned: observe
rules:
  - type: track
    event: Order Completed
    mode: observe
    schema:
      type: object
      properties:
        total: { type: number }
      required: [ total ]
`,
  )
  const { plan, sources, problems } = readPlan(text)
  const [{ owner: _, ...rule }] = PLAN.rules as [(typeof PLAN.rules)[0]]
  assert.deepEqual(plan, { name: 'Shop', unplanned: 'observe', rules: [rule] })
  assert.deepEqual([sources, problems], [['Web shop'], []])
})

test('JSON is accepted too', () => {
  const { plan, sources } = readPlan(JSON.stringify({ name: 'a', rules: [] }))
  assert.deepEqual([plan, sources], [{ name: 'a', rules: [] }, undefined])
})

test('a problem is shown at the field that the API names, or at the nearest value that contains it', () => {
  const { problemAt } = readPlan(planYaml(PLAN, []))
  const place = (field: string | null): [number, number | null] => {
    const { line, column } = problemAt(field, '')
    return [line, column]
  }
  assert.deepEqual(place('unplanned'), [3, 1])
  assert.deepEqual(place('rules[0].event'), [6, 5])
  assert.deepEqual(place('rules[0].schema.properties.total.type'), [11, 18])
  assert.deepEqual(place('rules[0].schema.properties.other'), [10, 7])
  assert.deepEqual(place('rules[7]'), [4, 1])
  assert.deepEqual(place(null), [1, 1])
})

test('text that is no plan has a problem with its place, and never throws', () => {
  assert.deepEqual(
    readPlan('name: a\nrules: [').problems.map(({ line }) => line),
    [2],
  )
  assert.match(readPlan('').problems[0]?.message ?? '', /Enter a plan/)
  assert.match(readPlan('name: a\nsources: 3').problems[0]?.message ?? '', /list of names/)
  assert.equal(readPlan('name: a\nsources: 3').problems[0]?.line, 2)
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefghi'.split('').map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[at]}`).join()}]`),
  ]
  assert.equal(readPlan(bomb.join('\n')).plan, null)
  assert.equal(readPlan('['.repeat(20_000)).plan, null)
})
