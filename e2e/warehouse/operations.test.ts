// What operators do with a warehouse: pausing it, deleting it while it is loaded, sending what expires to dead letters, keeping messages past the retention
// time, replaying an archive as an editor of one source, combining it with rules of sources, and copying it to another installation.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { readTable } from '../../packages/warehouse/src/fixtures/lake-reading.ts'
import { createWallClock } from '../machine-faults/wall-clock.ts'
import { type Result, switchyardWith } from '../system/command-line.ts'
import { startReceiver } from '../system/receiver.ts'
import { callControl, type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, idsIn, LOAD, loaded, startWithLake } from './system.ts'

const WAITING = { deadlineMs: 300_000 }
const DAY_MS = 86_400_000
const tracks = (count: number, from = 0): object[] => Array.from({ length: count }, (_, at) => track(`m${from + at}`))
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `m${at}`).sort()

test('what a paused warehouse is owed is kept past the retention time, and is loaded when it is resumed', async () => {
  using clock = createWallClock()
  await using system = await startWithLake({ execArgv: clock.execArgv, env: { SWITCHYARD_RETENTION_DAYS: '7' } })
  const { lake } = system
  let { service } = system
  const id = await addLake(service, lake, { paused: true })
  await service.send(tracks(20))
  await service.stop()
  clock.jump(10 * DAY_MS)
  // Old messages are dropped at each start.
  service = await service.restart()
  await service.send(tracks(1, 20))
  assert.deepEqual(
    (await service.ledger()).filter(({ destinationId }) => destinationId === id).map(({ pending }) => pending),
    [21],
  )
  await service.api(`/destinations/${id}`, { method: 'PATCH', body: { paused: false } })
  await service.settled(21, WAITING)
  assert.deepEqual(await idsIn(lake.source, 'tracks'), idsOf(21))
})

test('a warehouse that is deleted while it is loaded leaves the books balanced, and its place to nobody else', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const id = await addLake(service, lake, { load: { everyMs: 1_000, maxRows: 20 } })
  for (let from = 0; from < 200; from += 20) await service.send(tracks(20, from))
  const row = async () => (await service.ledger()).find(({ destinationId }) => destinationId === id)
  await eventually(row, (found) => (found?.delivered ?? 0) > 0, { what: 'the first load', ...WAITING })
  await service.api(`/destinations/${id}`, { method: 'DELETE' })
  await service.settled(undefined, WAITING)
  const after = await service.ledger({ recount: true })
  assert.deepEqual(after, await service.ledger())
  for (const { owed, delivered, failed, expired, cancelled, pending } of after)
    assert.equal(owed, delivered + failed + expired + cancelled + pending)
  const rows = await idsIn(lake.source, 'tracks')
  assert.equal(new Set(rows).size, rows.length)
  // The folder has the tables of another destination.
  const next = await addLake(service, lake, { name: 'Next', retryWindowMs: 1_000 })
  await service.send(tracks(1, 500))
  await service.settled(undefined, WAITING)
  const [delivery] = await service.deliveries(`destinationId=${next}`)
  assert.deepEqual([delivery?.state, delivery?.reason], ['expired', 'warehouse_place_taken'])
})

test('messages of a table that cannot be loaded in time become dead letters, and the others are loaded', async () => {
  await using letters = await startReceiver()
  await using system = await startWithLake()
  const { service, lake } = system
  const deadLetter = await service.destination({ urls: [letters.url], name: 'Letters', filter: { types: { deny: ['track'] } } })
  await addLake(service, lake, { deadLetter, retryWindowMs: 1_000 })
  mkdirSync(lake.source, { recursive: true })
  writeFileSync(join(lake.source, 'cart_viewed'), '')
  await service.send([track('good', { event: 'Order Completed' }), track('bad', { event: 'Cart Viewed' })])
  await letters.until(() => letters.arrivals.length > 0, { what: 'the dead letter', ...WAITING })
  const [letter] = letters.arrivals.flatMap(({ messages }) => messages)
  assert.deepEqual([letter?.type, (letter?.['message'] as { messageId?: string } | undefined)?.messageId], ['dead_letter', 'bad'])
  await loaded(service)
  assert.deepEqual(await idsIn(lake.source, 'order_completed'), ['good'])
  rmSync(join(lake.source, 'cart_viewed'))
})

test('an editor of one source replays only messages of this source from an archive', async () => {
  await using receiver = await startReceiver()
  await using system = await startWithLake()
  const { service, lake } = system
  const other = await service.api<{ id: string; writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'Other' } })
  const sourceIds = [service.sourceId, other.id]
  const lakeId = await addLake(service, lake, { sourceIds })
  await service.send(tracks(5))
  const authorization = `Basic ${Buffer.from(`${other.writeKeys[0]}:`).toString('base64')}`
  const answer = await fetch(`${service.url}/v1/batch`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ batch: tracks(5, 100) }),
  })
  assert.equal(answer.status, 200, await answer.text())
  await loaded(service, 10)
  const destinationId = await service.destination({ urls: [receiver.url], name: 'New', sourceIds })
  const role = { name: 'editor', role: 'editor', sources: [other.id] }
  const { token } = await service.api<{ token: string }>('/tokens', { method: 'POST', body: role })
  const archive = { destinationId: lakeId, after: '2020-01-01T00:00:00Z', before: '2100-01-01T00:00:00Z' }
  const ask = (body: object) => callControl<{ id: string; total: number }>(service.url, token, '/replays', { method: 'POST', body })
  await assert.rejects(ask({ destinationId, archive: { ...archive, sourceId: service.sourceId } }), /archive\.sourceId/)
  const job = await ask({ destinationId, archive })
  assert.equal(job.total, 5)
  await eventually(
    () => callControl<{ state: string; outcomes: Record<string, number> }>(service.url, token, `/replays/${job.id}`),
    ({ state, outcomes }) => state === 'finished' && outcomes['pending'] === 0,
    { what: 'the end of the job', ...WAITING },
  )
  assert.deepEqual([...receiver.byMessageId.keys()].sort(), ['m100', 'm101', 'm102', 'm103', 'm104'])
})

test('a warehouse and its archive have what privacy rules leave, not what people refused, and what is released from quarantine once', async () => {
  const raw = 'ada@example.com'
  await using receiver = await startReceiver()
  await using system = await startWithLake()
  const { service, lake } = system
  const privacy = [
    { path: 'userId', action: 'hash' },
    { path: 'properties.email', action: 'hash' },
    { path: 'properties.secret', action: 'drop' },
  ]
  await service.api(`/sources/${service.sourceId}`, { method: 'PATCH', body: { privacy } })
  const schema = { type: 'object', properties: { total: { type: 'number' } } }
  const rule = { type: 'track', event: 'Order Completed', mode: 'quarantine', schema }
  await service.api('/plans', { method: 'POST', body: { name: 'Plan', rules: [rule], sourceIds: [service.sourceId] } })
  const lakeId = await addLake(service, lake)
  const order = (id: string, total: unknown, more: object = {}): object => ({
    ...track(id, { event: 'Order Completed', properties: { total, email: raw, secret: raw } }),
    userId: raw,
    ...more,
  })
  const sent = [
    order('good', 5),
    order('held', 'five'),
    order('refused', 6, { integrations: { Lake: false } }),
    order('no warehouses', 7, { integrations: { Warehouses: false } }),
    order('not for the tool', 8, { integrations: { Tool: false } }),
  ]
  await service.send(sent)
  await loaded(service, 2)
  assert.deepEqual(await idsIn(lake.source, 'tracks'), ['good', 'not for the tool'])
  await service.api('/quarantine/release', { method: 'POST', body: { sourceId: service.sourceId } })
  await loaded(service, 3)
  const released = await readTable(lake.source, 'order_completed')
  assert.deepEqual(Object.fromEntries(released.map(({ id, total }) => [id, total])), { good: 5, held: null, 'not for the tool': 8 })
  const unfit = released.find(({ id }) => id === 'held')?.['_unfit']
  assert.deepEqual(JSON.parse(String(unfit)), { 'properties.total': 'five' })
  // Each client sends everything again: the service knows the messages, also those that were held.
  await service.send(sent)
  await loaded(service, 3)
  for (const table of ['tracks', 'order_completed', '_messages'])
    assert.deepEqual(await idsIn(lake.source, table), ['good', 'held', 'not for the tool'], table)
  const [first] = released
  assert.match(String(first?.['email']), /^[0-9a-f]{64}$/)
  assert.match(String(first?.['user_id']), /^[0-9a-f]{64}$/)
  assert.equal('secret' in (first ?? {}), false)
  assert.equal(JSON.stringify([released, await readTable(lake.source, '_messages')]).includes(raw), false)

  // From the archive, values are not hashed again, and the transformation and the choices of the people apply.
  const code = 'export default (message) => ({ ...message, properties: { email: message.properties.email, transformed: true } })'
  const destinationId = await service.destination({ urls: [receiver.url], name: 'Tool', transformation: { code } })
  const archive = { destinationId: lakeId, after: '2020-01-01T00:00:00Z', before: '2100-01-01T00:00:00Z' }
  const { id } = await service.api<{ id: string }>('/replays', { method: 'POST', body: { destinationId, archive } })
  const job = await eventually(
    () => service.api<{ state: string; outcomes: Record<string, number>; skippedReasons: object }>(`/replays/${id}`),
    ({ state, outcomes }) => state === 'finished' && outcomes['pending'] === 0,
    { what: 'the end of the job', ...WAITING },
  )
  assert.deepEqual([job.outcomes['delivered'], job.skippedReasons], [2, { integrations_disabled: 1 }])
  assert.deepEqual([...receiver.byMessageId.keys()].sort(), ['good', 'held'])
  for (const { userId, properties } of receiver.arrivals.flatMap(({ messages }) => messages))
    assert.deepEqual([userId, properties], [first?.['user_id'], { email: first?.['email'], transformed: true }])
})

test('a configuration with warehouses is applied to an empty installation, with its secrets from the environment', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-lakes-'))
  try {
    const env = { SWITCHYARD_LAKE_DIR: folder }
    await using one = await startService({ env })
    await using two = await startService({ env })
    const place = join(folder, 'main')
    mkdirSync(place)
    const add = (name: string, warehouse: object): Promise<unknown> =>
      one.api('/destinations', {
        method: 'POST',
        body: { type: 'warehouse', name, sourceIds: [one.sourceId], warehouse, load: LOAD, enabled: name === 'Lake' },
      })
    await add('Lake', { engine: 'parquet', url: pathToFileURL(place).href, keepDays: 30 })
    await add('Bucket', { engine: 'parquet', url: 's3://bucket/prefix', accessKeyId: 'key', secretAccessKey: 'hidden-1' })
    await add('Database', { engine: 'postgres', url: 'postgres://loader:hidden-2@127.0.0.1:1/analytics' })
    await add('House', { engine: 'clickhouse', url: 'http://127.0.0.1:1', database: 'd', user: 'u', password: 'hidden-3' })
    const run = async (service: Service, args: string[], more: Record<string, string> = {}): Promise<Result> => {
      const result = await switchyardWith(more, service, ...args)
      assert.doesNotMatch(result.stdout + result.stderr, /hidden-/)
      return result
    }
    const file = join(folder, 'switchyard.yaml')
    const exported = await run(one, ['export', file])
    assert.equal(exported.code, 0, exported.stderr)
    const text = readFileSync(file, 'utf8')
    assert.doesNotMatch(text, /hidden-/)
    const names = [...new Set([...text.matchAll(/\$\{(\w+_WAREHOUSE_\w+)\}/g)].map(([, name = '']) => name))]
    assert.equal(names.length, 3, text)
    const secretOf = (name: string): string =>
      name.startsWith('BUCKET') ? 'hidden-1' : name.startsWith('DATABASE') ? 'hidden-2' : 'hidden-3'
    const secrets = Object.fromEntries(names.map((name) => [name, secretOf(name)]))
    const without = await run(two, ['apply', file])
    assert.equal(without.code, 2, without.stdout + without.stderr)
    const applied = await run(two, ['apply', file], secrets)
    assert.equal(applied.code, 0, applied.stderr)
    for (const known of [secrets, {}]) assert.equal((await run(two, ['apply', file, '--dry-run'], known)).code, 0, 'nothing would change')
    assert.equal((await run(two, ['export'])).stdout, text, 'the two installations export the same')
    const [secret = ''] = names
    const changed = await run(two, ['apply', file, '--dry-run'], { ...secrets, [secret]: 'hidden-new' })
    assert.match(changed.stdout, /^~ destination \w+\n {4}warehouse: ••• → ••• \(changed\)$/m)
    // It has the write keys of the other one.
    const headers = { authorization: `Basic ${btoa(`${one.writeKey}:`)}`, 'content-type': 'application/json' }
    const answer = await fetch(`${two.url}/v1/batch`, { method: 'POST', headers, body: JSON.stringify({ batch: tracks(3) }) })
    assert.equal(answer.status, 200, await answer.text())
    await two.settled(3, WAITING)
    assert.deepEqual(await idsIn(join(place, 'default'), 'tracks'), idsOf(3))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
