// What a query must not be able to do.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SqlLake } from '../fixtures/sql-lake.ts'

const lake = new SqlLake()
const BOTH = ['app', 'shop']

before(() => lake.fill())
after(() => lake.close())

test('only one SELECT is run, as the parser sees it', async () => {
  const victim = join(lake.folder, 'shop/tracks/_manifest.json')
  const content = readFileSync(victim, 'utf8')
  for (const statement of [
    'create table x (a int)',
    'insert into tracks values (1)',
    'delete from tracks',
    'drop view tracks',
    `copy (select 1) to '${victim}'`,
    `copy tracks to '/tmp/stolen.csv'`,
    `attach '${join(lake.folder, 'made.db')}' as made`,
    'install httpfs',
    'load httpfs',
    "set memory_limit = '10GB'",
    'pragma database_list',
    'call pragma_version()',
    'explain select 1',
    "export database '/tmp/stolen'",
    "import database '/tmp'",
    'pivot tracks on event using count(*)',
    'checkpoint',
    'begin',
    'prepare p as select 1',
    '/* select */ create macro f() as 1',
    'with x as (select 1) insert into tracks select * from x',
  ]) {
    const fault = await lake.faultOf(statement)
    assert.equal(fault.code, 'sql_invalid', statement)
  }
  assert.equal(readFileSync(victim, 'utf8'), content)
  assert.equal(existsSync(join(lake.folder, 'made.db')), false)
})

test('a query reads no other files, no addresses, and nothing of the process', async () => {
  const file = join(lake.folder, 'app/tracks/_manifest.json')
  const parquet = join(lake.folder, 'app/_messages/day=2026-11-17/load_1.parquet')
  assert.ok(existsSync(parquet))
  for (const from of [
    `'${parquet}'`,
    `"${parquet}"`,
    `read_parquet('${parquet}')`,
    `parquet_scan(['${parquet}'])`,
    `parquet_metadata('${parquet}')`,
    `read_text('${file}')`,
    `read_blob('${file}')`,
    `read_csv('/etc/passwd')`,
    `read_json('${file}')`,
    `sniff_csv('/etc/passwd')`,
    `glob('${lake.folder}/*')`,
    `read_text('/proc/self/environ')`,
    `read_csv('http://127.0.0.1:9/x.csv')`,
    `'https://127.0.0.1:9/x.parquet'`,
    `read_text('s3://bucket/key')`,
    `query('select * from read_text(''${file}'')')`,
    `query_table('app.tracks')`,
    'arrow_scan(1, 2, 3)',
    'duckdb_secrets()',
    'duckdb_settings()',
    'pragma_database_size()',
    'test_all_types()',
    "sql_auto_complete('select')",
    "json_execute_serialized_sql(json_serialize_sql('select 1'))",
    `(select * from (with x as (select * from read_text('${file}')) select * from x))`,
    `lateral_example, lateral read_text('${file}')`,
  ])
    assert.equal((await lake.faultOf(`select * from ${from}`)).code, 'sql_invalid', from)
  for (const value of ["getenv('HOME')", `(select content from read_text('${file}'))`, "write_log('x')"])
    assert.equal((await lake.faultOf(`select ${value}`)).code, 'sql_invalid', value)
})

test('schemas that the caller may not see do not exist', async () => {
  assert.deepEqual((await lake.run('select user_id from app.secret_thing', { schemas: BOTH })).rows, [['mallory']])
  for (const from of ['app.secret_thing', 'app.tracks', 'app._messages', 'secret_thing', 'memory.app.tracks'])
    assert.match((await lake.faultOf(`select * from ${from}`)).message, /does not exist/, from)
  for (const listing of [
    'select * from information_schema.tables',
    'select * from information_schema.columns',
    'select * from information_schema.schemata',
    'select * from duckdb_views()',
    'select * from duckdb_columns()',
    'select * from duckdb_views',
    'select * from pg_catalog.pg_class',
    'select * from pg_catalog.pg_views',
    'select * from sqlite_master',
    'show all tables',
    'show tables',
    'describe tracks',
    'summarize tracks',
    "select current_setting('allowed_paths')",
    "select current_setting('search_path')",
  ]) {
    const { rows } = await lake.run(listing)
    const text = JSON.stringify(rows)
    assert.ok(rows.length > 0, listing)
    assert.doesNotMatch(text, /secret_thing|mallory|\bapp\b/, listing)
  }
})
