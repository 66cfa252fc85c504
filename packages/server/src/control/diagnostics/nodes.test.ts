import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SQLITE_ONLY } from '../../store/fixtures/test-store.ts'
import { startControl } from '../fixtures/start-control.ts'
import type { OperatorTools } from '../routes/operator-tools.ts'

const operatorTools: OperatorTools = {
  installation: {
    version: '1.2.3',
    startedAtMs: 1_700_000_000_000,
    storePath: '/nowhere.db',
    storePlace: '/nowhere.db',
    nodeName: 'web-1:8080',
    command: './switchyard',
    secretKey: { from: 'environment' },
    retentionDays: 7,
  },
  dial: () => Promise.reject(new Error('not here')),
  backups: null,
}

test('with a store for a single process, that process is the only node', { skip: SQLITE_ONLY }, async (t) => {
  const { call } = await startControl(t, { operatorTools })
  const { status, body } = await call('GET', '/api/nodes')
  assert.equal(status, 200)
  const [{ seenAt, ...node }, ...others] = body.data
  assert.deepEqual(node, { name: 'web-1:8080', version: '1.2.3', startedAt: '2023-11-14T22:13:20.000Z', current: true })
  assert.ok(Math.abs(Date.parse(seenAt) - Date.now()) < 60_000)
  assert.deepEqual([others, body.next], [[], null])
})

test('nodes are not listed without a token', async (t) => {
  const { call } = await startControl(t, { operatorTools })
  assert.equal((await call('GET', '/api/nodes', undefined, { token: 'wrong' })).status, 401)
})

test('viewers see the installation, but only admins see the location of the store', async (t) => {
  const { call } = await startControl(t, { operatorTools })
  const { now, ...told } = (await call('GET', '/api/installation')).body
  assert.ok(Math.abs(Date.parse(now) - Date.now()) < 60_000)
  const shared = { version: '1.2.3', startedAt: '2023-11-14T22:13:20.000Z', storeKind: 'sqlite', retentionDays: 7, backups: false }
  assert.deepEqual(told, { ...shared, store: '/nowhere.db', command: './switchyard' })
  const { token } = (await call('POST', '/api/tokens', { name: 'v', role: 'viewer' })).body
  const { store, command } = (await call('GET', '/api/installation', undefined, { token })).body
  assert.deepEqual([store, command], [null, 'switchyard'])
  assert.equal((await call('GET', '/api/installation', undefined, { token: 'wrong' })).status, 401)
})
