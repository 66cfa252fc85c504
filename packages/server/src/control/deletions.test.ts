import assert from 'node:assert/strict'
import test from 'node:test'
import { accept, startControl } from './fixtures/start-control.ts'

test('a deletion request has one target per user, source and destination', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const { body: quiet } = await call('POST', '/api/sources', { name: 'Quiet' })
  const { body: hook } = await call('POST', '/api/destinations', { name: 'Hook', urls: ['https://example.com'], sourceIds: [source.id] })
  const { status, body } = await call('POST', '/api/deletions', { userIds: ['u-1', 'u-2', 'u-1'] })
  assert.equal(status, 202)
  assert.deepEqual([body.userCount, body.suppress, new Set(body.sourceIds)], [2, false, new Set([source.id, quiet.id])])
  const told = body.targets.filter(({ destinationId }: { destinationId: string | null }) => destinationId !== null)
  assert.deepEqual(told.map(({ userId, sourceId, destinationId }: Record<string, string>) => [userId, sourceId, destinationId]).sort(), [
    ['u-1', source.id, hook.id],
    ['u-2', source.id, hook.id],
  ])
  const { body: delivery } = await call('GET', `/api/deliveries/${told[0].deliveryId}`)
  assert.deepEqual([delivery.state, delivery.destinationId], ['pending', hook.id])
  const { body: one } = await call('GET', `/api/deletions/${body.id}`)
  assert.deepEqual([one.id, one.targets.length], [body.id, body.targets.length])
  const { body: list } = await call('GET', '/api/deletions')
  assert.deepEqual(
    list.data.map(({ id }: { id: string }) => id),
    [body.id],
  )
})

test('only the sources that are named are touched, each once', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  await call('POST', '/api/sources', { name: 'Other' })
  const { body } = await call('POST', '/api/deletions', { userIds: ['u-1'], sourceIds: [source.id, source.id] })
  assert.deepEqual(body.sourceIds, [source.id])
})

test('a deletion request that is not well formed is refused, and nothing is deleted', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  for (const [sent, code, field] of [
    [{}, 'invalid_field', 'userIds'],
    [{ userIds: [] }, 'invalid_field', 'userIds'],
    [{ userIds: 'u-1' }, 'invalid_field', 'userIds'],
    [{ userIds: [''] }, 'invalid_field', 'userIds[0]'],
    [{ userIds: ['u-1', 7] }, 'invalid_field', 'userIds[1]'],
    [{ userIds: Array.from({ length: 5001 }, (_, index) => `u-${index}`) }, 'invalid_field', 'userIds'],
    [{ userIds: ['u-1'], sourceIds: [] }, 'invalid_field', 'sourceIds'],
    [{ userIds: ['u-1'], sourceIds: [source.id, 'nobody'] }, 'invalid_field', 'sourceIds[1]'],
    [{ userIds: ['u-1'], suppress: 'yes' }, 'invalid_field', 'suppress'],
    [{ userIds: ['u-1'], reason: 'gdpr' }, 'unknown_field', 'reason'],
  ] as const) {
    const { status, body } = await call('POST', '/api/deletions', sent)
    assert.deepEqual([status, body.code, body.field], [400, code, field])
  }
  assert.deepEqual((await call('GET', '/api/deletions')).body, { data: [], next: null })
})

test('5000 users fit in one request', async (t) => {
  const { call } = await startControl(t)
  await call('POST', '/api/sources', { name: 'Shop' })
  const userIds = Array.from({ length: 5000 }, (_, index) => `user-${index}-${'x'.repeat(100)}`)
  const { status, body } = await call('POST', '/api/deletions', { userIds })
  assert.deepEqual([status, body.userCount], [202, 5000])
})

test('a deletion request that is not there is 404', async (t) => {
  const { call } = await startControl(t)
  const { status, body } = await call('GET', '/api/deletions/nothing')
  assert.deepEqual([status, body.code], [404, 'deletion_not_found'])
})

test('a message that was purged is no longer shown', { timeout: 60_000 }, async (t) => {
  const { call, store } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  await accept(store, source.id, [
    { type: 'identify', userId: 'u-1', messageId: 'm-1' },
    { type: 'identify', userId: 'u-2', messageId: 'm-2' },
  ])
  const { body } = await call('POST', '/api/deletions', { userIds: ['u-1'] })
  while ((await call('GET', `/api/deletions/${body.id}`)).body.purged < 1);
  assert.equal((await call('GET', '/api/messages/m-1')).status, 404)
  assert.equal((await call('GET', '/api/messages/m-2')).status, 200)
  const { body: list } = await call('GET', '/api/messages')
  assert.deepEqual(
    list.data.map(({ messageId }: { messageId: string }) => messageId),
    ['m-2'],
  )
})

test('users are suppressed only where it was asked for, and taken again', async (t) => {
  const { call, store } = await startControl(t)
  const { body: one } = await call('POST', '/api/sources', { name: 'One' })
  const { body: two } = await call('POST', '/api/sources', { name: 'Two' })
  await call('POST', '/api/deletions', { userIds: ['quiet'] })
  assert.deepEqual((await call('GET', '/api/suppressions')).body, { data: [], next: null })
  await call('POST', '/api/deletions', { userIds: ['u 1', 'u-2'], suppress: true })
  const { body } = await call('GET', '/api/suppressions')
  assert.equal(body.data.length, 4)
  assert.ok(Math.abs(Date.parse(body.data[0].since) - Date.now()) < 60_000)
  assert.ok(store.configuration().suppressions.get(one.id)?.has('u 1'))

  const page = (await call('GET', '/api/suppressions?limit=3')).body
  const rest = (await call('GET', `/api/suppressions?limit=3&cursor=${page.next}`)).body
  assert.deepEqual([page.data.length, rest.data.length, rest.next], [3, 1, null])

  assert.deepEqual((await call('DELETE', `/api/suppressions?userId=u%201&sourceId=${one.id}`)).body, { removed: 1 })
  assert.ok(!store.configuration().suppressions.get(one.id)?.has('u 1'))
  assert.ok(store.configuration().suppressions.get(two.id)?.has('u 1'))
  assert.deepEqual((await call('DELETE', '/api/suppressions?userId=u-2')).body, { removed: 2 })
  assert.deepEqual((await call('DELETE', '/api/suppressions?userId=nobody')).body, { removed: 0 })
  const bare = await call('DELETE', '/api/suppressions')
  assert.deepEqual([bare.status, bare.body.field], [400, 'userId'])
})
