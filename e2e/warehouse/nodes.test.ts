// Two nodes on one PostgreSQL store with one lake: a load, a deletion and a replay from the archive are each done once, also if a node is killed meanwhile.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { readTable } from '../../packages/warehouse/src/fixtures/lake-reading.ts'
import { type Cluster, startCluster } from '../cluster/cluster.ts'
import { startReceiver } from '../system/receiver.ts'
import { track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, idsIn, type Lake } from './system.ts'

const COUNT = 400
const PER_REQUEST = 25
const WAITING = { deadlineMs: 300_000 }
const ids = Array.from({ length: COUNT }, (_, at) => `m${at}`).sort()

interface Job {
  id: string
  state: string
  replayed: number
  outcomes: Record<string, number>
}

let cluster: Cluster
let lake: Lake
let lakeId: string
const folder = mkdtempSync(join(tmpdir(), 'switchyard-lakes-'))
before(async () => {
  cluster = await startCluster({ nodes: 2, service: () => ({ env: { SWITCHYARD_LAKE_DIR: folder } }) })
  const place = join(folder, 'main')
  mkdirSync(place)
  lake = { folder: place, url: pathToFileURL(place).href, source: join(place, 'default') }
  lakeId = await addLake(cluster.node(1).service, lake, { load: { everyMs: 1_000, maxRows: 50 } })
  await cluster.known(`/destinations/${lakeId}`)
})
after(async () => {
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

test('each message is in its tables once, although both nodes accept messages and one is killed during loads', async () => {
  for (let from = 0; from < COUNT; from += PER_REQUEST) {
    const node = cluster.node(from % (2 * PER_REQUEST) === 0 ? 1 : 2)
    const sent = Array.from({ length: PER_REQUEST }, (_, at) => track(`m${from + at}`, { event: `Event ${at % 5}`, properties: { n: at } }))
    assert.equal((await node.service.send(sent)).status, 200)
  }
  const other = cluster.node(2).service
  const delivered = async (): Promise<number> =>
    (await other.ledger()).find(({ destinationId }) => destinationId === lakeId)?.delivered ?? 0
  await eventually(delivered, (count) => count > 0, { what: 'the first load', ...WAITING })
  await cluster.node(1).kill()
  await other.settled(COUNT, WAITING)
  assert.deepEqual(await idsIn(lake.source, 'tracks'), ids)
  assert.deepEqual(await idsIn(lake.source, '_messages'), ids)
  await cluster.node(1).start()
})

test('a job with messages of an archive is continued by the other node, and sends each message once', async () => {
  await using receiver = await startReceiver()
  const [first, second] = [cluster.node(1).service, cluster.node(2).service]
  const destinationId = await first.destination({ urls: [receiver.url], name: 'New' })
  await cluster.known(`/destinations/${destinationId}`)
  const archive = { destinationId: lakeId, after: '2020-01-01T00:00:00Z', before: '2100-01-01T00:00:00Z' }
  const { id } = await first.api<Job>('/replays', { method: 'POST', body: { destinationId, archive, ratePerSecond: 40 } })
  const job = (): Promise<Job> => second.api(`/replays/${id}`)
  await eventually(job, ({ replayed }) => replayed > 40, { what: 'the first messages', ...WAITING })
  await cluster.node(1).kill()
  const isOver = ({ state, outcomes }: Job): boolean => state === 'finished' && outcomes['pending'] === 0
  const finished = await eventually(job, isOver, { what: 'the end of the job', ...WAITING })
  assert.deepEqual([finished.replayed, finished.outcomes['delivered']], [COUNT, COUNT])
  assert.deepEqual([...receiver.byMessageId.keys()].sort(), ids)
  const row = (await second.ledger({ recount: true })).find((each) => each.destinationId === destinationId)
  assert.deepEqual([row?.owed, row?.delivered, row?.pending], [COUNT, COUNT, 0])
  await second.api(`/destinations/${destinationId}`, { method: 'DELETE' })
  await cluster.node(1).start()
})

test('the deletion of a user reaches the tables, whichever node accepts it', async () => {
  const { service } = cluster.node(2)
  const userIds = ['user of m7', 'user of m300']
  const { id } = await service.api<{ id: string }>('/deletions', { method: 'POST', body: { userIds } })
  const stateOf = (): Promise<{ state: string }> => service.api(`/deletions/${id}`)
  await eventually(stateOf, ({ state }) => state === 'finished', { what: 'the end of the deletion', ...WAITING })
  const left = ids.filter((each) => each !== 'm7' && each !== 'm300')
  for (const table of ['tracks', '_messages']) assert.deepEqual(await idsIn(lake.source, table), left, table)
  const text = JSON.stringify(await readTable(lake.source, '_messages'))
  for (const userId of userIds) assert.ok(!text.includes(`"${userId}"`), userId)
})

test('a request for a load is carried out if the other node is killed, whichever of them makes the loads', async () => {
  const place = join(folder, 'asked')
  mkdirSync(place)
  const asked: Lake = { folder: place, url: pathToFileURL(place).href, source: join(place, 'default') }
  const id = await addLake(cluster.node(1).service, asked, { name: 'Asked', load: { everyMs: 3_600_000 } })
  const path = `/destinations/${id}`
  await cluster.known(path)
  for (const [at, [killed, left]] of (
    [
      [1, 2],
      [2, 1],
    ] as const
  ).entries()) {
    const { service } = cluster.node(left)
    assert.equal((await service.send([track(`asked-${at}`, {})])).status, 200)
    // While it is paused, no node carries out the request.
    await service.api(path, { method: 'PATCH', body: { paused: true } })
    await service.api(`${path}/load`, { method: 'POST' })
    await cluster.node(killed).kill()
    await service.api(path, { method: 'PATCH', body: { paused: false } })
    const pending = async (): Promise<number> =>
      (await service.ledger()).find(({ destinationId }) => destinationId === id)?.pending ?? Number.NaN
    await eventually(pending, (count) => count === 0, { what: `the load without node ${killed}`, ...WAITING })
    await cluster.node(killed).start()
    await cluster.known(path)
  }
  assert.deepEqual(await idsIn(asked.source, 'tracks'), ['asked-0', 'asked-1'])
})
