// Faults of the store, bugs of the service and unfortunate timing: nothing is lost, there are no busy loops, and the stage recovers by itself.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { ON_POSTGRES } from '../store/fixtures/test-store.ts'
import type { Shipment } from '../store/store.ts'
import { startRig, unavailable } from './fixtures/rig.ts'
import { RELEASE_REJECTED_MS } from './recording/settlement-recorder.ts'

test('if the store is unavailable, an outcome is recorded once the store is back, and nothing is sent twice', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.storeErrors.settle = unavailable()
  await rig.accept([destination], 3)
  await rig.until(() => rig.settleCalls === 1)
  for (let nth = 0; nth < 100; nth++) {
    rig.clock.advance(1_000)
    await rig.untilStoreAnswered()
  }
  // The recording is retried after 0.25, 0.5, 1 and so on up to 30 seconds: about ten times in a hundred seconds.
  assert.ok(rig.settleCalls > 5 && rig.settleCalls < 15, String(rig.settleCalls))
  assert.deepEqual([receiver.received.length, rig.troubles.length], [3, 1])
  delete rig.storeErrors.settle
  rig.clock.advance(30_000)
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  await rig.untilIdle()
  assert.equal(receiver.received.length, 3)
  await rig.stop()
})

test('outcomes that wait to be recorded count towards the memory limit, so they do not pile up while the store is unavailable', async (t) => {
  const rig = await startRig(t, { memoryBytes: 30_000 })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.storeErrors.settle = unavailable()
  for (let nth = 0; nth < 40; nth++) await rig.accept([destination], 1, { properties: { pad: 'x'.repeat(2_000) } })
  for (let nth = 0; nth < 20; nth++) await rig.untilStoreAnswered()
  const sent = receiver.received.length
  assert.ok(sent < 40, String(sent))
  delete rig.storeErrors.settle
  rig.clock.advance(60_000)
  await rig.untilLedger(destination, { delivered: 40, pending: 0 })
  assert.equal(receiver.received.length, 40)
  await rig.untilIdle()
})

test('when the store reports an error, nothing more is sent at once, to no destination, until an outcome is recorded', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const [one, other] = [await rig.destination('one', { urls: [receiver.url] }), await rig.destination('other', { urls: [receiver.url] })]
  await rig.until(() => rig.claims.length === 2)
  rig.storeErrors.settle = unavailable()
  await rig.accept([one], 1)
  await rig.until(() => rig.settleCalls === 1)
  await rig.untilStoreAnswered()
  // No time has passed. A lane that may send starts requests before this returns.
  await rig.accept([one, other], 5)
  const inFlight = (): number => [...rig.delivery.states()].reduce((sum, state) => sum + state.inFlight, 0)
  assert.deepEqual([inFlight(), receiver.received.length], [0, 1])
  delete rig.storeErrors.settle
  rig.clock.advance(30_000)
  await rig.untilLedger(one, { delivered: 6, pending: 0 })
  await rig.untilLedger(other, { delivered: 5, pending: 0 })
  assert.equal(receiver.received.length, 11)
  await rig.untilIdle()
  await rig.stop()
})

test('while the store says that it cannot be written to, nothing is sent, and what waits in a sender is taken back', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 2 })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 6; nth++) await rig.accept([destination], 1)
  await rig.until(() => receiver.waiting === 2)
  rig.consumer.writable?.(false)
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 2, pending: 4 })
  await rig.until(() => [...rig.delivery.states()].every(({ inFlight }) => inFlight === 0))
  assert.equal(receiver.received.length, 2)
  rig.consumer.writable?.(true)
  await rig.untilLedger(destination, { delivered: 6, pending: 0 })
  assert.equal(receiver.received.length, 6)
  await rig.untilIdle()
  await rig.stop()
})

test('if the store does not answer for a second, nothing more is sent to the destinations whose outcomes are not recorded yet', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const [one, other] = [
    await rig.destination('one', { urls: [receiver.url] }),
    await rig.destination('other', { urls: [(await rig.receiver()).url] }),
  ]
  await rig.until(() => rig.claims.length === 2)
  rig.settleHangs = true
  await rig.accept([one], 1)
  await rig.until(() => rig.settleCalls === 1)
  rig.clock.advance(900)
  await rig.accept([one], 1)
  await rig.until(() => receiver.received.length === 2)
  rig.clock.advance(200)
  await rig.accept([one, other], 5)
  // The lane of the other destination has nothing unrecorded, so it sends. By then, this one would have sent too.
  await rig.until(() => rig.attempts.filter(({ destination }) => destination.id === other.id).length === 5)
  assert.equal(receiver.received.length, 2)
})

test('the service can stop while the store is unavailable, and sends the messages again whose outcome it could not record', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.storeErrors.settle = unavailable()
  await rig.accept([destination], 2)
  await rig.until(() => rig.settleCalls === 1)
  await rig.untilStoreAnswered()
  await rig.delivery.stop(100)
  assert.deepEqual([rig.clock.timers, rig.memory.heldBytes, (await rig.ledger(destination)).pending], [0, 0, 2])
  delete rig.storeErrors.settle
  rig.start()
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  assert.equal(receiver.received.length, 4)
  await rig.stop()
})

test('a store that never answers does not prevent the service from stopping', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.settleHangs = true
  await rig.accept([destination], 1)
  await rig.until(() => rig.settleCalls === 1)
  const startedAtMs = performance.now()
  assert.deepEqual(await rig.delivery.stop(50), { requests: 0, recorded: false })
  assert.ok(performance.now() - startedAtMs < 30_000)
  assert.equal((await rig.ledger(destination)).pending, 1)
})

test('a settlement that the store rejects is tried three times, and its deliveries are released later', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  rig.storeErrors.settle = new Error('a settlement leaves 1 deliveries without a state')
  await rig.accept([destination], 1)
  for (let nth = 0; nth < 20; nth++) {
    await rig.untilStoreAnswered()
    rig.clock.advance(1_000)
  }
  assert.deepEqual([rig.settleCalls, receiver.received.length, rig.memory.heldBytes], [3, 1, 0])
  // The rejected settlement does not block the lane.
  delete rig.storeErrors.settle
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 1, pending: 1 })
  rig.clock.advance(RELEASE_REJECTED_MS)
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  await rig.untilIdle()
  await rig.stop()
})

test('a claim is retried once a second while the store is unavailable', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 500 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1)
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  rig.storeErrors.claim = unavailable()
  const [claims, fired] = [rig.claims.length, rig.clock.fired]
  for (let nth = 0; nth < 200; nth++) {
    rig.clock.advance(100)
    await rig.untilStoreAnswered()
  }
  // The retry was due after 3.75 of the 20 seconds. A store that polls for work may have woken the stage a few more times.
  const most = ON_POSTGRES ? 30 : 18
  assert.ok(rig.claims.length - claims >= 15 && rig.claims.length - claims <= most, String(rig.claims.length - claims))
  assert.ok(rig.clock.fired - fired <= most + 2, String(rig.clock.fired - fired))
  delete rig.storeErrors.claim
  rig.clock.advance(1_000)
  await rig.untilLedger(destination, { delivered: 1, pending: 0 })
  await rig.untilIdle()
})

test('shipments that are released during a claim are claimed afterwards', async (t) => {
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
  // These are held during the claim, and released before its answer arrives.
  await rig.accept([destination], 3)
  assert.ok(rig.memory.heldBytes > 4_000)
  await rig.store.resources.updateDestination(destination.id, { enabled: false })
  await rig.store.resources.updateDestination(destination.id, { enabled: true })
  gate.open()
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 4, pending: 0 })
  await rig.untilIdle()
})

test('shipments whose claim returns after the destination was disabled, or delivery stopped, are released', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], enabled: false })
  await rig.accept([destination], 2)
  const gate = rig.claimGate()
  await rig.store.resources.updateDestination(destination.id, { enabled: true })
  await gate.reached
  await rig.store.resources.updateDestination(destination.id, { enabled: false })
  gate.open()
  await rig.untilStoreAnswered()
  assert.deepEqual([receiver.received.length, rig.memory.heldBytes], [0, 0])
  const second = rig.claimGate()
  await rig.store.resources.updateDestination(destination.id, { enabled: true })
  await second.reached
  const stopped = rig.delivery.stop(5_000)
  second.open()
  await stopped
  assert.deepEqual([receiver.received.length, rig.memory.heldBytes, (await rig.ledger(destination)).pending], [0, 0, 2])
  rig.start()
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
})

test('a reservation for messages that could not be stored is freed', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.untilStoreAnswered()
  assert.ok(rig.consumer.reserve(destination.id, 5_000))
  assert.ok(rig.memory.heldBytes >= 5_000)
  rig.consumer.cancelReservation(destination.id, 5_000)
  assert.equal(rig.memory.heldBytes, 0)
  // The destination is deleted between the reservation and its use.
  assert.ok(rig.consumer.reserve(destination.id, 5_000))
  assert.ok(rig.consumer.reserve(destination.id, 7_000))
  await rig.store.resources.deleteDestination(destination.id)
  rig.consumer.cancelReservation(destination.id, 5_000)
  const shipment: Shipment = {
    id: 1,
    claim: 1,
    destinationId: destination.id,
    attempt: 0,
    firstAttemptAtMs: null,
    dueAtMs: 0,
    unit: false,
    progress: null,
    replay: false,
    parts: [],
  }
  rig.consumer.deliver({ shipment, bodies: new Map(), bytes: 7_000 })
  assert.equal(rig.memory.heldBytes, 0)
})

test('a message that cannot be serialized is reported and retried like a failure, and blocks nothing else', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1, { type: 'unknown' })
  await rig.until(() => rig.settlements.length === 1)
  assert.deepEqual([rig.troubles.length, receiver.received.length], [1, 0])
  assert.equal(rig.settlements[0]?.records[0]?.requests[0]?.reason, 'internal_error')
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 1, pending: 1 })
  rig.clock.advance(5_000)
  await rig.until(() => rig.attempts.length === 3)
  assert.deepEqual([rig.attempts[2]?.attempt, rig.attempts[2]?.outcome.reason, rig.breakers], [2, 'internal_error', []])
  await rig.untilIdle()
})

test('an error thrown by a listener is reported and affects neither the delivery nor the lane', async (t) => {
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

test('a listener that throws because of a message that is not sent does not stop the lane', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const transformation = { code: "export default (m) => (m.messageId === 'm-1' ? 1 : m)", timeoutMs: 50, memoryMb: 8 }
  const destination = await rig.destination('one', { urls: [receiver.url], transformation, maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  rig.listenerError = new Error('the log is full')
  await rig.accept([destination], 2)
  await rig.untilLedger(destination, { delivered: 1, failed: 1, pending: 0 })
  await rig.untilIdle()
  assert.deepEqual(rig.troubles, [rig.listenerError, rig.listenerError])
})

test('the process exits by itself after stop', () => {
  const script = fileURLToPath(new URL('./fixtures/run-and-stop.ts', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8', timeout: 120_000 })
  assert.deepEqual([status, stdout, stderr], [0, 'over\n', ''])
})
