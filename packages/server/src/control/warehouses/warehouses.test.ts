// The settings of warehouses in the control API: what is accepted, and what of it is shown.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SAMPLE_TYPES } from '../destinations/sample-message.ts'
import { STILL, startControl } from '../fixtures/start-control.ts'

const LAKE = { type: 'warehouse', name: 'Lake', warehouse: { engine: 'parquet', url: 'file:///var/lib/lake' } }
const POSTGRES = {
  type: 'warehouse',
  name: 'Tables',
  warehouse: { engine: 'postgres', url: 'postgres://ada:pass-word@db.example/analytics' },
}
const BUCKET = {
  type: 'warehouse',
  name: 'Bucket',
  warehouse: {
    engine: 'parquet',
    url: 's3://bucket/prefix',
    accessKeyId: 'KEY',
    secretAccessKey: 'secret-of-the-key',
    region: 'eu-west-1',
  },
}
const INSTALLED = { state: 'installed', done: 0, total: 0, error: null } as const

test('a warehouse has defaults, and shows no secret to anybody', async (t) => {
  const { call } = await startControl(t)
  const lake = (await call('POST', '/api/destinations', LAKE)).body
  assert.deepEqual(lake.load, { everyMs: 60_000, maxRows: 50_000, maxBytes: 33_554_432 })
  assert.deepEqual([lake.secretSettings, lake.timeoutMs, lake.warehouse.adopt], [[], 600_000, false])
  const tables = (await call('POST', '/api/destinations', POSTGRES)).body
  assert.equal(tables.warehouse.url, 'postgres://ada:(hidden)@db.example/analytics')
  const bucket = (await call('POST', '/api/destinations', BUCKET)).body
  assert.deepEqual(
    [bucket.secretSettings, bucket.warehouse.secretAccessKey, bucket.warehouse.accessKeyId],
    [['secretAccessKey'], undefined, 'KEY'],
  )
  const all = JSON.stringify([(await call('GET', '/api/destinations')).body, (await call('GET', '/api/audit')).body])
  assert.doesNotMatch(all, /pass-word|secret-of-the-key/)
})

test('a secret that is left out is kept as long as its server stays, and is never sent to another', async (t) => {
  const { call, store } = await startControl(t)
  const stored = (id: string): Record<string, unknown> => {
    const destination = store.configuration().destinations.get(id)
    assert.equal(destination?.type, 'warehouse')
    return { ...(destination?.type === 'warehouse' && destination.warehouse) }
  }
  const { id } = (await call('POST', '/api/destinations', POSTGRES)).body
  const patch = (warehouse: object) => call('PATCH', `/api/destinations/${id}`, { warehouse: { engine: 'postgres', ...warehouse } })
  assert.equal((await patch({ url: 'postgres://ada:(hidden)@db.example/other', schema: 'shop' })).status, 200)
  assert.deepEqual([stored(id)['url'], stored(id)['schema']], ['postgres://ada:pass-word@db.example/other', 'shop'])
  assert.equal((await patch({ url: 'postgres://ada@db.example/other' })).status, 200)
  assert.deepEqual([stored(id)['url'], stored(id)['schema']], ['postgres://ada:pass-word@db.example/other', null], 'the rest is replaced')
  const moved = await patch({ url: 'postgres://ada:(hidden)@evil.example/other' })
  assert.deepEqual([moved.status, moved.body.code, moved.body.fields], [400, 'secrets_needed', ['warehouse.url']])
  assert.equal((await patch({ url: 'postgres://ada:new@evil.example/other' })).status, 200)

  const { id: bucket } = (await call('POST', '/api/destinations', BUCKET)).body
  const { secretAccessKey: _secret, ...left } = BUCKET.warehouse
  assert.equal((await call('PATCH', `/api/destinations/${bucket}`, { warehouse: { ...left, url: 's3://bucket/other' } })).status, 200)
  assert.equal(stored(bucket)['secretAccessKey'], 'secret-of-the-key')
  const elsewhere = await call('PATCH', `/api/destinations/${bucket}`, { warehouse: { ...left, endpoint: 'https://evil.example' } })
  assert.deepEqual([elsewhere.body.code, elsewhere.body.fields], ['secrets_needed', ['warehouse.secretAccessKey']])
})

test('settings that cannot work are refused with the field', async (t) => {
  const { call } = await startControl(t, {
    checkUrl: (url) => (url.startsWith('file:///etc') ? 'must be below the folder of lakes' : null),
  })
  const refused = async (change: object): Promise<string> => {
    const { status, body } = await call('POST', '/api/destinations', { ...LAKE, ...change })
    assert.equal(status, 400, JSON.stringify(body))
    return `${body.field}`
  }
  const place = (warehouse: object): Promise<string> => refused({ warehouse })
  assert.equal(await place({ engine: 'oracle', url: 'x' }), 'warehouse.engine')
  assert.equal(await place({ engine: 'parquet', url: 'file:///etc/lake' }), 'warehouse.url')
  assert.equal(await place({ engine: 'parquet', url: 'https://x.example/' }), 'warehouse.url')
  for (const path of ['..%2f..%2fx', 'a%00b', 'a%0Ab', '%zz', '%', '%ff', 'a%5cb'])
    assert.equal(await place({ engine: 'parquet', url: `file:///lake/${path}` }), 'warehouse.url', path)
  assert.equal(await place({ engine: 'parquet', url: 'file:///lake', accessKeyId: 'x' }), 'warehouse.accessKeyId')
  assert.equal(await place({ engine: 'parquet', url: 's3://bucket/x' }), 'warehouse.accessKeyId')
  assert.equal(await place({ engine: 'postgres', url: 'postgres://ada:(hidden)@db/x' }), 'warehouse.url')
  assert.equal(await place({ engine: 'postgres', url: 'postgres://ada@db/x?host=/tmp' }), 'warehouse.url')
  assert.equal(await place({ engine: 'clickhouse', url: 'https://u:p@x.example', database: 'd', user: 'u' }), 'warehouse.url')
  assert.equal(await refused({ load: { everyMs: 999 } }), 'load.everyMs')
  assert.equal(await refused({ load: { everyMs: 86_400_001 } }), 'load.everyMs')
  assert.equal(await refused({ order: { by: 'user' } }), 'order')
  assert.equal(await refused({ urls: ['https://x.example'] }), 'urls')
})

test('without the package, creating a warehouse is refused with the command that installs it', async (t) => {
  const missing = { ...INSTALLED, state: 'missing' as const }
  const { call } = await startControl(t, { warehouseInstaller: { state: () => missing, start: () => missing } })
  const { status, body } = await call('POST', '/api/destinations', LAKE)
  assert.deepEqual([status, body.code], [409, 'not_installed'])
  assert.match(body.message, /switchyard warehouse install/)
  assert.equal((await call('POST', '/api/warehouse/check', LAKE)).body.code, 'not_installed')
})

test('settings are tested before the destination is created, with the same checks, and without a secret in the audit log', async (t) => {
  const asked: { url: string; messages: string[] }[] = []
  const { call, store } = await startControl(t, {
    delivery: {
      ...STILL,
      async checkWarehouse(destination, { sources }) {
        const messages = sources.flatMap((source) => source.messages.map((text) => (JSON.parse(text) as { type: string }).type))
        asked.push({ url: destination.type === 'warehouse' ? destination.warehouse.url : '', messages })
        const tables = sources.map(({ sourceId, name }) => {
          return { sourceId, schema: name, table: 'tracks', rows: 1, columnCount: 0, columns: [], unfit: 0 }
        })
        return { problem: { code: 'permission_missing', message: 'ada may not create a schema.' }, steps: [], version: 'x', tables }
      },
    },
  })
  const check = (body: object) => call('POST', '/api/warehouse/check', body)
  const { status, body } = await check(POSTGRES)
  assert.deepEqual([status, body.problem.code, body.messages], [200, 'permission_missing', 0])
  assert.deepEqual([body.tables[0].sourceId, asked[0]?.url], [null, POSTGRES.warehouse.url])
  assert.deepEqual(asked[0]?.messages, [...SAMPLE_TYPES], 'without messages, sample messages show the layout')
  assert.equal(store.configuration().destinations.size, 0)
  const [entry] = (await call('GET', '/api/audit?action=warehouse.check')).body.data
  assert.equal(entry.after.warehouse.url, 'postgres://(hidden)@db.example/analytics')
  assert.equal((await check({ ...LAKE, warehouse: { engine: 'parquet', url: 's3://bucket/x' } })).body.field, 'warehouse.accessKeyId')
  assert.equal((await check({ ...LAKE, sourceIds: ['src_none'] })).body.field, 'sourceIds[0]')
  assert.equal((await check({ name: 'Hook', urls: ['https://x.example/'] })).body.field, 'type')
  assert.equal(asked.length, 1)
})

test('only a warehouse has tables and loads', async (t) => {
  const { call } = await startControl(t)
  const { id: lake } = (await call('POST', '/api/destinations', LAKE)).body
  assert.deepEqual((await call('GET', `/api/destinations/${lake}/tables`)).body, { data: [], next: null })
  assert.equal((await call('POST', `/api/destinations/${lake}/load`, {})).status, 202)
  const { id } = (await call('POST', '/api/destinations', { name: 'Hook', urls: ['https://x.example/'] })).body
  assert.equal((await call('GET', `/api/destinations/${id}/tables`)).body.code, 'not_a_warehouse')
  assert.equal((await call('POST', `/api/destinations/${id}/load`, {})).body.code, 'not_a_warehouse')
})

test('somebody who is limited to sources cannot adopt the tables of other destinations', async (t) => {
  const { call } = await startControl(t)
  const { id: source } = (await call('POST', '/api/sources', { name: 'Shop' })).body
  const { token } = (await call('POST', '/api/tokens', { name: 'x', role: 'editor', sources: [source] })).body
  const as = (method: string, path: string, body: object) => call(method, `/api${path}`, body, { token })
  const adopting = { ...LAKE, sourceIds: [source], warehouse: { ...LAKE.warehouse, adopt: true } }
  const refused = async (method: string, path: string, body: object): Promise<void> => {
    const answer = await as(method, path, body)
    assert.deepEqual([answer.status, answer.body.field], [400, 'warehouse.adopt'], answer.text)
  }
  await refused('POST', '/destinations', adopting)
  const own = (await as('POST', '/destinations', { ...adopting, warehouse: LAKE.warehouse })).body.id
  await refused('PATCH', `/destinations/${own}`, { warehouse: adopting.warehouse })
  // An admin has let it adopt the tables of its place, and of no other.
  assert.equal((await call('PATCH', `/api/destinations/${own}`, { warehouse: adopting.warehouse })).status, 200)
  assert.equal(
    (await as('PATCH', `/destinations/${own}`, { name: 'renamed', warehouse: { ...adopting.warehouse, keepDays: 30 } })).status,
    200,
  )
  await refused('PATCH', `/destinations/${own}`, { warehouse: { ...adopting.warehouse, url: 'file:///lake/elsewhere' } })
})
