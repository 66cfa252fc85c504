import assert from 'node:assert/strict'
import test from 'node:test'
import { DELIVERED, FAILED, setUp, track } from '../fixtures/history.ts'
import { accept, settleAll } from '../fixtures/start-control.ts'

const items = (prefix: string, count: number, more: (at: number) => object) =>
  Array.from({ length: count }, (_, at) => track(`${prefix}-${at}`, { ...more(at) }))

test('what differs between failed and delivered messages of the same event, by API', async (t) => {
  const { call, fixture, send, one, two } = await setUp(t)
  await send(items('good', 12, (at) => ({ properties: { total: at, plan: 'paid' } })))
  await settleAll(fixture, one, 'delivered', DELIVERED)
  await send([
    ...items('bad', 9, (at) => ({ properties: { total: `${at} EUR`, plan: 'free' } })),
    { type: 'identify', userId: 'u', messageId: 'i' },
  ])
  await settleAll(fixture, one, 'failed', { ...FAILED, version: 2 })

  const { status, body } = await call('GET', `/api/deliveries/differences?destinationId=${one}`)
  assert.equal(status, 200)
  const { data, ...about } = body
  assert.deepEqual(about, { type: 'track', event: 'Order Completed', examined: { failed: 9, delivered: 12 }, complete: 'yes' })
  const shown = data.map(({ field, kind, value, failed, delivered, score }: Record<string, unknown>) => [
    field,
    kind,
    value,
    failed,
    delivered,
    score,
  ])
  assert.deepEqual(shown.slice(0, 3), [
    [null, 'version', '2', 9, 0, 1],
    ['properties.total', 'type', 'string', 9, 0, 1],
    ['properties.plan', 'value', '"free"', 9, 0, 1],
  ])
  assert.equal(data[1].sentence, 'properties.total is a string: 9 of 9 failed messages and 0 of 12 delivered ones.')

  const few = await call('GET', `/api/deliveries/differences?destinationId=${one}&reason=timeout`)
  assert.deepEqual(few.body, { type: null, event: null, examined: { failed: 0, delivered: 0 }, complete: 'too_few', data: [] })
  const other = await call('GET', `/api/deliveries/differences?destinationId=${two}&state=expired`)
  assert.equal(other.body.complete, 'too_few')
  assert.equal((await call('GET', '/api/deliveries/differences')).status, 400)
  const crowd = await Promise.all([1, 2, 3, 4, 5, 6].map(() => call('GET', `/api/deliveries/differences?destinationId=${one}`)))
  const codes = new Set(crowd.map(({ status: code }) => code))
  assert.ok(codes.has(200) && [...codes].every((code) => code === 200 || code === 429))
})

test('a caller that is limited to a source compares only its messages', async (t) => {
  const { call, fixture, send, one, sourceId } = await setUp(t)
  const { body: other } = await call('POST', '/api/sources', { name: 'Secret' })
  await call('PATCH', `/api/destinations/${one}`, { sourceIds: [sourceId, other.id] })
  const ofOther = (of: Parameters<typeof send>[0]) =>
    accept(fixture.store, other.id as string, of, { shipments: [{ destinationId: one, indexes: null }] })
  await send(items('good', 5, () => ({ properties: { ours: 1 } })))
  await ofOther(items('other-good', 5, () => ({ properties: { theirs: 1 } })))
  await settleAll(fixture, one, 'delivered', DELIVERED)
  await send(items('bad', 4, () => ({ properties: { ours: 2 } })))
  await ofOther(items('other-bad', 6, () => ({ properties: { hidden: 'of the other source' } })))
  await settleAll(fixture, one, 'failed', FAILED)
  const { body: token } = await call('POST', '/api/tokens', { name: 'limited', role: 'viewer', sources: [sourceId] })
  assert.equal(typeof token.token, 'string')
  const { body, text } = await call('GET', `/api/deliveries/differences?destinationId=${one}`, undefined, { token: token.token })
  assert.deepEqual(body.examined, { failed: 4, delivered: 5 })
  assert.ok(!text.includes('hidden') && !text.includes(other.id), text)
  assert.deepEqual([body.data[0].field, body.data[0].kind], ['properties.ours', 'value'])
  const whole = await call('GET', `/api/deliveries/differences?destinationId=${one}`)
  assert.deepEqual(whole.body.examined, { failed: 10, delivered: 10 })
})
