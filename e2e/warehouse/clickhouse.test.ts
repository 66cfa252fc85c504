// ClickHouse through the whole service: its own engine as a library (chdb), behind a small HTTP server of the tests.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { ClickHouseHttp } from '../../packages/warehouse/src/clickhouse/clickhouse-http.ts'
import { missing, type RealStore, startClickHouse } from '../../packages/warehouse/src/fixtures/real-stores.ts'
import { type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { attemptsOf, failedAttempt, LOAD, loaded, RETRY } from './system.ts'

const PASSWORD = 'secret'
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `m${at}`).sort()
const messages = (count: number, from = 0): object[] =>
  Array.from({ length: count }, (_, at) =>
    track(`m${from + at}`, { event: 'Order Completed', userId: `user ${from + at}`, properties: { n: at, total: at + 0.5 } }),
  )

suite('a warehouse in ClickHouse', { skip: missing('clickhouse') }, () => {
  let server: RealStore
  before(async () => {
    server = await startClickHouse()
  })
  after(() => server?.[Symbol.asyncDispose]())

  const place = (database: string, about: object = {}) => ({
    engine: 'clickhouse' as const,
    url: server.url,
    database,
    user: 'loader',
    password: PASSWORD,
    ...about,
  })
  async function add(service: Service, warehouse: object, settings: object = {}): Promise<string> {
    const body = { type: 'warehouse', name: 'Tables', sourceIds: [service.sourceId], load: LOAD, retry: RETRY, warehouse, ...settings }
    return (await service.api<{ id: string }>('/destinations', { method: 'POST', body })).id
  }
  const rows = (sql: string): Promise<unknown[][]> =>
    new ClickHouseHttp(place('')).rows(sql, {}, { output_format_json_quote_64bit_integers: '0' })
  const ids = async (table: string): Promise<string[]> => (await rows(`SELECT id FROM ${table} ORDER BY id`)).map(([id]) => String(id))

  test('messages are rows, users have their latest traits, and the rows of a deleted user are removed', async () => {
    await using service = await startService()
    const id = await add(service, place('analytics_{source}'))
    const tested = await service.api<{ success: boolean }>(`/destinations/${id}/test`, { method: 'POST', body: {} })
    assert.equal(tested.success, true, JSON.stringify(tested))
    await service.send(messages(20))
    await service.send([
      { type: 'identify', messageId: 'i1', userId: 'user 3', traits: { plan: 'pro' } },
      { type: 'identify', messageId: 'i2', userId: 'user 4', traits: { plan: 'free' } },
    ])
    await loaded(service, 22)
    assert.deepEqual(await ids('analytics_default.tracks'), idsOf(20))
    assert.deepEqual(await rows("SELECT id, total, event_text FROM analytics_default.order_completed WHERE id = 'm2'"), [
      ['m2', 2.5, 'Order Completed'],
    ])
    assert.deepEqual(await rows('SELECT id, plan FROM analytics_default.users FINAL ORDER BY id'), [
      ['user 3', 'pro'],
      ['user 4', 'free'],
    ])
    const shown = JSON.stringify(await service.api(`/destinations/${id}`))
    assert.ok(!shown.includes(`"${PASSWORD}"`), shown)

    await service.api('/deletions', { method: 'POST', body: { userIds: ['user 3'] } })
    await service.settled(23, { deadlineMs: 120_000 })
    const left = idsOf(20).filter((each) => each !== 'm3')
    for (const table of ['tracks', 'order_completed']) assert.deepEqual(await ids(`analytics_default.${table}`), left, table)
    assert.deepEqual(await ids('analytics_default.users FINAL'), ['user 4'])
  })

  test('a service that is killed in the middle of loads loads nothing twice', async () => {
    await using first = await startService()
    let service: Service = first
    await add(service, place('killed'), { load: { everyMs: 1_000, maxRows: 50 } })
    for (let from = 0; from < 200; from += 50) await service.send(messages(50, from))
    const count = async (): Promise<number> => (await ids('killed.tracks').catch(() => [])).length
    for (let kills = 0; kills < 2; kills++) {
      const before = await count()
      await eventually(count, (found) => found > before || found === 200, { what: 'a load', deadlineMs: 60_000 })
      service.kill('SIGKILL')
      service = await service.restart()
    }
    await loaded(service, 200)
    for (const table of ['tracks', 'order_completed']) assert.deepEqual(await ids(`killed.${table}`), idsOf(200), table)
  })

  test('a wrong password is named, never shown, and what waited is loaded with the right one', async () => {
    await using service = await startService()
    const wrong = 'a-wrong-pass-word'
    const id = await add(service, place('late', { password: wrong }))
    const test = (): Promise<{ success: boolean; attempts: { error: string | null }[] }> =>
      service.api(`/destinations/${id}/test`, { method: 'POST', body: {} })
    const { success, attempts } = await test()
    assert.equal(success, false)
    assert.match(attempts[0]?.error ?? '', /user|password|authenticat/i)
    await service.send(messages(3))
    const failed = await failedAttempt(service)
    assert.equal(failed.reason, 'warehouse_credentials_refused')
    assert.ok(!JSON.stringify([attempts, await attemptsOf(service), service.log()]).includes(wrong))
    await service.api(`/destinations/${id}`, { method: 'PATCH', body: { warehouse: place('late') } })
    const right = await test()
    assert.equal(right.success, true, JSON.stringify(right))
    await service.api(`/destinations/${id}/retry`, { method: 'POST', body: {} })
    await loaded(service, 3)
    assert.deepEqual(await ids('late.tracks'), idsOf(3))
  })
})
