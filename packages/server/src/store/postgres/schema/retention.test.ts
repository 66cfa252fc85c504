// Dropping whole days, what is kept of them, and who has to wait. ../../conformance/retention.ts covers what every adapter does; there
// all rows are of today, and are dropped row by row.

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

/** A node whose rows are some days old. Those days have partitions, as they would in production. */
async function openInThePast(daysAgo: number): Promise<PostgresStore> {
  // The first start creates the schema.
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

/** Repeatedly compares the ledger with the sums of rows and archive, in one snapshot each time. */
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

test('nodes that start together create the partitions of the days around today and of the next week once', async () => {
  const stores = await Promise.all([openAt(database.url), openAt(database.url), openAt(database.url)])
  await Promise.all(stores.map((store) => store.close()))
  for (const table of TABLES) {
    const expected = Array.from({ length: 9 }, (_, at) => partitionName(table, today() - 1 + at))
    assert.deepEqual(await partitions(table), [...expected, `${table}_rest`])
  }
  // The partitions use the parent's indexes and have no additional copies.
  const loose = await database.query(
    "SELECT c.relname FROM pg_class c JOIN pg_index x ON x.indexrelid = c.oid JOIN pg_class t ON t.oid = x.indrelid WHERE t.relispartition AND t.relname ~ '_2[0-9]{7}$' AND t.relnamespace = 'switchyard'::regnamespace AND NOT c.relispartition",
  )
  assert.deepEqual(loose, [])
  const before = connections.roundTrips
  await preparePartitions(connections)
  assert.equal(connections.roundTrips - before, 1, 'one statement if all partitions exist')
})

test('a day with rows in the rest table gets no partition, and its rows are still found', async () => {
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

test('a start does not wait for a long read to create the partition of a later day', async () => {
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

test('days before the cutoff are dropped whole, the ledger is consistent at every moment, and pending messages are kept until they are settled', async () => {
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
    // Running it again changes nothing.
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

test("a node whose own clock is a month ahead drops nothing: retention follows the server's clock", async () => {
  const store = await openAt(database.url)
  try {
    store.useClock({ wallMs: () => Date.now() + 30 * DAY_MS, scheduleMs: () => Date.now() })
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, tracks(1), [destinationId])
    await settleAll(store, destinationId, 'delivered')
    await store.dropExpired()
    assert.equal(await rowsIn('segments'), 1)
    await store.dropExpired(Date.now() + 30 * DAY_MS)
    assert.equal(await rowsIn('segments'), 0)
  } finally {
    await store.close()
  }
})

test('a day with many pending messages is dropped row by row, and whole once they are settled', async () => {
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
    assert.equal(await rowsIn('attempts'), 1_200, 'with the outcomes of their other deliveries')
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
        'every pending message still exists',
      )
    assert.equal(owed.shipments.length, replayed + 1)
    assert.equal((await ledgerOf(store, destinationId)).pending, replayed + 1)
  } finally {
    await store.close()
  }
})

test('accepting continues while retention waits for a long read', async () => {
  const past = await openInThePast(10)
  const { sourceId, destinationId } = await newSourceAndDestination(past)
  await accept(past, sourceId, tracks(3), [destinationId])
  await settleAll(past, destinationId, 'delivered')
  await past.close()
  const store = await openAt(database.url)
  const reader = new pg.Client({ connectionString: database.url })
  await reader.connect()
  try {
    // Reads every table in one transaction, as a backup does.
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT count(*) FROM switchyard.segments')
    /** How long accepts take during this time, and after it until one of them takes longer than `longMs`. */
    const timesOf = async (forMs: number, longMs = 0): Promise<number[]> => {
      const took: number[] = []
      const beganMs = performance.now()
      const hasPassed = (ms: number): boolean => performance.now() - beganMs >= ms
      while (!hasPassed(forMs) || (took.every((ms) => ms <= longMs) && !hasPassed(60_000))) {
        const started = performance.now()
        await accept(store, sourceId, tracks(1), [destinationId])
        took.push(performance.now() - started)
      }
      return took
    }
    const medianOf = (took: number[]): number => took.sort((a, b) => a - b)[took.length >> 1] as number
    const usualMs = medianOf(await timesOf(500))
    let isOver = false
    const dropping = store.dropExpired(Date.now()).then(() => {
      isOver = true
    })
    const took = await timesOf(3_500, 100)
    const longestMs = Math.max(...took)
    assert.ok(!isOver, 'retention is still waiting')
    assert.ok(longestMs > 100, 'retention requested its lock during the measurement')
    assert.ok(longestMs < 10_000, `an accept waited for the reader: ${longestMs} ms`)
    assert.ok(medianOf(took) < usualMs + 100, 'most accepts did not wait')
    assert.ok((await partitions()).includes(partitionName('segments', today() - 10)))
    await reader.query('COMMIT')
    await dropping
    assert.ok(!(await partitions()).includes(partitionName('segments', today() - 10)))
  } finally {
    await reader.end()
    await store.close()
  }
})

test('a message that is being accepted while a wrong clock makes retention drop everything is kept and delivered', async () => {
  const store = await openAt(database.url)
  const barrier = new pg.Client({ connectionString: database.url })
  await barrier.connect()
  const waiting = (lock: string): Promise<unknown> =>
    until(
      () => database.query('SELECT 1 FROM pg_locks WHERE NOT granted AND mode = $1', [lock]),
      (rows) => rows.length > 0,
      `a session waits for ${lock}`,
    )
  try {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, tracks(3))
    // Blocks writes: a call already has its row ids, but cannot insert its rows yet.
    await barrier.query('BEGIN')
    await barrier.query('LOCK TABLE switchyard.segments IN SHARE MODE')
    const accepting = accept(store, sourceId, [track('on its way')], [destinationId])
    await waiting('RowExclusiveLock')
    // Retention has read the pending shipments, and dropped nothing yet.
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

test('if several nodes run retention at the same time, only one drops rows', async () => {
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

test('the outcome of a deletion is known after the day of its attempts was dropped', async () => {
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
