import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { PostgresServer } from '../../../server/src/store/postgres/fixtures/postgres-server.ts'
import { createWarehouse } from '../engines.ts'
import { message, TestLoads } from '../fixtures/messages.ts'
import type { Progress, SourceSchema, Warehouse } from '../warehouse.ts'

let server: PostgresServer
let client: pg.Client
let databases = 0
before(async () => {
  server = await PostgresServer.start()
})
after(async () => {
  await server.dispose()
})

interface Place {
  warehouse: Warehouse
  url: string
  query: <T extends pg.QueryResultRow>(text: string) => Promise<T[]>
  close: () => Promise<void>
}

async function place(settings: { schema?: string } = {}): Promise<Place> {
  const name = `warehouse_${++databases}`
  const admin = await server.client()
  await admin.query(`CREATE DATABASE ${name}`)
  await admin.end()
  client = await server.client(name)
  const own = client
  const url = server.url(name)
  const warehouse = createWarehouse({ engine: 'postgres', url, ...settings }, { lakeFolder: null })
  return {
    warehouse,
    url,
    query: async <T extends pg.QueryResultRow>(text: string) => (await own.query<T>(text)).rows,
    close: async () => {
      await warehouse.close()
      await own.end()
    },
  }
}

async function untilDone(step: (cursor: string | null) => Promise<Progress>): Promise<number> {
  let changed = 0
  let cursor: string | null = null
  do {
    const progress: Progress = await step(cursor)
    changed += progress.changed
    cursor = progress.cursor
  } while (cursor !== null)
  return changed
}

const ids = async ({ query }: Place, table: string): Promise<string[]> =>
  (await query<{ id: string }>(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id)

test('rows arrive with their types, and a load that is repeated writes nothing', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  const messages = [
    message({
      messageId: 'm1',
      properties: {
        total: 12.5,
        count: 3,
        flag: true,
        at: '2026-01-01T00:00:00.123456Z',
        note: 'a\tb\\c\nd\r\0',
        list: [1, 'x'],
        'ä "b"': '\\N',
      },
    }),
    message({ messageId: 'm2', type: 'page', name: 'Home' }),
  ]
  const { result } = await loads.load(at.warehouse, 'load_1', messages)
  assert.deepEqual(
    result.tables.map(({ table, rows, error }) => [table, rows, error]),
    [
      ['tracks', 1, null],
      ['order_completed', 1, null],
      ['pages', 1, null],
    ],
  )
  const repeated = await loads.load(at.warehouse, 'load_1', messages, { repeated: true })
  assert.deepEqual(
    repeated.result.tables.map(({ rows, bytes, error }) => [rows, bytes, error]),
    [
      [1, 0, null],
      [1, 0, null],
      [1, 0, null],
    ],
  )
  const rows = await at.query(
    'SELECT total, count::text, flag, at::text, note, list, "ä_b", _unfit, received_at::text FROM shop.order_completed',
  )
  assert.deepEqual(rows, [
    {
      total: 12.5,
      count: '3',
      flag: true,
      at: '2026-01-01 00:00:00.123456+00',
      note: null,
      list: '[1,"x"]',
      ä_b: '\\N',
      _unfit: JSON.stringify({ 'properties.note': 'a\tb\\c\nd\r\0' }),
      received_at: '2026-11-17 10:00:00+00',
    },
  ])
  await at.close()
})

test('texts keep their tabs, line breaks and backslashes', async () => {
  const at = await place()
  const note = 'a\tb\\c\nd\r\\.\\N "quoted" 💥'
  await new TestLoads('postgres').load(at.warehouse, 'load_1', [message({ messageId: 'm1', properties: { note } })])
  assert.deepEqual(await at.query('SELECT note FROM shop.order_completed'), [{ note }])
  await at.close()
})

test('new columns are added, integers become doubles, and a dropped table is created again', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  await loads.load(at.warehouse, 'load_1', [message({ messageId: 'm1', properties: { n: 1 } })])
  await loads.load(at.warehouse, 'load_2', [message({ messageId: 'm2', properties: { n: 1.5, added: 'x' } })])
  assert.deepEqual(await at.query('SELECT n, added FROM shop.order_completed ORDER BY id'), [
    { n: 1, added: null },
    { n: 1.5, added: 'x' },
  ])
  await at.query('DROP TABLE shop.order_completed')
  const failed = await loads.load(at.warehouse, 'load_3', [message({ messageId: 'm3' })])
  const errors = failed.result.tables.filter(({ error }) => error !== null)
  assert.deepEqual(
    errors.map(({ table, error }) => [table, error?.code]),
    [['order_completed', 'table_changed']],
  )
  const { result } = await loads.load(at.warehouse, 'load_3', [message({ messageId: 'm3' })], { repeated: true })
  assert.deepEqual(
    result.tables.map(({ table, recreated = false, error }) => [table, recreated, error]),
    [
      ['tracks', false, null],
      ['order_completed', true, null],
    ],
  )
  assert.deepEqual(await ids(at, 'shop.order_completed'), ['m3'])
  assert.deepEqual(await ids(at, 'shop.tracks'), ['m1', 'm2', 'm3'])
  await at.close()
})

test('a column that somebody changed stops only its table, with a sentence that says what to do', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  await loads.load(at.warehouse, 'load_1', [message({ messageId: 'm1', properties: { n: 1.5 } })])
  await at.query('ALTER TABLE shop.order_completed ALTER COLUMN n TYPE date USING NULL')
  const other = createWarehouse({ engine: 'postgres', url: at.url }, { lakeFolder: null })
  const { result } = await loads.load(other, 'load_2', [message({ messageId: 'm2', properties: { n: 2.5 } })])
  assert.deepEqual(
    result.tables.map(({ table, error }) => [table, error?.code]),
    [
      ['tracks', undefined],
      ['order_completed', 'table_changed'],
    ],
  )
  assert.match(String(result.tables[1]?.error?.message), /column n of shop\.order_completed has the type date.*ALTER TABLE/)
  await other.close()
  await at.close()
})

test('users have the latest traits, also if two nodes load at once', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  const identify = (messageId: string, traits: object, second: number): ReturnType<typeof message> =>
    message({ messageId, type: 'identify', traits, receivedAt: new Date(Date.UTC(2026, 10, 17, 10, 0, second)).toISOString() })
  await loads.load(at.warehouse, 'load_0', [
    identify('m0', { n: 0, at: '2026-01-01T00:00:00.000001Z', flag: true, size: 1.5, plan: 'x' }, 0),
  ])
  const nodes = Array.from({ length: 4 }, () => createWarehouse({ engine: 'postgres', url: at.url }, { lakeFolder: null }))
  const schema: SourceSchema = loads.schema
  await Promise.all(
    nodes.flatMap((node, which) =>
      Array.from({ length: 5 }, (_, index) => {
        const number = which * 5 + index + 1
        return new TestLoads('postgres', schema).load(node, `load_${number}`, [identify(`m${number}`, { n: number, plan: 'y' }, number)])
      }),
    ),
  )
  assert.deepEqual(await at.query('SELECT id, n::text, plan, at::text, flag, size FROM shop.users'), [
    { id: 'alice', n: '20', plan: 'y', at: '2026-01-01 00:00:00.000001+00', flag: true, size: 1.5 },
  ])
  assert.equal((await ids(at, 'shop.identifies')).length, 21)
  for (const node of nodes) await node.close()
  await at.close()
})

test('the same load by two nodes at once is in its tables once', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  await loads.load(at.warehouse, 'load_0', [message({ messageId: 'm0' })])
  const nodes = Array.from({ length: 4 }, () => createWarehouse({ engine: 'postgres', url: at.url }, { lakeFolder: null }))
  await Promise.all(
    nodes.map((node) => new TestLoads('postgres', loads.schema).load(node, 'load_1', [message({ messageId: 'm1' })], { repeated: true })),
  )
  assert.deepEqual(await ids(at, 'shop.tracks'), ['m0', 'm1'])
  assert.deepEqual(await ids(at, 'shop.order_completed'), ['m0', 'm1'])
  for (const node of nodes) await node.close()
  await at.close()
})

test('a load whose connection is cut at any time and that is repeated is in its tables once', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  await loads.load(at.warehouse, 'load_0', [message({ messageId: 'm0' })])
  const messages = Array.from({ length: 200 }, (_, index) =>
    message({ messageId: `n${index}`, properties: { total: 1, text: 'x'.repeat(500) } }),
  )
  for (let round = 0; round < 8; round++) {
    const victim = createWarehouse({ engine: 'postgres', url: at.url }, { lakeFolder: null })
    const loading = loads
      .load(
        victim,
        `load_r${round}`,
        messages.map(({ text }) => ({ text: text.replace('"n', `"r${round}n`) })),
      )
      .catch(() => null)
    // Each round cuts at another point: after as many queries of this connection as the number of the round.
    for (let cut = 0; cut <= round; cut++)
      await at.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'switchyard warehouse' AND state <> 'idle'",
      )
    await loading
    await victim.close()
    const again = createWarehouse({ engine: 'postgres', url: at.url }, { lakeFolder: null })
    const { result } = await loads.load(
      again,
      `load_r${round}`,
      messages.map(({ text }) => ({ text: text.replace('"n', `"r${round}n`) })),
      { repeated: true },
    )
    assert.ok(
      result.tables.every(({ error }) => error === null),
      JSON.stringify(result),
    )
    await again.close()
  }
  for (const table of ['shop.tracks', 'shop.order_completed']) {
    const found = await ids(at, table)
    assert.equal(found.length, 1 + 8 * 200)
    assert.equal(new Set(found).size, found.length)
  }
  await at.close()
})

test('users are deleted from every table, and old days and keys are removed', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  await loads.load(at.warehouse, 'load_1', [
    message({ messageId: 'a' }),
    message({ messageId: 'b', userId: 'bob' }),
    message({ messageId: 'i', userId: 'bob', type: 'identify', traits: { plan: 'x' } }),
    message({ messageId: 'old', receivedAt: '2026-01-01T00:00:00Z' }),
  ])
  assert.equal(await untilDone((cursor) => at.warehouse.deleteUsers({ schema: loads.schema, cursor, userIds: ['bob'] })), 4)
  assert.deepEqual(await ids(at, 'shop.order_completed'), ['a', 'old'])
  assert.deepEqual(await ids(at, 'shop.users'), [])
  const nowMs = Date.UTC(2026, 10, 19)
  await untilDone((cursor) => at.warehouse.upkeep({ schema: loads.schema, cursor, nowMs, openLoads: async () => [], keepDays: 30 }))
  assert.deepEqual(await ids(at, 'shop.order_completed'), ['a'])
  await at.close()
})

test('a schema of somebody else is refused, and can be adopted', async () => {
  const at = await place({ schema: 'public' })
  await at.query('CREATE TABLE tracks (id text, event text)')
  const loads = new TestLoads('postgres')
  await assert.rejects(loads.load(at.warehouse, 'load_1', [message({ messageId: 'm1' })]), /public has tables of another installation/)
  const owner = { installation: 'ins_1', destinationId: 'dst_1', sourceId: 'src_1', adopt: true }
  const { result } = await loads.load(at.warehouse, 'load_1', [message({ messageId: 'm1' })], { owner })
  assert.ok(
    result.tables.every(({ error }) => error === null),
    JSON.stringify(result),
  )
  assert.deepEqual(await at.query('SELECT id, event FROM tracks'), [{ id: 'm1', event: 'order_completed' }])
  await at.close()
})

test('the connection test says what is missing, and leaves nothing behind', async () => {
  const at = await place()
  const good = await at.warehouse.check()
  assert.equal(good.problem, null)
  assert.match(String(good.version), /^PostgreSQL \d+/)
  assert.deepEqual(await at.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%switchyard%'"), [])
  await at.query("CREATE ROLE reader LOGIN PASSWORD 'reader'")
  const check = async (url: string): Promise<string | undefined> => {
    const warehouse = createWarehouse({ engine: 'postgres', url }, { lakeFolder: null })
    const { problem, steps } = await warehouse.check()
    await warehouse.close()
    assert.equal(JSON.stringify(steps).includes('switchyard-test'), false)
    return `${steps.at(-1)?.step}: ${problem?.code}`
  }
  assert.equal(await check(at.url.replace('postgres:switchyard-test', 'reader:reader')), 'create schema: permission_missing')
  assert.equal(await check(at.url.replace('switchyard-test', 'wrong')), 'connect: credentials_refused')
  assert.equal(await check(at.url.replace(/[^/]*$/, 'nowhere')), 'connect: not_found')
  assert.equal(await check(at.url.replace(`:${server.port}`, ':1')), 'connect: unreachable')
  await at.query('ALTER ROLE postgres SET default_transaction_read_only = on')
  assert.equal(await check(at.url), 'create schema: read_only')
  await at.query('SET default_transaction_read_only = off')
  await at.query('ALTER ROLE postgres RESET default_transaction_read_only')
  await at.close()
})

test('a row that is wider than a page keeps the rest in _unfit', async () => {
  const at = await place()
  const loads = new TestLoads('postgres')
  const properties = Object.fromEntries(
    Array.from({ length: 950 }, (_, index) => [`p${index}`, index % 3 === 0 ? index + 0.5 : `text ${'x'.repeat(index)}`]),
  )
  const { result } = await loads.load(at.warehouse, 'load_1', [message({ messageId: 'm1', properties })])
  assert.ok(
    result.tables.every(({ error }) => error === null),
    JSON.stringify(result),
  )
  const [row] = await at.query<Record<string, string>>('SELECT * FROM shop.order_completed')
  const unfit = JSON.parse(String(row?.['_unfit'])) as Record<string, unknown>
  for (const [key, value] of Object.entries(properties)) assert.equal(row?.[key] ?? unfit[`properties.${key}`], value)
  await at.close()
})
