import assert from 'node:assert/strict'
import test from 'node:test'
import { readPlanFile } from '../../plans/plan-file.ts'
import { accept, startControl } from '../fixtures/start-control.ts'

const track = (index: number, properties: object) => ({
  type: 'track',
  event: 'Ordered',
  userId: `u${index % 5}`,
  messageId: `m${index}`,
  properties,
})

test('a viewer learns a plan from the messages of one source and period', async (t) => {
  const { store, call } = await startControl(t)
  const { id } = (await call('POST', '/api/sources', { name: 'Shop' })).body
  const { id: other } = (await call('POST', '/api/sources', { name: 'Other' })).body
  const { token } = (await call('POST', '/api/tokens', { name: 'v', role: 'viewer' })).body
  await accept(
    store,
    id,
    Array.from({ length: 450 }, (_, index) => track(index, { total: index / 2, currency: ['EUR', 'USD'][index % 2] })),
  )
  await accept(store, other, [track(0, { other: true })])

  const { status, body } = await call('POST', '/api/plans/learn', { source: 'Shop' }, { token })
  assert.equal(status, 200)
  const schema = {
    type: 'object',
    properties: { currency: { type: 'string', enum: ['EUR', 'USD'] }, total: { type: 'number' } },
    required: ['currency', 'total'],
    additionalProperties: false,
  }
  assert.deepEqual(body.plan, {
    name: 'Shop',
    unplanned: 'observe',
    rules: [{ type: 'track', event: 'Ordered', mode: 'observe', schema }],
  })
  assert.deepEqual([body.messages, body.complete, body.leftOut], [450, true, { events: 0, messages: 0 }])
  const { plan, sources } = await readPlanFile(body.yaml, 'plan.yaml')
  assert.deepEqual([plan, sources], [body.plan, ['Shop']])

  const later = await call('POST', '/api/plans/learn', { source: id, from: '2100-01-01T00:00:00.000Z', name: 'later' }, { token })
  assert.deepEqual([later.body.messages, later.body.plan], [0, { name: 'later', unplanned: 'observe', rules: [] }])
})

test('an unknown source, a wrong time and too many at once are refused', async (t) => {
  const { store, call } = await startControl(t)
  const { id } = (await call('POST', '/api/sources', { name: 'Shop' })).body
  assert.deepEqual((await call('POST', '/api/plans/learn', { source: 'nobody' })).body.code, 'source_not_found')
  assert.deepEqual((await call('POST', '/api/plans/learn', { source: id, from: '7d' })).body.field, 'from')
  await accept(
    store,
    id,
    Array.from({ length: 1_000 }, (_, index) => track(index, { total: index })),
  )
  const answers = await Promise.all(Array.from({ length: 6 }, () => call('POST', '/api/plans/learn', { source: id })))
  const codes = answers.map(({ status, body }) => (status === 200 ? body.messages : body.code))
  assert.ok(codes.includes('too_many_previews') && codes.includes(1_000), codes.join())
  assert.equal((await call('POST', '/api/plans/learn', { source: id })).status, 200)
})
