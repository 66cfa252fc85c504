import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createSecretBox } from '../../secrets/secret-box.ts'
import { createSqliteStore } from '../../store/sqlite/store.ts'
import { createBackups } from '../../store/sqlite/threads/backups.ts'
import { startControl, TOKEN } from '../fixtures/start-control.ts'
import type { OperatorTools } from '../routes/operator-tools.ts'

async function withBackups(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-backups-'))
  const path = join(folder, 'test.db')
  const other = await createSqliteStore({ path, secretBox: createSecretBox('a key for these tests'), retentionDays: 7 })
  const backups = createBackups({ path })
  t.after(async () => {
    await backups.close()
    await other.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const installation = {
    version: '1',
    startedAtMs: 0,
    storePath: path,
    storePlace: path,
    nodeName: 'test',
    command: './switchyard',
    secretKey: { from: 'environment' },
    retentionDays: 7,
  } as const
  const operatorTools: OperatorTools = { installation, dial: async () => assert.fail('nothing is dialled'), backups }
  return startControl(t, { operatorTools })
}

test('a backup is created, shown, downloaded and deleted, and has an audit entry', async (t) => {
  const { call, url } = await withBackups(t)
  const { status, body: begun } = await call('POST', '/api/backups')
  assert.equal(status, 202)
  assert.equal((await call('POST', '/api/backups')).body.code, 'backup_running')
  let job = begun
  while (job.state === 'copying') {
    await new Promise((resolve) => setTimeout(resolve, 5))
    job = (await call('GET', `/api/backups/${begun.id}`)).body
  }
  assert.equal(job.state, 'ready')
  const response = await fetch(`${url}/api/backups/${begun.id}/file`, { headers: { authorization: `Bearer ${TOKEN}` } })
  assert.equal(response.headers.get('content-type'), 'application/octet-stream')
  const bytes = Buffer.from(await response.arrayBuffer())
  assert.equal(bytes.length, job.totalBytes)
  assert.equal(bytes.subarray(0, 15).toString(), 'SQLite format 3')
  assert.equal((await call('DELETE', `/api/backups/${begun.id}`)).status, 204)
  assert.equal((await call('GET', `/api/backups/${begun.id}`)).body.code, 'backup_not_found')
  const audit = (await call('GET', '/api/audit?action=backup.create')).body.data
  assert.deepEqual(
    audit.map(({ subject }: { subject: string }) => subject),
    [begun.id],
  )
})

test('all routes for backups are for admins', async (t) => {
  const { call } = await withBackups(t)
  const { token } = (await call('POST', '/api/tokens', { name: 'v', role: 'viewer' })).body
  const { id } = (await call('POST', '/api/backups')).body
  for (const [method, path] of [
    ['POST', '/api/backups'],
    ['GET', `/api/backups/${id}`],
    ['GET', `/api/backups/${id}/file`],
    ['DELETE', `/api/backups/${id}`],
  ] as const) {
    assert.equal((await call(method, path, undefined, { token })).status, 403, `${method} ${path}`)
    assert.equal((await call(method, path, undefined, { token: null })).status, 401, `${method} ${path}`)
  }
})

test('an id that is a path is not found, and a store without backups returns an error', async (t) => {
  const { call } = await withBackups(t)
  for (const id of ['..%2Ftest.db', 'bak_..%2F..%2Fetc%2Fpasswd', '__proto__']) {
    assert.equal((await call('GET', `/api/backups/${id}`)).body.code, 'backup_not_found')
  }
  const without = await startControl(t)
  assert.equal((await without.call('POST', '/api/backups')).body.code, 'backup_unsupported')
})

test('a backup in progress cannot be downloaded', async (t) => {
  const job = { id: 'bak_1', state: 'copying', doneBytes: 0, totalBytes: 1, error: null, createdAtMs: 0 } as const
  const installation = {
    version: '1',
    startedAtMs: 0,
    storePath: null,
    storePlace: 'db.example.com:5432/switchyard',
    nodeName: 'test',
    command: './switchyard',
    secretKey: { from: 'environment' },
    retentionDays: 7,
  } as const
  const backups = { start: () => job, get: () => job, open: () => undefined, remove: async () => true }
  const { call } = await startControl(t, { operatorTools: { installation, dial: async () => assert.fail('nothing is dialled'), backups } })
  const { status, body } = await call('GET', '/api/backups/bak_1/file')
  assert.deepEqual([status, body.code], [409, 'backup_not_ready'])
})
