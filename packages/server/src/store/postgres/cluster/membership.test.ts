import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
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

const LEASE_MS = 1_500

let database: TestDatabase
const open: PostgresStore[] = []

before(async () => {
  database = await createDatabase()
})
after(async () => {
  await Promise.all(open.map((store) => store.close()))
  await database.drop()
})

async function node(name: string, leaseMs = LEASE_MS): Promise<PostgresStore> {
  const store = await openAt(database.url, { nodeName: name, leaseMs })
  open.push(store)
  return store
}

/** Simulates a frozen process: it sends no heartbeats, and its lease expires. */
async function freeze(store: PostgresStore): Promise<() => Promise<void>> {
  const resume = withoutHeartbeats(store)
  await database.query("UPDATE switchyard.nodes SET expires_at = now() - interval '1 second' WHERE num = $1", [store.membership.num])
  return resume
}

function withoutHeartbeats({ membership }: PostgresStore): () => Promise<void> {
  membership.heartbeat = async () => {}
  return async () => {
    delete (membership as { heartbeat?: unknown }).heartbeat
    await membership.heartbeat()
  }
}

async function isDeclaredDead(num: number, holder: string): Promise<boolean> {
  const rows = await database.query('SELECT 1 FROM switchyard.nodes WHERE num = $1 AND holder = $2', [num, holder])
  return rows.length === 0
}

test('nodes have different numbers and know each other by name', async () => {
  const [a, b] = [await node('a'), await node('b')]
  assert.notEqual(a.membership.num, b.membership.num)
  a.membership.announce('word', { from: 'a' })
  // A heartbeat that was already in flight is without the notice.
  await until(
    async () => {
      await a.membership.heartbeat()
      await b.membership.heartbeat()
      return JSON.stringify(b.membership.others().map(({ name, doc }) => [name, doc['word']]))
    },
    (others) => others === JSON.stringify([['a', { from: 'a' }]]),
    'b knows the name of a and what it announced',
  )
  await Promise.all([a.close(), b.close()])
  assert.deepEqual(await database.query('SELECT * FROM switchyard.nodes'), [])
})

test('what a node held is released when its lease expires, and the node cannot settle or release what another has claimed', async () => {
  const [frozen, other] = [await node('frozen'), await node('other')]
  const { sourceId, destinationId } = await newSourceAndDestination(frozen)
  await until(
    async () => database.query('SELECT 1'),
    () => other.configuration().destinations.has(destinationId),
    'the other knows the destination',
  )
  const consumer = new RecordingConsumer()
  frozen.delivery.attach(consumer)
  await accept(frozen, sourceId, tracks(3, 'held'), [destinationId])
  const [held] = consumer.received
  assert.ok(held)
  const { num, holder } = frozen.membership
  // With its heartbeat, the other node declares expired nodes dead.
  const resume = withoutHeartbeats(other)
  const thaw = await freeze(frozen)
  assert.deepEqual((await claim(other, destinationId)).shipments, [], 'no other node can claim it before')
  await resume()
  await until(() => isDeclaredDead(num, holder), Boolean, 'the node is declared dead')
  const taken = await claimOne(other, destinationId)
  assert.deepEqual(taken.shipment.parts, held.shipment.parts)

  await assert.rejects(frozen.delivery.settle(settlementOf([held.shipment], 'delivered')), ClaimLost)
  await thaw()
  assert.notEqual(frozen.membership.holder, holder)
  await assert.rejects(frozen.delivery.settle(settlementOf([held.shipment], 'delivered')), ClaimLost)
  frozen.delivery.release([held.shipment])
  await other.delivery.settle(settlementOf([taken.shipment], 'delivered'))
  assert.equal((await ledgerOf(other, destinationId)).delivered, 3)

  // It joins again as a new node.
  await accept(frozen, sourceId, tracks(1, 'after'), [destinationId])
  const again = consumer.received.at(-1)
  assert.ok(again && again !== held)
  await frozen.delivery.settle(settlementOf([again.shipment], 'delivered'))
  assert.equal((await ledgerOf(other, destinationId)).delivered, 4)
  await Promise.all([frozen.close(), other.close()])
})

test('a node that was declared dead accepts under its new holder id, and holds the shipments it asked for', async () => {
  const [frozen, other] = [await node('frozen'), await node('other')]
  const { sourceId, destinationId } = await newSourceAndDestination(frozen)
  const consumer = new RecordingConsumer()
  frozen.delivery.attach(consumer)
  const { num, holder } = frozen.membership
  const thaw = await freeze(frozen)
  await until(() => isDeclaredDead(num, holder), Boolean, 'the node is declared dead')
  // The node finds out by the statement that fails, not by the heartbeat timer.
  void thaw
  delete (frozen.membership as { heartbeat?: unknown }).heartbeat
  await accept(frozen, sourceId, tracks(1, 'new'), [destinationId])
  assert.notEqual(frozen.membership.holder, holder)
  const [claimed] = consumer.received
  assert.ok(claimed)
  await frozen.delivery.settle(settlementOf([claimed.shipment], 'delivered'))
  assert.equal((await ledgerOf(other, destinationId)).delivered, 1)
  await Promise.all([frozen.close(), other.close()])
})

test('work that a late commit left to a dead node is found', async () => {
  const one = await node('one')
  const { sourceId, destinationId } = await newSourceAndDestination(one)
  const idle = new RecordingConsumer()
  idle.reserves = false
  one.delivery.attach(idle)
  await accept(one, sourceId, tracks(1, 'orphan'), [destinationId])
  await database.query('UPDATE switchyard.shipments SET holder = 12345 WHERE holder = 0')
  assert.deepEqual((await claim(one, destinationId)).shipments, [])
  await until(
    () => claim(one, destinationId),
    ({ shipments }) => shipments.length === 1,
    'it is released',
  )
  await one.close()
})

test('after an outage all nodes have time to come back: the first one does not declare the others dead', async () => {
  // So long that it has not expired yet for the nodes that send heartbeats, even on a busy machine.
  const leaseMs = 60_000
  const [a, b] = [await node('a', leaseMs), await node('b', leaseMs)]
  const { num, holder } = b.membership
  const thaw = await freeze(b)
  // As after an outage: the other node has just started to send heartbeats again.
  await database.query("UPDATE switchyard.nodes SET expires_at = now() - interval '1 second'")
  const late = await node('late', leaseMs)
  await late.membership.heartbeat()
  assert.equal(await isDeclaredDead(num, holder), false)
  await thaw()
  assert.equal(b.membership.holder, holder)
  await Promise.all([a.close(), b.close(), late.close()])
})
