// Loads of a warehouse through the service: messages become rows, each once, and what is shown of them.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import type pg from 'pg'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { readTable } from '../../packages/warehouse/src/fixtures/lake-reading.ts'
import { track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, attemptsOf, idsIn, LOAD, lakeOf, loaded, RETRY, startWithLake, type Tables } from './system.ts'

const messages = (count: number, from = 0): object[] =>
  Array.from({ length: count }, (_, at) =>
    track(`m${from + at}`, { event: 'Order Completed', properties: { total: at + 0.5, nested: { n: at } } }),
  )
const isLoaded = ({ message }: Error): boolean => message.includes('already_loaded')
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `m${at}`).sort()

test('messages are rows in files within a moment, once, and the delivery says in which load', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const id = await addLake(service, lake)
  await service.send(messages(50))
  await service.send([{ type: 'identify', userId: 'ada', messageId: 'i1', traits: { plan: 'pro' } }])
  await loaded(service, 51)
  assert.deepEqual(await idsIn(lake.source, 'tracks'), idsOf(50))
  assert.deepEqual(await idsIn(lake.source, 'order_completed'), idsOf(50))
  assert.deepEqual(await idsIn(lake.source, '_messages'), [...idsOf(50), 'i1'].sort())
  assert.deepEqual(
    (await readTable(lake.source, 'users')).map(({ id: user, plan }) => [user, plan]),
    [['ada', 'pro']],
  )
  const [done] = await service.deliveries()
  await assert.rejects(service.api(`/deliveries/${done?.id}/replay`, { method: 'POST', body: {} }), isLoaded)
  const again = { destinationId: id, states: ['delivered'], includeReplayed: true }
  const job = await service.api<{ id: string }>('/replays', { method: 'POST', body: again })
  const skipped = await eventually(
    () => service.api<{ state: string; replayed: number; skippedReasons: object }>(`/replays/${job.id}`),
    ({ state }) => state === 'finished',
    { what: 'the end of the replay' },
  )
  assert.deepEqual([skipped.replayed, skipped.skippedReasons], [0, { already_loaded: 51 }])
  const [attempt] = await attemptsOf(service)
  assert.ok(attempt?.load)
  assert.match(attempt.load.id, /^load_/)
  assert.ok(attempt.load.tables.some(({ table }) => table === '_messages'))
  assert.ok(attempt.load.bytes > 0 && attempt.load.durationMs > 0)
  const { data: loads } = await service.api<{ data: { id: string; rows: number; messages: number; failed: string[] }[] }>(
    `/destinations/${id}/loads`,
  )
  assert.ok(loads.some((load) => load.id === attempt.load?.id && load.failed.length === 0))
  assert.equal(
    loads.reduce((sum, load) => sum + load.messages, 0),
    51,
  )
  const { data } = await service.api<Tables>(`/destinations/${id}/tables`)
  const orders = data.find(({ table }) => table === 'order_completed')
  assert.deepEqual([orders?.rows, orders?.schema], [50, 'default'])
  assert.deepEqual(
    orders?.columns.filter(({ path }) => path.startsWith('properties.')).map(({ name, type }) => [name, type]),
    [
      ['total', 'double'],
      ['nested_n', 'double'],
    ],
  )
})

test('the test of a destination writes and drops a table, and says what is missing', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const id = await addLake(service, lake)
  const test = (): Promise<{ success: boolean; attempts: { error: string | null; responseStart: string | null }[] }> =>
    service.api(`/destinations/${id}/test`, { method: 'POST', body: {} })
  const passed = await test()
  assert.equal(passed.success, true, JSON.stringify(passed))
  assert.deepEqual(
    (JSON.parse(passed.attempts[0]?.responseStart ?? '') as { steps: { step: string; ok: boolean }[] }).steps.map(({ step, ok }) => [
      step,
      ok,
    ]),
    [
      ['create table', true],
      ['read table', true],
      ['drop table', true],
    ],
  )
  assert.equal(existsSync(`${lake.folder}/_switchyard_test/test.parquet`), false)
})

test('loading now does not wait, and everything that waits is loaded', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const id = await addLake(service, lake, { load: { everyMs: 3_600_000 } })
  await service.send(messages(10))
  await service.api(`/destinations/${id}/load`, { method: 'POST', body: {} })
  await loaded(service, 10)
  assert.deepEqual(await idsIn(lake.source, 'tracks'), idsOf(10))
})

test('the health says when the next load is due, also after the interval was changed', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const everyMs = 3_600_000
  const id = await addLake(service, lake, { load: { everyMs } })
  await service.send(messages(1))
  const isDueAfter = (expectedMs: number) =>
    eventually(
      () => service.api<{ oldestPendingAt: string; nextAttemptAt: string | null }>(`/destinations/${id}/health`),
      ({ oldestPendingAt, nextAttemptAt }) =>
        nextAttemptAt !== null && Math.abs(Date.parse(nextAttemptAt) - Date.parse(oldestPendingAt) - expectedMs) < everyMs / 2,
      { what: `the next load is due after ${expectedMs} ms` },
    )
  await isDueAfter(everyMs)
  for (const changedMs of [4 * everyMs, 2 * everyMs]) {
    await service.api(`/destinations/${id}`, { method: 'PATCH', body: { load: { everyMs: changedMs } } })
    await isDueAfter(changedMs)
  }
})

test('a load has no more rows than its limit, and when so many wait, they are loaded at once', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const id = await addLake(service, lake, { load: { everyMs: 3_600_000, maxRows: 40 } })
  for (let from = 0; from < 40; from += 20) await service.send(messages(20, from))
  await loaded(service, 40)
  for (let from = 40; from < 100; from += 20) await service.send(messages(20, from))
  await service.api(`/destinations/${id}/load`, { method: 'POST', body: {} })
  await loaded(service, 100)
  assert.deepEqual(await idsIn(lake.source, 'tracks'), idsOf(100))
  for (const { load } of await attemptsOf(service)) assert.ok((load?.tables.find(({ table }) => table === 'tracks')?.rows ?? 99) <= 40)
})

suite('PostgreSQL', () => {
  let server: PostgresServer
  let client: pg.Client
  before(async () => {
    server = await PostgresServer.start()
    const admin = await server.client()
    await admin.query('CREATE DATABASE warehouse')
    await admin.end()
    client = await server.client('warehouse')
  })
  after(async () => {
    await client?.end()
    await server?.dispose()
  })

  test('messages are rows in tables, once, and the password is never shown', async () => {
    await using system = await startWithLake()
    const { service } = system
    const url = new URL(server.url('warehouse'))
    const settings = { warehouse: { engine: 'postgres', url: url.href }, load: LOAD, retry: RETRY }
    const id = await addLake(service, lakeOf(service), settings)
    await service.send(messages(20))
    await loaded(service, 20)
    const { rows } = await client.query<{ id: string; total: number }>('SELECT id, total FROM "default".order_completed ORDER BY id')
    assert.deepEqual(
      rows.map((row) => row.id),
      idsOf(20),
    )
    const shown = await service.api<{ warehouse: { url: string } }>(`/destinations/${id}`)
    if (url.password !== '') assert.equal(shown.warehouse.url.includes(url.password), false)
  })
})
