// Days that are dropped whole, what stays of them, and who has to wait for it. What holds for every adapter is in
// ../../conformance/retention.ts, where everything is of today and goes by rows.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import pg from 'pg'
import {
  accept,
  claim,
  claimOne,
  counts,
  deliveriesOf,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSourceAndDestination,
  settle,
  settleAll,
  track,
  tracks,
  until,
} from '../../conformance/fixtures.ts'
import type { Store } from '../../store.ts'
import { Membership } from '../cluster/membership.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import { parsePostgresAddress } from '../session/address.ts'
import { Database } from '../session/database.ts'
import type { PostgresStore } from '../store.ts'
import { createPartitions, DAY_MS, dayOf, KEEP_PARTITIONS, partitionName, preparePartitions, TABLES } from './partitions.ts'

let database: TestDatabase
let connections: Database

beforeEach(async () => {
  database = await createDatabase()
  connections = new Database({ address: parsePostgresAddress(database.url), connections: 4 })
})

afterEach(async () => {
  connections.close()
  await database.drop()
})

const today = (): number => dayOf(Date.now())

/** A node whose rows are of some days ago; those days have partitions, as they would have had. */
async function openInThePast(daysAgo: number): Promise<PostgresStore> {
  // The first start makes the schema.
  await (await openAt(database.url)).close()
  for (const table of TABLES) await createPartitions(connections, table, [today() - daysAgo, today() - daysAgo + 1])
  const serverMs = (): number => Date.now() - daysAgo * DAY_MS
  const mocked = mock.method(Membership.prototype, 'serverMs', serverMs)
  try {
    const store = await openAt(database.url)
    store.membership.serverMs = serverMs
    return store
  } finally {
    mocked.mock.restore()
  }
}

async function partitions(table = 'segments'): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'switchyard.${table}'::regclass ORDER BY 1`,
  )
  return rows.map(({ name }) => name)
}

async function rowsIn(table: string): Promise<number> {
  return (await database.query<{ count: number }>(`SELECT count(*)::integer AS count FROM switchyard.${table}`))[0]?.count as number
}

/** The books and what rows and archive add up to, as of one moment, over and over. */
function recounting(): { stop: () => Promise<number> } {
  const stopping = new AbortController()
  let times = 0
  const work = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    try {
      await client.query('SET search_path = switchyard')
      while (!stopping.signal.aborted) {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
        await client.query(KEEP_PARTITIONS)
        const { rows } = await client.query<{ is_so: boolean; books: number; counted: number }>(`
          WITH counted AS (
            SELECT (SELECT coalesce(sum((r->>3)::int - CASE WHEN r->2 = '0' THEN coalesce(cardinality(absent), 0) ELSE 0 END), 0) FROM segments, jsonb_array_elements(routes::jsonb->'s') r)
                 + (SELECT count(*) FROM replays) + (SELECT coalesce(sum(owed), 0) FROM ledger_archive) AS owed,
              (SELECT coalesce(sum(delivered), 0) FROM attempts) + (SELECT coalesce(sum(delivered), 0) FROM ledger_archive) AS delivered,
              (SELECT coalesce(sum(failed), 0) FROM attempts) + (SELECT coalesce(sum(failed), 0) FROM ledger_archive) AS failed
          ), books AS (
            SELECT (SELECT coalesce(sum(owed), 0) FROM ledger) + (SELECT coalesce(sum(counts[1]), 0) FROM deltas WHERE kind = 0) AS owed,
              (SELECT coalesce(sum(delivered), 0) FROM ledger) + (SELECT coalesce(sum(counts[2]), 0) FROM deltas WHERE kind = 0) AS delivered,
              (SELECT coalesce(sum(failed), 0) FROM ledger) + (SELECT coalesce(sum(counts[4]), 0) FROM deltas WHERE kind = 0) AS failed
          ) SELECT to_jsonb(counted) = to_jsonb(books) AS is_so, to_jsonb(books) AS books, to_jsonb(counted) AS counted FROM counted, books`)
        await client.query('COMMIT')
        assert.ok(rows[0]?.is_so, JSON.stringify(rows))
        times++
      }
    } finally {
      await client.end()
    }
  }
  const running = work()
  running.catch(() => {})
  return {
    async stop() {
      stopping.abort()
      await running
      return times
    },
  }
}

test('partitions are there for the days around today and the week to come, made once by nodes that start together', async () => {
  const stores = await Promise.all([openAt(database.url), openAt(database.url), openAt(database.url)])
  await Promise.all(stores.map((store) => store.close()))
  for (const table of TABLES) {
    const expected = Array.from({ length: 9 }, (_, at) => partitionName(table, today() - 1 + at))
    assert.deepEqual(await partitions(table), [...expected, `${table}_rest`])
  }
  // The parent's indexes are those of the partitions, not copies beside them.
  const loose = await database.query(
    "SELECT c.relname FROM pg_class c JOIN pg_index x ON x.indexrelid = c.oid JOIN pg_class t ON t.oid = x.indrelid WHERE t.relispartition AND t.relname ~ '_2[0-9]{7}$' AND t.relnamespace = 'switchyard'::regnamespace AND NOT c.relispartition",
  )
  assert.deepEqual(loose, [])
  const before = connections.roundTrips
  await preparePartitions(connections)
  assert.equal(connections.roundTrips - before, 1, 'one statement when all are there')
})

test('a day that has rows in the rest gets no partition, and its rows are found as ever', async () => {
  const store = await openAt(database.url)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await store.close()
  const day = today() + 3
  for (const table of TABLES) await database.query(`DROP TABLE switchyard.${partitionName(table, day)}`)
  await database.query(
    `INSERT INTO switchyard.segments (seq, source, received_at, count, browser, routes, keys, body)
     SELECT $1, num, 0, 0, false, '{"s":[]}', '', '' FROM switchyard.sources`,
    [String(BigInt(day * DAY_MS) << 21n)],
  )
  await preparePartitions(connections)
  assert.ok(!(await partitions('segments')).includes(partitionName('segments', day)))
  assert.ok((await partitions('attempts')).includes(partitionName('attempts', day)))
  assert.equal(await rowsIn('segments_rest'), 1)
  const again = await openAt(database.url)
  await accept(again, sourceId, tracks(1), [destinationId])
  await again.close()
})

test('a start does not wait for somebody who reads for long to make the partition of a day to come', async () => {
  await (await openAt(database.url)).close()
  const name = partitionName('segments', today() + 7)
  await database.query(`DROP TABLE switchyard.${name}`)
  const reader = new pg.Client({ connectionString: database.url })
  await reader.connect()
  try {
    await reader.query('BEGIN')
    await reader.query('SELECT count(*) FROM switchyard.segments')
    await (await openAt(database.url)).close()
    assert.ok(!(await partitions()).includes(name))
    await reader.query('COMMIT')
    await preparePartitions(connections)
    assert.ok((await partitions()).includes(name))
  } finally {
    await reader.end()
  }
})

test('days before the line go whole, the books add up at every moment, and what is owed stays until it is not', async () => {
  const past = await openInThePast(10)
  const { sourceId, destinationId } = await newSourceAndDestination(past)
  const { id: other } = await newDestination(past, sourceId)
  for (let at = 0; at < 60; at += 3) await Promise.all([0, 1, 2].map(() => accept(past, sourceId, tracks(3), [destinationId, other])))
  const doubled = tracks(2)
  await accept(past, sourceId, [...doubled, track('once more')], [destinationId])
  await accept(past, sourceId, [...doubled, track('and more')], [destinationId])
  const { shipments } = await claim(past, destinationId)
  for (const [at, claimed] of shipments.entries()) await settle(past, claimed, at % 4 === 0 ? 'failed' : 'delivered')
  await settleAll(past, other, 'delivered')
  await accept(past, sourceId, tracks(3, 'kept'), [destinationId, other])
  await settleAll(past, other, 'delivered')
  const partly = await claimOne(past, destinationId)
  const [ended, waiting] = deliveriesOf(partly.shipment) as [string, string]
  await settle(past, partly, (delivery) => (delivery === ended ? 'failed' : 'retry'))
  await accept(past, sourceId, tracks(2, 'fresh'), [destinationId])
  assert.ok((await rowsIn(partitionName('segments', today() - 10))) > 60)
  assert.equal(await rowsIn('segments_rest'), 0)
  await past.close()

  const store = await openAt(database.url)
  try {
    const before = [await ledgerOf(store, destinationId), await ledgerOf(store, other)]
    const running = recounting()
    await store.dropExpired(Date.now())
    assert.ok((await running.stop()) > 0)
    assert.deepEqual([await ledgerOf(store, destinationId), await ledgerOf(store, other)], before)
    for (const table of TABLES)
      assert.ok((await partitions(table)).every((name) => name.endsWith('rest') || name >= partitionName(table, today() - 7)))
    assert.equal(await rowsIn('segments'), 2)
    assert.equal(await rowsIn('segments_rest'), 2)
    assert.equal((await store.history.delivery(ended))?.state, 'failed')
    assert.equal((await store.history.delivery(waiting))?.state, 'pending')
    // Once more changes nothing.
    await store.dropExpired(Date.now())
    assert.equal(await rowsIn('segments_rest'), 2)
    const { shipments: owed } = await claim(store, destinationId, { nowMs: NOW_MS * 2 })
    assert.deepEqual(new Set(owed.flatMap(messageIdsOf)), new Set(['fresh-0', 'fresh-1', 'kept-1', 'kept-2']))
    for (const claimed of owed) await settle(store, claimed, 'delivered')
    const after = await ledgerOf(store, destinationId)
    await store.dropExpired(Date.now())
    for (const table of TABLES) assert.equal(await rowsIn(`${table}_rest`), 0, table)
    assert.deepEqual(await ledgerOf(store, destinationId), after)
    assert.equal(after.pending, 0)
  } finally {
    await store.close()
  }
})

test('a day of which much is owed goes by rows, and whole when it is not any more', async () => {
  const past = await openInThePast(9)
  const { sourceId, destinationId } = await newSourceAndDestination(past)
  const { id: dead } = await newDestination(past, sourceId)
  await Promise.all(Array.from({ length: 1_200 }, () => accept(past, sourceId, tracks(1), [destinationId, dead])))
  await Promise.all(Array.from({ length: 300 }, () => accept(past, sourceId, tracks(1), [destinationId])))
  const { shipments } = await claim(past, destinationId)
  await Promise.all(shipments.map((claimed) => settle(past, claimed, 'delivered')))
  await past.close()
  const day = partitionName('segments', today() - 9)
  assert.equal(await rowsIn(day), 1_500)
  const store = await openAt(database.url)
  try {
    const running = recounting()
    await store.dropExpired(Date.now())
    await running.stop()
    assert.equal(await rowsIn(day), 1_200)
    assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: 1_500, delivered: 1_500 }))
    assert.deepEqual(await ledgerOf(store, dead), counts({ owed: 1_200, pending: 1_200 }))
    assert.equal(await rowsIn('attempts'), 1_200, 'with how their other deliveries ended')
    const owed = await claim(store, dead)
    await Promise.all(owed.shipments.map((claimed) => settle(store, claimed, 'delivered')))
    await store.dropExpired(Date.now())
    assert.ok(!(await partitions()).includes(day))
    assert.deepEqual(await ledgerOf(store, dead), counts({ owed: 1_200, delivered: 1_200 }))
  } finally {
    await store.close()
  }
})

test('nothing that is replayed while its day is dropped is lost', async () => {
  const past = await openInThePast(9)
  const { sourceId, destinationId } = await newSourceAndDestination(past)
  await Promise.all(Array.from({ length: 300 }, () => accept(past, sourceId, tracks(1), [destinationId])))
  const { shipments } = await claim(past, destinationId)
  await Promise.all(shipments.map((claimed) => settle(past, claimed, 'failed')))
  await past.close()
  const store = await openAt(database.url)
  try {
    const deliveries = shipments.flatMap(({ shipment }) => deliveriesOf(shipment))
    let replayed = 0
    const replaying = (async () => {
      for (let at = 0; at < deliveries.length; at += 4) {
        const results = await Promise.all(deliveries.slice(at, at + 4).map((delivery) => store.replays.replay(delivery)))
        replayed += results.filter(({ ok }) => ok).length
        for (const result of results)
          assert.ok(result.ok || result.reason === 'not_found' || result.reason === 'message_gone', JSON.stringify(result))
      }
    })()
    await store.replays.replay(deliveries.at(-1) as string)
    await store.dropExpired(Date.now())
    await replaying
    const owed = await claim(store, destinationId)
    for (const each of owed.shipments)
      assert.ok(
        messageIdsOf(each).every((id) => id !== null),
        'what is owed is there',
      )
    assert.equal(owed.shipments.length, replayed + 1)
    assert.equal((await ledgerOf(store, destinationId)).pending, replayed + 1)
  } finally {
    await store.close()
  }
})

test('accepting goes on while somebody reads for long and retention waits for its turn', async () => {
  const past = await openInThePast(10)
  const { sourceId, destinationId } = await newSourceAndDestination(past)
  await accept(past, sourceId, tracks(3), [destinationId])
  await settleAll(past, destinationId, 'delivered')
  await past.close()
  const store = await openAt(database.url)
  const reader = new pg.Client({ connectionString: database.url })
  await reader.connect()
  try {
    // As a backup does: every table is read in one transaction.
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT count(*) FROM switchyard.segments')
    let isOver = false
    const dropping = store.dropExpired(Date.now()).then(() => {
      isOver = true
    })
    const took: number[] = []
    const untilMs = performance.now() + 3_500
    while (performance.now() < untilMs) {
      const started = performance.now()
      await accept(store, sourceId, tracks(1), [destinationId])
      took.push(performance.now() - started)
    }
    const longestMs = Math.max(...took)
    assert.ok(!isOver, 'it cannot have gone on')
    assert.ok(longestMs > 100, 'it was tried while this was measured')
    assert.ok(longestMs < 1_500, `not for as long as the reader takes: ${longestMs} ms`)
    assert.ok((took.sort((a, b) => a - b)[took.length >> 1] as number) < 100, 'and most of the time not at all')
    assert.ok((await partitions()).includes(partitionName('segments', today() - 10)))
    await reader.query('COMMIT')
    await dropping
    assert.ok(!(await partitions()).includes(partitionName('segments', today() - 10)))
  } finally {
    await reader.end()
    await store.close()
  }
})

test('what is on its way in while everything is dropped by a clock that is wrong stays, and is delivered', async () => {
  const store = await openAt(database.url)
  const barrier = new pg.Client({ connectionString: database.url })
  await barrier.connect()
  const waiting = (lock: string): Promise<unknown> =>
    until(
      () => database.query('SELECT 1 FROM pg_locks WHERE NOT granted AND mode = $1', [lock]),
      (rows) => rows.length > 0,
      `somebody waits for ${lock}`,
    )
  try {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, tracks(3))
    // Nobody writes: a call has the name of its rows, and cannot make them yet.
    await barrier.query('BEGIN')
    await barrier.query('LOCK TABLE switchyard.segments IN SHARE MODE')
    const accepting = accept(store, sourceId, [track('on its way')], [destinationId])
    await waiting('RowExclusiveLock')
    // What is owed is read, and nothing dropped yet.
    const dropping = store.dropExpired(Date.now() + 100 * DAY_MS)
    await waiting('ShareUpdateExclusiveLock')
    await barrier.query('COMMIT')
    await Promise.all([accepting, dropping])
    assert.deepEqual((await claim(store, destinationId)).shipments.flatMap(messageIdsOf), ['on its way'])
    await accept(store, sourceId, [track('after')], [destinationId])
    assert.deepEqual((await claim(store, destinationId)).shipments.flatMap(messageIdsOf), ['after'])
  } finally {
    await barrier.end()
    await store.close()
  }
})

test('several nodes that drop at once drop once', async () => {
  const past = await openInThePast(10)
  const { sourceId, destinationId } = await newSourceAndDestination(past)
  await Promise.all(Array.from({ length: 50 }, () => accept(past, sourceId, tracks(2), [destinationId])))
  await settleAll(past, destinationId, 'delivered')
  await past.close()
  const stores = await Promise.all([openAt(database.url), openAt(database.url), openAt(database.url)])
  try {
    await Promise.all(stores.map((store) => store.dropExpired(Date.now())))
    for (const store of stores) await store.dropExpired(Date.now())
    assert.equal(await rowsIn('segments'), 0)
    assert.deepEqual(await ledgerOf(stores[0] as Store, destinationId), counts({ owed: 100, delivered: 100 }))
  } finally {
    await Promise.all(stores.map((store) => store.close()))
  }
})

test('how a deletion ended is known after the day of its attempts was dropped', async () => {
  const past = await openInThePast(10)
  const { sourceId, destinationId } = await newSourceAndDestination(past)
  const { id } = await past.deletions.create({ userIds: ['a', 'b'], sourceIds: [sourceId], suppress: false })
  await until(
    () => past.deletions.one(id),
    (deletion) => deletion?.state === 'pending',
    'purged',
  )
  const { shipments } = await claim(past, destinationId)
  for (const [at, claimed] of shipments.entries()) await settle(past, claimed, at === 0 ? 'delivered' : 'failed')
  await past.close()
  assert.ok((await rowsIn(partitionName('attempts', today() - 10))) > 0)
  const store = await openAt(database.url)
  try {
    await store.dropExpired(Date.now())
    assert.equal(await rowsIn('attempts'), 0)
    const targets = await store.deletions.targets(id, {}, { limit: 10, cursor: null })
    assert.deepEqual(
      targets.data.map(({ state }) => state),
      ['finished', 'failed'],
    )
  } finally {
    await store.close()
  }
})
