import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../store/conformance/fixtures.ts'
import { accept, startControl } from '../fixtures/start-control.ts'

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

test('a request that would write too many rows is rejected, and the error says how many users are allowed', async (t) => {
  const { call, store } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const destination = (await call('POST', '/api/destinations', { name: 'Hook', urls: ['https://example.com'], sourceIds: [source.id] }))
    .body
  const { id: _, createdAtMs: __, ...settings } = store.configuration().destinations.get(destination.id) ?? assert.fail()
  for (let count = 1; count < 11; count++) await store.resources.createDestination({ ...settings, name: `Hook ${count}` })
  const userIds = Array.from({ length: 5_000 }, (_, at) => `u-${at}`)
  const { status, body } = await call('POST', '/api/deletions', { userIds })
  assert.deepEqual([status, body.field], [400, 'userIds'])
  assert.match(body.message, /at most 4166 users per request/)
  assert.equal((await call('POST', '/api/suppressions', { userIds })).status, 200, 'suppressions write nothing for destinations')
  assert.equal((await call('POST', '/api/deletions', { userIds: userIds.slice(0, 50) })).status, 202)
  assert.equal((await store.deletions.list({}, { limit: 10, cursor: null })).data.length, 1)
})

test('only the given sources are affected, each once', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  await call('POST', '/api/sources', { name: 'Other' })
  const { body } = await call('POST', '/api/deletions', { userIds: ['u-1'], sourceIds: [source.id, source.id] })
  assert.deepEqual(body.sourceIds, [source.id])
})

test('an invalid deletion request is rejected, and nothing is deleted', async (t) => {
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

test('the targets of a large request are paged, counted and found by user and state', { timeout: 180_000 }, async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  await call('POST', '/api/destinations', { name: 'Hook', urls: ['https://example.com'], sourceIds: [source.id] })
  const userIds = Array.from({ length: 1_205 }, (_, index) => `user-${index}`)
  const { body: made } = await call('POST', '/api/deletions', { userIds })
  assert.deepEqual([made.targets.length, made.targets[0].userId], [1_000, 'user-0'])
  assert.equal(made.targetCounts.pending, 1_205)
  const { body: rest } = await call('GET', `/api/deletions/${made.id}/targets?limit=1000&cursor=${made.nextTargets}`)
  assert.deepEqual([rest.data.length, rest.data[0].userId, rest.next], [205, 'user-1000', null])
  const { body: one } = await call('GET', `/api/deletions/${made.id}/targets?userId=user-1100`)
  assert.deepEqual(
    one.data.map(({ userId, state }: Record<string, string>) => [userId, state]),
    [['user-1100', 'pending']],
  )
  assert.deepEqual((await call('GET', `/api/deletions/${made.id}/targets?state=failed`)).body, { data: [], next: null })
  const small = (await call('POST', '/api/deletions', { userIds: ['user-7'] })).body
  assert.equal(small.nextTargets, null)
  const foreign = await call('GET', `/api/deletions/${small.id}/targets?cursor=${made.nextTargets}`)
  assert.deepEqual([foreign.status, foreign.body.code], [400, 'invalid_cursor'])
})

test('deletion requests are found by user and state', async (t) => {
  const { call } = await startControl(t)
  await call('POST', '/api/sources', { name: 'Shop' })
  const { body: one } = await call('POST', '/api/deletions', { userIds: ['u-1', 'u-2'] })
  const { body: two } = await call('POST', '/api/deletions', { userIds: ['u-2'] })
  await until(
    () => call('GET', '/api/deletions?state=finished'),
    ({ body }) => body.data.length === 2,
    'both requests are finished',
  )
  const ids = async (query: string): Promise<string[]> =>
    (await call('GET', `/api/deletions?${query}`)).body.data.map(({ id }: { id: string }) => id)
  assert.deepEqual(await ids('userId=u-2'), [two.id, one.id])
  assert.deepEqual(await ids('userId=u-1&state=finished'), [one.id])
  assert.deepEqual(await ids('userId=u-1&state=failed'), [])
  assert.deepEqual(await ids('userId=__proto__'), [])
  const { body } = await call('GET', '/api/deletions?state=lost')
  assert.deepEqual([body.code, body.field], ['invalid_field', 'state'])
})

test('an unknown deletion request is 404', async (t) => {
  const { call } = await startControl(t)
  for (const path of ['/api/deletions/nothing', '/api/deletions/nothing/targets']) {
    const { status, body } = await call('GET', path)
    assert.deepEqual([status, body.code], [404, 'deletion_not_found'])
  }
})

test('users can be suppressed without deleting anything', async (t) => {
  const { call, store } = await startControl(t)
  const { body: one } = await call('POST', '/api/sources', { name: 'One' })
  const { body: two } = await call('POST', '/api/sources', { name: 'Two' })
  assert.deepEqual((await call('POST', '/api/suppressions', { userIds: ['a', 'b', 'a'] })).body, { added: 4 })
  assert.deepEqual((await call('POST', '/api/suppressions', { userIds: ['a', 'c'], sourceIds: [one.id] })).body, { added: 1 })
  assert.ok(store.configuration().suppressions.get(two.id)?.has('b'))
  const list = async (query: string): Promise<string[]> =>
    (await call('GET', `/api/suppressions?${query}`)).body.data.map((row: Record<string, string>) => `${row['userId']} ${row['sourceId']}`)
  assert.deepEqual(await list('userId=a'), [`a ${one.id}`, `a ${two.id}`])
  assert.deepEqual(await list(`sourceId=${one.id}`), [`a ${one.id}`, `b ${one.id}`, `c ${one.id}`])
  assert.deepEqual(await list(`sourceId=${two.id}&userId=c`), [])
  assert.deepEqual((await call('GET', '/api/deletions')).body.data, [])
  for (const [sent, field] of [
    [{}, 'userIds'],
    [{ userIds: ['a'], sourceIds: ['nobody'] }, 'sourceIds[0]'],
    [{ userIds: ['a'], suppress: true }, 'suppress'],
  ] as const) {
    const { status, body } = await call('POST', '/api/suppressions', sent)
    assert.deepEqual([status, body.field], [400, field])
  }
})

test('a message that was purged is no longer shown', { timeout: 180_000 }, async (t) => {
  const { call, store } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  await accept(store, source.id, [
    { type: 'identify', userId: 'u-1', messageId: 'm-1' },
    { type: 'identify', userId: 'u-2', messageId: 'm-2' },
  ])
  const { body } = await call('POST', '/api/deletions', { userIds: ['u-1'] })
  await until(
    () => call('GET', `/api/deletions/${body.id}`),
    (deletion) => deletion.body.purged === 1,
    'the message is purged',
  )
  const { body: purged } = await call('GET', '/api/messages/m-1')
  assert.deepEqual([purged.purged, purged.message, purged.userId], [true, null, null])
  assert.equal((await call('GET', '/api/messages/m-2')).status, 200)
  const { body: list } = await call('GET', '/api/messages')
  assert.deepEqual(
    list.data.map(({ messageId }: { messageId: string }) => messageId),
    ['m-2'],
  )
})

test('users are suppressed only for the given sources, and the suppression can be ended', async (t) => {
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
