import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimOrdered, newOrdered, settle } from '../../conformance/delivery/ordering.ts'
import {
  accept,
  claim,
  claimOne,
  ledgerOf,
  newSourceAndDestination,
  RecordingConsumer,
  settlementOf,
  track,
  tracks,
  until,
} from '../../conformance/fixtures.ts'
import { type ClaimedShipment, ClaimLost, type Shipment } from '../../store.ts'
import type { MessageContext } from '../cluster/store-context.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import { WriteState } from '../session/write-state.ts'
import type { PostgresStore } from '../store.ts'
import { IdMap } from '../tables/id-map.ts'
import { RowIds } from '../tables/ids.ts'
import type { Claiming } from './claiming.ts'
import { Settling } from './settling.ts'

let database: TestDatabase
let store: PostgresStore

before(async () => {
  database = await createDatabase()
  store = await openAt(database.url)
})
after(async () => {
  await store.close()
  await database.drop()
})

test('a shipment that is settled together with one that is no longer held is released, not held forever', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, [track('lost')], [destinationId])
  await accept(store, sourceId, [track('kept')], [destinationId])
  const { shipments } = await claim(store, destinationId)
  const both = shipments.map(({ shipment }) => shipment)
  assert.equal(both.length, 2)
  // As if it had been claimed under a holder id that this node no longer has.
  await database.query('UPDATE switchyard.shipments SET holder = 0 WHERE id = $1', [both[0]?.id])
  await assert.rejects(store.delivery.settle(settlementOf(both, 'delivered')), ClaimLost)
  const found: Shipment[] = []
  await until(
    async () => found.push(...(await claim(store, destinationId)).shipments.map(({ shipment }) => shipment)),
    (count) => count === 2,
    'both can be claimed',
  )
  await store.delivery.settle(settlementOf(found, 'delivered'))
  assert.equal((await ledgerOf(store, destinationId)).delivered, 2)
})

test('a head counts the body of its request once, although the messages of the request were in several shipments', async () => {
  const { sourceId, destinationId } = await newOrdered(store)
  const sent = Array.from({ length: 40 }, (_, at) => track(`${at}-ordered`, { userId: `user${at}` }))
  await accept(store, sourceId, sent, [destinationId])
  const claimed: ClaimedShipment[] = []
  await until(
    async () => claimed.push(...(await claimOrdered(store, destinationId)).shipments),
    () => claimed.flatMap(({ shipment }) => shipment.parts.flatMap(({ indexes }) => indexes)).length === sent.length,
    'this node delivers all partitions',
  )
  assert.ok(claimed.length > 1)
  const bytes = async (attempts: string): Promise<number> => {
    const rows = await database.query(`SELECT max(bytes)::int AS bytes FROM switchyard.shipments WHERE attempt ${attempts}`)
    return Number(rows[0]?.['bytes'])
  }
  const body = await bytes('= -1')
  assert.ok(body > 0)
  await settle(store, claimed, (name) => (name === '7' ? 'retry' : 'delivered'))
  assert.equal(await bytes('= -2'), body)
})

test('settlements that take too long in one statement are written one by one', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, tracks(2), [destinationId])
  await accept(store, sourceId, tracks(2), [destinationId])
  const hurried = await openAt(database.url, { statementMs: 2_000 })
  try {
    const { shipments } = await claim(hurried, destinationId)
    assert.equal(shipments.length, 2)
    // The duration grows with the size of the group.
    await database.query(`CREATE FUNCTION switchyard.linger() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(1.2); RETURN new; END $$`)
    await database.query('CREATE TRIGGER lingers BEFORE INSERT ON switchyard.attempts FOR EACH ROW EXECUTE FUNCTION switchyard.linger()')
    try {
      await Promise.all(shipments.map(({ shipment }) => hurried.delivery.settle(settlementOf([shipment], 'delivered'))))
    } finally {
      await database.query('DROP FUNCTION switchyard.linger CASCADE')
    }
    assert.equal((await ledgerOf(hurried, destinationId)).delivered, 4)
  } finally {
    await hurried.close()
  }
})

test('a settlement whose answer was lost is recognized as committed, however late and however often it is checked', async () => {
  const unavailable = (mayHaveCommitted: boolean): Error => new PostgresUnavailable('away', mayHaveCommitted)
  const refused = Object.assign(new Error('not held'), { code: 'SY001' })
  const settles = [unavailable(true), refused, refused]
  // The first check does not find the marker, the check after the refusal fails, and the next one finds it.
  const marks = [unavailable(false), unavailable(false), unavailable(false), 0, unavailable(false), 0, 1]
  const next = <T>(of: (T | Error)[]): T => {
    const answer = of.shift()
    if (answer instanceof Error) throw answer
    return answer as T
  }
  const query = async (statement: string | { name?: string }): Promise<{ rows: []; count: number }> => ({
    rows: [],
    count: typeof statement === 'string' ? next<number>(marks) : next<number>(settles),
  })
  const idMap = new IdMap()
  idMap.add('destinations', 'a destination', '1500000000000000000')
  const shipment = { id: '1600000000000000000', claim: 1, destinationId: 'a destination', attempt: 0, firstAttemptAtMs: null, dueAtMs: 0 }
  const parts = [{ origin: '1600000000000000000', segment: '1550000000000000000', indexes: [0] }]
  const membership = { holder: '1700000000000000000' }
  const writes = new WriteState(() => {})
  const shared = { idMap, ids: new RowIds(1, () => Date.now()), isClosed: () => false, fast: { query }, membership, writes }
  const settling = new Settling(shared as unknown as MessageContext, {
    claiming: { holds: () => true, ended: () => {}, bytesOf: () => 1 } as unknown as Claiming,
    onCommit: () => {},
    withoutUsers: async (_, settlements) => [...settlements],
  })
  await settling.settle(settlementOf([{ ...shipment, unit: false, progress: null, replay: false, parts }], 'delivered'))
  assert.deepEqual(marks, [])
})

test('while a settlement fails because of the server, delivery is told that nothing can be recorded, whatever heartbeats say', async () => {
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, [track('a')], [destinationId])
  const { shipment } = await claimOne(store, destinationId)
  const consumer = new RecordingConsumer()
  store.delivery.attach(consumer)
  await database.query(`CREATE FUNCTION switchyard.full() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$`)
  await database.query('CREATE TRIGGER fills BEFORE INSERT ON switchyard.attempts FOR EACH ROW EXECUTE FUNCTION switchyard.full()')
  let settled: Promise<void>
  try {
    settled = store.delivery.settle(settlementOf([shipment], 'delivered'))
    await until(
      async () => consumer.writableStates,
      (states) => states.length > 0,
      'it is told',
    )
    await store.membership.heartbeat()
    assert.deepEqual(consumer.writableStates, [false])
  } finally {
    await database.query('DROP FUNCTION switchyard.full CASCADE')
  }
  await settled
  assert.deepEqual(consumer.writableStates, [false, true])
})

test('after a failed heartbeat nothing can be recorded, until the next write succeeds', async () => {
  const consumer = new RecordingConsumer()
  store.delivery.attach(consumer)
  await database.query(`CREATE FUNCTION switchyard.full() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$`)
  await database.query('CREATE TRIGGER fills BEFORE UPDATE ON switchyard.nodes FOR EACH ROW EXECUTE FUNCTION switchyard.full()')
  try {
    await assert.rejects(store.membership.check(), PostgresUnavailable)
    assert.deepEqual(consumer.writableStates, [false])
  } finally {
    await database.query('DROP FUNCTION switchyard.full CASCADE')
  }
  await store.membership.check()
  assert.deepEqual(consumer.writableStates, [false, true])
})
