import assert from 'node:assert/strict'
import test from 'node:test'
import type { TrackingPlan } from '@switchyard/protocol'
import { PlanFileProblem, planText, readPlanFile } from './plan-file.ts'

const TEXT = `# A tracking plan of Switchyard. \`switchyard plan check FILE\` compares it with the messages that were sent,
# and \`switchyard plan apply FILE\` puts it into effect.

name: shop
description: |-
  Two
  lines
sources:
  - app
  - web
unplanned: observe
rules:
  - type: track
    event: Order Completed
    description: A customer paid.
    owner: checkout
    mode: quarantine
    schema:
      type: object
      properties:
        currency: { type: string, enum: [ EUR, USD ] }
        note: { type: [ string, "null" ], maxLength: 100 }
        products:
          type: array
          items:
            type: object
            properties:
              sku: { type: string }
            required: [ sku ]
            additionalProperties: false
      required: [ currency ]
      additionalProperties: false
  - type: identify
    mode: observe
    schema: { type: object }
`

const backwards = <T>(list: readonly T[]): T[] => list.map((_, index) => list.at(-1 - index) as T)
const read = (text: string) => readPlanFile(text, 'plan.yaml')
const problem = async (text: string): Promise<string> => {
  try {
    await read(text)
  } catch (error) {
    assert.ok(error instanceof PlanFileProblem, String(error))
    return error.message
  }
  assert.fail('it was read')
}

test('a plan is written as it was read, whatever the order of its parts', async () => {
  const { plan, sources } = await read(TEXT)
  assert.equal(await planText(plan, sources), TEXT)
  const turned = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(turned)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .sort(([left], [right]) => (left < right ? 1 : -1))
              .map(([name, inner]) => [name, turned(inner)]),
          )
        : value
  const other = turned({ ...plan, rules: backwards(plan.rules) }) as TrackingPlan
  assert.equal(await planText(other, backwards(sources ?? [])), TEXT)
  assert.deepEqual((await read(await planText(plan))).sources, undefined)
})

test('defaults, JSON, and texts that YAML could read as something else', async () => {
  const { plan } = await read('{"name":"a","rules":[{"type":"track","event":"null","schema":{"const":"yes"}}]}')
  assert.deepEqual(plan, {
    name: 'a',
    unplanned: 'allow',
    rules: [{ type: 'track', event: 'null', mode: 'observe', schema: { const: 'yes' } }],
  })
  assert.deepEqual((await read(await planText(plan))).plan, plan)
})

test('problems name the line', async () => {
  const changed = (from: string, to: string): Promise<string> => problem(TEXT.replace(from, to))
  assert.equal(await changed('mode: quarantine', 'mode: block'), 'plan.yaml:17: rules[0].mode must be one of observe, quarantine, strip.')
  assert.match(await changed('owner: checkout', 'team: checkout'), /^plan\.yaml:16: rules\[0\]\.team is not a known field\./)
  assert.match(await changed('    event: Order Completed\n', ''), /^plan\.yaml:13: rules\[0\]\.event is required if the type is track\.$/)
  assert.match(await changed('type: identify', 'type: identify\n    event: x'), /^plan\.yaml:34: rules\[1\]\.event is only allowed/)
  assert.match(await changed('type: identify', 'type: track\n    event: Order Completed'), /^plan\.yaml:33: rules\[1\] is the same as/)
  assert.match(await changed('name: shop\n', ''), /^plan\.yaml:\d+: name is required\.$/)
  assert.match(await changed('unplanned: observe', 'unplanned: observe\nunplanned: allow'), /^plan\.yaml:12: not valid YAML: .*unique/)
  assert.match(await changed('rules:\n', 'rules:\n\t- x\n'), /^plan\.yaml:13: not valid YAML: /)
  assert.match(await problem('- a'), /^plan\.yaml: must be a YAML mapping/)
  assert.match(await problem(''), /^plan\.yaml: must be a YAML mapping/)
  assert.match(await problem(`name: ${'x'.repeat(1024 * 1024)}`), /larger than 1 MiB/)
  assert.match(await problem(`name: ${'['.repeat(20_000)}`), /^plan\.yaml/)
  assert.match(
    await problem(`a: &a [x,x,x,x,x]\nb: &b [${'*a,'.repeat(30)}]\nc: [${'*b,'.repeat(30)}]`),
    /^plan\.yaml: cannot be read: .*alias/,
  )
  assert.match(
    await problem('name: x\nrules: [{ type: page, schema: &a { properties: { a: *a } } }]'),
    /^plan\.yaml: cannot be read: .*circular/,
  )
})

test('fields of errors of the API are found in the file, also if names contain dots', async () => {
  const file = await read(TEXT.replace('note:', '"a.note":').replace('sku: { type', 'items: { type'))
  const line = (field: string): string => file.problem(field, 'm').message
  assert.equal(line('rules[0].schema.properties.a.note.maxLength'), 'plan.yaml:22: m')
  assert.equal(line('rules[0].schema.properties.products.items.required'), 'plan.yaml:29: m')
  assert.equal(line('rules[0].schema.properties.products.items.properties.items'), 'plan.yaml:28: m')
  assert.equal(line('rules[1].schema.$ref'), 'plan.yaml:35: m')
  assert.equal(line('rules[9].schema'), 'plan.yaml:13: m')
  assert.match(line('nonsense'), /^plan\.yaml:\d+: m$/)
})
