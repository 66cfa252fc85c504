// When the store, the service itself or the time of things is at fault: nothing is lost, nothing spins, and it goes on alone.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { ON_POSTGRES } from '../store/fixtures/test-store.ts'
import type { Shipment } from '../store/store.ts'
import { startRig, unavailable } from './fixtures/rig.ts'
import { RELEASE_REJECTED_MS } from './shipments/settlement-recorder.ts'

test('a store that is away while an outcome is recorded: it is recorded once it is back, and nothing is sent twice', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.shut.settle = unavailable()
  await rig.accept([destination], 3)
  await rig.until(() => rig.settleCalls === 1)
  for (let nth = 0; nth < 100; nth++) {
    rig.clock.advance(1_000)
    await rig.turn()
  }
  // After 0.25, 0.5, 1 and so on to 30 seconds: some ten times in a hundred seconds.
  assert.ok(rig.settleCalls > 5 && rig.settleCalls < 15, String(rig.settleCalls))
  assert.deepEqual([receiver.received.length, rig.troubles.length], [3, 1])
  delete rig.shut.settle
  rig.clock.advance(30_000)
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  await rig.untilIdle()
  assert.equal(receiver.received.length, 3)
  await rig.stop()
})

test('what waits to be recorded counts as held, so that a store that is away is not given ever more to record', async (t) => {
  const rig = await startRig(t, { memoryBytes: 30_000 })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.shut.settle = unavailable()
  for (let nth = 0; nth < 40; nth++) await rig.accept([destination], 1, { properties: { pad: 'x'.repeat(2_000) } })
  for (let nth = 0; nth < 20; nth++) await rig.turn()
  const sent = receiver.received.length
  assert.ok(sent < 40, String(sent))
  delete rig.shut.settle
  rig.clock.advance(60_000)
  await rig.untilLedger(destination, { delivered: 40, pending: 0 })
  assert.equal(receiver.received.length, 40)
  await rig.untilIdle()
})

test('stopped while the store is away, the service ends, and what it could not record is sent again', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.shut.settle = unavailable()
  await rig.accept([destination], 2)
  await rig.until(() => rig.settleCalls === 1)
  await rig.turn()
  await rig.delivery.stop(100)
  assert.deepEqual([rig.clock.timers, rig.memory.heldBytes, (await rig.ledger(destination)).pending], [0, 0, 2])
  delete rig.shut.settle
  rig.start()
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  assert.equal(receiver.received.length, 4)
  await rig.stop()
})

test('a store that never answers does not keep the service from stopping', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.mute = true
  await rig.accept([destination], 1)
  await rig.until(() => rig.settleCalls === 1)
  const startedAtMs = performance.now()
  await rig.delivery.stop(50)
  assert.ok(performance.now() - startedAtMs < 4_000)
  assert.equal((await rig.ledger(destination)).pending, 1)
})

test('a settlement that the store refuses is given up after a few tries, and its deliveries come back after a while', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.shut.settle = new Error('a settlement leaves 1 deliveries without a state')
  await rig.accept([destination], 1)
  for (let nth = 0; nth < 20; nth++) {
    await rig.turn()
    rig.clock.advance(1_000)
  }
  assert.deepEqual([rig.settleCalls, receiver.received.length, rig.memory.heldBytes], [3, 1, 0])
  // The lane is not held up by it.
  delete rig.shut.settle
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 1, pending: 1 })
  rig.clock.advance(RELEASE_REJECTED_MS)
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  await rig.untilIdle()
  await rig.stop()
})

test('a store that is away while work is claimed is asked again every second, and no more', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 500 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1)
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  rig.shut.claim = unavailable()
  const [claims, fired] = [rig.claims.length, rig.clock.fired]
  for (let nth = 0; nth < 200; nth++) {
    rig.clock.advance(100)
    await rig.turn()
  }
  // The retry was due after 3.75 of the 20 seconds. A store that looks for work by itself may have woken the stage now and then.
  const most = ON_POSTGRES ? 30 : 18
  assert.ok(rig.claims.length - claims >= 15 && rig.claims.length - claims <= most, String(rig.claims.length - claims))
  assert.ok(rig.clock.fired - fired <= most + 2, String(rig.clock.fired - fired))
  delete rig.shut.claim
  rig.clock.advance(1_000)
  await rig.untilLedger(destination, { delivered: 1, pending: 0 })
  await rig.untilIdle()
})

test('what is released while a claim is under way is claimed afterwards', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1, timeoutMs: 20_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1)
  await rig.until(() => receiver.waiting === 1)
  const gate = rig.claimGate()
  rig.consumer.wake(destination.id)
  await gate.reached
  // Taken while the claim is under way, and given back again before its answer comes.
  await rig.accept([destination], 3)
  assert.ok(rig.memory.heldBytes > 4_000)
  await rig.store.settings.updateDestination(destination.id, { enabled: false })
  await rig.store.settings.updateDestination(destination.id, { enabled: true })
  gate.open()
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 4, pending: 0 })
  await rig.untilIdle()
})

test('what a claim brings after the destination was disabled or stopped is given back', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], enabled: false })
  await rig.accept([destination], 2)
  const gate = rig.claimGate()
  await rig.store.settings.updateDestination(destination.id, { enabled: true })
  await gate.reached
  await rig.store.settings.updateDestination(destination.id, { enabled: false })
  gate.open()
  await rig.turn()
  assert.deepEqual([receiver.received.length, rig.memory.heldBytes], [0, 0])
  const second = rig.claimGate()
  await rig.store.settings.updateDestination(destination.id, { enabled: true })
  await second.reached
  const stopped = rig.delivery.stop(5_000)
  second.open()
  await stopped
  assert.deepEqual([receiver.received.length, rig.memory.heldBytes, (await rig.ledger(destination)).pending], [0, 0, 2])
  rig.start()
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
})

test('new work that was wanted and could not be stored takes no memory', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.turn()
  assert.ok(rig.consumer.reserve(destination.id, 5_000))
  assert.ok(rig.memory.heldBytes >= 5_000)
  rig.consumer.cancelReservation(destination.id, 5_000)
  assert.equal(rig.memory.heldBytes, 0)
  // Deleted between the question and the answer.
  assert.ok(rig.consumer.reserve(destination.id, 5_000))
  assert.ok(rig.consumer.reserve(destination.id, 7_000))
  await rig.store.settings.deleteDestination(destination.id)
  rig.consumer.cancelReservation(destination.id, 5_000)
  const shipment: Shipment = {
    id: 1,
    claim: 1,
    destinationId: destination.id,
    attempt: 0,
    firstAttemptAtMs: null,
    dueAtMs: 0,
    unit: false,
    urls: null,
    replay: false,
    parts: [],
  }
  rig.consumer.deliver({ shipment, contents: new Map(), bytes: 7_000 })
  assert.equal(rig.memory.heldBytes, 0)
})

test('a message that cannot be written is reported and retried like a failure, and holds up nothing else', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  // Written in memory only: as it is stored it can be read.
  const broken = { toJSON: (): string => (rig.settleCalls === 0 ? assert.fail('unwritable') : 'mended') }
  await rig.accept([destination], 1, { properties: { broken } }, { properties: { broken: 'mended' } })
  await rig.until(() => rig.settlements.length === 1)
  assert.deepEqual([rig.troubles.length, receiver.received.length], [1, 0])
  assert.equal(rig.settlements[0]?.records[0]?.requests[0]?.reason, 'internal_error')
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 1, pending: 1 })
  rig.clock.advance(5_000)
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  assert.deepEqual([receiver.received[1]?.headers['x-attempt'], rig.breakers], ['2', []])
  await rig.untilIdle()
})

test('a listener that throws is reported, and neither the delivery nor the lane suffers', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.listenerError = new Error('the log is full')
  await rig.accept([destination], 2)
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  await rig.untilIdle()
  assert.deepEqual(rig.troubles, [rig.listenerError, rig.listenerError])
})

test('a process with nothing left to do ends by itself after stop', () => {
  const script = fileURLToPath(new URL('./fixtures/run-and-stop.ts', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8', timeout: 15_000 })
  assert.deepEqual([status, stdout, stderr], [0, 'over\n', ''])
})
