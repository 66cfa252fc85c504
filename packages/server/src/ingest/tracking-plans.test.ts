// What ingest does with messages of a source that has a tracking plan.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { PlanRule, UnplannedMode } from '@switchyard/protocol'
import { createPlanJudges } from '../plans/plan-judges.ts'
import { configuration, source, type TrackingApi, trackingApi } from './fixtures/tracking-api.ts'

const SCHEMA = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const rule = (event: string, mode: PlanRule['mode'], schema: PlanRule['schema'] = SCHEMA): PlanRule => ({
  type: 'track',
  event,
  mode,
  schema,
})
const track = (event: string, messageId: string | undefined, properties: object) => ({
  type: 'track',
  userId: 'u',
  event,
  messageId,
  properties,
})

async function start(t: TestContext, rules: PlanRule[], unplanned: UnplannedMode = 'allow') {
  const faults: string[] = []
  const plans = createPlanJudges((planId, { rule: key }) => faults.push(`${planId} ${key}`))
  const api = await trackingApi(t, {}, { plans })
  const plan = { id: 'pln_1', name: 'Plan', unplanned, rules, sourceIds: ['1'], version: 1, createdAtMs: 0 }
  api.store.configuration = { ...configuration([source('1'), source('two')]), plans: new Map([[plan.id, plan]]) }
  return { ...api, faults, plans }
}

function storedBody({ accepted }: TrackingApi) {
  return JSON.parse(Buffer.from(accepted[0]?.body ?? []).toString('utf8'))
}

test('a violation is stored with its message, by the index that the message has in the store, and the bytes stay as received', async (t) => {
  const api = await start(t, [rule('Order', 'observe')])
  const batch = [track('Order', 'a', { total: 1 }), track('Order', 'b', { total: 'x' }), track('Other', 'c', {})]
  assert.equal((await api.post('/v1/batch', { batch })).status, 200)
  const [accepted] = api.accepted
  assert.deepEqual(storedBody(api), { batch })
  assert.equal(accepted?.quarantined, undefined)
  const violation = { rule: 'track Order', code: 'wrong_type', path: 'properties.total', expected: 'a number', found: 'a string' }
  assert.deepEqual(accepted?.content.violations, { 1: [violation] })

  // The first message is rejected, so the indexes in the store differ from those in the request.
  await api.post('/v1/batch', { batch: [{ type: 'track', event: 'Order' }, track('Order', undefined, {})] })
  assert.deepEqual(Object.keys(api.accepted[1]?.content.violations ?? {}), ['0'])
})

test('many violations in one request: each message keeps at least one', async (t) => {
  const required = Array.from({ length: 20 }, (_, at) => `name ${at}`)
  const api = await start(t, [rule('Order', 'observe', { required })])
  await api.post('/v1/batch', { batch: Array.from({ length: 1_000 }, (_, at) => track('Order', `${at}`, {})) })
  const lists = Object.values(api.accepted[0]?.content.violations ?? {})
  assert.deepEqual([lists.length, lists[99]?.length, lists[100]?.length, lists.flat().length], [1_000, 20, 1, 2_900])
})

test('messages to quarantine are named with their plan and violations', async (t) => {
  const api = await start(t, [rule('Order', 'quarantine')], 'quarantine')
  await api.post('/v1/batch', { batch: [track('Order', 'a', { total: 1 }), track('Order', 'b', {}), track('Other', 'c', {})] })
  assert.deepEqual(
    api.accepted[0]?.quarantined?.map(({ index, planId, violations }) => [index, planId, violations[0]?.rule, violations[0]?.code]),
    [
      [1, 'pln_1', 'track Order', 'missing_property'],
      [2, 'pln_1', 'track Other', 'unplanned_event'],
    ],
  )
})

test('strip removes properties that are not planned from what is stored and routed', async (t) => {
  const api = await start(t, [rule('Order', 'strip')])
  const batch = [track('Order', 'a', { total: 1 }), track('Order', 'b', { total: 2, secret: 'x' }), track('Order', 'c', { total: 3 })]
  await api.post('/v1/batch', { batch, sentAt: '2026-11-14T09:00:00.000Z' })
  assert.deepEqual(
    storedBody(api).batch.map(({ messageId, properties }: { messageId: string; properties: object }) => [messageId, properties]),
    [
      ['a', { total: 1 }],
      ['b', { total: 2 }],
      ['c', { total: 3 }],
    ],
  )
  assert.deepEqual(api.accepted[0]?.content.items, storedBody(api).batch)
  assert.deepEqual(api.accepted[0]?.messageIds, ['a', 'b', 'c'])
  assert.equal(api.accepted[0]?.quarantined, undefined)
})

test('a source without a plan is not judged, and a new version of a plan applies at once', async (t) => {
  const api = await start(t, [rule('Order', 'observe')])
  const key = { Authorization: `Basic ${Buffer.from('key-two:').toString('base64')}` }
  await api.post('/v1/batch', { batch: [track('Order', 'a', {})] }, key)
  assert.equal(api.accepted[0]?.content.violations, undefined)
  const [plan] = api.store.configuration.plans.values()
  assert.ok(plan !== undefined)
  api.store.configuration = { ...api.store.configuration, plans: new Map([[plan.id, { ...plan, rules: [], version: 2 }]]) }
  await api.post('/v1/batch', { batch: [track('Order', 'b', {})] })
  assert.equal(api.accepted[1]?.content.violations, undefined)
})

test('a rule that cannot be compiled rejects nothing and is reported once', async (t) => {
  const api = await start(t, [rule('Order', 'quarantine', { type: 'nonsense' })])
  for (const messageId of ['a', 'b']) assert.equal((await api.post('/v1/track', track('Order', messageId, {}))).status, 200)
  assert.deepEqual([api.accepted.length, api.accepted[1]?.quarantined], [2, undefined])
  assert.deepEqual(api.faults, ['pln_1 track Order'])
  assert.equal(api.plans.faults('pln_1').length, 1)
})
