import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SQLITE_ONLY } from '../store/fixtures/test-store.ts'
import { startControl } from './fixtures/start-control.ts'
import type { Operating } from './operating.ts'

const operating: Operating = {
  installation: {
    version: '1.2.3',
    startedAtMs: 1_700_000_000_000,
    storePath: '/nowhere.db',
    storePlace: '/nowhere.db',
    nodeName: 'web-1:8080',
    secretKey: { from: 'environment' },
    retentionDays: 7,
  },
  dial: () => Promise.reject(new Error('not here')),
  backups: null,
}

test('with a store for one process, that process is the node', { skip: SQLITE_ONLY }, async (t) => {
  const { call } = await startControl(t, { operating })
  const { status, body } = await call('GET', '/api/nodes')
  assert.equal(status, 200)
  const [{ seenAt, ...node }, ...others] = body.data
  assert.deepEqual(node, { name: 'web-1:8080', version: '1.2.3', startedAt: '2023-11-14T22:13:20.000Z', current: true })
  assert.ok(Math.abs(Date.parse(seenAt) - Date.now()) < 60_000)
  assert.deepEqual([others, body.next], [[], null])
})

test('nodes are not told to strangers', async (t) => {
  const { call } = await startControl(t, { operating })
  assert.equal((await call('GET', '/api/nodes', undefined, { token: 'wrong' })).status, 401)
})
