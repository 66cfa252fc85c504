// What operators do with a warehouse: pausing it, deleting it while it is loaded, sending what expires to dead letters, keeping messages past the retention
// time, and replaying an archive as an editor of one source.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createWallClock } from '../machine-faults/wall-clock.ts'
import { startReceiver } from '../system/receiver.ts'
import { callControl, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, idsIn, loaded, startWithLake } from './system.ts'

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
