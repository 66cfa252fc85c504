// The engine of ClickHouse, in ClickHouse: chdb is its engine as a Python library, and fixtures/clickhouse-server.py puts its HTTP interface in front of it.
// Without chdb (`npm run setup:stores`) only what is sent is tested.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { createWarehouse } from '../engines.ts'
import { message, OWNER, TestLoads } from '../fixtures/messages.ts'
import { missing, type RealStore, startClickHouse } from '../fixtures/real-stores.ts'
import type { ClickHouseSettings, Progress, Warehouse } from '../warehouse.ts'
import { ClickHouseHttp } from './clickhouse-http.ts'

const skip = missing('clickhouse')
let server: RealStore | undefined
let url = ''

before(async () => {
  if (skip !== false) return
  server = await startClickHouse()
  url = server.url
})

after(() => server?.[Symbol.asyncDispose]())

function settings(database: string, about: Partial<ClickHouseSettings> = {}): ClickHouseSettings {
  return { engine: 'clickhouse', url, database, user: 'loader', password: 'secret', ...about }
}

function open(database: string, about: Partial<ClickHouseSettings> = {}): Warehouse {
  return createWarehouse(settings(database, about), { lakeFolder: null })
}

function rows(sql: string): Promise<unknown[][]> {
  return new ClickHouseHttp(settings('')).rows(sql, {}, { output_format_json_quote_64bit_integers: '0' })
}

async function untilDone(step: (cursor: string | null) => Promise<Progress>): Promise<number> {
  let changed = 0
  for (let cursor: string | null = null; ; ) {
    const progress = await step(cursor)
    changed += progress.changed
    if (progress.cursor === null) return changed
    cursor = progress.cursor
  }
}

const ODD = 'it\'s \\ a "test"\t\0 ünïcode\n'

test('rows are in their tables exactly once, also when the load is repeated', { skip }, async () => {
  const loads = new TestLoads('clickhouse')
  const messages = [
    message({ messageId: 'm1', properties: { total: 12.5, note: ODD, count: 3, ok: true, at: '2026-11-17T10:00:00.123456Z' } }),
    message({ messageId: 'm2', receivedAt: '2026-10-16T23:59:59.999Z' }),
  ]
  const warehouse = open('once')
  for (const repeated of [false, true, true]) {
    const { result } = await loads.load(warehouse, 'load_1', messages, { repeated })
    assert.deepEqual(
      result.tables.map(({ table, rows: count, error, recreated }) => [table, count, error, recreated]),
      [
        ['tracks', 2, null, undefined],
        ['order_completed', 2, null, undefined],
      ],
    )
  }
  assert.deepEqual(await rows('SELECT id, total, note, count, ok, at, event_text FROM once.order_completed ORDER BY id'), [
    ['m1', 12.5, ODD, 3, true, '2026-11-17 10:00:00.123456', 'Order Completed'],
    ['m2', 12.5, null, null, null, null, 'Order Completed'],
  ])
  // The same messages in another load are other rows.
  await loads.load(warehouse, 'load_2', messages)
  assert.deepEqual(await rows('SELECT count() FROM once.tracks'), [[4]])
  await warehouse.close()
})

test('columns are added and widened, and a column that was changed by hand fails its table only', { skip }, async () => {
  const loads = new TestLoads('clickhouse')
  const warehouse = open('columns')
  await loads.load(warehouse, 'load_1', [message({ messageId: 'm1', properties: { n: 1 } })])
  await loads.load(warehouse, 'load_2', [message({ messageId: 'm2', properties: { n: 1.5, later: 'x' } })])
  assert.deepEqual(await rows('SELECT n, later FROM columns.order_completed ORDER BY id'), [
    [1, null],
    [1.5, 'x'],
  ])
  await new ClickHouseHttp(settings('')).run('ALTER TABLE columns.order_completed MODIFY COLUMN later Nullable(UUID)').catch(() => {})
  await new ClickHouseHttp(settings('')).run('ALTER TABLE columns.order_completed DROP COLUMN later')
  await new ClickHouseHttp(settings('')).run('ALTER TABLE columns.order_completed ADD COLUMN later Nullable(UUID)')
  const { result } = await loads.load(open('columns'), 'load_3', [message({ messageId: 'm3', properties: { later: 'y' } })])
  const errors = new Map(result.tables.map(({ table, error }) => [table, error?.code]))
  assert.deepEqual([errors.get('order_completed'), errors.get('tracks')], ['table_changed', undefined])
})

test('a table that was dropped is created again, and the load says so', { skip }, async () => {
  const loads = new TestLoads('clickhouse')
  await loads.load(open('dropped'), 'load_1', [message({ messageId: 'm1' })])
  await new ClickHouseHttp(settings('')).run('DROP TABLE dropped.order_completed')
  const { result } = await loads.load(open('dropped'), 'load_2', [message({ messageId: 'm2' })], { loadedAtMs: Date.UTC(2026, 10, 18) })
  assert.equal(result.tables.find(({ table }) => table === 'order_completed')?.recreated, true)
  assert.deepEqual(await rows('SELECT id FROM dropped.order_completed'), [['m2']])
})

test('users have the latest traits, and an older message that is loaded later overwrites nothing', { skip }, async () => {
  const loads = new TestLoads('clickhouse')
  const warehouse = open('states')
  const identify = (messageId: string, traits: object, receivedAt: string): ReturnType<typeof message> =>
    message({ messageId, type: 'identify', traits, receivedAt })
  await loads.load(warehouse, 'load_1', [identify('m1', { plan: 'pro', seats: 2 }, '2026-11-17T10:00:00.5Z')])
  await loads.load(warehouse, 'load_2', [identify('m2', { plan: 'free', email: ODD }, '2026-11-16T10:00:00Z')])
  await loads.load(warehouse, 'load_3', [identify('m3', { seats: null }, '2026-11-18T10:00:00Z')])
  assert.deepEqual(await rows('SELECT id, plan, seats, email, received_at FROM states.users FINAL'), [
    ['alice', 'pro', null, ODD, '2026-11-18 10:00:00.000000'],
  ])
})

test('users are deleted from all tables', { skip }, async () => {
  const loads = new TestLoads('clickhouse')
  const warehouse = open('deleted')
  await loads.load(warehouse, 'load_1', [
    message({ messageId: 'm1' }),
    message({ messageId: 'm2', userId: ODD }),
    message({ messageId: 'm3', userId: ODD, type: 'identify', traits: { a: 1 } }),
  ])
  assert.equal(await untilDone((cursor) => warehouse.deleteUsers({ schema: loads.schema, cursor, userIds: [ODD, 'nobody'] })), 4)
  assert.deepEqual(await rows('SELECT id FROM deleted.tracks'), [['m1']])
  assert.deepEqual(await rows('SELECT count() FROM deleted.users FINAL'), [[0]])
  const upkeep = { schema: loads.schema, nowMs: Date.UTC(2027, 0), openLoads: async () => [], keepDays: 10 }
  assert.equal(await untilDone((cursor) => warehouse.upkeep({ ...upkeep, cursor })), 2)
})

test('a database of another source is refused, and {source} gives each source its own', { skip }, async () => {
  const other = { owner: { ...OWNER, sourceId: 'src_2' } }
  await new TestLoads('clickhouse').load(open('owned'), 'load_1', [message({ messageId: 'm1' })])
  await assert.rejects(
    new TestLoads('clickhouse').load(open('owned'), 'load_1', [message({ messageId: 'm1' })], other),
    /of its own: write \{source\}/,
  )
  await new TestLoads('clickhouse').load(open('owned'), 'load_9', [message({ messageId: 'm2' })], {
    owner: { ...other.owner, adopt: true },
  })
  assert.deepEqual(await rows('SELECT count() FROM owned.tracks'), [[2]])
  await new TestLoads('clickhouse', { name: 'shop', revision: 0, tables: [] }).load(open('own_{source}'), 'load_1', [
    message({ messageId: 'm1' }),
  ])
  assert.deepEqual(await rows('SELECT count() FROM own_shop.tracks'), [[1]])
})

test('the test of the destination says what is wrong', { skip }, async () => {
  await new ClickHouseHttp(settings('')).run('CREATE DATABASE tested')
  const { problem, version, steps } = await open('tested').check()
  assert.deepEqual([problem, steps.every(({ ok }) => ok)], [null, true])
  assert.match(version ?? '', /^ClickHouse \d+/)
  const refused = await open('tested', { password: 'wrong-password' }).check()
  assert.equal(refused.problem?.code, 'credentials_refused')
  assert.doesNotMatch(JSON.stringify(refused), /wrong-password/)
  // A load would create it; the test leaves nothing behind.
  assert.equal((await open('missing').check()).problem, null)
  assert.deepEqual(await rows("SELECT name FROM system.databases WHERE name IN ('missing', '_switchyard_test')"), [])
  assert.equal((await open('tested', { url: 'http://127.0.0.1:9' }).check()).problem?.code, 'unreachable')
})

test('rows are sent compressed, with the key of load and table as the token, and credentials in headers only', async () => {
  const inserts: { token: string | null; text: string; lines: string[] }[] = []
  const fake = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { searchParams } = new URL(request.url ?? '', 'http://x')
      assert.doesNotMatch(request.url ?? '', /loader|secret/)
      assert.deepEqual([request.headers['x-clickhouse-user'], request.headers['x-clickhouse-key']], ['loader', 'secret'])
      const query = searchParams.get('query')
      const body = Buffer.concat(parts)
      if (query === null) response.end(/FROM `db`.`_switchyard_owner`/.test(body.toString()) ? '["ins_1","dst_1","src_1"]\n' : '')
      else {
        assert.equal(request.headers['content-encoding'], 'zstd')
        inserts.push({
          token: searchParams.get('insert_deduplication_token'),
          text: query,
          lines: zstdDecompressSync(body).toString().split('\n'),
        })
        response.end()
      }
    })
  })
  await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve))
  const warehouse = open('db', { url: `http://127.0.0.1:${(fake.address() as AddressInfo).port}` })
  const { result } = await new TestLoads('clickhouse').load(warehouse, 'load_1', [
    message({ messageId: 'm1', receivedAt: '2026-11-17T10:00:00.123Z' }),
  ])
  assert.deepEqual(
    result.tables.flatMap(({ error }) => error ?? []),
    [],
  )
  assert.deepEqual(
    inserts.map(({ token }) => token),
    ['load_1 tracks', 'load_1 order_completed'],
  )
  assert.match(inserts[0]?.text ?? '', /^INSERT INTO `db`.`tracks` \(`id`, .*\) FORMAT JSONCompactEachRow$/)
  assert.match(inserts[0]?.lines[0] ?? '', /^\["m1",.*"2026-11-17T10:00:00.123Z"/)
  await warehouse.close()
  fake.close()
})
