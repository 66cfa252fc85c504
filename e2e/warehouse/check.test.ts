// Tests of settings that are not saved: in a folder and in PostgreSQL, with the tables that the newest messages would make.

import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import type pg from 'pg'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { track } from '../system/service.ts'
import { startWithLake } from './system.ts'

interface Check {
  problem: { code: string; message: string } | null
  steps: { step: string; ok: boolean; error: string | null }[]
  version: string | null
  messages: number
  tables: {
    schema: string
    table: string
    rows: number
    unfit: number
    columnCount: number
    columns: { name: string; type: string; path: string; example: string | null }[]
  }[]
}

type System = Awaited<ReturnType<typeof startWithLake>>

function check({ service }: System, warehouse: object): Promise<Check> {
  const body = { type: 'warehouse', name: 'New', sourceIds: [service.sourceId], warehouse }
  return service.api<Check>('/warehouse/check', { method: 'POST', body })
}

test('a folder is tested before the destination exists, and the tables of the newest messages are shown', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const before = await check(system, { engine: 'parquet', url: lake.url })
  assert.deepEqual([before.problem, before.messages], [null, 0])
  assert.ok(
    before.tables.some(({ table }) => table === 'switchyard_test'),
    'sample messages show the layout',
  )

  await service.send([
    track('m1', { event: 'Order Completed', properties: { total: 9.5, paid: true } }),
    track('m2', { event: 'Order Completed', properties: { total: 'many', paid: false } }),
    { type: 'identify', userId: 'ada', messageId: 'i1', traits: { plan: 'pro' } },
  ])
  const { problem, steps, messages, tables } = await check(system, { engine: 'parquet', url: lake.url })
  assert.equal(problem, null)
  assert.deepEqual(
    steps.map(({ step, ok }) => [step, ok]),
    [
      ['create table', true],
      ['read table', true],
      ['drop table', true],
    ],
  )
  assert.equal(messages, 3)
  assert.deepEqual(
    tables.map(({ schema, table, rows }) => [schema, table, rows]),
    [
      ['default', '_messages', 3],
      ['default', 'identifies', 1],
      ['default', 'order_completed', 2],
      ['default', 'tracks', 2],
      ['default', 'users', 1],
    ],
  )
  const orders = tables.find(({ table }) => table === 'order_completed')
  assert.deepEqual(
    orders?.columns.filter(({ path }) => path.startsWith('properties.')),
    [
      { name: 'total', type: 'double', path: 'properties.total', example: '9.5' },
      { name: 'paid', type: 'boolean', path: 'properties.paid', example: 'true' },
    ],
  )
  assert.equal(orders?.unfit, 1)
  assert.ok(!existsSync(lake.source), 'nothing is loaded')
  assert.deepEqual((await service.api<{ data: unknown[] }>('/destinations')).data, [])
  assert.ok(!readdirSync(lake.folder).includes('_switchyard_test') || readdirSync(`${lake.folder}/_switchyard_test`).length === 0)
})

suite('PostgreSQL', () => {
  let server: PostgresServer
  let client: pg.Client
  before(async () => {
    server = await PostgresServer.start()
    const admin = await server.client()
    await admin.query('CREATE DATABASE unsaved')
    await admin.query("CREATE ROLE reader LOGIN PASSWORD 'pass-of-reader'")
    await admin.end()
    client = await server.client('unsaved')
  })
  after(async () => {
    await client?.end()
    await server?.dispose()
  })

  test('the test says which permission is missing, and leaves nothing behind', async () => {
    await using system = await startWithLake()
    const good = new URL(server.url('unsaved'))
    const passed = await check(system, { engine: 'postgres', url: good.href })
    assert.equal(passed.problem, null, JSON.stringify(passed))
    assert.match(passed.version ?? '', /^PostgreSQL \d+/)
    assert.ok(!passed.tables.some(({ table }) => table === '_messages'), 'the archive is for lakes only')

    const reader = new URL(good)
    reader.username = 'reader'
    reader.password = 'pass-of-reader'
    const refused = await check(system, { engine: 'postgres', url: reader.href })
    assert.equal(refused.problem?.code, 'permission_missing', JSON.stringify(refused))
    assert.deepEqual(
      refused.steps.map(({ step, ok }) => [step, ok]),
      [
        ['connect', true],
        ['create schema', false],
      ],
    )
    assert.doesNotMatch(JSON.stringify(refused), /pass-of-reader/)
    const missing = new URL(good)
    missing.pathname = '/nothing'
    assert.equal((await check(system, { engine: 'postgres', url: missing.href })).problem?.code, 'not_found')
    const { rows } = await client.query("SELECT 1 FROM information_schema.schemata WHERE schema_name LIKE '%switchyard%'")
    assert.deepEqual(rows, [])
  })
})
