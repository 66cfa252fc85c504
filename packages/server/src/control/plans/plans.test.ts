import assert from 'node:assert/strict'
import test from 'node:test'
import { startControl } from '../fixtures/start-control.ts'

const SCHEMA = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const RULE = { type: 'track', event: 'Order Completed', description: 'Paid', owner: 'checkout', mode: 'quarantine', schema: SCHEMA }

test('a plan is created with defaults, changed and deleted', async (t) => {
  const { call, store } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const { status, body } = await call('POST', '/api/plans', { name: 'Shop', rules: [{ type: 'page', schema: {} }] })
  assert.equal(status, 201)
  const { id, createdAt, ...rest } = body
  assert.match(id, /^pln_/)
  assert.ok(Date.parse(createdAt) > 0)
  const made = { name: 'Shop', description: null, unplanned: 'allow', rules: [{ type: 'page', mode: 'observe', schema: {} }] }
  assert.deepEqual(rest, { ...made, sourceIds: [], version: 1 })
  assert.deepEqual((await call('GET', `/api/plans/${id}`)).body, body)

  const change = { rules: [RULE], description: 'Events of the shop' }
  const changed = await call('PATCH', `/api/plans/${id}`, change)
  assert.deepEqual(changed.body, { ...body, ...change, version: 2 })
  const attached = await call('PATCH', `/api/plans/${id}`, { sourceIds: [source.id], description: null })
  assert.deepEqual(attached.body, { ...changed.body, sourceIds: [source.id], description: null, version: 3 })
  assert.deepEqual((await call('GET', '/api/plans')).body, { data: [attached.body], next: null })
  assert.deepEqual(store.configuration().plans.get(id)?.rules, [RULE])

  assert.equal((await call('DELETE', `/api/plans/${id}`)).status, 204)
  for (const [method, sent] of [['GET'], ['PATCH', {}], ['DELETE']] as const) {
    const answer = await call(method, `/api/plans/${id}`, sent)
    assert.deepEqual([answer.status, answer.body.code], [404, 'plan_not_found'], method)
  }
})

test('a source has at most one plan', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  assert.equal((await call('POST', '/api/plans', { name: 'One', rules: [], sourceIds: [source.id] })).status, 201)
  const refused = await call('POST', '/api/plans', { name: 'Two', rules: [], sourceIds: [source.id] })
  assert.deepEqual([refused.status, refused.body.code, refused.body.field], [409, 'source_has_plan', 'sourceIds'])
  const { body: two } = await call('POST', '/api/plans', { name: 'Two', rules: [] })
  const moved = await call('PATCH', `/api/plans/${two.id}`, { sourceIds: [source.id] })
  assert.deepEqual([moved.status, moved.body.code], [409, 'source_has_plan'])
})

const REFUSED: [title: string, body: object, field: string][] = [
  ['a rule without an event', { rules: [{ type: 'track', schema: {} }] }, 'rules[0].event'],
  ['two rules for an event', { rules: [RULE, RULE] }, 'rules[1]'],
  ['a rule for alias', { rules: [{ type: 'alias', schema: {} }] }, 'rules[0].type'],
  ['a misspelled keyword', { rules: [{ ...RULE, schema: { propertys: {} } }] }, 'rules[0].schema'],
  ['a remote reference', { rules: [RULE, { type: 'page', schema: { $ref: 'http://localhost/x' } }] }, 'rules[1].schema.$ref'],
  ['an unknown source', { rules: [], sourceIds: ['nobody'] }, 'sourceIds[0]'],
  ['too many rules', { rules: Array.from({ length: 2_001 }, (_, at) => ({ type: 'track', event: `${at}`, schema: {} })) }, 'rules'],
]
test('an invalid plan is refused, with the field', async (t) => {
  const { call, store } = await startControl(t)
  for (const [title, sent, field] of REFUSED) {
    const { status, body } = await call('POST', '/api/plans', { name: 'Plan', ...sent })
    assert.deepEqual([status, body.code, body.field], [400, 'invalid_field', field], title)
  }
  assert.equal(store.configuration().plans.size, 0)
  const check = await call('POST', '/api/configuration/check', {
    plans: [{ settings: { name: 'Plan', rules: [{ ...RULE, schema: { type: 'x' } }] } }],
  })
  assert.deepEqual(
    check.body.problems.map(({ kind, field }: { kind: string; field: string }) => [kind, field]),
    [['plans', 'rules[0].schema']],
  )
})

test('the exported configuration contains the plans', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  await call('POST', '/api/plans', { name: 'Shop events', rules: [RULE], sourceIds: [source.id] })
  const { yaml } = (await call('GET', '/api/configuration')).body
  assert.match(yaml, /\nplans:\n {2}- name: Shop events\n/)
  assert.match(yaml, / {4}sources:\n {6}- Shop\n/)
})
