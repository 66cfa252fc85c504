// The database has executed a statement, but its response is lost: nothing may be lost, and nothing may be done twice.

import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { createApp } from '../../packages/server/src/app.ts'
import { readConfig } from '../../packages/server/src/config.ts'
import { createLog } from '../../packages/server/src/logging/log.ts'
import { createSecretBox } from '../../packages/server/src/secrets/secret-box.ts'
import {
  accept,
  claim,
  ledgerOf,
  newSourceAndDestination,
  RecordingConsumer,
  settlementOf,
  track,
  tracks,
  until,
} from '../../packages/server/src/store/conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { createPostgresStore, type PostgresStore } from '../../packages/server/src/store/postgres/store.ts'
import { StoreUnavailable } from '../../packages/server/src/store/store.ts'
import { DatabaseProxy } from './proxy.ts'

let database: TestDatabase
let proxy: DatabaseProxy
let store: PostgresStore

before(async () => {
  database = await createDatabase()
  const { port, host } = new URL(database.url)
  proxy = await DatabaseProxy.start(Number(port))
  const url = database.url.replace(host, `127.0.0.1:${proxy.port}`)
  // Short, because the tests wait for it, but long enough for a busy machine: a statement that times out costs its connection, and no new
  // connection can be opened while responses are cut.
  store = await createPostgresStore({ url, secretBox: createSecretBox('a key for these tests'), retentionDays: 7, statementMs: 2_000 })
})
// A test that fails must not fail the next ones.
afterEach(() => proxy.heal())
after(async () => {
  await store.close()
  await proxy.close()
  await database.drop()
})

async function countOf(table: string): Promise<number> {
  const [row] = await database.query<{ count: string }>(`SELECT count(*) FROM switchyard.${table}`)
  return Number(row?.count)
}

test('a settlement whose response was lost is applied once, and recognized as committed', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const consumer = new RecordingConsumer()
  store.delivery.attach(consumer)
  await accept(store, sourceId, [track('a'), track('b')], [destinationId])
  const [held] = consumer.received
  assert.ok(held)
  proxy.cut('answers')
  const settled = store.delivery.settle(settlementOf([held.shipment], 'delivered'))
  await until(
    () => countOf('attempts'),
    (count) => count === 1,
    'the database has committed it',
  )
  assert.equal(await Promise.race([settled.then(() => 'settled'), countOf('attempts')]), 1, 'the caller has no result yet')
  proxy.heal()
  await settled
  assert.equal(await countOf('attempts'), 1)
  assert.deepEqual(await ledgerOf(store, destinationId), { owed: 2, delivered: 2, pending: 0, failed: 0, expired: 0, cancelled: 0 })
})

test('a batch whose response was lost is rejected, recognized as a duplicate when it is sent again, and delivered anyway', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const consumer = new RecordingConsumer()
  store.delivery.attach(consumer)
  const before = await countOf('segments')
  proxy.cut('answers')
  const refused = assert.rejects(accept(store, sourceId, [track('lost')], [destinationId]), StoreUnavailable)
  await until(
    () => countOf('segments'),
    (count) => count === before + 1,
    'the database has committed it',
  )
  await refused
  assert.deepEqual([consumer.received.length, consumer.cancelled.length], [0, 1], 'the consumer is told that the shipment was not stored')
  proxy.heal()
  const again = await until(
    () => accept(store, sourceId, [track('lost')], [destinationId]).catch(() => undefined),
    (result) => result !== undefined,
    'the store is available again',
  )
  assert.deepEqual(again?.duplicates, [0])
  // Stored as held by this node, which does not have it in memory. One of the next heartbeats finds and releases it.
  const claimed = await until(
    () => claim(store, destinationId),
    ({ shipments }) => shipments.length > 0,
    'it can be claimed',
  )
  assert.equal(claimed.shipments.length, 1)
  await store.delivery.settle(
    settlementOf(
      claimed.shipments.map(({ shipment }) => shipment),
      'delivered',
    ),
  )
  assert.deepEqual(await ledgerOf(store, destinationId), { owed: 1, delivered: 1, pending: 0, failed: 0, expired: 0, cancelled: 0 })
})

test('a shipment whose response was lost is released only as it was stored, not after the node has claimed it again', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  store.delivery.attach(new RecordingConsumer())
  const [held] = await until(
    async () => {
      proxy.loseAnswers([{ to: 'accept' }])
      await assert.rejects(accept(store, sourceId, tracks(1), [destinationId]), StoreUnavailable)
      // As if the response to its release was lost too, and the response to the next claim is still on its way. Unless it is released by now.
      return database.query<{ id: string }>('UPDATE switchyard.shipments SET claim = 2 WHERE holder > 0 RETURNING id')
    },
    ({ length }) => length === 1,
    'the node does not know that it holds a shipment',
  )
  await heartbeats(2)
  assert.deepEqual(await database.query('SELECT claim FROM switchyard.shipments WHERE holder > 0 AND id = $1', [held?.id]), [{ claim: 2 }])
})

/** Resolves when the work of this many heartbeats is done. */
async function heartbeats(count: number): Promise<void> {
  for (let left = count + 1; left > 0; left--) {
    const lease = async (): Promise<string> => JSON.stringify(await database.query('SELECT expires_at FROM switchyard.nodes'))
    const before = await lease()
    await until(lease, (now) => now !== before, 'the next heartbeat')
  }
}

test('a node whose first statements lose their responses repeats them, and prints the one token that is valid', async () => {
  await using parts = new AsyncDisposableStack()
  const fresh = parts.adopt(await createDatabase({ isEmpty: true }), (each) => each.drop())
  const { port, host } = new URL(fresh.url)
  const losing = parts.use(await DatabaseProxy.start(Number(port)))
  const read = readConfig({
    SWITCHYARD_PORT: '0',
    SWITCHYARD_STORE: fresh.url.replace(host, `127.0.0.1:${losing.port}`),
    SWITCHYARD_SECRET_KEY: 'a key for these tests',
  })
  assert.equal(read.kind, 'config')
  // The token is stored, but the node that created it does not know that.
  losing.loseAnswers([
    { to: 'COMMIT', after: 'secret.admin_token_hash' },
    { to: 'COMMIT', after: 'secret.session_key' },
    { to: 'COMMIT', after: 'secret.first_write_key' },
    { to: 'first_source' },
  ])
  const app = parts.adopt(await createApp(read.config, createLog('silent')), async (each) => void (await each.close()))
  assert.deepEqual(losing.left, [])
  assert.ok(app.generatedToken !== null)
  const answer = await fetch(`${app.url}/api/sources`, { headers: { authorization: `Bearer ${app.generatedToken}` } })
  assert.equal(answer.status, 200)
  const { data } = (await answer.json()) as { data: { name: string }[] }
  assert.deepEqual(
    data.map(({ name }) => name),
    ['default', 'system'],
  )
})
