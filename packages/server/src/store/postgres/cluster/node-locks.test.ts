import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import {
  accept,
  claim,
  claimOne,
  ledgerOf,
  newSourceAndDestination,
  RecordingConsumer,
  settlementOf,
  tracks,
  until,
} from '../../conformance/fixtures.ts'
import { ClaimLost } from '../../store.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { PostgresStore } from '../store.ts'
import { FreeLocks, LOCK_FREE_MS } from './node-locks.ts'

/** So long that nothing in these tests happens because a lease has expired. */
const LEASE_MS = 600_000
/** How long a node ignores free locks after its own session broke, in the test that waits for it. */
const SHORT_LEASE_MS = 2_000

let database: TestDatabase
const open: PostgresStore[] = []

before(async () => {
  database = await createDatabase()
})
after(async () => {
  await Promise.all(open.map((store) => store.close()))
  await database.drop()
})

async function node(name: string, on = database, leaseMs = LEASE_MS): Promise<PostgresStore> {
  const store = await openAt(on.url, { nodeName: name, leaseMs })
  open.push(store)
  return store
}

const LOCKS = `SELECT pid, ((classid::bigint << 32) | objid::bigint)::text AS holder FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
  AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

/** The process id of the session that holds the node's lock. */
async function sessionOf(holder: string, on = database): Promise<number | undefined> {
  const [lock] = await on.query<{ pid: number }>(`SELECT pid FROM (${LOCKS}) l WHERE holder = $1`, [holder])
  return lock?.pid
}

/** Ends the session that holds the node's lock, once the other nodes know that the node has the lock. */
async function endSession({ membership: { holder } }: PostgresStore, on = database): Promise<void> {
  await until(
    () => on.query<{ known: boolean }>("SELECT doc LIKE '%lockedIn%' AS known FROM switchyard.nodes WHERE holder = $1", [holder]),
    ([row]) => row?.known === true,
    'the node has announced its lock',
  )
  const pid = await until(
    () => sessionOf(holder, on),
    (session) => session !== undefined,
    'the node has its lock',
  )
  await on.query('SELECT pg_terminate_backend($1)', [pid])
  // The server ends a session some time after it was told to.
  await until(
    () => sessionOf(holder, on),
    (session) => session !== pid,
    'the session has ended',
  )
}

/** Registers a node without a process. */
async function register(num: number, lockedIn: string | null, on = database): Promise<void> {
  await on.query(
    `INSERT INTO switchyard.nodes (num, holder, name, version, expires_at, doc) VALUES ($1::integer, $1::integer, 'no process', '', now() + interval '1 hour', $2)`,
    [num, JSON.stringify({ configuration: 0, ...(lockedIn === null ? {} : { lockedIn }) })],
  )
}

async function serverRun(): Promise<string> {
  const [row] = await database.query<{ run: string }>("SELECT set_config('timezone', 'UTC', true), pg_postmaster_start_time()::text AS run")
  return row?.run ?? ''
}

async function isReleased(num: number, on = database): Promise<boolean> {
  const [row] = await on.query<{ released: boolean }>('SELECT holder < 0 AS released FROM switchyard.nodes WHERE num = $1', [num])
  return row?.released ?? false
}

test('a lock counts as free after LOCK_FREE_MS without a heartbeat of its node', () => {
  const locks = new FreeLocks()
  const lock = (expiresAtMs: number, isFree = true) => ({ holder: '1', expiresAtMs, isFree })
  const at = (now: number, ...seen: ReturnType<typeof lock>[]): number => locks.observe(seen, now).length
  assert.equal(locks.nextMs(0), undefined)
  assert.equal(at(0, lock(10)), 0)
  assert.equal(locks.nextMs(100), LOCK_FREE_MS - 100)
  assert.equal(at(LOCK_FREE_MS - 1, lock(10)), 0)
  assert.equal(at(LOCK_FREE_MS, lock(10)), 1)
  // A heartbeat.
  assert.equal(at(LOCK_FREE_MS + 1, lock(11)), 0)
  assert.equal(locks.nextMs(LOCK_FREE_MS + 1), LOCK_FREE_MS)
  // The lock was held in between.
  assert.equal(at(1_500, lock(11, false)), 0)
  assert.equal(locks.nextMs(1_500), undefined)
  assert.equal(at(1_501, lock(11)), 0)
  assert.equal(at(1_501 + LOCK_FREE_MS, lock(11)), 1)
})

test('what a node held is released long before its lease expires if its session has ended and no heartbeat follows', async () => {
  const [ended, other, third] = [await node('ended'), await node('other'), await node('third')]
  const { sourceId, destinationId } = await newSourceAndDestination(ended)
  await until(
    async () => other.configuration().destinations.has(destinationId),
    (isKnown) => isKnown,
    'the other knows the destination',
  )
  const consumer = new RecordingConsumer()
  ended.delivery.attach(consumer)
  await accept(ended, sourceId, tracks(3, 'held'), [destinationId])
  const [held] = consumer.received
  assert.ok(held)
  const { num, holder } = ended.membership
  // As if the process had ended.
  ended.membership.heartbeat = async () => {}
  await endSession(ended)
  await until(() => isReleased(num), Boolean, 'what it held is released')
  const taken = await claimOne(other, destinationId)
  assert.deepEqual(taken.shipment.parts, held.shipment.parts)
  assert.deepEqual((await claim(third, destinationId)).shipments, [])
  await until(
    async () => other.membership.others().map(({ name }) => name),
    (names) => names.join() === 'third',
    'it is no longer listed',
  )
  // Its process could be alive and still have a valid lease, so a deletion request must wait for it.
  const version = 1_000_000
  for (const { membership } of [other, third]) await membership.confirmVersion(version, true)
  assert.equal(await other.membership.isVersionConfirmed(version), false)
  await database.query('UPDATE switchyard.nodes SET expires_at = now() WHERE num = $1', [num])
  assert.equal(await other.membership.isVersionConfirmed(version), true)

  // If the process is still running after all, it cannot settle what others took over, and continues as a new node.
  await assert.rejects(ended.delivery.settle(settlementOf([held.shipment], 'delivered')), ClaimLost)
  delete (ended.membership as { heartbeat?: unknown }).heartbeat
  await ended.membership.heartbeat()
  assert.notEqual(ended.membership.holder, holder)
  assert.ok(await sessionOf(ended.membership.holder), 'it has a new lock')
  await other.delivery.settle(settlementOf([taken.shipment], 'delivered'))
  assert.equal((await ledgerOf(other, destinationId)).delivered, 3)
  await Promise.all([ended.close(), other.close(), third.close()])
})

test('a node whose session was terminated opens another, takes its lock again and keeps what it holds', async () => {
  const one = await node('one')
  const { sourceId, destinationId } = await newSourceAndDestination(one)
  const consumer = new RecordingConsumer()
  one.delivery.attach(consumer)
  await accept(one, sourceId, tracks(2, 'kept'), [destinationId])
  const [kept] = consumer.received
  assert.ok(kept)
  const { num, holder } = one.membership
  for (let time = 1; time <= 3; time++) {
    await endSession(one)
    await until(
      () => sessionOf(holder),
      (pid) => pid !== undefined,
      'it has its lock again',
    )
  }
  // The other node joins only now: on a very busy machine, it could have released the work of the running node before.
  const other = await node('other')
  await register(500, await serverRun())
  await until(() => isReleased(500), Boolean, 'the node without a process is released')
  assert.equal(await isReleased(num), false)
  assert.equal(one.membership.holder, holder)
  await one.delivery.settle(settlementOf([kept.shipment], 'delivered'))
  assert.equal((await ledgerOf(other, destinationId)).delivered, 2)
  await Promise.all([one.close(), other.close()])
})

test('a node that cannot open another session at once tries again before others conclude that its process has ended', async () => {
  const one = await node('one')
  const { holder } = one.membership
  const triedAtMs: number[] = []
  one.membership.heartbeat = () => {
    triedAtMs.push(performance.now())
    return Promise.reject(new Error('too many connections'))
  }
  await endSession(one)
  // The heartbeats of every second alone are no more than two within this time.
  await until(
    async () => triedAtMs.some((atMs, nth) => (triedAtMs[nth + 2] ?? Number.POSITIVE_INFINITY) - atMs < LOCK_FREE_MS),
    Boolean,
    'it tries again',
  )
  delete (one.membership as { heartbeat?: unknown }).heartbeat
  await until(
    () => sessionOf(holder),
    (pid) => pid !== undefined,
    'it has its lock again',
  )
  await one.close()
})

test('a free lock means nothing for a node that took none, or took it before the server was restarted or replaced by its standby', async () => {
  await database.query('DELETE FROM switchyard.nodes')
  await register(501, null)
  await register(502, '2020-01-01 00:00:00.123456+00')
  await register(503, await serverRun())
  const one = await node('one')
  await until(() => isReleased(503), Boolean, 'the third is released')
  assert.deepEqual([await isReleased(501), await isReleased(502)], [false, false])
  await one.close()
  await database.query('DELETE FROM switchyard.nodes')
})

test('a node whose own session broke ignores free locks for a lease: the same cause may have broken the sessions of others', async () => {
  const own = await createDatabase()
  try {
    const one = await node('one', own, SHORT_LEASE_MS)
    const sinceMs = performance.now()
    await endSession(one, own)
    await until(
      () => sessionOf(one.membership.holder, own),
      (pid) => pid !== undefined,
      'it has its lock again',
    )
    await register(500, await serverRun(), own)
    await until(() => isReleased(500, own), Boolean, 'the node without a process is released')
    assert.ok(performance.now() - sinceMs >= SHORT_LEASE_MS)
    await one.close()
  } finally {
    await own.drop()
  }
})

test('if another session has the lock, as with a pooler, the node works without it and is not suspected', async () => {
  const one = await node('one')
  const { num, holder } = one.membership
  // Takes the lock in the moment in which the node has none.
  const pooled = new pg.Client({ connectionString: database.url })
  await pooled.connect()
  const locking = pooled.query('SELECT pg_advisory_lock($1)', [holder])
  await endSession(one)
  await locking
  await until(
    () => database.query<{ known: boolean }>("SELECT doc LIKE '%lockedIn%' AS known FROM switchyard.nodes WHERE num = $1", [num]),
    ([row]) => row?.known === false,
    'it no longer announces a lock',
  )
  assert.equal(one.membership.holder, holder)
  await pooled.end()
  await until(
    () => sessionOf(holder),
    (pid) => pid !== undefined,
    'it has its lock again',
  )
  await one.close()
})
