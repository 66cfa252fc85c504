// A lake in a bucket. By default the store is a stand-in that checks signatures (fixtures/s3-server.ts). With SWITCHYARD_TEST_S3=http://host:port the same
// loads also run against a real one, with the key and secret `test` and the bucket `lake`, which is created if it is missing.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import { createWarehouse } from '../engines.ts'
import { message, TestLoads } from '../fixtures/messages.ts'
import { failure, S3_KEY, S3Server } from '../fixtures/s3-server.ts'
import type { ParquetSettings, Progress, Warehouse } from '../warehouse.ts'
import { MAX_MANIFEST_BYTES, readManifest } from './manifest.ts'
import { S3Files } from './s3-files.ts'
import { withReader } from './table-files.ts'

const DAY_MS = 86_400_000
const store = new S3Server()

before(() => store.start())
after(() => store.close())
beforeEach(() => {
  store.objects.clear()
  store.requests.length = 0
  store.ignoresConditions = false
  store.refuse = () => undefined
  store.losesAnswer = () => false
})

function settings(about: Partial<ParquetSettings> = {}): ParquetSettings {
  return { engine: 'parquet', url: 's3://lake/some/pre fix', endpoint: store.endpoint, pathStyle: true, ...S3_KEY, ...about }
}

function open(about: Partial<ParquetSettings> = {}): Warehouse {
  return createWarehouse(settings(about), { lakeFolder: null })
}

async function idsOf(table: string, about: Partial<ParquetSettings> = {}): Promise<string[]> {
  const files = new S3Files(settings(about))
  const ids: string[] = []
  for (const { path, rows } of (await readManifest(files, table)).files) {
    const found = await withReader(files, `${table}/${path}`, async (reader) => {
      const groups = []
      for (const group of reader.groups.keys()) groups.push(...(await reader.read(group, ['id'])))
      return groups.map(([id]) => String(id))
    })
    assert.equal(found?.length, rows)
    ids.push(...(found ?? []))
  }
  await files.close()
  return ids.sort()
}

async function untilDone(step: (cursor: string | null) => Promise<Progress>): Promise<Progress> {
  for (let cursor: string | null = null, changed = 0; ; ) {
    const progress = await step(cursor)
    changed += progress.changed
    if (progress.cursor === null) return { ...progress, changed }
    cursor = progress.cursor
  }
}

const MIXED = [
  message({ messageId: 'm1', event: "Fünf (5) Sterne's *" }),
  message({ messageId: 'm2', receivedAt: '2026-11-16T23:00:00Z' }),
  message({ messageId: 'm3', type: 'identify', traits: { plan: 'pro' } }),
]

async function loadedMergedAndDeleted(about: Partial<ParquetSettings> = {}): Promise<void> {
  const warehouse = open(about)
  assert.deepEqual(await warehouse.check().then(({ problem, steps }) => [problem, steps.map(({ step }) => step)]), [
    null,
    ['connect', 'create table', 'read table', 'drop table'],
  ])
  const loads = new TestLoads('parquet')
  for (const id of ['load_1', 'load_2']) {
    const { result } = await loads.load(warehouse, id, [...MIXED, message({ messageId: id, userId: 'bob' })])
    assert.deepEqual(
      result.tables.flatMap(({ error }) => error ?? []),
      [],
    )
  }
  // Repeated as after a crash.
  await loads.load(warehouse, 'load_2', [...MIXED, message({ messageId: 'load_2', userId: 'bob' })], { repeated: true })
  assert.deepEqual(await idsOf('shop/tracks', about), ['load_1', 'load_2', 'm1', 'm1', 'm2', 'm2'])
  const upkeep = { schema: loads.schema, nowMs: Date.UTC(2026, 10, 19), openLoads: async () => [], keepDays: null }
  assert.ok((await untilDone((cursor) => warehouse.upkeep({ ...upkeep, cursor }))).changed > 0)
  assert.equal((await untilDone((cursor) => warehouse.deleteUsers({ schema: loads.schema, cursor, userIds: ['bob'] }))).changed, 6)
  assert.deepEqual(await idsOf('shop/tracks', about), ['m1', 'm1', 'm2', 'm2'])
  assert.deepEqual(await idsOf('shop/users', about), ['alice'])
  const page = await warehouse.readArchive?.({ schema: loads.schema, afterMs: 0, beforeMs: Date.UTC(2030, 0) }, null, 100)
  assert.deepEqual(page?.messages.map(({ id }) => id).sort(), ['m1', 'm1', 'm2', 'm2', 'm3', 'm3'])
  await warehouse.close()
}

test('loads, merges, deletions and the archive work in a bucket, and every request is signed', async () => {
  await loadedMergedAndDeleted()
  // Nothing that was replaced is left.
  const left = [...store.objects.keys()].filter((key) => key.includes('/shop/tracks/') && key.endsWith('.parquet'))
  assert.equal(left.length, 2)
  assert.ok(left.every((key) => key.startsWith('some/pre fix/shop/tracks/day=2026-11-1')))
})

test('the same in a real store', { skip: process.env['SWITCHYARD_TEST_S3'] === undefined && 'SWITCHYARD_TEST_S3 is not set' }, async () => {
  const endpoint = process.env['SWITCHYARD_TEST_S3'] as string
  await fetch(`${endpoint}/lake`, { method: 'PUT' })
  await loadedMergedAndDeleted({ endpoint, url: `s3://lake/${randomUUID()}`, accessKeyId: 'test', secretAccessKey: 'test' })
})

test('loads of several writers at once all arrive', async () => {
  const loads = new TestLoads('parquet')
  await loads.load(open(), 'load_first', [message({ messageId: 'first' })])
  await Promise.all(
    Array.from({ length: 8 }, async (_, at) => {
      const own = new TestLoads('parquet', loads.schema)
      const { result } = await own.load(open(), `load_${at}`, [
        message({ messageId: `m${at}` }),
        message({ messageId: `i${at}`, type: 'identify', userId: `user_${at}`, traits: { at } }),
      ])
      assert.deepEqual(
        result.tables.flatMap(({ error }) => error ?? []),
        [],
      )
    }),
  )
  assert.deepEqual(await idsOf('shop/tracks'), ['first', ...Array.from({ length: 8 }, (_, at) => `m${at}`)].sort())
  const warehouse = open()
  const upkeep = { schema: loads.schema, nowMs: Date.UTC(2026, 10, 19), openLoads: async () => [], keepDays: null }
  await untilDone((cursor) => warehouse.upkeep({ ...upkeep, cursor }))
  assert.deepEqual(await idsOf('shop/users'), Array.from({ length: 8 }, (_, at) => `user_${at}`).sort())
})

test('a put whose answer is lost is not done twice', async () => {
  const loads = new TestLoads('parquet')
  let losses = 0
  store.losesAnswer = (method, key) => method === 'PUT' && key.endsWith('/tracks/_manifest.json') && losses++ === 0
  const { result } = await loads.load(open(), 'load_1', [message({ messageId: 'm1' })])
  assert.deepEqual(
    result.tables.flatMap(({ error }) => error ?? []),
    [],
  )
  assert.ok(losses > 1)
  assert.deepEqual(await idsOf('shop/tracks'), ['m1'])
})

test('a process that is killed at any request leaves nothing that a repeat does not complete', async () => {
  for (let step = 0; ; step++) {
    store.objects.clear()
    const loads = new TestLoads('parquet')
    await loads.load(open(), 'load_0', [message({ messageId: 'm0' })])
    let count = 0
    store.refuse = () => (count++ >= step ? failure(400, 'Killed') : undefined)
    await loads.load(open(), 'load_1', MIXED).catch(() => {})
    store.refuse = () => undefined
    await loads.load(open(), 'load_1', MIXED, { repeated: true })
    assert.deepEqual(await idsOf('shop/tracks'), ['m0', 'm1', 'm2'], `killed at request ${step}`)
    assert.deepEqual(await idsOf('shop/_messages'), ['m0', 'm1', 'm2', 'm3'])
    assert.deepEqual(await idsOf('shop/users'), ['alice'])
    if (count <= step) return
  }
})

test('files that a killed process left behind are removed after a day', async () => {
  const warehouse = open()
  const loads = new TestLoads('parquet')
  await loads.load(warehouse, 'load_1', [message({ messageId: 'm1' })])
  const leftover = 'some/pre fix/shop/tracks/day=2026-11-17/load_9-0123456789ab.parquet'
  store.objects.set(leftover, { bytes: Buffer.from('x'), modifiedMs: Date.now() })
  const upkeep = { schema: loads.schema, openLoads: async () => [], keepDays: null }
  await untilDone((cursor) => warehouse.upkeep({ ...upkeep, nowMs: Date.now(), cursor }))
  assert.ok(store.objects.has(leftover))
  await untilDone((cursor) => warehouse.upkeep({ ...upkeep, nowMs: Date.now() + 2 * DAY_MS, cursor }))
  assert.equal(store.objects.has(leftover), false)
  assert.deepEqual(await idsOf('shop/tracks'), ['m1'])
})

test('a store that ignores the conditions of puts is refused', async () => {
  store.ignoresConditions = true
  const { problem } = await open().check()
  assert.match(problem?.message ?? '', /ignores the conditions of writes/)
  await assert.rejects(new TestLoads('parquet').load(open(), 'load_1', MIXED), /ignores the conditions of writes/)
})

test('what is wrong is said in a sentence, without the key', async () => {
  const problemOf = async (about: Partial<ParquetSettings>): Promise<string> => {
    const { problem } = await open(about).check()
    assert.doesNotMatch(JSON.stringify(problem), new RegExp(S3_KEY.secretAccessKey.slice(0, 10)))
    return `${problem?.code}: ${problem?.message}`
  }
  assert.match(await problemOf({ secretAccessKey: 'wrong' }), /^credentials_refused: .*The secret access key is wrong/)
  assert.match(await problemOf({ accessKeyId: 'OTHER' }), /^credentials_refused: .*does not know the access key/)
  assert.match(await problemOf({ url: 's3://missing/x' }), /^not_found: .*The bucket does not exist/)
  store.refuse = () => failure(404, 'XAdminUserNotFound')
  assert.match(await problemOf({}), /^credentials_refused: .*does not know the access key/)
  store.refuse = (method) => (method === 'PUT' ? failure(403, 'AccessDenied') : undefined)
  assert.match(await problemOf({}), /^permission_missing: .*lacks the permission s3:PutObject/)
  store.refuse = (method) => (method === 'DELETE' ? failure(403, 'AccessDenied') : undefined)
  assert.match(await problemOf({}), /^permission_missing: .*s3:DeleteObject/)
  store.refuse = () => failure(301, 'PermanentRedirect')
  assert.match(await problemOf({}), /^not_found: .*another region/)
  store.refuse = (method) => (method === 'PUT' ? failure(507, 'QuotaExceeded') : undefined)
  assert.match(await problemOf({}), /^disk_full: /)
  store.refuse = () => undefined
  assert.match(await problemOf({ endpoint: 'http://127.0.0.1:9' }), /^unreachable: /)
})

test('a store that is overloaded for a moment is asked again', async () => {
  // Each request once: requests are made at the same time, so one might be refused several times in a row.
  const refused = new Set<string>()
  store.refuse = (method, key) => {
    const isFirst = !refused.has(`${method} ${key}`)
    refused.add(`${method} ${key}`)
    return isFirst ? failure(503, 'SlowDown') : undefined
  }
  const { result } = await new TestLoads('parquet').load(open(), 'load_1', MIXED)
  assert.deepEqual(
    result.tables.flatMap(({ error }) => error ?? []),
    [],
  )
  assert.ok(refused.size > 0)
})

test('a manifest that is too large is not read to its end, and the error names it', async () => {
  const files = new S3Files(settings())
  const manifest = (bytes: number): void => {
    const text = Buffer.alloc(bytes, ' ')
    text.write('{"files":[]}')
    store.objects.set('some/pre fix/shop/tracks/_manifest.json', { bytes: text, modifiedMs: 0 })
  }
  manifest(MAX_MANIFEST_BYTES)
  assert.deepEqual(await readManifest(files, 'shop/tracks'), { files: [] })
  manifest(MAX_MANIFEST_BYTES + 1)
  store.requests.length = 0
  await assert.rejects(readManifest(files, 'shop/tracks'), (error: Error & { warehouse: { code: string } }) => {
    assert.equal(error.warehouse.code, 'table_changed')
    assert.match(error.message, /^s3:\/\/lake\/some\/pre fix\/shop\/tracks\/_manifest\.json is larger than 32 MB\. /)
    return true
  })
  assert.equal(store.requests.length, 1, 'it is not requested again')
  await files.close()
})
