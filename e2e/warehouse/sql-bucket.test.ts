// SQL over a lake in a bucket through the whole service, with a small S3 server that checks signatures.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { failure, S3_KEY, S3Server } from '../../packages/warehouse/src/fixtures/s3-server.ts'
import { type Service, startService, track } from '../system/service.ts'
import { LOAD, loaded, RETRY } from './system.ts'

interface Answer {
  rows: unknown[][]
  warnings: string[]
  code?: string
  message?: string
}

const store = new S3Server()
const temporary = mkdtempSync(join(tmpdir(), 'switchyard-bucket-'))
let service: Service
let id: string

before(async () => {
  await store.start()
  service = await startService({ env: { TMPDIR: temporary } })
  const warehouse = { engine: 'parquet', url: 's3://lake/main', endpoint: store.endpoint, pathStyle: true, ...S3_KEY }
  const body = { type: 'warehouse', name: 'Bucket', sourceIds: [service.sourceId], load: LOAD, retry: RETRY, warehouse }
  id = (await service.api<{ id: string }>('/destinations', { method: 'POST', body })).id
  await service.send([
    track('m1', { event: 'Order Completed', userId: 'ann', properties: { total: 2.5 } }),
    track('m2', { event: 'Order Completed', userId: 'bob', properties: { total: 4 } }),
  ])
  await loaded(service, 2)
})
after(async () => {
  await service?.[Symbol.asyncDispose]()
  store.close()
  rmSync(temporary, { recursive: true, force: true })
})

async function ask(query: string, signal?: AbortSignal, token = service.token): Promise<{ status: number; body: Answer }> {
  const response = await fetch(`${service.url}/api/sql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, destinationId: id }),
    ...(signal === undefined ? {} : { signal }),
  })
  return { status: response.status, body: (await response.json()) as Answer }
}
const folders = (): string[] => readdirSync(temporary).filter((name) => name.startsWith('switchyard-sql-'))

test('a lake in a bucket can be queried like one in a folder, and its files are fetched once', async () => {
  const { status, body } = await ask('select user_id, total from order_completed order by 1')
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(body.rows, [
    ['ann', 2.5],
    ['bob', 4],
  ])
  const fetched = (): number => store.requests.filter((text) => /^GET .*order_completed\/day.*\.parquet/.test(text)).length
  assert.equal(fetched(), 1)
  assert.deepEqual((await ask('select count(*) from order_completed')).body.rows, [[2]])
  assert.equal(fetched(), 1)
  assert.equal(folders().length, 1)
})

test('a query over a bucket can read neither local files nor the bucket directly', async () => {
  const [folder = ''] = folders()
  for (const from of [
    `read_parquet('${join(temporary, folder)}/*/*/*.parquet')`,
    `glob('${temporary}/*')`,
    `read_text('s3://lake/main')`,
  ]) {
    const { status, body } = await ask(`select * from ${from}`)
    assert.deepEqual([status, body.code], [400, 'sql_invalid'], from)
  }
})

test('the rows of a deleted user are in no result, although the files were fetched before', async () => {
  assert.deepEqual((await ask('select id from tracks order by 1')).body.rows, [['m1'], ['m2']])
  await service.api('/deletions', { method: 'POST', body: { userIds: ['bob'] } })
  await loaded(service, 3)
  assert.deepEqual((await ask('select id from tracks order by 1')).body.rows, [['m1']])
})

test('a query of a bucket that rejects the key fails with an error that names the bucket', async () => {
  store.refuse = (method) => (method === 'GET' ? failure(403, 'InvalidAccessKeyId') : undefined)
  const refused = await ask('select id from tracks')
  assert.deepEqual([refused.status, refused.body.code], [400, 'sql_failed'])
  assert.match(refused.body.message ?? '', /s3:\/\/lake\/main/)
  assert.doesNotMatch(JSON.stringify(refused.body), new RegExp(S3_KEY.secretAccessKey.slice(0, 10)))
  store.refuse = () => undefined
  assert.deepEqual((await ask('select id from tracks')).body.rows, [['m1']])
})

test('an editor without access to all sources of the lake sees neither the error of the store nor the address of the lake', async () => {
  const other = await service.api<{ id: string }>('/sources', { method: 'POST', body: { name: 'Other App' } })
  await service.api(`/destinations/${id}`, { method: 'PATCH', body: { sourceIds: [service.sourceId, other.id] } })
  const tokenFor = async (sources: string[]): Promise<string> =>
    (await service.api<{ token: string }>('/tokens', { method: 'POST', body: { name: 'Editor', role: 'editor', sources } })).token
  const [limited, whole] = [await tokenFor([service.sourceId]), await tokenFor([service.sourceId, other.id])]
  store.refuse = (method) => (method === 'GET' ? failure(403, 'InvalidAccessKeyId') : undefined)
  const refused = await ask('select id from tracks', undefined, limited)
  assert.deepEqual([refused.status, refused.body.code], [400, 'sql_failed'])
  assert.equal(
    refused.body.message,
    'The warehouse refused the credentials of the destination. Somebody who has access to all sources of the lake can see the details.',
  )
  assert.match((await ask('select id from tracks', undefined, whole)).body.message ?? '', /s3:\/\/lake\/main/)
  store.refuse = () => undefined
  assert.deepEqual((await ask('select id from tracks', undefined, limited)).body.rows, [['m1']])
})

test('a query that is cancelled while files are fetched ends, and the next one is answered', async () => {
  let answerNow = (): void => undefined
  const waiting = new Promise<void>((resolve) => (answerNow = resolve))
  const asked = new Promise<void>((resolve) => {
    store.refuse = async (method, key) => {
      if (method !== 'GET' || !/_messages\/day/.test(key)) return undefined
      resolve()
      await waiting
      return undefined
    }
  })
  const cancel = new AbortController()
  const cancelled = ask('select * from _messages', cancel.signal)
  await asked
  cancel.abort()
  await assert.rejects(cancelled, { name: 'AbortError' })
  answerNow()
  store.refuse = () => undefined
  assert.deepEqual((await ask('select id from _messages')).body.rows, [['m1']])
})

test('the copies are gone when the service has stopped', async () => {
  await service.stop()
  assert.deepEqual(
    folders().filter((name) => existsSync(join(temporary, name))),
    [],
  )
})
