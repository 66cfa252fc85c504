// A lake in a bucket through the whole service, in an S3 server that is not ours: versitygw. It supports conditional writes, and checks keys and signatures.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { missing, type S3Store, startS3 } from '../../packages/warehouse/src/fixtures/real-stores.ts'
import { readManifest } from '../../packages/warehouse/src/parquet/manifest.ts'
import { S3Files } from '../../packages/warehouse/src/parquet/s3-files.ts'
import { withReader } from '../../packages/warehouse/src/parquet/table-files.ts'
import { createWallClock } from '../machine-faults/wall-clock.ts'
import { type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { failedAttempt, LOAD, loaded, RETRY } from './system.ts'

const BUCKET = 'lake'
const DAY_MS = 86_400_000
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `m${at}`).sort()
const messages = (count: number, from = 0): object[] =>
  Array.from({ length: count }, (_, at) =>
    track(`m${from + at}`, { event: 'Order Completed', userId: `user ${from + at}`, properties: { n: at } }),
  )

interface TestResult {
  success: boolean
  attempts: { error: string | null; responseStart: string | null }[]
}

suite('a lake in a bucket', { skip: missing('s3') }, () => {
  let store: S3Store
  before(async () => {
    store = await startS3(BUCKET)
  })
  after(() => store?.[Symbol.asyncDispose]())

  let prefixes = 0
  const placeOf = (about: object = {}) => ({
    engine: 'parquet' as const,
    url: `s3://${BUCKET}/prefix/${prefixes}`,
    endpoint: store.url,
    accessKeyId: store.accessKeyId,
    secretAccessKey: store.secretAccessKey,
    pathStyle: true,
    ...about,
  })
  async function add(service: Service, about: object = {}, settings: object = {}): Promise<string> {
    prefixes++
    const body = { type: 'warehouse', name: 'Bucket', sourceIds: [service.sourceId], load: LOAD, retry: RETRY, ...settings }
    return (await service.api<{ id: string }>('/destinations', { method: 'POST', body: { ...body, warehouse: placeOf(about) } })).id
  }
  const loadNow = (service: Service, id: string): Promise<unknown> => service.api(`/destinations/${id}/load`, { method: 'POST', body: {} })
  const tested = (service: Service, id: string): Promise<TestResult> =>
    service.api(`/destinations/${id}/test`, { method: 'POST', body: {} })

  /** The ids of a table, read as its manifest says, and the number of its files by day. */
  async function read(table: string): Promise<{ ids: string[]; days: Record<string, number> }> {
    const files = new S3Files(placeOf())
    try {
      const ids: string[] = []
      const days: Record<string, number> = {}
      for (const { path } of (await readManifest(files, `default/${table}`)).files) {
        const day = path.slice(4, 14)
        days[day] = (days[day] ?? 0) + 1
        const found = await withReader(files, `default/${table}/${path}`, async (reader) => {
          const rows = await Promise.all([...reader.groups.keys()].map((group) => reader.read(group, ['id'])))
          return rows.flat().map(([id]) => String(id))
        })
        assert.ok(found, `${path} is missing`)
        ids.push(...found)
      }
      return { ids: ids.sort(), days }
    } finally {
      await files.close()
    }
  }

  test('messages are rows, once; small files of past days are merged; the rows of a deleted user are removed', async () => {
    using clock = createWallClock()
    await using service = await startService(clock)
    const id = await add(service, {}, { load: { everyMs: 3_600_000 } })
    clock.jump(-2 * DAY_MS)
    const old = new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10)
    for (const from of [0, 10, 20]) {
      await service.send(messages(10, from))
      await loadNow(service, id)
      await loaded(service, from + 10)
    }
    await service.send([{ type: 'identify', messageId: 'i1', userId: 'user 3', traits: { plan: 'pro' } }])
    await loadNow(service, id)
    await loaded(service, 31)
    assert.deepEqual(await read('tracks'), { ids: idsOf(30), days: { [old]: 3 } })
    assert.deepEqual((await read('users')).ids, ['user 3'])

    clock.jump(0)
    await service.api(`/destinations/${id}/upkeep`, { method: 'POST', body: {} })
    const upkeep = await eventually(
      () => service.api<{ state: string; problems: unknown[]; error: string | null }>(`/destinations/${id}/upkeep`),
      ({ state }) => state === 'done',
      { what: 'the end of the upkeep', deadlineMs: 120_000 },
    )
    assert.deepEqual([upkeep.problems, upkeep.error], [[], null])
    assert.deepEqual(await read('tracks'), { ids: idsOf(30), days: { [old]: 1 } })

    await service.api('/deletions', { method: 'POST', body: { userIds: ['user 3'] } })
    await service.settled(32, { deadlineMs: 120_000 })
    const left = idsOf(30).filter((each) => each !== 'm3')
    for (const table of ['tracks', 'order_completed', '_messages']) assert.deepEqual((await read(table)).ids, left, table)
    assert.deepEqual((await read('users')).ids, [])
    const { rows } = await service.api<{ rows: unknown[][] }>('/sql', {
      method: 'POST',
      body: { query: 'select id from tracks order by 1' },
    })
    assert.deepEqual(rows.flat(), left)
  })

  test('a service that is killed in the middle of loads loses nothing, and loads nothing twice', async () => {
    await using first = await startService()
    let service: Service = first
    await add(service, {}, { load: { everyMs: 1_000, maxRows: 50 } })
    for (let from = 0; from < 200; from += 50) await service.send(messages(50, from))
    for (let kills = 0; kills < 2; kills++) {
      const before = (await read('_messages')).ids.length
      await eventually(
        async () => (await read('_messages')).ids.length,
        (rows) => rows > before || rows === 200,
        { what: 'a load', deadlineMs: 60_000 },
      )
      service.kill('SIGKILL')
      service = await service.restart()
    }
    await loaded(service, 200)
    for (const table of ['tracks', 'order_completed', '_messages']) assert.deepEqual((await read(table)).ids, idsOf(200), table)
  })

  test('the test of a destination says what is wrong, and what waited is loaded when it is right', async () => {
    await using service = await startService()
    const id = await add(service, { secretAccessKey: 'not-the-secret-of-the-key' })
    const change = (about: object): Promise<unknown> =>
      service.api(`/destinations/${id}`, { method: 'PATCH', body: { warehouse: placeOf(about) } })
    const errorOf = async (): Promise<string> => {
      const result = await tested(service, id)
      assert.equal(result.success, false, JSON.stringify(result))
      assert.doesNotMatch(JSON.stringify(result), /not-the-secret/)
      return result.attempts[0]?.error ?? ''
    }
    assert.match(await errorOf(), /The secret access key is wrong/)
    await service.send(messages(5))
    const failed = await failedAttempt(service)
    assert.match(failed.error ?? '', /The secret access key is wrong/)
    await change({ accessKeyId: 'AKIANOBODY', secretAccessKey: 'not-the-secret-of-the-key' })
    assert.match(await errorOf(), /does not know the access key/)
    await change({ url: 's3://missing-bucket/x' })
    assert.match(await errorOf(), /The bucket does not exist/)
    await change({})
    assert.equal((await tested(service, id)).success, true)
    await service.api(`/destinations/${id}/retry`, { method: 'POST', body: {} })
    await loaded(service, 5)
    assert.deepEqual((await read('tracks')).ids, idsOf(5))
  })

  test('an address that the guard refuses is not dialed', async () => {
    await using service = await startService({ env: { SWITCHYARD_PRIVATE_ADDRESSES: 'refuse' } })
    const id = await add(service)
    const { success, attempts } = await tested(service, id)
    assert.equal(success, false)
    assert.match(attempts[0]?.error ?? '', /127\.0\.0\.1 is not allowed: connections may only go to public addresses/)
  })
})
