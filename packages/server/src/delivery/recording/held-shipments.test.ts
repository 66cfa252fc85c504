// Expired deliveries, which are recorded in groups. The other operations are tested with the lane, in the tests of delivery.

import assert from 'node:assert/strict'
import test from 'node:test'
import { webhookOf } from '../../destinations/fixtures/webhook.ts'
import type { ClaimedShipment, DeliveryStore, Settlement } from '../../store/store.ts'
import { claimedOf, items, NOW_MS } from '../fixtures/claimed-shipments.ts'
import { Backlog } from './backlog.ts'
import { HeldShipments } from './held-shipments.ts'
import { Memory } from './memory.ts'
import { StoreState } from './store-state.ts'

const MIB = 1024 * 1024

function setUp() {
  const settlements: Settlement[] = []
  const recorded: (() => void)[] = []
  const store = {
    settle: (settlement: Settlement) =>
      new Promise<void>((resolve) => {
        settlements.push(settlement)
        recorded.push(resolve)
      }),
  }
  const memory = new Memory(100 * MIB)
  const destination = webhookOf({ deadLetter: 'dst_dead' })
  const held = new HeldShipments({
    store: store as unknown as DeliveryStore,
    memory,
    clock: { wallMs: () => NOW_MS, scheduleMs: () => NOW_MS },
    setTimer: () => assert.fail('nothing is retried'),
    random: () => 0.5,
    events: { attempted: () => {}, breaker: () => {}, trouble: (_, error) => assert.fail(String(error)) },
    destination: () => destination,
    storeState: new StoreState(() => {}),
    backlog: new Backlog(),
    ordered: { stored: () => assert.fail('nothing is ordered'), settled: () => {} },
    onReleased: () => {},
    onRecorded: () => {},
  })
  /** Ends the settlement in progress, and waits for the next one. */
  const record = async (): Promise<void> => {
    recorded.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { held, memory, settlements, record }
}

const claimed = (id: number, bytes: number, count = 1): ClaimedShipment => ({
  ...claimedOf(id, [items(count)], { attempt: 1, firstAttemptAtMs: 1 }),
  bytes,
})
const shipmentsOf = (settlements: readonly Settlement[]): unknown[][] => settlements.map(({ done }) => done.map(({ id }) => id))

test('expired deliveries are recorded in groups of limited size, and each group is built when the one before it is recorded', async () => {
  const { held, memory, settlements, record } = setUp()
  held.expire([claimed(1, 1.5 * MIB), claimed(2, 1.5 * MIB), claimed(3, 1.5 * MIB), claimed(4, 1), claimed(5, 1)])
  assert.deepEqual(shipmentsOf(settlements), [[1, 2]])
  assert.ok(memory.heldBytes > 4 * MIB)
  await record()
  assert.deepEqual(shipmentsOf(settlements), [
    [1, 2],
    [3, 4, 5],
  ])
  await record()
  assert.equal(settlements.length, 2)
  assert.deepEqual([memory.heldBytes, held.isIdle], [0, true])
})

test('a group of expired deliveries has a limited number of messages', async () => {
  const { held, settlements, record } = setUp()
  held.expire([claimed(1, 1, 3_000), claimed(2, 1, 2_000), claimed(3, 1, 2_000)])
  await record()
  assert.deepEqual(shipmentsOf(settlements), [[1, 2], [3]])
  await record()
})
