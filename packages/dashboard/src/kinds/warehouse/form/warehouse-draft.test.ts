import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createBodyOf,
  newWarehouse,
  partsOf,
  patchBodyOf,
  type Warehouse,
  type WarehouseDraft,
  warehouseDraftOf,
  warehouseProblems,
} from './warehouse-draft.ts'

const LAKES = 'file:///var/lib/lakes'
const draftOf = (changes: Partial<WarehouseDraft>): WarehouseDraft => ({ ...newWarehouse(LAKES), ...changes })
const placeOf = (changes: Partial<WarehouseDraft>) => createBodyOf(draftOf(changes)).warehouse
const COMMON = { keepDays: null, adopt: false }
const DATABASE = { place: 'postgres', host: 'db.example', database: 'analytics', user: 'loader' } as const

test('a lake in a folder has no problem before anything is typed, and a path becomes a URL', () => {
  assert.deepEqual([...warehouseProblems(newWarehouse(LAKES))], [])
  assert.deepEqual(placeOf({}), { engine: 'parquet', url: 'file:///var/lib/lakes/main', ...COMMON })
  assert.deepEqual(placeOf({ folder: '/srv/my lake' }), { engine: 'parquet', url: 'file:///srv/my%20lake', ...COMMON })
  assert.equal(newWarehouse(null).place, 'postgres', 'without a folder of lakes')
})

test('the parts of a database are a URL, with every character of the password', () => {
  const secret = 'p@ss:/?#%& ü'
  const place = placeOf({ ...DATABASE, port: '6543', tls: 'require', secret })
  assert.ok(place?.engine === 'postgres')
  const url = new URL(place.url)
  assert.deepEqual(
    [url.host, url.pathname, url.username, decodeURIComponent(url.password), url.search],
    ['db.example:6543', '/analytics', 'loader', secret, '?sslmode=require'],
  )
  assert.deepEqual(partsOf(place.url), { host: 'db.example', port: '6543', tls: 'require', database: 'analytics', user: 'loader', secret })
  assert.deepEqual(partsOf('db.example'), {})
})

test('what is missing is said at its field, for the place that is chosen', () => {
  const wrong = (changes: Partial<WarehouseDraft>): string[] => [...warehouseProblems(draftOf(changes)).keys()]
  assert.deepEqual(wrong({ folder: ' ' }), ['warehouse.url'])
  assert.deepEqual(wrong({ place: 'bucket' }), ['warehouse.url', 'warehouse.accessKeyId', 'warehouse.secretAccessKey'])
  assert.deepEqual(wrong({ place: 'postgres', port: '99999' }), ['warehouse.url', 'warehouse.port', 'warehouse.database', 'warehouse.user'])
  assert.deepEqual(wrong({ place: 'clickhouse' }), ['warehouse.url', 'warehouse.database', 'warehouse.user'])
  assert.deepEqual(wrong({ every: '10 ms', maxRows: 0, maxMib: 100, keepDays: 0 }), [
    'warehouse.keepDays',
    'load.everyMs',
    'load.maxRows',
    'load.maxBytes',
  ])
})

test('a change leaves a stored secret out unless it is typed again', () => {
  const saved = {
    ...createBodyOf(draftOf(DATABASE)),
    conditionalFilters: [],
    subscribe: null,
    deadLetter: null,
    secretSettings: ['url'],
    warehouse: { engine: 'postgres', url: 'postgres://loader:(hidden)@db.example/analytics', schema: null, ...COMMON },
    load: { everyMs: 60_000, maxRows: 50_000, maxBytes: 33_554_432 },
  } as unknown as Warehouse
  const draft = warehouseDraftOf(saved)
  assert.deepEqual([draft.host, draft.user, draft.secret, draft.hasSecret], ['db.example', 'loader', '', true])
  assert.equal(patchBodyOf(saved, draft), null)
  assert.deepEqual(patchBodyOf(saved, { ...draft, database: 'other' }), {
    warehouse: { engine: 'postgres', url: 'postgres://loader@db.example/other', schema: null, ...COMMON },
  })
  assert.deepEqual(patchBodyOf(saved, { ...draft, secret: 'new' }), {
    warehouse: { engine: 'postgres', url: 'postgres://loader:new@db.example/analytics', schema: null, ...COMMON },
  })
  assert.deepEqual(patchBodyOf(saved, { ...draft, every: '5 min' }), { load: { everyMs: 300_000, maxRows: 50_000, maxBytes: 33_554_432 } })
})
