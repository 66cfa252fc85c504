// What an accepted schema and a hostile message cost together. The limits are numbers of steps, so the verdicts do not depend on the machine.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import {
  createPlanJudge,
  type JsonObject,
  type PlanFault,
  type PlanMode,
  type PlanRule,
  requestBudget,
  schemaProblem,
} from '@switchyard/protocol'
import type { Configuration } from '../model/configuration.ts'
import { createPlanJudges } from './plan-judges.ts'
import { createSchemaCompiler } from './plan-schema-compiler.ts'

const UNEXAMINED = 'a message that needs more steps'
const checked = createSchemaCompiler({ validateSchema: true })

function times<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

function keys(count: number, value: unknown): JsonObject {
  return Object.fromEntries(times(count, (at) => [`p${at}`, value]))
}

function order(properties: JsonObject): JsonObject {
  return { type: 'track', event: 'Order', userId: 'u', properties }
}

function judgeOf(schema: JsonObject, mode: PlanMode = 'observe') {
  const rules: PlanRule[] = [{ type: 'track', event: 'Order', mode, schema }]
  return createPlanJudge({ unplanned: 'allow', rules }, createSchemaCompiler)
}

const list = (items: JsonObject): JsonObject => ({ properties: { l: { items } } })
const ones = { l: times(14_000, () => 1) }
const objects = { l: times(10_000, () => ({})) }
const long = 'a'.repeat(30_000)
const key = 'k'.repeat(15_000)

const HOSTILE: [title: string, schema: JsonObject, properties: JsonObject][] = [
  ['branches, the last of which fits', list({ anyOf: [...times(200, (at) => ({ const: at + 2 })), { const: 1 }] }), ones],
  ['branches of which one must fit', list({ oneOf: [{}, ...times(200, (at) => ({ required: [`r${at}`] }))] }), objects],
  ['parts that all fit', list({ allOf: times(200, () => ({ type: 'number' })) }), ones],
  ['conditions', list({ allOf: times(200, () => ({ if: { type: 'number' }, else: false })) }), ones],
  ['negations', list({ allOf: times(200, () => ({ not: { type: 'string' } })) }), ones],
  ['values', list({ enum: times(4_900, (at) => `x${at}`) }), ones],
  ['objects as values', list({ enum: times(90, (at) => ({ ...keys(50, 1), at })) }), { l: times(60, () => ({ ...keys(50, 1), at: -1 })) }],
  ['elements to find', { properties: { l: { allOf: times(200, () => ({ contains: { const: 2 } })) } } }, ones],
  ['different elements', { properties: { l: { allOf: times(200, () => ({ uniqueItems: true })) } } }, { l: times(5_000, (at) => at) }],
  ['lengths of a string', { properties: { s: { allOf: times(200, (at) => ({ minLength: at })) } } }, { s: long }],
  ['formats of a string', { properties: { s: { anyOf: times(200, () => ({ format: 'email' })) } } }, { s: long }],
  ['names', { allOf: times(200, () => ({ propertyNames: { maxLength: 3 } })) }, keys(3_000, 1)],
  ['patterns of names', { patternProperties: Object.fromEntries(times(200, (at) => [`p${at}`, { type: 'string' }])) }, keys(3_000, 1)],
  [
    'names that some branch evaluates',
    { unevaluatedProperties: false, anyOf: times(200, () => ({ patternProperties: { '^p': true } })) },
    keys(3_000, 1),
  ],
  ['a long key in every path', { patternProperties: { '^k': { items: { type: 'string' } } } }, { [key]: times(7_000, () => 1) }],
  [
    'nested arrays',
    list({ items: { items: { anyOf: [...times(200, () => ({ type: 'string' })), {}] } } }),
    { l: times(3_000, () => [[1]]) },
  ],
]
for (const [title, schema, properties] of HOSTILE) {
  test(`a message of legal size cannot make an accepted schema slow: ${title}`, () => {
    assert.equal(schemaProblem(schema, checked), null)
    assert.ok(JSON.stringify(properties).length < 32_000)
    const { judge, faults } = judgeOf(schema)
    judge(order({}))
    const before = process.cpuUsage()
    const verdict = judge(order(properties))
    const { user } = process.cpuUsage(before)
    assert.deepEqual(faults, [])
    assert.equal(verdict?.violations[0]?.found, UNEXAMINED)
    // About 20 ms on an idle machine. Without the limit, most of these take seconds.
    assert.ok(user < 700_000, `${user} µs of CPU time`)
  })
}

test('a message that needs too many steps is flagged, and held if the rule would hold or change it', () => {
  const [, schema, properties] = HOSTILE[0] as (typeof HOSTILE)[number]
  for (const [mode, expected] of [
    ['observe', 'observe'],
    ['quarantine', 'quarantine'],
    ['strip', 'quarantine'],
  ] as const) {
    const verdict = judgeOf(schema, mode).judge(order(properties))
    assert.deepEqual(verdict, {
      rule: 'track Order',
      mode: expected,
      violations: [
        {
          rule: 'track Order',
          code: 'other',
          path: 'properties',
          expected: 'a message that can be checked with a limited number of steps',
          found: UNEXAMINED,
        },
      ],
      stripped: null,
    })
  }
})

test('the messages of a request share a number of steps, and each request has its own', () => {
  const [, schema, properties] = HOSTILE[0] as (typeof HOSTILE)[number]
  const { judge } = judgeOf(schema)
  const small = { l: ones.l.slice(0, 10) }
  assert.equal(judge(order(small)), null)
  const budget = requestBudget()
  for (let nth = 0; nth < 5; nth++) judge(order(properties), budget)
  assert.equal(judge(order(small), budget)?.violations[0]?.found, UNEXAMINED)
  assert.equal(judge(order(small), requestBudget()), null)
  // A batch of usual messages stays far below the limit.
  const usual = judgeOf({ properties: { total: { type: 'number' }, email: { pattern: '^[^@]+@[^@]+\\.[^@]+$' } }, required: ['id'] })
  const shared = requestBudget()
  for (let nth = 0; nth < 2_500; nth++) {
    const verdict = usual.judge(order({ total: 'x', email: `someone${nth} at example.com` }), shared)
    assert.equal(verdict?.violations.length, 3)
  }
})

test('the fixed parts of a pattern count: a schema with a long one is refused, and a stored one is not slow', () => {
  const pattern = `^a*${'a{50}'.repeat(98)}`
  const schema = { properties: { s: { pattern } } }
  const problem = schemaProblem(schema, checked)
  assert.equal(problem?.path, 'properties.s.pattern')
  assert.match(problem?.problem ?? '', /has more than 2000 characters/)
  for (const fixed of ['(?:(?:ab){40}){40}', '[a-z]{2001}', `${'a{1000}'.repeat(2)}b`])
    assert.match(schemaProblem({ pattern: `^${fixed}$` }, checked)?.problem ?? '', /has more than 2000/, fixed)
  for (const usual of ['^[0-9a-f]{64}$', '^\\d{51}$', '^(?:[0-9a-f]{2}:){19}[0-9a-f]{2}$', '^.{0,2000}$', '^.{1,60}-[a-z]{51,}$'])
    assert.equal(schemaProblem({ pattern: usual }, checked), null, usual)
  const texts = [long, 'a'.repeat(4_899), 'a'.repeat(300)]
  const before = process.cpuUsage()
  for (let nth = 0; nth < 30; nth++) for (const s of texts) judgeOf(schema).judge(order({ s }))
  const { user } = process.cpuUsage(before)
  assert.ok(user < 3_000_000, `${user} µs of CPU time`)
  assert.equal(judgeOf({ properties: { s: { pattern: '^a*a{20}b' } } }).judge(order({ s: 'a'.repeat(50) }))?.violations.length, 1)
})

/** Every keyword for which the validator generates a loop. */
const EVERY_LOOP: JsonObject = {
  required: times(250, (at) => `r${at}`),
  dependentRequired: { a: times(30, (at) => `(${at}`) },
  patternProperties: { '^\\}"p': { format: 'date' } },
  propertyNames: { maxLength: 9, pattern: '^b' },
  properties: {
    e: { enum: times(250, (at) => ({ at })), format: 'email' },
    'f for(': { prefixItems: [{}], items: { minLength: 2 }, contains: { const: 1 }, uniqueItems: true, unevaluatedItems: false },
    g: { additionalProperties: { anyOf: [{ type: 'string' }, { oneOf: [{ not: { type: 'null' } }, { format: 'uri' }] }] } },
    h: { anyOf: [{ prefixItems: [{}] }, { contains: { type: 'null' }, maxContains: 2 }], unevaluatedItems: { type: 'null' } },
    i: { if: { multipleOf: 3 }, else: { const: { x: 1 } }, dependentSchemas: { x: { minProperties: 2 } } },
  },
  unevaluatedProperties: false,
}

test('everything that can repeat in the code of the validator is counted', () => {
  // Another version of Ajv may generate other code.
  const codes: string[] = []
  const original = globalThis.Function
  globalThis.Function = new Proxy(original, {
    construct(target, args: string[]) {
      codes.push(String(args.at(-1)))
      return Reflect.construct(target, args)
    },
  })
  try {
    createSchemaCompiler()(EVERY_LOOP)
  } finally {
    globalThis.Function = original
  }
  assert.equal(codes.length, 1)
  for (const generated of codes) {
    const code = generated.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, '""')
    const count = (pattern: RegExp): number => code.match(pattern)?.length ?? 0
    assert.equal(count(/\bfor\(/g), count(/\bfor\([^{}]*\)\{\$steps\.take\(/g))
    assert.equal(count(/\bwhile ?\(/g), 0)
    assert.equal(count(/errors\+\+/g), count(/errors\+\+;\$steps\.error\(/g))
    assert.equal(count(/\bfunction validate/g), count(/let errors ?= ?0;\$steps\.take\(/g))
    assert.equal(count(/= scope\.(?:func|formats)/g), 0)
  }
})

test('large schemas are compiled when the configuration changes, before a message arrives', async () => {
  const faults = new EventEmitter()
  const judges = createPlanJudges((planId, fault: PlanFault) => faults.emit('fault', planId, fault.rule))
  const large = { properties: keys(400, { type: 'string' }), type: 'nothing' }
  const rules: PlanRule[] = [
    { type: 'page', mode: 'observe', schema: { type: 'nothing' } },
    { type: 'track', event: 'Order', mode: 'observe', schema: large },
  ]
  const plan = { id: 'plan', version: 1, sourceIds: ['source'], unplanned: 'allow', rules }
  const reported = once(faults, 'fault')
  judges.follow({ plans: new Map([['plan', plan]]) } as unknown as Configuration)
  assert.deepEqual(await reported, ['plan', 'track Order'])
})
