import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SqlLake } from '../fixtures/sql-lake.ts'
import { openDatabases, warmUp } from './query-database.ts'

const lake = new SqlLake()
const BOTH = ['app', 'shop']

before(() => lake.fill())
after(() => lake.close())

test('tables are views over the files of their manifests, with and without the name of their schema', async () => {
  const { columns, rows, truncated } = await lake.run('select event, count(*) from tracks group by 1')
  assert.deepEqual(columns, [
    { name: 'event', type: 'VARCHAR' },
    { name: 'count_star()', type: 'BIGINT' },
  ])
  assert.deepEqual([rows, truncated], [[['order_completed', 3]], false])
  // A file that no manifest names is not read.
  writeFileSync(join(lake.folder, 'shop/tracks/day=2026-11-17/other.parquet'), 'not a file of the lake')
  assert.deepEqual((await lake.run('select count(*) from shop.tracks')).rows, [[3]])
})

test('columns that came later are null in older rows, and the day is a column', async () => {
  const { rows } = await lake.run('select id, coupon, total, day, received_at from order_completed order by id')
  assert.deepEqual(rows, [
    ['m1', null, 12.5, '2026-11-17', '2026-11-17T10:00:00.000Z'],
    ['m2', null, 12.5, '2026-11-16', '2026-11-16T23:59:59.999Z'],
    ['m3', 'ä', 1, '2026-11-17', '2026-11-17T10:00:00.000Z'],
  ])
})

test('values are JSON that loses nothing', async () => {
  const { rows } = await lake.run(
    `select 9007199254740993::bigint, 12::hugeint, 1.10::decimal(9,2), 'nan'::double, [1, null], {'a': 'b'}, interval 1 day, null, timestamp '2026-01-01 00:00:00.000001', true`,
  )
  assert.deepEqual(rows, [['9007199254740993', 12, 1.1, 'NaN', [1, null], { a: 'b' }, '1 day', null, '2026-01-01T00:00:00.000001Z', true]])
})

test('rows beyond the limit are cut, and the answer says so', async () => {
  const { rows, truncated } = await lake.run('select * from range(100000)')
  assert.deepEqual([rows.length, truncated], [10_000, true])
  assert.equal((await lake.run('select * from range(10000)')).truncated, false)
  const few = await lake.run('select * from range(3)', { limits: { rows: 2 } })
  assert.deepEqual([few.rows, few.truncated], [[[0], [1]], true])
  const wide = await lake.run(`select repeat('x', 3000000) from range(10)`)
  assert.deepEqual([wide.rows.length, wide.truncated], [2, true])
  assert.equal((await lake.faultOf(`select repeat('x', 20000000)`)).code, 'sql_too_large')
})

test('errors have a line and a column', async () => {
  for (const [query, line, column, text] of [
    ['selct 1', 1, 1, /syntax error/],
    ["select 'äö',\n  foo from tracks", 2, 3, /"foo" not found/],
    ['select *\nfrom nowhere', 2, 6, /nowhere does not exist/],
    ['select 1; select 2', 1, 1, /2 statements/],
    ['', 1, 1, /empty/],
    ['-- nothing', 1, 1, /empty/],
  ] as const) {
    const fault = await lake.faultOf(query)
    assert.deepEqual([fault.code, fault.line, fault.column], ['sql_invalid', line, column], query)
    assert.match(fault.message, text)
  }
})

test('the tables of the caller are listed', async () => {
  const { rows } = await lake.run(
    "select table_schema || '.' || table_name from information_schema.tables where table_schema not in ('main') order by all",
    { schemas: BOTH },
  )
  assert.deepEqual(rows.flat(), [
    ...['_messages', 'secret_thing', 'tracks'].map((table) => `app.${table}`),
    ...['_messages', 'identifies', 'order_completed', 'tracks', 'users'].map((table) => `shop.${table}`),
  ])
})

test('a name that several schemas have needs its schema', async () => {
  const fault = await lake.faultOf('select count(*)\nfrom tracks', { schemas: BOTH })
  assert.deepEqual([fault.line, fault.column], [2, 6])
  assert.match(fault.message, /Write app\.tracks or shop\.tracks/)
  assert.deepEqual((await lake.run('with tracks as (select 1 as a) select a from tracks', { schemas: BOTH })).rows, [[1]])
  assert.deepEqual((await lake.run('select count(*) from users', { schemas: BOTH })).rows, [[1]])
})

test('a query that takes too long or too much memory ends', async () => {
  const slow = 'select count(*) from range(10000000) a, range(1000000) b where a.range * b.range = 7'
  assert.equal((await lake.faultOf(slow, { limits: { timeMs: 1_500 } })).code, 'sql_timed_out')
  const fault = await lake.faultOf('select count(*) from (select distinct md5(range::varchar) || range from range(50000000))', {
    limits: { memoryMb: 64 },
  })
  assert.equal(fault.code, 'sql_too_large')
})

test('a cancelled query ends within a second, and its process with it', async () => {
  const controller = new AbortController()
  const running = lake.faultOf('select count(*) from range(10000000) a, range(1000000) b where a.range * b.range = 7', {
    signal: controller.signal,
  })
  // Another query that waits is not disturbed.
  assert.deepEqual((await lake.run('select 1')).rows, [[1]])
  const start = performance.now()
  controller.abort()
  assert.equal((await running).code, 'sql_cancelled')
  assert.ok(performance.now() - start < 1_000)
})

test('a query ends in time if the tables of its lake are not listed', async () => {
  const endless = { tables: () => new Promise<never>(() => undefined), files: async () => ({ files: [], warnings: [] }) }
  for (const _ of [1, 2, 3]) assert.equal((await lake.faultOf('select 1', { lake: endless, limits: { timeMs: 50 } })).code, 'sql_timed_out')
})

test('the rows of a file that is gone are missing, and the answer says so', async () => {
  rmSync(join(lake.folder, 'shop/identifies/day=2026-11-17/load_2.parquet'))
  assert.match((await lake.faultOf('select * from identifies')).message, /does not exist/)
  rmSync(join(lake.folder, 'shop/tracks/day=2026-11-16/load_1.parquet'))
  const { rows, warnings } = await lake.run('select id from tracks order by 1')
  assert.deepEqual(rows, [['m1'], ['m3']])
  assert.deepEqual(warnings, ['shop/tracks/day=2026-11-16/load_1.parquet is gone, so its 1 rows are missing in the result.'])
})

test('the queries with which a process warms up find rows in their table, and stop when a real query has come', async () => {
  const databases = await openDatabases()
  const all = await warmUp(databases, () => false)
  let asked = 0
  const first = await warmUp(databases, () => asked++ > 0)
  assert.ok(all > first && first > 0, `${first} of ${all}`)
  assert.equal(await warmUp(databases, () => true), 0)
})

test('a table is found by a name that differs in case, is quoted, or is in a text too; what only looks like a name is not read', async () => {
  assert.deepEqual((await lake.run('select count(*) from "Order_Completed"')).rows, [[3]])
  assert.deepEqual((await lake.run(`select 'tracks', count(*) from shop.order_completed`)).rows, [['tracks', 3]])
  assert.deepEqual((await lake.run(`select 'secret_thing' as order_completed`)).rows, [['secret_thing']])
})
