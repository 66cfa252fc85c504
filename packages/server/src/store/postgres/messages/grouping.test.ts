import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailable } from '../../store.ts'
import { Grouping, type GroupingOptions } from './grouping.ts'

interface Run {
  items: readonly number[]
  answer: (replies?: readonly (number | Error)[]) => void
  fail: (error: Error) => void
}

function rig(more: Partial<GroupingOptions<number, number>> = {}): {
  grouping: Grouping<number, number>
  runs: Run[]
  begun: () => Promise<void>
} {
  const runs: Run[] = []
  let wake: () => void = () => {}
  const grouping = new Grouping<number, number>({
    run: (items) =>
      new Promise((resolve, reject) => {
        runs.push({ items, answer: (replies = items) => resolve(replies), fail: reject })
        wake()
      }),
    depth: 1,
    early: 1,
    maxItems: 3,
    maxBytes: 100,
    waitingBytes: 1_000,
    lingerMs: 0,
    bytesOf: (item) => item,
    ...more,
  })
  return {
    grouping,
    runs,
    begun: () =>
      new Promise((resolve) => {
        wake = resolve
      }),
  }
}

test('items that are pushed while a group is running form the next group', async () => {
  const { grouping, runs, begun } = rig()
  const first = grouping.push(1)
  await begun()
  const rest = [grouping.push(2), grouping.push(3)]
  assert.deepEqual(
    runs.map(({ items }) => items),
    [[1]],
  )
  const second = begun()
  runs[0]?.answer()
  await second
  assert.deepEqual(runs[1]?.items, [2, 3])
  runs[1]?.answer()
  assert.deepEqual(await Promise.all([first, ...rest]), [1, 2, 3])
})

test('a group is limited by the number of items and by bytes, but always has at least one item', async () => {
  const { grouping, runs } = rig({ depth: 10 })
  const all = Promise.all([500, 50, 49, 2, 1, 1, 1, 1].map((item) => grouping.push(item)))
  while (runs.length < 4) await new Promise(setImmediate)
  assert.deepEqual(
    runs.map(({ items }) => items),
    [[500], [50, 49], [2, 1, 1], [1, 1]],
  )
  for (const run of runs) run.answer()
  await all
})

test('items beyond the limit of waiting bytes are rejected as unavailable', async () => {
  const { grouping, runs, begun } = rig({ waitingBytes: 10 })
  const first = grouping.push(1)
  await begun()
  const waiting = grouping.push(11)
  await assert.rejects(grouping.push(1), StoreUnavailable)
  runs[0]?.answer()
  await first
  while (runs.length < 2) await new Promise(setImmediate)
  runs[1]?.answer()
  await waiting
})

test('an item that fails makes the others of its group fail only if the store is unavailable', async () => {
  const { grouping, runs } = rig()
  const all = Promise.allSettled([1, 2, 3].map((item) => grouping.push(item)))
  while (runs.length < 1) await new Promise(setImmediate)
  runs[0]?.fail(new Error('bad'))
  for (const nth of [1, 2, 3]) {
    while (runs.length <= nth) await new Promise(setImmediate)
    if (runs[nth]?.items[0] === 2) runs[nth]?.fail(new Error('bad'))
    else runs[nth]?.answer()
  }
  assert.deepEqual(
    (await all).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  const away = Promise.allSettled([1, 2].map((item) => grouping.push(item)))
  while (runs.length < 5) await new Promise(setImmediate)
  runs[4]?.fail(new StoreUnavailable('away'))
  assert.ok((await away).every((result) => result.status === 'rejected' && result.reason instanceof StoreUnavailable))
  assert.equal(runs.length, 5)
})

test('an error in place of a reply rejects only that item', async () => {
  const { grouping, runs } = rig()
  const all = Promise.allSettled([1, 2].map((item) => grouping.push(item)))
  while (runs.length < 1) await new Promise(setImmediate)
  runs[0]?.answer([new Error('mine'), 2])
  assert.deepEqual(
    (await all).map(({ status }) => status),
    ['rejected', 'fulfilled'],
  )
})

test('closing finishes the items that were pushed before, and rejects new ones', async () => {
  const { grouping, runs } = rig({ lingerMs: 60_000 })
  const given = grouping.push(1)
  const closed = grouping.close()
  await assert.rejects(grouping.push(2), StoreUnavailable)
  assert.deepEqual(runs[0]?.items, [1])
  runs[0]?.answer()
  await closed
  assert.equal(await given, 1)
})
