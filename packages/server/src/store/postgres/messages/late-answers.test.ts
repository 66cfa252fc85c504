// A node was declared dead and has joined again, and only then gets the answer to a statement that it sent before. Other nodes may have
// what the statement gave to it, so it must not deliver that.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { accept, claim, newSourceAndDestination, RecordingConsumer, track, until } from '../../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { PostgresStore } from '../store.ts'

let database: TestDatabase
let store: PostgresStore

before(async () => {
  database = await createDatabase()
  store = await openAt(database.url)
  // While there is a gate, statements that write shipments wait. By then, each of them has seen the row of its node.
  await database.query('CREATE TABLE switchyard.gate ()')
  await database.query(`CREATE FUNCTION switchyard.wait() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN WHILE EXISTS (SELECT FROM switchyard.gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN new; END $$`)
  await database.query(`CREATE TRIGGER waits BEFORE INSERT OR UPDATE ON switchyard.shipments
    FOR EACH ROW WHEN (new.holder > 0) EXECUTE FUNCTION switchyard.wait()`)
})
after(async () => {
  await store.close()
  await database.drop()
})

/** Calls `send`, declares the node dead once the statement waits, and opens the gate after the node has joined again. */
async function joinAgainDuring<T>(send: () => Promise<T>): Promise<T> {
  await database.query('INSERT INTO switchyard.gate DEFAULT VALUES')
  const answer = send()
  await waiting('PgSleep')
  await declareDead()
  await database.query('DELETE FROM switchyard.gate')
  return answer
}

async function waiting(event: string): Promise<void> {
  await until(
    () => database.query('SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1', [event]),
    ({ length }) => length > 0,
    `a statement waits: ${event}`,
  )
}

/** Like another node that has found the lock of this one free. Resolves when this one has joined again. */
async function declareDead(): Promise<void> {
  await database.query('UPDATE switchyard.nodes SET holder = -holder WHERE holder > 0')
  await database.query('UPDATE switchyard.shipments SET holder = 0 WHERE holder > 0')
  await until(
    () => database.query('SELECT FROM switchyard.nodes WHERE holder > 0'),
    ({ length }) => length === 1,
    'the node has joined again',
  )
}

test('a node does not deliver what it claimed before it was declared dead', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, [track('claimed late')], [destinationId])
  await assert.rejects(
    joinAgainDuring(() => claim(store, destinationId)),
    { message: 'this node was declared dead' },
  )
})

test('a node does not deliver what it claimed, if it is declared dead while it reads the messages', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, [track('read late')], [destinationId])
  const locking = new pg.Client({ connectionString: database.url })
  await locking.connect()
  try {
    await locking.query('BEGIN; LOCK TABLE switchyard.segments')
    const claimed = claim(store, destinationId)
    await waiting('relation')
    await declareDead()
    await locking.query('COMMIT')
    assert.deepEqual((await claimed).shipments, [])
  } finally {
    await locking.end()
  }
})

test('a node acknowledges what it stored before it was declared dead, and leaves the delivery to whoever claims it', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const consumer = new RecordingConsumer()
  store.delivery.attach(consumer)
  const { duplicates } = await joinAgainDuring(() => accept(store, sourceId, [track('stored late')], [destinationId]))
  assert.deepEqual(duplicates, [])
  assert.deepEqual([consumer.received.length, consumer.cancelled.length], [0, 1], 'the reservation is cancelled')
  assert.ok(consumer.woken.includes(destinationId))
})
