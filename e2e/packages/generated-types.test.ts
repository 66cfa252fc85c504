// Compiles the modules that `switchyard plan types` writes. One run of the compiler checks all of them: modules of random plans, calls that must compile,
// and wrong calls that must not.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { runInThisContext } from 'node:vm'
import { type JsonObject, PLANNED_TYPES, type PlanRule, ruleKey, type TrackingPlan } from '@switchyard/protocol'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { typedModule } from '../../packages/server/src/commands/plans/typed-module.ts'
import { byEvent } from '../../packages/server/src/plans/plan-fields.ts'
import { switchyard } from '../system/command-line.ts'
import { BUNDLER, compile } from './compile.ts'
import { type Described, describedObject, garbageSchema } from './described-schemas.ts'
import { repository } from './installed-packages.ts'

const project = mkdtempSync(join(tmpdir(), 'switchyard-generated-'))
after(() => rmSync(project, { recursive: true, force: true }))

const PLANS = 12
const HOSTILE_NAMES = [
  'class',
  'constructor',
  '__proto__',
  'Order Completed',
  'order_completed',
  'order-completed',
  '"; throw new Error() //',
  '`${1}`',
  '*/ export const broken = 1 /*',
  'Ends with a backslash \\',
  'Line\nbreak \u2028 and \u2029',
  '\u202eright to left',
  '3D View',
  'Käse gekauft',
  'Ka\u0308se gekauft',
  '注文完了',
  '🛒',
  '🧀',
  '!',
  '\ud800',
  '𝒳',
]
const nameOf = fc.oneof(
  fc.constantFrom(...HOSTILE_NAMES),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
  fc.string({ minLength: 1 }),
)
const comment = fc.option(
  fc.oneof(
    fc.constantFrom('*/ oops', '@deprecated\n@ts-ignore', '@ts-expect-error', '/* \\', '\u2028*\u2028/', ' '),
    fc.string({ unit: 'binary' }),
  ),
  { nil: undefined },
)

interface PlannedCall {
  rule: PlanRule
  /** Undefined if the values of the schema are not known; its type must still compile. */
  described: Described | undefined
}

const plannedCalls: fc.Arbitrary<PlannedCall[]> = fc
  .array(
    fc.tuple(
      fc.constantFrom(...PLANNED_TYPES, 'track'),
      nameOf,
      comment,
      comment,
      fc.oneof({ weight: 4, arbitrary: describedObject }, { weight: 1, arbitrary: garbageSchema }),
    ),
    { maxLength: 12 },
  )
  .map((entries) => {
    const calls = entries.map(([type, event, description, owner, planned]): PlannedCall => {
      const described = isDescribed(planned) ? planned : undefined
      const schema = described?.schema ?? planned
      const texts = { ...(description === undefined ? {} : { description }), ...(owner === undefined ? {} : { owner }) }
      return { rule: { type, ...(type === 'track' ? { event } : {}), ...texts, mode: 'observe', schema }, described }
    })
    const unique = new Map(calls.map((call) => [ruleKey(call.rule.type, call.rule.event), call]))
    // The order of the functions.
    return [...unique.values()].sort((left, right) => byEvent(left.rule, right.rule))
  })

function isDescribed(planned: Described | JsonObject): planned is Described {
  return 'wrongForLiterals' in planned
}

test('generated modules compile, calls that fit the plan compile, and wrong calls do not', async (t) => {
  const seed = Date.now() | 0
  t.diagnostic(`seed ${seed}`)
  const plans = fc.sample(plannedCalls, { seed, numRuns: PLANS })
  const files: string[] = []
  const write = (name: string, lines: readonly string[] | string): void => {
    files.push(name)
    writeFileSync(join(project, name), typeof lines === 'string' ? lines : lines.join('\n'))
  }
  const counts = { right: 0, wrong: 0 }
  for (const [index, calls] of plans.entries()) {
    const plan: TrackingPlan = { name: `Plan ${index} \u2028 */`, unplanned: 'allow', rules: calls.map(({ rule }) => rule) }
    const modules = { node: typedModule(plan, 'node'), browser: typedModule(plan, 'browser') }
    const programs = {
      node: [`import { Analytics } from '@switchyard/node'`],
      browser: [`import { AnalyticsBrowser } from '@segment/analytics-next'`],
    }
    for (const target of ['node', 'browser'] as const) {
      const names = Array.from(modules[target].matchAll(/^export function ([^(]+)\($/gm), ([, name]) => name as string)
      assert.equal(names.length, calls.length)
      assert.equal(new Set(names).size, names.length, `seed ${seed}: two functions have the same name`)
      const program = programs[target]
      program.push(`import * as planned from './plan-${index}-${target}.gen.ts'`)
      program.push(target === 'node' ? `declare const analytics: Analytics` : `declare const analytics: AnalyticsBrowser`)
      for (const [at, { rule, described }] of calls.entries()) {
        const call = (value: string): string =>
          `planned.${names[at]}(analytics, ${target === 'node' ? nodeArgument(rule, value) : browserArguments(rule, value)})`
        for (const value of described?.valid ?? []) program.push(call(value))
        for (const value of described?.wrong ?? []) program.push('// @ts-expect-error', call(value))
        counts.right += described?.valid.length ?? 0
        counts.wrong += described?.wrong.length ?? 0
      }
      // Names that are not planned do not exist.
      program.push('// @ts-expect-error', 'planned.trackNothingOfTheKind(analytics)')
      write(`plan-${index}-${target}.gen.ts`, modules[target])
      write(`plan-${index}-${target}.ts`, program)
    }
    const events = calls.some(({ rule }) => rule.type === 'track')
    if (events)
      write(`plan-${index}-events.ts`, [
        `import { Analytics } from '@switchyard/node'`,
        `import type { Events } from './plan-${index}-node.gen.ts'`,
        'export const typed = new Analytics<Events>({ writeKey: "" })',
      ])
  }
  t.diagnostic(`${counts.right} right calls, ${counts.wrong} wrong calls`)
  assert.ok(counts.right > 10 && counts.wrong > 10)
  write('by-hand.ts', BY_HAND)
  write('by-hand.gen.ts', typedModule(SHOP, 'node'))
  write('plan.gen.ts', typedModule(SHOP, 'testing'))
  await compile(project, files, {
    ...BUNDLER,
    lib: ['es2022', 'dom'],
    allowImportingTsExtensions: true,
    // Third-party declarations and our sources are checked elsewhere.
    skipLibCheck: true,
    noUnusedLocals: true,
    noUnusedParameters: true,
    noUncheckedIndexedAccess: true,
    isolatedModules: true,
    verbatimModuleSyntax: true,
    paths: {
      '@switchyard/node': [join(repository, 'packages', 'node', 'src', 'index.ts')],
      '@switchyard/node/testing': [join(repository, 'packages', 'node', 'src', 'testing', 'test-client.ts')],
      '@segment/analytics-next': [dirname(findPackageJSON('@segment/analytics-next', import.meta.url) as string)],
    },
  })
})

function nodeArgument({ type }: PlanRule, value: string): string {
  if (type === 'identify') return `{ userId: 'u', traits: ${value} }`
  if (type === 'group') return `{ userId: 'u', groupId: 'g', traits: ${value} }`
  return `{ anonymousId: 'a', properties: ${value} }`
}

function browserArguments({ type }: PlanRule, value: string): string {
  if (type === 'track') return value
  return type === 'identify' || type === 'group' ? `'id', ${value}` : `{ name: 'Home', properties: ${value} }`
}

test('the random values match their schemas, and the wrong ones do not', () => {
  const ajv = new Ajv2020({ strict: false, logger: false })
  const parsed = (text: string): unknown => runInThisContext(`(${text})`) as unknown
  fc.assert(
    fc.property(describedObject, ({ schema, valid, wrong, wrongForLiterals }) => {
      const validate = ajv.compile(schema)
      for (const value of valid) assert.ok(validate(parsed(value)), `${value}: ${JSON.stringify(validate.errors)}`)
      for (const value of wrong) if (!wrongForLiterals.has(value)) assert.ok(!validate(parsed(value)), value)
    }),
    { numRuns: 50 },
  )
})

test('the plan as data is the same plan, also with hostile keys', async () => {
  const schema = JSON.parse('{"properties":{"__proto__":{"const":"\\u2028*/"}},"__proto__":{}}') as PlanRule['schema']
  const rules: PlanRule[] = HOSTILE_NAMES.map((event) => ({ type: 'track', event, description: '*/', mode: 'strip', schema }))
  const file = join(project, 'plan-data.gen.ts')
  writeFileSync(file, typedModule({ name: 'Data', unplanned: 'observe', rules }, 'testing'))
  const { plan } = (await import(file)) as { plan: TrackingPlan }
  assert.deepEqual(plan, {
    name: 'Data',
    unplanned: 'observe',
    rules: [...rules].sort(byEvent),
  })
  assert.ok(Object.hasOwn(plan.rules[0]?.schema as object, '__proto__'))
})

test('the command writes the module once, and --check says whether it is up to date', async () => {
  const [plan, out] = [join(project, 'plan.yaml'), join(project, 'analytics.gen.ts')]
  const command = ['plan', 'types', plan, '--out', out]
  writeFileSync(plan, JSON.stringify(SHOP))
  assert.match(
    (await switchyard(null, ...command, '--check')).stdout,
    /analytics\.gen\.ts does not exist\. Run the same command without --check\./,
  )
  assert.deepEqual(await switchyard(null, ...command), {
    code: 0,
    stdout: `Wrote ${out}: 4 rules of the tracking plan Shop.\n`,
    stderr: '',
  })
  assert.equal(readFileSync(out, 'utf8'), typedModule(SHOP, 'node'))
  assert.equal((await switchyard(null, 'plan', 'types', plan)).stdout, typedModule(SHOP, 'node'))
  assert.deepEqual(await switchyard(null, ...command), { code: 0, stdout: `${out} is up to date.\n`, stderr: '' })
  writeFileSync(out, typedModule(SHOP, 'node').replaceAll('\n', '\r\n'))
  assert.equal((await switchyard(null, ...command, '--check')).code, 0)

  const other = { ...SHOP, rules: SHOP.rules.slice(1) }
  writeFileSync(plan, JSON.stringify(other))
  const stale = await switchyard(null, ...command, '--check')
  assert.equal(stale.code, 1)
  assert.match(stale.stdout, /is not up to date with the tracking plan Shop/)
  assert.equal((await switchyard(null, ...command, '--for', 'browser')).code, 0)
  assert.equal(readFileSync(out, 'utf8'), typedModule(other, 'browser'))

  writeFileSync(plan, 'name: Shop\nrules:\n  - type: trak\n    schema: {}\n')
  const wrong = await switchyard(null, ...command)
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /plan\.yaml:3: /)
  assert.equal((await switchyard(null, 'plan', 'types', plan, '--check')).code, 2)
  assert.equal((await switchyard(null, 'plan', 'types', plan, '--plan', 'Shop')).code, 2)
})

test('a schema whose references repeat does not give a huge module', () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 20 }, (_, level) => [
      `l${level}`,
      { properties: Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, { $ref: `#/$defs/l${level + 1}` }])) },
    ]),
  )
  const rules: PlanRule[] = [{ type: 'identify', mode: 'observe', schema: { $ref: '#/$defs/l0', $defs } }]
  assert.ok(typedModule({ name: 'Repeats', unplanned: 'allow', rules }, 'node').length < 3_000_000)
})

const SHOP: TrackingPlan = {
  name: 'Shop',
  unplanned: 'allow',
  rules: [
    {
      type: 'track',
      event: 'Order Completed',
      mode: 'observe',
      schema: {
        type: 'object',
        required: ['total'],
        properties: {
          total: { type: 'number' },
          currency: { enum: ['EUR', 'USD'] },
          paidAt: { type: 'string', format: 'date-time' },
          coupon: { type: ['string', 'null'] },
        },
        anyOf: [{ required: ['currency'] }, { required: ['coupon'] }],
      },
    },
    {
      type: 'track',
      event: 'Signed Up',
      mode: 'observe',
      schema: {
        type: 'object',
        properties: { plan: { type: 'string' } },
      },
    },
    // Traits with other types than the client suggests.
    { type: 'identify', mode: 'observe', schema: { type: 'object', properties: { email: { type: 'number' } }, required: ['email'] } },
    { type: 'page', mode: 'observe', schema: { type: 'object', additionalProperties: false } },
  ],
}

const BY_HAND = `
import { Analytics } from '@switchyard/node'
import { createTestClient } from '@switchyard/node/testing'
import { plan } from './plan.gen.ts'
import { type Events, identify, page, trackOrderCompleted, trackSignedUp, type TrackOrderCompletedProperties } from './by-hand.gen.ts'

const analytics = new Analytics({ writeKey: 'wk' })
const typed = new Analytics<Events>({ writeKey: 'wk' })
const order: TrackOrderCompletedProperties = { total: 1, currency: 'EUR', paidAt: new Date() }
const sent: boolean = trackOrderCompleted(analytics, { userId: 'u', timestamp: new Date(), properties: order }, (error) => error?.code)
trackOrderCompleted(typed, { userId: 'u', properties: { total: 1, coupon: null, paidAt: '2026-11-14T09:00:00Z' } })
trackOrderCompleted({ track: () => sent }, { userId: 'u', properties: order })
typed.track({ userId: 'u', event: 'Signed Up', properties: { plan: 'pro' } })
trackSignedUp(analytics, { userId: 'u' })
trackSignedUp(createTestClient({ plan }), { userId: 'u' })
trackSignedUp(analytics, { anonymousId: 'a', properties: {} })
identify(analytics, { userId: 'u', traits: { email: 1 } })
page(analytics, { userId: 'u', name: 'Home', category: 'Shop' })
// @ts-expect-error one of currency and coupon is required
trackOrderCompleted(analytics, { userId: 'u', properties: { total: 1 } })
// @ts-expect-error no such currency
trackOrderCompleted(analytics, { userId: 'u', properties: { total: 1, currency: 'GBP' } })
// @ts-expect-error properties are required where one of them is
trackOrderCompleted(analytics, { userId: 'u' })
// @ts-expect-error userId or anonymousId is required
trackSignedUp(analytics, { properties: {} })
// @ts-expect-error the function decides the event
trackSignedUp(analytics, { userId: 'u', event: 'Something Else' })
// @ts-expect-error not planned
trackSignedUp(analytics, { userId: 'u', properties: { plan: 'pro', typo: 1 } })
// @ts-expect-error the plan allows no properties
page(analytics, { userId: 'u', properties: { url: '/' } })
// @ts-expect-error a number, says the plan
identify(analytics, { userId: 'u', traits: { email: 'a@example.com' } })
// @ts-expect-error no such event
typed.track({ userId: 'u', event: 'Order Complete', properties: order })
`
