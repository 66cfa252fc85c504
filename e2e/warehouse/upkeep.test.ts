// The upkeep of a lake through the service: small files of past days are merged and old days are removed, also when the processes that do it are killed.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createWallClock } from '../machine-faults/wall-clock.ts'
import { childrenOf, killProcess } from '../system/child-processes.ts'
import { type Service, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, idsIn, type Lake, loaded, startWithLake } from './system.ts'

interface Upkeep {
  state: 'never' | 'waiting' | 'running' | 'done'
  startedAt: string | null
  finishedAt: string | null
  changed: number
  problems: { code: string; message: string }[]
  error: string | null
}

const DAY_MS = 86_400_000
const upkeepOf = (service: Service, id: string): Promise<Upkeep> => service.api(`/destinations/${id}/upkeep`)
const begin = (service: Service, id: string): Promise<Upkeep> => service.api(`/destinations/${id}/upkeep`, { method: 'POST', body: {} })
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `m${at}`).sort()

/** Loads messages one by one, so that each is a file of its own. */
async function loadOneByOne(service: Service, destinationId: string, from: number, until: number): Promise<void> {
  for (let at = from; at < until; at++) {
    await service.send([track(`m${at}`, { event: 'Order Completed', userId: `user ${at}`, properties: { n: at } })])
    await service.api(`/destinations/${destinationId}/load`, { method: 'POST', body: {} })
    await loaded(service, at + 1)
  }
}

function daysOf({ source }: Lake, table: string): Record<string, number> {
  const { files } = JSON.parse(readFileSync(join(source, table, '_manifest.json'), 'utf8')) as { files: { path: string }[] }
  const days: Record<string, number> = {}
  for (const { path } of files) days[path.slice(4, 14)] = (days[path.slice(4, 14)] ?? 0) + 1
  return days
}

const until = (service: Service, id: string, isIt: (upkeep: Upkeep) => boolean, what: string): Promise<Upkeep> =>
  eventually(() => upkeepOf(service, id), isIt, { what, deadlineMs: 120_000 })

test('files of past days are merged, and days that are not kept are removed, as the manifest says', async () => {
  using clock = createWallClock()
  await using system = await startWithLake(clock)
  const { service, lake } = system
  const id = await addLake(service, lake, { load: { everyMs: 3_600_000 } })
  assert.equal((await upkeepOf(service, id)).state, 'never')
  clock.jump(-2 * DAY_MS)
  const old = new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10)
  await loadOneByOne(service, id, 0, 4)
  clock.jump(0)
  const today = new Date().toISOString().slice(0, 10)
  await loadOneByOne(service, id, 4, 6)
  assert.deepEqual(daysOf(lake, 'tracks'), { [old]: 4, [today]: 2 })

  await begin(service, id)
  const merged = await until(service, id, ({ state }) => state === 'done', 'the end of the upkeep')
  assert.deepEqual([merged.problems, merged.error], [[], null])
  for (const table of ['tracks', 'order_completed', '_messages']) {
    assert.deepEqual(daysOf(lake, table), { [old]: 1, [today]: 2 }, table)
    assert.deepEqual(await idsIn(lake.source, table), idsOf(6), table)
  }
  // Three tables, four files each.
  assert.equal(merged.changed, 12)

  const kept = { warehouse: { engine: 'parquet', url: lake.url, keepDays: 1 } }
  await service.api(`/destinations/${id}`, { method: 'PATCH', body: kept })
  await begin(service, id)
  await until(service, id, ({ state, startedAt }) => state === 'done' && startedAt !== merged.startedAt, 'the second run')
  assert.deepEqual(daysOf(lake, 'tracks'), { [today]: 2 })
  assert.deepEqual(await idsIn(lake.source, '_messages'), ['m4', 'm5'])
})

/** The process that looks after the tables of a service, if it runs. */
function upkeepProcess({ pid }: Service): number | undefined {
  return childrenOf(pid).find((each) =>
    execFileSync('ps', ['-o', 'args=', '-p', String(each)], { encoding: 'utf8' }).includes('switchyard-upkeep'),
  )
}

test('an upkeep whose process and service are killed goes on, while messages are loaded and a user is deleted', async () => {
  using clock = createWallClock()
  await using system = await startWithLake(clock)
  let { service } = system
  const { lake } = system
  const id = await addLake(service, lake, { load: { everyMs: 3_600_000 } })
  clock.jump(-3 * DAY_MS)
  await loadOneByOne(service, id, 0, 8)
  clock.jump(0)
  await begin(service, id)
  const pid = await eventually(
    async () => upkeepProcess(service),
    (found) => found !== undefined,
    { what: 'a process of the upkeep', deadlineMs: 60_000 },
  )
  killProcess(pid as number)
  await loadOneByOne(service, id, 8, 9)
  await begin(service, id)
  service.kill('SIGKILL')
  service = await service.restart()
  await service.api('/deletions', { method: 'POST', body: { userIds: ['user 3'] } })
  await begin(service, id)
  await service.send([track('m9', { event: 'Order Completed' })])
  await service.api(`/destinations/${id}/load`, { method: 'POST', body: {} })
  await until(service, id, ({ state }) => state === 'done', 'the end of the upkeep')
  // With the deletion.
  await service.settled(11, { deadlineMs: 120_000 })
  const left = idsOf(10).filter((each) => each !== 'm3')
  for (const table of ['tracks', 'order_completed', '_messages']) assert.deepEqual(await idsIn(lake.source, table), left, table)
})
