// A node was declared dead, has noticed it, and only then gets the answer to a statement that it sent before. Other nodes may have what the
// statement gave to it, so it must not deliver that, whether it has already joined again or not.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { accept, claim, newSourceAndDestination, RecordingConsumer, track, until } from '../../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
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

/** Like `joinAgainDuring`, but the answer arrives while the node cannot join yet. */
async function answerBeforeJoining<T>(send: () => Promise<T>): Promise<T> {
  await database.query('INSERT INTO switchyard.gate DEFAULT VALUES')
  const answer = send()
  await waiting('PgSleep')
  const locking = new pg.Client({ connectionString: database.url })
  await locking.connect()
  try {
    await locking.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.membership])
    await release()
    await waiting('advisory')
    await database.query('DELETE FROM switchyard.gate')
    await Promise.allSettled([answer])
  } finally {
    await locking.end()
  }
  await joined()
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
  await release()
  await joined()
}

async function release(): Promise<void> {
  await database.query('UPDATE switchyard.nodes SET holder = -holder WHERE holder > 0')
  await database.query('UPDATE switchyard.shipments SET holder = 0 WHERE holder > 0')
}

async function joined(): Promise<void> {
  await until(
    () => database.query('SELECT FROM switchyard.nodes WHERE holder > 0'),
    ({ length }) => length === 1,
    'the node has joined again',
  )
}

const ANSWERS = [
  ['after it has joined again', joinAgainDuring],
  ['before it has joined again', answerBeforeJoining],
] as const

for (const [when, answering] of ANSWERS) {
  test(`a node does not deliver what it claimed before it was declared dead, if it learns that ${when}`, async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, [track('claimed late')], [destinationId])
    await assert.rejects(
      answering(() => claim(store, destinationId)),
      { message: 'this node was declared dead' },
    )
  })
}

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

for (const [when, answering] of ANSWERS) {
  test(`a node acknowledges what it stored before it was declared dead, and leaves it to the node that claims it, if it learns that ${when}`, async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    const consumer = new RecordingConsumer()
    store.delivery.attach(consumer)
    const { duplicates } = await answering(() => accept(store, sourceId, [track('stored late')], [destinationId]))
    assert.deepEqual(duplicates, [])
    assert.deepEqual([consumer.received.length, consumer.cancelled.length], [0, 1], 'the reservation is cancelled')
    assert.ok(consumer.woken.includes(destinationId))
  })
}
