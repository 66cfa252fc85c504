import assert from 'node:assert/strict'
import test from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { startControl } from '../fixtures/start-control.ts'

const HOOK = { name: 'Hook', urls: ['https://example.com/hook'] }
const codeOf = (code: string) => ({ transformation: { code, timeoutMs: 50, memoryMb: 8 } })
const numbersOf = (body: { data: { version: number }[] }): number[] => body.data.map(({ version }) => version)

test('versions are listed newest first, in pages, and one is restored by an update', async (t) => {
  const { call, store } = await startControl(t)
  const { body: created } = await call('POST', '/api/destinations', HOOK)
  assert.equal(created.version, 1)
  const path = `/api/destinations/${created.id}`
  for (const code of ['one', 'two', 'three']) await store.resources.updateDestination(created.id, codeOf(code))
  const { body: first } = await call('GET', `${path}/versions?limit=3`)
  assert.deepEqual(numbersOf(first), [4, 3, 2])
  const { body: second } = await call('GET', `${path}/versions?limit=3&cursor=${first.next}`)
  assert.deepEqual([numbersOf(second), second.next], [[1], null])
  const { createdAt, actor, ...oldest } = second.data[0]
  assert.deepEqual(oldest, {
    version: 1,
    current: false,
    changed: [],
    restoredFrom: null,
    request: null,
    transformation: null,
    subscriptions: null,
  })
  assert.equal(typeof actor.name, 'string')
  assert.ok(Date.parse(createdAt) > 0)

  const restored = await call('PATCH', path, { version: 2, name: 'Restored' })
  assert.deepEqual([restored.status, restored.body.version, restored.body.name], [200, 5, 'Restored'])
  assert.equal(asWebhook(store.configuration().destinations.get(created.id)).transformation?.code, 'one')
  const [newest] = (await call('GET', `${path}/versions`)).body.data
  assert.deepEqual([newest.version, newest.current, newest.restoredFrom, newest.changed], [5, true, 2, ['transformation.code']])
  const [entry] = (await call('GET', '/api/audit?limit=1')).body.data
  assert.deepEqual([entry.action, entry.before.version, entry.after.version], ['destination.update', 4, 5])
})

test('a version that is not kept cannot be restored, nor together with other content', async (t) => {
  const { call, store } = await startControl(t)
  const { body: created } = await call('POST', '/api/destinations', HOOK)
  const path = `/api/destinations/${created.id}`
  await store.resources.updateDestination(created.id, codeOf('one'))
  for (const version of [3, 0, -1, 1.5, '1', null, 1e12, 2 ** 53]) {
    const { status, body } = await call('PATCH', path, { version })
    assert.deepEqual([status, body.error?.field ?? body.field], [400, 'version'], JSON.stringify(version))
  }
  assert.equal((await call('GET', path)).body.version, 2)
  assert.equal((await call('GET', '/api/destinations/dst_none/versions')).status, 404)
  assert.equal((await call('PATCH', '/api/destinations/dst_none', { version: 1 })).status, 404)
  assert.equal((await call('GET', `${path}/versions?cursor=made-up`)).status, 400)
})

test('a restore with an outdated If-Match is rejected', async (t) => {
  const { call, store } = await startControl(t)
  const { body: created, headers } = await call('POST', '/api/destinations', HOOK)
  const path = `/api/destinations/${created.id}`
  const ifMatch = { headers: { 'if-match': headers.get('etag') ?? '' } }
  await store.resources.updateDestination(created.id, codeOf('one'))
  assert.equal((await call('PATCH', path, { version: 1 }, ifMatch)).status, 412)
  const { headers: now } = await call('GET', path)
  assert.equal((await call('PATCH', path, { version: 1 }, { headers: { 'if-match': now.get('etag') ?? '' } })).status, 200)
})
