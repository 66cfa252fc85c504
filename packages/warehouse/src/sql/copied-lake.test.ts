// Copies of the files of a lake in a bucket, and queries over them.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { createWarehouse } from '../engines.ts'
import { message, OWNER, TestLoads } from '../fixtures/messages.ts'
import { S3_KEY, S3Server } from '../fixtures/s3-server.ts'
import type { Manifest } from '../parquet/manifest.ts'
import type { LakeCopying, Warehouse } from '../warehouse.ts'
import { SqlRunner } from './sql.ts'

const store = new S3Server()
const place = mkdtempSync(join(tmpdir(), 'switchyard-copies-'))
const runner = new SqlRunner()
const MANIFEST = 'shop/tracks/_manifest.json'
let folder: string
let warehouse: Warehouse
let copying: LakeCopying

before(() => store.start())
after(() => {
  runner.close()
  store.close()
  rmSync(place, { recursive: true, force: true })
})
beforeEach(async () => {
  store.objects.clear()
  store.requests.length = 0
  store.refuse = () => undefined
  folder = mkdtempSync(join(place, 'copies-'))
  warehouse = createWarehouse(
    { engine: 'parquet', url: 's3://lake', endpoint: store.endpoint, pathStyle: true, ...S3_KEY },
    { lakeFolder: null, destinationId: OWNER.destinationId },
  )
  copying = warehouse.copying as LakeCopying
  const loads = new TestLoads('parquet')
  await loads.load(warehouse, 'load_1', [message({ messageId: 'm1' }), message({ messageId: 'm2', userId: 'bob' })])
  await loads.load(warehouse, 'load_2', [message({ messageId: 'm3', receivedAt: '2026-11-16T10:00:00.000Z' })])
})

const request = (about: object = {}) => ({ schema: 'shop', table: 'tracks', folder, maxBytes: 1e9, ...about })
const copies = (): string[] => readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.parquet'))
const gets = (): number => store.requests.filter((text) => /^GET .*\.parquet/.test(text)).length
async function idsIn(files: readonly string[]): Promise<unknown[]> {
  const lake = {
    tables: async () => [{ schema: 'shop', table: 'tracks' }],
    files: async () => ({ files: [...files], warnings: [] }),
  }
  const { rows } = await runner.run({ query: 'select id, day from tracks order by 1', lake, schemas: ['shop'] })
  return rows
}
function changeManifest(change: (manifest: Manifest) => void): void {
  const object = store.objects.get(MANIFEST) as { bytes: Buffer }
  const manifest = JSON.parse(object.bytes.toString()) as Manifest
  change(manifest)
  object.bytes = Buffer.from(JSON.stringify(manifest))
}

test('a query reads the copies, with their days; files that were copied before are not fetched again', async () => {
  assert.deepEqual(
    (await copying.tables(['shop', 'none'])).map(({ table }) => table),
    ['_messages', 'order_completed', 'tracks'],
  )
  const { files, warnings, bytes } = await copying.copy(request())
  assert.deepEqual(warnings, [])
  assert.equal(
    bytes,
    (files ?? []).reduce((sum, path) => sum + readFileSync(path).length, 0),
  )
  assert.deepEqual(await idsIn(files ?? []), [
    ['m1', '2026-11-17'],
    ['m2', '2026-11-17'],
    ['m3', '2026-11-16'],
  ])
  const before = gets()
  assert.deepEqual((await copying.copy(request())).files, files)
  assert.equal(gets(), before)
})

test('remains of an interrupted copy, and files that were replaced, are removed', async () => {
  const { files: first } = await copying.copy(request())
  assert.equal(first?.length, 2)
  writeFileSync(`${first[0]}.part`, 'half a file')
  await warehouse.deleteUsers({ schema: { name: 'shop', revision: 0, tables: [] }, userIds: ['bob'], cursor: 'tracks' })
  const { files } = await copying.copy(request())
  assert.deepEqual(await idsIn(files ?? []), [
    ['m1', '2026-11-17'],
    ['m3', '2026-11-16'],
  ])
  assert.deepEqual(
    copies()
      .map((path) => join(folder, path))
      .sort(),
    [...(files ?? [])].sort(),
  )
})

test('a table that is larger than the limit is not fetched, and its size is returned', async () => {
  const { bytes, files } = await copying.copy(request({ maxBytes: 100 }))
  assert.equal(files, null)
  assert.ok(bytes > 100)
  assert.deepEqual([copies(), gets()], [[], 0])
})

test('a missing file causes a warning; a file with other content causes an error that names it', async () => {
  const [name] = [...store.objects.keys()].filter((key) => /^shop\/tracks\/day=2026-11-16\/.*parquet$/.test(key)) as [string]
  const object = store.objects.get(name) as { bytes: Buffer; modifiedMs: number }
  store.objects.delete(name)
  const { files, warnings } = await copying.copy(request())
  assert.deepEqual(warnings, [`${name} is gone, so its 1 rows are missing in the result.`])
  assert.equal(files?.length, 1)
  const bytes = Buffer.from(object.bytes)
  bytes.writeUInt8(bytes.readUInt8(10) ^ 1, 10)
  store.objects.set(name, { ...object, bytes })
  await assert.rejects(copying.copy(request()), new RegExp(`${name} is not the file that the manifest names: it has another checksum`))
  store.objects.set(name, { ...object, bytes: bytes.subarray(1) })
  await assert.rejects(copying.copy(request()), /is not the file that the manifest names: it has \d+ bytes/)
  assert.equal(copies().length, 1)
})

test('names in a manifest are never paths on this machine', async () => {
  const victim = join(folder, '..', `victim-${process.pid}`)
  changeManifest(({ files: [first] }) =>
    Object.assign(first as object, { path: `../../../../victim-${process.pid}`, sha256: '../'.repeat(21) + 'x' }),
  )
  await assert.rejects(copying.copy(request()), /a file without a checksum/)
  assert.throws(() => readFileSync(victim), { code: 'ENOENT' })
  changeManifest(({ files: [first] }) => Object.assign(first as object, { path: '../../x.parquet', sha256: 'a'.repeat(64) }))
  await assert.rejects(copying.copy(request()), /a file outside of the folder of the table/)
  assert.deepEqual(copies(), [])
})

test('a manifest cannot lie about sizes, and a store cannot send more than was asked for', async () => {
  for (const bytes of [-1e12, 1.5, null, '1']) {
    changeManifest(({ files: [first] }) => Object.assign(first as object, { bytes }))
    await assert.rejects(copying.copy(request()), /a file without a size/)
  }
  const empty = { path: 'x.parquet', rows: 0, bytes: 0, sha256: 'a'.repeat(64), from: '', to: '' }
  changeManifest((manifest) => (manifest.files = Array.from({ length: 50_001 }, () => empty)))
  await assert.rejects(copying.copy(request()), /more than 50000 files/)
  changeManifest((manifest) => (manifest.files = [{ ...empty, bytes: 10 }]))
  store.refuse = (method, key) => {
    if (!key.endsWith('x.parquet')) return undefined
    return method === 'HEAD' ? { status: 200, headers: { 'content-length': '10' } } : { status: 206, body: 'x'.repeat(100) }
  }
  await assert.rejects(copying.copy(request()), /the bytes from 0 to 10 have a length of 100/)
  assert.deepEqual(copies(), [])
})

test('a bucket that does not answer is not waited for when the signal has ended the copy', async () => {
  for (const [hung, work] of [
    ['shop/_switchyard.json', (signal: AbortSignal) => copying.tables(['shop'], signal)],
    ['', (signal: AbortSignal) => copying.tables(['shop'], signal)],
    [MANIFEST, (signal: AbortSignal) => copying.copy(request(), signal)],
    ['.parquet', (signal: AbortSignal) => copying.copy(request(), signal)],
  ] as const) {
    const abort = new AbortController()
    const never = new Promise<undefined>(() => undefined)
    store.refuse = (_, key) => {
      if (hung === '' ? key !== '' : !key.endsWith(hung)) return undefined
      abort.abort()
      return never
    }
    await assert.rejects(work(abort.signal))
  }
})

test('tables of another destination are neither listed nor copied', async () => {
  const other = createWarehouse(
    { engine: 'parquet', url: 's3://lake', endpoint: store.endpoint, pathStyle: true, ...S3_KEY },
    { lakeFolder: null, destinationId: 'dst_other' },
  ).copying as LakeCopying
  assert.deepEqual(await other.tables(['shop']), [])
  await assert.rejects(other.copy(request()), /tables of another installation or destination/)
})
