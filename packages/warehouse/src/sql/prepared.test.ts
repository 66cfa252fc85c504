// The process for the next query has the views of the last one. This must change how long the next query takes, and nothing else.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { temporaryLake } from '../fixtures/lake-reading.ts'
import { SqlLake } from '../fixtures/sql-lake.ts'
import { FolderFiles } from '../parquet/folder-files.ts'
import { type FileColumn, ParquetFile } from '../parquet/parquet-file.ts'
import type { Cell } from '../warehouse.ts'
import { openDatabases, prepare, runQuery } from './query-database.ts'
import { FolderLake, SQL_LIMITS } from './sql.ts'

const ORDERS = 'select count(*) from order_completed'
const BOTH = ['app', 'shop']
const SECRET = 'select user_id from app.secret_thing'
let lake: SqlLake

before(async () => {
  lake = new SqlLake()
  await lake.fill()
})
after(() => lake.close())

test('a prepared database runs a query that needs exactly its views, and no other query', async () => {
  const views = [{ schema: 'app', table: 'secret_thing', files: [join(lake.folder, 'app/secret_thing/day=2026-11-17/load_1.parquet')] }]
  const [preparation, databases] = [{ views, schemas: BOTH, memoryMb: SQL_LIMITS.memoryMb }, await openDatabases()]
  const prepared = await prepare(preparation)
  for (const [others, schemas] of [
    [[], BOTH],
    [[], ['shop']],
  ] as const)
    await assert.rejects(
      runQuery({ ...(await openDatabases()), prepared }, SECRET, [...others], [...schemas], SQL_LIMITS),
      /does not exist/,
    )
  await assert.rejects(
    runQuery({ ...databases, prepared }, `select * from read_parquet('${views[0]?.files[0]}')`, [], BOTH, SQL_LIMITS),
    /no files or addresses/,
  )
  // A database that is closed cannot have run it.
  databases.running.closeSync()
  assert.deepEqual((await runQuery({ ...databases, prepared }, SECRET, views, BOTH, SQL_LIMITS)).rows, [['mallory']])
})

test('files with the same columns in another order, or with other columns, are read by the names of their columns', async (t) => {
  const folder = temporaryLake()
  t.after(() => folder[Symbol.dispose]())
  const [number, word] = [{ name: 'number', type: 'double' } as const, { name: 'word', type: 'text' } as const]
  const write = async (name: string, columns: readonly FileColumn[], row: Cell[]): Promise<string> => {
    const file = await new FolderFiles(folder.folder).create(name)
    const parquet = new ParquetFile(columns, file)
    await parquet.write([row])
    await parquet.finish()
    await file.publish()
    return join(folder.folder, name)
  }
  const first = await write('1.parquet', [number, word], [1, 'one'])
  const turned = await write('2.parquet', [word, number], ['two', 2])
  const more = await write('3.parquet', [word, number, { name: 'later', type: 'text' }], ['three', 3, 'x'])
  const other = await write('4.parquet', [number, { name: 'word', type: 'double' }], [4, 4])
  for (const [files, rows] of [
    [
      [first, turned],
      [
        [1, 'one'],
        [2, 'two'],
      ],
    ],
    [
      [first, turned, more],
      [
        [1, 'one', null],
        [2, 'two', null],
        [3, 'three', 'x'],
      ],
    ],
    [
      [turned, other],
      [
        ['two', 2],
        ['4.0', 4],
      ],
    ],
  ] as const) {
    const views = [{ schema: 'shop', table: 'things', files: [...files] }]
    const prepared = await prepare({ views, schemas: ['shop'], memoryMb: SQL_LIMITS.memoryMb })
    const databases = await openDatabases()
    const query = 'select * from things order by number'
    // A database that is closed cannot have run it.
    databases.running.closeSync()
    assert.deepEqual((await runQuery({ ...databases, prepared }, query, views, ['shop'], SQL_LIMITS)).rows, rows)
    assert.deepEqual((await runQuery(await openDatabases(), query, views, ['shop'], SQL_LIMITS)).rows, rows)
  }
})

test('a query after another load reads what was loaded', async (t) => {
  assert.deepEqual((await lake.run(ORDERS)).rows, [[3]])
  await untilPrepared(t)
  assert.deepEqual((await lake.run(ORDERS)).rows, [[3]])
  await untilPrepared(t)
  await lake.loadOrder('m5')
  assert.deepEqual((await lake.run(ORDERS)).rows, [[4]])
  await untilPrepared(t)
  // Other tables than those that are prepared, and a list of all.
  assert.deepEqual((await lake.run('select count(*) from users')).rows, [[1]])
  await untilPrepared(t)
  assert.deepEqual((await lake.run("select count(*) from information_schema.tables where table_schema = 'shop'")).rows, [[5]])
})

test('after a mistake, the same views are prepared again, and a query that is cancelled leaves nothing behind', async (t) => {
  await lake.run(ORDERS)
  await untilPrepared(t)
  await lake.faultOf('select nothing from order_completed')
  await untilPrepared(t)
  const fault = await lake.faultOf(`${ORDERS}, range(10000000) a, range(1000000) b where a.range * b.range = 7`, {
    signal: AbortSignal.timeout(500),
  })
  assert.equal(fault.code, 'sql_cancelled')
  await untilPrepared(t)
  assert.deepEqual((await lake.run(ORDERS)).rows, [[4]])
})

test('what was prepared for one caller is not visible to a caller who may see less, or who queries another lake', async (t) => {
  const own = new SqlLake()
  t.after(() => own.close())
  await own.fill()
  const untilOwnPrepared = (): Promise<void> => t.waitFor(() => assert.ok(own.isPrepared), { timeout: 60_000 })
  assert.deepEqual((await own.run(SECRET, { schemas: BOTH })).rows, [['mallory']])
  await untilOwnPrepared()
  assert.match((await own.faultOf(SECRET)).message, /does not exist/)
  const tables = await own.run('select * from duckdb_views()')
  assert.doesNotMatch(JSON.stringify(tables.rows), /secret_thing/)
  // Scopes take turns, so nothing is prepared for either of them for some time.
  await own.run(ORDERS)
  await own.run(SECRET, { schemas: BOTH })
  assert.equal(own.isPrepared, false)
})

test('a process that has prepared views of a lake does not serve another lake', async (t) => {
  const other = new SqlLake()
  t.after(() => other.close())
  await other.fill()
  await other.loadOrder('m6')
  await other.loadOrder('m7')
  await lake.run(ORDERS)
  await untilPrepared(t)
  const { rows } = await lake.run(ORDERS, { lake: new FolderLake(new FolderFiles(other.folder), other.folder) })
  assert.deepEqual(rows, [[5]])
})

function untilPrepared(t: TestContext): Promise<void> {
  return t.waitFor(() => assert.ok(lake.isPrepared), { timeout: 60_000 })
}
