import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { accept, DAY_MS, ledgerOf, newSourceAndDestination, RecordingConsumer, track, tracks, until } from '../../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { PostgresStore } from '../store.ts'

let database: TestDatabase
let a: PostgresStore
let b: PostgresStore
let sourceId: string
let destinationId: string

before(async () => {
  database = await createDatabase()
  a = await openAt(database.url)
  b = await openAt(database.url)
  ;({ sourceId, destinationId } = await newSourceAndDestination(a))
  await until(
    () => database.query('SELECT 1'),
    () => b.configuration().destinations.has(destinationId),
    'both know the destination',
  )
})
after(async () => {
  await a.close()
  await b.close()
  await database.drop()
})

/** Sets the server's clock, as both nodes see it, while the work runs. */
async function at<T>(times: readonly [PostgresStore, number][], work: () => Promise<T>): Promise<T> {
  for (const [{ membership }, ms] of times) membership.serverMs = () => ms
  try {
    return await work()
  } finally {
    for (const [{ membership }] of times) delete (membership as { serverMs?: unknown }).serverMs
  }
}

const MIDNIGHT = Math.ceil(Date.now() / DAY_MS) * DAY_MS

test('if two nodes accept the same messages at the same time, each message is stored once', async () => {
  const owedBefore = (await ledgerOf(a, destinationId)).owed
  const batches = Array.from({ length: 20 }, () => tracks(10))
  const results = await Promise.all(
    batches.flatMap((items) => {
      // In reverse order, so that the two statements meet in the middle.
      const turned = items.map((_, at) => items[items.length - 1 - at] as (typeof items)[number])
      return [accept(a, sourceId, items, [destinationId]), accept(b, sourceId, turned, [destinationId])]
    }),
  )
  const duplicates = results.reduce((sum, result) => sum + result.duplicates.length, 0)
  assert.equal(duplicates, 200)
  assert.equal((await ledgerOf(a, destinationId)).owed - owedBefore, 200)
})

test('also around midnight, when the nodes disagree on the day', async () => {
  for (const [first, second] of [
    [MIDNIGHT - 5, MIDNIGHT + 5],
    [MIDNIGHT - 20_000, MIDNIGHT + 20_000],
    [MIDNIGHT + 5, MIDNIGHT - 5],
  ] as const) {
    const items = tracks(30)
    const results = await at(
      [
        [a, first],
        [b, second],
      ],
      () => Promise.all([accept(a, sourceId, items, [destinationId]), accept(b, sourceId, items, [destinationId])]),
    )
    assert.equal(results[0].duplicates.length + results[1].duplicates.length, 30, `${first - MIDNIGHT} and ${second - MIDNIGHT}`)
  }
})

test('a duplicate is recognized for at least one day and at most two', async () => {
  const duplicatesAt = async (id: string, ms: number): Promise<number> =>
    (await at([[a, ms]], () => accept(a, sourceId, [track(id)], [destinationId]))).duplicates.length
  for (const offset of [1, 30_000, 120_000, DAY_MS / 2, DAY_MS - 1]) {
    const id = randomUUID()
    const acceptedAt = MIDNIGHT + 10 * DAY_MS + offset
    assert.equal(await duplicatesAt(id, acceptedAt), 0)
    assert.equal(await duplicatesAt(id, acceptedAt + DAY_MS), 1, `a day later, ${offset} after midnight`)
    // Receiving a duplicate does not extend the time for which it is recognized.
    assert.equal(await duplicatesAt(id, acceptedAt + 2 * DAY_MS + 120_000), 0, `two days later, ${offset} after midnight`)
  }
})

test('no shipment is created for a destination that another node has deleted, and the skip reason says so', async () => {
  const { sourceId: source, destinationId: doomed } = await newSourceAndDestination(a)
  await until(
    () => database.query('SELECT 1'),
    () => b.configuration().destinations.has(doomed),
    'both know it',
  )
  // As if the notification had not arrived yet.
  const stale = b.configuration()
  b.configuration = () => stale
  try {
    await database.query('UPDATE switchyard.destinations SET deleted = true WHERE id = $1', [doomed])
    await accept(b, source, [track('too late')], [doomed]).catch(() => {})
  } finally {
    delete (b as { configuration?: unknown }).configuration
  }
  assert.deepEqual(
    await database.query('SELECT 1 FROM switchyard.shipments s JOIN switchyard.destinations d ON d.num = s.destination WHERE d.id = $1', [
      doomed,
    ]),
    [],
  )
})

test('a hundred concurrent batches are written with few statements', async () => {
  const consumer = new RecordingConsumer()
  consumer.reserves = false
  a.delivery.attach(consumer)
  let commits = 0
  const counting = await openAt(database.url, { onCommit: () => commits++ })
  try {
    await Promise.all(Array.from({ length: 100 }, () => accept(counting, sourceId, tracks(1), [destinationId])))
    assert.ok(commits <= 5, `${commits} commits`)
  } finally {
    await counting.close()
  }
})
