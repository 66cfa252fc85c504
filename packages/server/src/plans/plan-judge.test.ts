// Judging messages by a tracking plan, with the validator of the service.

import assert from 'node:assert/strict'
import test from 'node:test'
import {
  createPlanJudge,
  type JsonObject,
  MAX_VIOLATIONS,
  type PlanFault,
  type PlanRule,
  type PlanVerdict,
  schemaProblem,
  type UnplannedMode,
} from '@switchyard/protocol'
import fc from 'fast-check'
import { createSchemaCompiler } from './plan-schema-compiler.ts'

const checked = createSchemaCompiler({ validateSchema: true })
const order = (properties: JsonObject | null | undefined): JsonObject => ({ type: 'track', event: 'Order', userId: 'u', properties })

function judgeOrder(schema: JsonObject, properties: JsonObject | null | undefined, mode: PlanRule['mode'] = 'observe'): PlanVerdict | null {
  const faults: PlanFault[] = []
  const { judge } = createPlanJudge(
    { unplanned: 'allow', rules: [{ type: 'track', event: 'Order', mode, schema }] },
    createSchemaCompiler,
    (fault) => faults.push(fault),
  )
  const verdict = judge(order(properties))
  assert.deepEqual(faults, [])
  return verdict
}

const ONE_KEY = (name: string, schema: unknown): JsonObject => ({ properties: { [name]: schema } })
const violations: [title: string, schema: JsonObject, properties: JsonObject, found: string[]][] = [
  ['a wrong type', ONE_KEY('total', { type: 'number' }), { total: '7' }, ['wrong_type properties.total: a number, a string']],
  [
    'one of several types',
    ONE_KEY('x', { type: ['integer', 'null'] }),
    { x: [] },
    ['wrong_type properties.x: an integer or null, an array'],
  ],
  ['a null', ONE_KEY('x', { type: 'object' }), { x: null }, ['wrong_type properties.x: an object, null']],
  [
    'a missing property with a type',
    { properties: { id: { type: 'string' } }, required: ['id'] },
    {},
    ['missing_property properties.id: a string, nothing'],
  ],
  ['a missing property', { required: ['id'] }, {}, ['missing_property properties.id: a value, nothing']],
  [
    'a property that another one requires',
    { dependentRequired: { a: ['b'] } },
    { a: 1 },
    ['missing_property properties.b: a value, nothing'],
  ],
  [
    'an unplanned property',
    { properties: { a: true }, additionalProperties: false },
    { a: 1, 'b/~.c': true },
    ['unplanned_property properties.b/~.c: nothing, a boolean'],
  ],
  ['a forbidden property', ONE_KEY('a', false), { a: 1 }, ['unplanned_property properties.a: nothing, a number']],
  ['a name of a property', { propertyNames: { maxLength: 2 } }, { abc: 1 }, ['unplanned_property properties.abc: nothing, a number']],
  ['an enum', ONE_KEY('c', { enum: ['EUR', 'USD'] }), { c: 'CHF' }, ['wrong_value properties.c: one of "EUR", "USD", another string']],
  ['an enum of another type', ONE_KEY('c', { enum: [1, 2] }), { c: 'CHF' }, ['wrong_value properties.c: one of 1, 2, a string']],
  ['a const', ONE_KEY('v', { const: 2 }), { v: 1 }, ['wrong_value properties.v: 2, another number']],
  [
    'a format',
    ONE_KEY('at', { type: 'string', format: 'date-time' }),
    { at: 'today' },
    ['wrong_format properties.at: a string in the format date-time, another string'],
  ],
  [
    'a pattern',
    ONE_KEY('sku', { pattern: '^[A-Z]+$' }),
    { sku: 'x1' },
    ['wrong_format properties.sku: a string that matches ^[A-Z]+$, another string'],
  ],
  ['a minimum', ONE_KEY('n', { minimum: 0 }), { n: -1 }, ['out_of_range properties.n: a number of at least 0, a smaller number']],
  ['a maximum', ONE_KEY('n', { exclusiveMaximum: 5 }), { n: 5 }, ['out_of_range properties.n: a number below 5, a larger number']],
  [
    'a length',
    ONE_KEY('s', { maxLength: 2 }),
    { s: 'abc' },
    ['out_of_range properties.s: a string of at most 2 characters, a longer string'],
  ],
  ['a number of elements', ONE_KEY('l', { minItems: 2 }), { l: [1] }, ['out_of_range properties.l: at least 2 elements, fewer elements']],
  [
    'equal elements',
    ONE_KEY('l', { uniqueItems: true }),
    {
      l: [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    },
    ['other properties.l: different elements, equal elements'],
  ],
  ['different elements', ONE_KEY('l', { uniqueItems: true }), { l: [1, '1', [1], { a: 1 }] }, []],
  ['a multiple', ONE_KEY('n', { multipleOf: 5 }), { n: 7 }, ['other properties.n: a multiple of 5, another number']],
  [
    'an element of a list',
    ONE_KEY('products', { items: { type: 'object', properties: { price: { type: 'number' } } } }),
    { products: [{ price: 1 }, { price: 'x' }] },
    ['wrong_type properties.products.1.price: a number, a string'],
  ],
  [
    'branches that differ in their type',
    ONE_KEY('x', { anyOf: [{ type: 'string' }, { type: 'null' }] }),
    { x: 1 },
    ['wrong_type properties.x: a string or null, a number'],
  ],
  [
    'branches that differ otherwise',
    ONE_KEY('x', { oneOf: [{ type: 'object', required: ['a'] }, { type: 'string' }] }),
    { x: {} },
    ['other properties.x: a value that fits the keyword oneOf of the schema, an object'],
  ],
  ['a condition', { if: { required: ['a'] }, else: { required: ['b'] } }, {}, ['missing_property properties.b: a value, nothing']],
  [
    'a definition',
    { $defs: { money: { type: 'number' } }, ...ONE_KEY('total', { $ref: '#/$defs/money' }) },
    { total: '1' },
    ['wrong_type properties.total: a number, a string'],
  ],
  [
    'a name from the prototype in the message',
    { additionalProperties: false },
    JSON.parse('{"__proto__":1}') as JsonObject,
    ['unplanned_property properties.__proto__: nothing, a number'],
  ],
]
for (const [title, schema, properties, found] of violations) {
  test(`finds ${title}`, () => {
    const verdict = judgeOrder(schema, properties)
    assert.deepEqual(verdict?.violations.map(({ code, path, expected, found: was }) => `${code} ${path}: ${expected}, ${was}`) ?? [], found)
  })
}

test('a message that is as planned, without properties or with null, has no verdict', () => {
  const schema = { type: 'object', properties: { total: { type: 'number' } } }
  for (const properties of [{ total: 1 }, {}, null, undefined]) assert.equal(judgeOrder(schema, properties), null)
})

test('traits of identify and group are judged, and a rule for a type applies to all its messages', () => {
  const rules: PlanRule[] = (['identify', 'group', 'page', 'screen'] as const).map((type) => ({
    type,
    mode: 'quarantine',
    schema: { required: ['x'] },
  }))
  const { judge } = createPlanJudge({ unplanned: 'allow', rules }, createSchemaCompiler)
  for (const [type, path] of [
    ['identify', 'traits.x'],
    ['group', 'traits.x'],
    ['page', 'properties.x'],
    ['screen', 'properties.x'],
  ]) {
    const verdict = judge({ type, userId: 'u', groupId: 'g', name: 'n' })
    assert.deepEqual([verdict?.rule, verdict?.mode, verdict?.violations[0]?.path], [type, 'quarantine', path])
  }
  assert.equal(judge({ type: 'alias', userId: 'u', previousId: 'v' }), null)
  assert.equal(judge(order({})), null)
})

test('what happens to a message without a rule is a setting of the plan', () => {
  const verdictOf = (unplanned: UnplannedMode, message: JsonObject): PlanVerdict | null =>
    createPlanJudge({ unplanned, rules: [] }, createSchemaCompiler).judge(message)
  assert.equal(verdictOf('allow', order({})), null)
  assert.equal(verdictOf('quarantine', { type: 'alias' }), null)
  const track = verdictOf('observe', order({}))
  assert.deepEqual(
    [track?.rule, track?.mode, track?.violations[0]?.code, track?.violations[0]?.path],
    ['track Order', 'observe', 'unplanned_event', 'event'],
  )
  const page = verdictOf('quarantine', { type: 'page' })
  assert.deepEqual([page?.rule, page?.mode, page?.violations[0]?.path], ['page', 'quarantine', 'type'])
})

test('strip removes what is not planned, and nothing else', () => {
  const planned = { properties: { a: { type: 'number' }, inner: { properties: { b: true }, additionalProperties: false } } }
  const properties = { a: 'wrong', x: 1, inner: { b: 1, y: 2 }, list: [1] }
  const before = structuredClone(properties)
  const verdict = judgeOrder(planned, properties, 'strip')
  assert.deepEqual(verdict?.stripped, order({ a: 'wrong', inner: { b: 1 } }))
  assert.deepEqual(properties, before)
  assert.deepEqual(verdict?.violations.map(({ code, path }) => `${code} ${path}`).sort(), [
    'unplanned_property properties.inner.y',
    'unplanned_property properties.list',
    'unplanned_property properties.x',
    'wrong_type properties.a',
  ])
  assert.equal(judgeOrder(planned, properties)?.stripped, null)
  assert.equal(judgeOrder({ ...planned, additionalProperties: true }, { x: 1 }, 'strip'), null)
  assert.deepEqual(
    judgeOrder({ properties: { a: true }, allOf: [{ properties: { b: true } }] }, { a: 1, b: 2, c: 3 }, 'strip')?.stripped,
    order({ a: 1, b: 2 }),
  )
})

test('strip does not remove a property that only one branch of the schema forbids', () => {
  const branch = (name: string): JsonObject => ({ properties: { [name]: true }, required: [name], additionalProperties: false })
  const schema = { $defs: { a: branch('a') }, properties: { x: { anyOf: [{ $ref: '#/$defs/a' }, branch('b')] } } }
  const verdict = judgeOrder(schema, { x: { c: 1 } }, 'strip')
  assert.equal(verdict?.stripped, null)
  assert.equal(verdict?.violations[0]?.code, 'other')
})

test('strip does not remove a property that is required, or that a branch of the schema mentions, even if no branch fits', () => {
  const kept = (schema: JsonObject, properties: JsonObject): string[] =>
    Object.keys((judgeOrder(schema, { ...properties, x: 1 }, 'strip')?.stripped?.['properties'] ?? {}) as JsonObject)
  assert.deepEqual(kept({ required: ['total'] }, { total: 1 }), ['total'])
  const either = [{ properties: { a: { type: 'number' } }, required: ['a'] }, { $ref: '#/$defs/b' }]
  const b = { patternProperties: { '^b': { type: 'number' } }, required: ['c'] }
  assert.deepEqual(kept({ $defs: { b }, anyOf: either }, { a: 'no', b1: 2 }), ['a', 'b1'])
  const branches = { if: true, else: { properties: { e: true } }, dependentSchemas: { f: { properties: { g: true } } } }
  assert.deepEqual(kept(branches, { e: 1, g: 1 }), ['e', 'g'])
})

test('a message has a limited number of violations, but all that is not planned is removed', () => {
  const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`key-${at}`, at]))
  const verdict = judgeOrder({ properties: {} }, properties, 'strip')
  assert.equal(verdict?.violations.length, MAX_VIOLATIONS)
  assert.deepEqual(verdict?.stripped, order({}))
})

test('a rule that cannot be applied is reported once, and its messages count as valid', () => {
  const faults: PlanFault[] = []
  const rules: PlanRule[] = [
    { type: 'track', event: 'Order', mode: 'quarantine', schema: { type: 'nothing' } },
    { type: 'page', mode: 'quarantine', schema: { $ref: '#' } },
    { type: 'screen', mode: 'quarantine', schema: { required: ['x'] } },
  ]
  const plan = createPlanJudge({ unplanned: 'allow', rules }, createSchemaCompiler, (fault) => faults.push(fault))
  for (let at = 0; at < 3; at++) for (const type of ['track', 'page']) assert.equal(plan.judge({ ...order({}), type }), null)
  assert.deepEqual(
    faults.map(({ rule }) => rule),
    ['track Order', 'page'],
  )
  assert.deepEqual(plan.faults, faults)
  assert.notEqual(plan.judge({ type: 'screen' }), null)
})

test('a compiler that could not be loaded is loaded with a later message', () => {
  const faults: PlanFault[] = []
  let isLoadable = false
  const load = (): ReturnType<typeof createSchemaCompiler> => {
    if (!isLoadable) throw new Error('too many open files')
    return createSchemaCompiler()
  }
  const rule: PlanRule = { type: 'track', event: 'Order', mode: 'observe', schema: { required: ['id'] } }
  const plan = createPlanJudge({ unplanned: 'allow', rules: [rule] }, load, (fault) => faults.push(fault))
  assert.deepEqual([plan.judge(order({})), plan.judge(order({}))], [null, null])
  assert.deepEqual(faults, [{ rule: 'track Order', message: 'too many open files' }], 'reported once')
  assert.deepEqual(plan.faults, faults)
  isLoadable = true
  assert.equal(plan.judge(order({}))?.violations.length, 1)
  assert.deepEqual(plan.faults, [])
})

const chain = Object.fromEntries(
  Array.from({ length: 4 }, (_, at) => [`d${at}`, { allOf: Array.from({ length: 20 }, () => ({ $ref: `#/$defs/d${at + 1}` })) }]),
)
const nested = Array.from({ length: 40 }).reduce<JsonObject>((inner) => ({ properties: { a: inner } }), {})
const refused: [title: string, schema: JsonObject, path: string, problem: RegExp][] = [
  ['an unknown keyword', { reqired: ['a'] }, '', /unknown keyword: "reqired"/],
  ['an unknown type', { type: 'text' }, '', /not a valid JSON Schema/],
  ['an unknown format', { properties: { a: { format: 'colour' } } }, '', /unknown format "colour"/],
  ['a remote reference', { $ref: 'https://example.com/schema' }, '$ref', /must be #\/\$defs\/NAME/],
  ['a reference to nothing', { properties: { a: { $ref: '#/$defs/x' } } }, 'properties.a.$ref', /must be #\/\$defs\/NAME/],
  ['a reference to the whole', { properties: { a: { $ref: '#' } } }, 'properties.a.$ref', /must be/],
  [
    'recursion',
    { $defs: { a: { properties: { b: { $ref: '#/$defs/a' } } } }, $ref: '#/$defs/a' },
    '$defs.a.properties.b.$ref.properties.b.$ref',
    /refers to itself/,
  ],
  ['references that multiply', { $defs: { ...chain, d4: {} }, $ref: '#/$defs/d0' }, '', /more than 5000 values/],
  ['an id', { $id: 'https://example.com/a' }, '$id', /not supported/],
  ['an asynchronous schema', { $async: true }, '$async', /not supported/],
  ['another draft', { $schema: 'http://json-schema.org/draft-07/schema#' }, '$schema', /2020-12/],
  ['too many values', { enum: Array.from({ length: 6_000 }, (_, at) => at) }, '', /more than 5000 values/],
  ['deep nesting', nested, '', /more than 32 levels/],
  [
    'a property named __proto__',
    JSON.parse('{"properties":{"__proto__":{}}}') as JsonObject,
    'properties.__proto__',
    /every JavaScript object/,
  ],
  ['nested repetitions', { properties: { a: { pattern: '^(a+)+$' } } }, 'properties.a.pattern', /repeats a group/],
  ['nested repetitions further in', { pattern: '^((x(ab*)c)){2,}$' }, 'pattern', /repeats a group/],
  ['nested repetitions in a group without a number', { pattern: '^(?:a+)+$' }, 'pattern', /repeats a group/],
  ['nested repetitions in a named group', { pattern: '^(?<a>a+)+$' }, 'pattern', /repeats a group/],
  ['alternatives that are repeated', { patternProperties: { '^(a|a)*$': {} } }, 'patternProperties', /repeats a group/],
  ['a back reference', { pattern: '(a)\\1' }, 'pattern', /back reference/],
  ['a lookahead', { pattern: '(?=a)' }, 'pattern', /lookahead/],
  ['many repetitions', { pattern: '^a*a*a*a*$' }, 'pattern', /unlimited repetitions/],
  ['many repetitions at any position', { pattern: 'a*a*a*' }, 'pattern', /does not start with \^/],
  ['many optional parts', { pattern: `^${'a?'.repeat(25)}$` }, 'pattern', /too many optional parts/],
  ['many alternatives', { pattern: `^${'(a|a)'.repeat(25)}$` }, 'pattern', /too many optional parts/],
  ['many limited repetitions', { pattern: `^${'a{0,50}'.repeat(5)}$` }, 'pattern', /too many optional parts/],
  ['a pattern that is too long', { pattern: 'a'.repeat(501) }, 'pattern', /longer than 500/],
  ['a pattern that is not valid', { pattern: '(' }, '', /not a valid JSON Schema/],
  ['a required constructor', { required: ['a', 'constructor'] }, 'required.1', /every JavaScript object/],
]
for (const [title, schema, path, problem] of refused) {
  test(`a schema with ${title} is refused`, () => {
    const found = schemaProblem(schema, checked)
    assert.equal(found?.path, path)
    assert.match(found?.problem ?? '', problem)
  })
}

test('usual patterns are accepted', () => {
  const uuid = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  const patterns = [
    '^(?:ab-)+$',
    '^(?<year>\\d\\d){2}$',
    uuid,
    '[a-z]+',
    '^\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}$',
    '^[A-Z]{2}-\\d+$',
    '^https?://',
    '^[^@]+@[^@]+$',
    '^(EUR|USD)$',
    '^\\d+(\\.\\d{1,2})?$',
    '^[a-z+*()]+\\(x\\)$',
  ]
  for (const pattern of patterns) assert.equal(schemaProblem({ properties: { a: { pattern } } }, checked), null, pattern)
})

const long = 'a'.repeat(30_000)
const empty = { l: Array.from({ length: 10_000 }, () => ({})) }
const required = { type: 'object', required: Array.from({ length: 20 }, (_, at) => `name ${at}`), properties: { x: { $ref: '#/$defs/x' } } }
const slow: [title: string, schema: JsonObject, properties: JsonObject][] = [
  ['a pattern without an anchor', ONE_KEY('s', { pattern: '[a-z]+@' }), { s: long }],
  ['a pattern with three repetitions', ONE_KEY('s', { pattern: '^a*a*a*b' }), { s: long }],
  ['many texts', ONE_KEY('l', { items: { pattern: '^a*a*a*b' } }), { l: Array.from({ length: 100 }, () => 'a'.repeat(300)) }],
  ['a long address', ONE_KEY('s', { format: 'url' }), { s: `http://${'a:'.repeat(15_000)}` }],
  [
    'errors in a definition',
    { $defs: { x: { type: 'string' }, item: required }, ...ONE_KEY('l', { items: { $ref: '#/$defs/item' } }) },
    empty,
  ],
]
for (const [title, schema, properties] of slow) {
  test(`a message cannot make judging slow: ${title}`, () => {
    assert.equal(schemaProblem(schema, checked), null)
    const before = process.cpuUsage()
    judgeOrder(schema, properties)
    const { user } = process.cpuUsage(before)
    assert.ok(user < 700_000, `${user} µs of CPU time`)
  })
}

test('a message with thousands of errors is not examined to its end, and is held instead of stripped', () => {
  const schema = ONE_KEY('l', { items: { ...required, properties: {}, additionalProperties: false } })
  const verdict = judgeOrder(schema, { l: [...empty.l, { secret: 1 }] }, 'strip')
  assert.deepEqual([verdict?.mode, verdict?.stripped, verdict?.violations.length], ['quarantine', null, MAX_VIOLATIONS])
  assert.equal(judgeOrder(schema, empty)?.mode, 'observe')
  assert.deepEqual(judgeOrder(schema, { l: [{ secret: 1 }] }, 'strip')?.stripped, order({ l: [{}] }))
  const either = ONE_KEY('l', { anyOf: [{ items: { type: 'string' } }, { items: { type: 'number' } }] })
  assert.equal(judgeOrder(either, empty)?.violations.length, 1)
  assert.equal(judgeOrder(either, { l: empty.l.map(() => 1) }), null)
  const validate = createSchemaCompiler()(schema)
  validate(empty)
  assert.ok((validate.errors?.length ?? 0) < 5_100)
})

test('texts that fit into the steps of a message are checked, and each message has its own steps', () => {
  const schema = ONE_KEY('email', { pattern: '^[^@]+@[^@]+\\.[^@]+$' })
  const rules: PlanRule[] = [{ type: 'track', event: 'Order', mode: 'observe', schema }]
  const { judge } = createPlanJudge({ unplanned: 'allow', rules }, createSchemaCompiler)
  for (let at = 0; at < 3; at++) {
    assert.equal(judge(order({ email: long })), null)
    assert.equal(judge(order({ email: 'x'.repeat(60) }))?.violations[0]?.code, 'wrong_format')
    assert.equal(judge(order({ email: 'somebody.with.a.long.name@mail.example.com' })), null)
  }
})

test('properties may have names of keywords', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    properties: { $id: { type: 'string' }, $ref: { type: 'string' }, required: { type: 'boolean' } },
  }
  assert.equal(schemaProblem(schema, checked), null)
  assert.equal(judgeOrder(schema, { $id: 'a', $ref: 'b', required: true }), null)
})

test('whatever the schema and the message are, judging neither throws nor changes the message, and no value of the message is in a violation', () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.stringMatching(/^[a-z]{6}$/).map((text) => `RAW${text}`),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(fc.constantFrom('a', 'b', 'c', '0', '__proto__', 'x/y'), tie('value'), { maxKeys: 4 }),
  }))
  const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'array', 'object')
  const schema = fc.letrec((tie) => ({
    schema: fc.oneof(
      { depthSize: 'small' },
      fc.record({ type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1 })) }),
      fc.record({ enum: fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { minLength: 1 }) }),
      fc.record(
        {
          properties: fc.dictionary(fc.constantFrom('a', 'b', 'c', '0'), tie('schema')),
          required: fc.uniqueArray(fc.constantFrom('a', 'b')),
          additionalProperties: fc.boolean(),
        },
        { requiredKeys: ['properties'] },
      ),
      fc.record({ items: tie('schema') }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ not: tie('schema') }),
    ),
  }))
  fc.assert(
    fc.property(schema.schema, value.object, fc.constantFrom('observe' as const, 'strip' as const), (given, properties, mode) => {
      const message = order(JSON.parse(JSON.stringify(properties)) as JsonObject)
      const before = JSON.stringify(message)
      const plan = createPlanJudge(
        { unplanned: 'allow', rules: [{ type: 'track', event: 'Order', mode, schema: given }] },
        createSchemaCompiler,
      )
      const verdict = plan.judge(message)
      assert.deepEqual(plan.faults, [])
      assert.equal(JSON.stringify(message), before)
      if (verdict === null) return
      assert.ok(verdict.violations.length > 0)
      assert.ok(!JSON.stringify(verdict.violations).includes('RAW'))
      // What was removed is not found again.
      if (verdict.stripped !== null) assert.ok(!plan.judge(verdict.stripped)?.violations.some(({ code }) => code === 'unplanned_property'))
    }),
    { numRuns: 150 },
  )
})
