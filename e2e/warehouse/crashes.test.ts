// A service or a loader that is killed in the middle of loads: afterwards each message is in each of its tables once.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { getPriority } from 'node:os'
import { test } from 'node:test'
import { track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, idsIn, lakeOf, loaded, startWithLake } from './system.ts'

const COUNT = 600
const PER_REQUEST = 50
const messages = (from: number): object[] =>
  Array.from({ length: PER_REQUEST }, (_, at) => track(`m${from + at}`, { event: `Event ${at % 20}`, properties: { n: at } }))
const all = Array.from({ length: COUNT }, (_, at) => `m${at}`).sort()

/** The loader processes of a service. */
function loaders(pid: number): number[] {
  const lines = execFileSync('ps', ['-e', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap((line) => {
    const [, own, parent, args = ''] = /^ *(\d+) +(\d+) +(.*)$/.exec(line) ?? []
    return Number(parent) === pid && args.includes('switchyard-loader') ? [Number(own)] : []
  })
}

test('a loader has a lower priority than the service', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  await addLake(service, lake)
  await service.send(messages(0))
  const [pid = 0] = await eventually(
    async () => loaders(service.pid),
    (pids) => pids.length > 0,
    { what: 'a loader', deadlineMs: 60_000 },
  )
  await eventually(
    async () => getPriority(pid),
    (priority) => priority > getPriority(service.pid),
    { what: 'its priority', deadlineMs: 10_000 },
  )
})

test('a loader that is killed in the middle of loads loses nothing, and loads nothing twice', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  await addLake(service, lake, { load: { everyMs: 1_000, maxRows: 100 } })
  for (let from = 0; from < COUNT; from += PER_REQUEST) await service.send(messages(from))
  for (let kills = 0; kills < 3; kills++) {
    const found = await eventually(
      async () => loaders(service.pid),
      (pids) => pids.length > 0,
      { what: 'a loader', deadlineMs: 60_000 },
    )
    for (const pid of found) process.kill(pid, 'SIGKILL')
  }
  await loaded(service, COUNT)
  assert.deepEqual(await idsIn(lake.source, 'tracks'), all)
  assert.deepEqual(await idsIn(lake.source, '_messages'), all)
})

test('a service that is killed in the middle of loads loses nothing, and loads nothing twice', async () => {
  await using system = await startWithLake()
  let { service } = system
  const { lake } = system
  await addLake(service, lake, { load: { everyMs: 1_000, maxRows: 100 } })
  for (let from = 0; from < COUNT; from += PER_REQUEST) await service.send(messages(from))
  for (let kills = 0; kills < 2; kills++) {
    await eventually(
      async () => loaders(service.pid),
      (pids) => pids.length > 0,
      { what: 'a loader', deadlineMs: 60_000 },
    )
    service.kill('SIGKILL')
    service = await service.restart()
  }
  await loaded(service, COUNT)
  const { source } = lakeOf(service)
  assert.deepEqual(await idsIn(source, 'tracks'), all)
  assert.deepEqual(await idsIn(source, '_messages'), all)
})
