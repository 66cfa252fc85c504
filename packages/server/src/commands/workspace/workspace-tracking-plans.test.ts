import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkRules } from '../../plans/check-rules.ts'
import { ruleOf, rulesOf, sourceOf, trackingPlanOf } from './fixtures/exported-workspace.ts'
import type { Existing, PlannedPlan } from './planned-workspace.ts'
import { parseWorkspace } from './workspace-export.ts'
import { planWorkspace } from './workspace-plan.ts'

const NOTHING: Existing = { sources: [], destinations: [], plans: [] }

function plansOf(pages: object[], existing: Existing = NOTHING): PlannedPlan[] {
  const all = [{ data: { sources: [sourceOf('src-web', 'web', { name: 'Shop' })] } }, ...pages]
  return planWorkspace(parseWorkspace(JSON.stringify(all), 'x'), existing, new Map(), new Map()).plans
}

const PROPERTIES = {
  $id: '/properties/properties',
  type: 'object',
  labels: { owner: 'shop' },
  properties: {
    total: { $id: '/properties/properties/properties/total', type: ['number', 'null'], description: 'In euros' },
    id: { type: 'string' },
    labels: { type: 'array', items: [{ $ref: '#/definitions/label' }], additionalItems: false },
  },
  definitions: { label: { type: 'string' } },
  required: ['total'],
}

test('a tracking plan is converted: the part of its rules about properties or traits, in the newest version, for its sources', async () => {
  const [plan] = plansOf([
    { data: { trackingPlans: [trackingPlanOf('tp_1', 'Shop plan')] } },
    rulesOf('tp_1', 'rules', [
      ruleOf('TRACK', 'Order Completed', { properties: { type: 'object' } }, { version: 1 }),
      ruleOf('TRACK', 'Order Completed', { context: {}, traits: {}, properties: PROPERTIES }, { version: 2 }),
      ruleOf('IDENTIFY', undefined, { traits: { type: 'object', properties: { email: { type: 'string' } } } }),
      ruleOf('TRACK', 'Gone', {}, { deprecatedAt: '2024-01-01T00:00:00.000Z' }),
      ruleOf('COMMON', undefined, { context: { required: ['app'] } }),
      ruleOf('PAGE', undefined, { context: { type: 'object', required: ['app'] } }),
    ]),
    rulesOf('tp_1', 'sources', [sourceOf('src-web', 'web')]),
  ])
  assert.deepEqual([plan?.outcome, plan?.sources.map(({ name }) => name)], ['create', ['Shop']])
  const { rules, unplanned } = (plan?.body ?? assert.fail()) as { rules: Parameters<typeof checkRules>[0]; unplanned: string }
  assert.equal(unplanned, 'observe')
  assert.deepEqual(rules, [
    {
      type: 'track',
      event: 'Order Completed',
      mode: 'observe',
      schema: {
        type: 'object',
        properties: {
          total: { type: ['number', 'null'], description: 'In euros' },
          id: { type: 'string' },
          labels: { type: 'array', prefixItems: [{ $ref: '#/$defs/label' }], items: false },
        },
        $defs: { label: { type: 'string' } },
        required: ['total'],
      },
    },
    { type: 'identify', mode: 'observe', schema: { type: 'object', properties: { email: { type: 'string' } } } },
    { type: 'page', mode: 'observe', schema: { type: 'object' } },
  ])
  await checkRules(rules)
  assert.deepEqual(
    plan?.notes.map((note) => note.slice(0, 48)),
    ['The rule COMMON is left out: rules are for a tra', 'The rule page is imported without its schema of '],
  )
})

test('libraries, and a source that has a plan, are listed; a plan of the same name exists', () => {
  const pages = [
    { data: { trackingPlans: [trackingPlanOf('tp_1', 'Shop plan'), trackingPlanOf('tp_2', 'Library', 'RULE_LIBRARY')] } },
    rulesOf('tp_1', 'sources', [sourceOf('src-web', 'web')]),
  ]
  const outcomes = (existing: Existing): unknown[] => plansOf(pages, existing).map(({ outcome }) => outcome)
  assert.deepEqual(outcomes(NOTHING), ['create', 'not_supported'])
  assert.deepEqual(outcomes({ ...NOTHING, plans: [{ id: 'plan_1', name: 'Shop plan', sourceIds: [] }] }), ['exists', 'not_supported'])
  const sources = [{ id: 'src_1', name: 'Shop', origin: 'segment:src-web', writeKeys: ['key-of-web'] }]
  const taken = { ...NOTHING, sources, plans: [{ id: 'plan_1', name: 'Renamed', sourceIds: ['src_1'] }] }
  assert.match(plansOf(pages, taken)[0]?.reason ?? '', /Shop already has a plan here/)
})
