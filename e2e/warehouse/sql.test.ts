// SQL over a lake through the service: the API and the command line.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { FolderFiles } from '../../packages/warehouse/src/parquet/folder-files.ts'
import { withReader } from '../../packages/warehouse/src/parquet/table-files.ts'
import { asJson, switchyard } from '../system/command-line.ts'
import { type Service, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, type Lake, loaded, startWithLake } from './system.ts'

interface Result {
  columns: { name: string; type: string }[]
  rows: unknown[][]
  truncated: boolean
}

const SLOW = 'select count(*) from range(10000000) a, range(1000000) b where a.range * b.range = 7'

let service: Service
let lake: Lake
let lakeId: string
let other: { id: string; writeKey: string }

before(async () => {
  ;({ service, lake } = await startWithLake())
  const made = await service.api<{ id: string; writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'Other App' } })
  other = { id: made.id, writeKey: made.writeKeys[0] as string }
  lakeId = await addLake(service, lake, { sourceIds: [service.sourceId, other.id] })
  await service.send([track('m1', { event: 'Order Completed', properties: { total: 2.5 } }), track('m2', { event: 'Order Completed' })])
  await fetch(`${service.url}/v1/track`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Basic ${btoa(`${other.writeKey}:`)}` },
    body: JSON.stringify({ messageId: 'o1', event: 'Secret Thing', userId: 'mallory' }),
  })
  await loaded(service, 3)
})
after(() => service[Symbol.asyncDispose]())

async function ask(query: string, about: { token?: string; destinationId?: string; limit?: number; signal?: AbortSignal } = {}) {
  const { token = service.token, signal, ...rest } = about
  const response = await fetch(`${service.url}/api/sql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ query, ...rest }),
    ...(signal === undefined ? {} : { signal }),
  })
  return {
    status: response.status,
    body: (await response.json()) as Result & { code: string; message: string; line: number; column: number },
  }
}

test('a query returns columns and rows, and is in the audit log', async () => {
  const { status, body } = await ask('select event, count(*) from secret_thing group by 1')
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual([body.rows, body.truncated], [[['secret_thing', 1]], false])
  const limited = await ask('select * from range(5)', { limit: 2, destinationId: lakeId })
  assert.deepEqual([limited.body.rows, limited.body.truncated], [[[0], [1]], true])
  const { data } = await service.api<{ data: { action: string; subject: string; after: { query: string } }[] }>('/audit')
  const entry = data.find(({ action, after: made }) => action === 'sql.query' && made.query.includes('secret_thing'))
  assert.equal(entry?.subject, lakeId)
})

test('an error is 400 with a line and a column', async () => {
  const { status, body } = await ask('select 1,\n  nothing from default.tracks')
  assert.deepEqual([status, body.code], [400, 'sql_invalid'])
  const known = await ask('select nothing\nfrom "default".tracks')
  assert.deepEqual([known.status, known.body.line, known.body.column], [400, 1, 8], JSON.stringify(known.body))
  assert.equal((await ask('drop table x')).body.code, 'sql_invalid')
  assert.equal((await ask('select 1', { destinationId: 'dst_missing' })).body.code, 'not_a_lake')
})

test('viewers may not query, and an editor of one source sees its schema only', async () => {
  const tokenFor = async (role: string): Promise<string> =>
    (await service.api<{ token: string }>('/tokens', { method: 'POST', body: { name: role, role, sources: [other.id] } })).token
  assert.equal((await ask('select 1', { token: await tokenFor('viewer') })).status, 403)
  const token = await tokenFor('editor')
  assert.deepEqual((await ask('select user_id from tracks', { token })).body.rows, [['mallory']])
  for (const from of ['"default".tracks', '"default"._messages', 'order_completed'])
    assert.match((await ask(`select * from ${from}`, { token })).body.message, /does not exist/, from)
  const file = join(lake.source, 'tracks/_manifest.json')
  assert.ok(existsSync(file))
  assert.equal((await ask(`select * from read_text('${file}')`, { token })).status, 400)
  const { body } = await ask("select table_schema from information_schema.tables where table_schema <> 'main'", { token })
  assert.deepEqual([...new Set(body.rows.flat())], ['other_app'])
  const tables = await fetch(`${service.url}/api/sql/tables`, { headers: { authorization: `Bearer ${token}` } })
  const { data } = (await tables.json()) as { data: { schema: string; table: string }[] }
  assert.deepEqual([...new Set(data.map(({ schema }) => schema))], ['other_app'])
})

test('queries whose client goes away end', async () => {
  const controller = new AbortController()
  const running = [SLOW, `${SLOW} and 1 = 1`].map((query) => ask(query, { signal: controller.signal }))
  const begun = async (): Promise<number> => {
    const { data } = await service.api<{ data: { after: { query?: string } | null }[] }>('/audit')
    return data.filter((entry) => entry.after?.query?.startsWith(SLOW) === true).length
  }
  await eventually(begun, (count) => count === 2, { what: 'two queries' })
  controller.abort()
  const start = performance.now()
  for (const each of running) await assert.rejects(each)
  // Two run at a time, so this one would wait for them until its own time is over.
  assert.equal((await ask('select 1')).status, 200)
  assert.ok(performance.now() - start < 15_000)
})

test('the command line prints a table, JSON and CSV, and writes Parquet files', async () => {
  const query = 'select id, total, received_at from "default".order_completed order by id'
  assert.match((await switchyard(service, 'sql', query)).stdout, /id\s+total\s+received_at[\s\S]*m1\s+2\.5[\s\S]*m2\s+NULL/i)
  const { rows } = await asJson<Result>(service, 'sql', query)
  assert.deepEqual(
    rows.map(([id, total]) => [id, total]),
    [
      ['m1', 2.5],
      ['m2', null],
    ],
  )
  const csv = await switchyard(service, 'sql', '--csv', `select 'a,"b"' as text, 1 as n, null as nothing`)
  assert.equal(csv.stdout, 'text,n,nothing\n"a,""b""",1,\n')
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-sql-'))
  await switchyard(service, 'sql', '--parquet', join(folder, 'out.parquet'), query)
  const read = await withReader(new FolderFiles(folder), 'out.parquet', (reader) => reader.read(0, ['id', 'total']))
  assert.deepEqual(read, [
    ['m1', 2.5],
    ['m2', null],
  ])
  rmSync(folder, { recursive: true })
  assert.match((await switchyard(service, 'sql', 'selct 1')).stderr, /syntax error/)
})
