// Outcomes are recorded while the rest of their shipment is in progress: within a second, and before there are 100 of them.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { ClaimLost, type Settlement } from '../store/store.ts'
import type { Received } from './fixtures/receiver.ts'
import { type Rig, startRig, unavailable } from './fixtures/rig.ts'
import { RELEASE_REJECTED_MS } from './recording/settlement-recorder.ts'

function endedIn({ records }: Settlement): number {
  return records.flatMap(({ finals }) => finals.flatMap(({ indexes }) => indexes)).length
}

function keptIn({ kept }: Settlement): number {
  return kept.flatMap(({ parts }) => parts.flatMap(({ indexes }) => indexes)).length
}

function idOf({ messages }: Received): unknown {
  return messages[0]?.['messageId']
}

/** Answers all requests that wait at the receiver, and waits until the answers have arrived. */
async function answerAll(rig: Rig, receiver: Awaited<ReturnType<Rig['receiver']>>, status = 200): Promise<void> {
  const attempts = rig.attempts.length + receiver.waiting
  receiver.release(status)
  await rig.until(() => rig.attempts.length >= attempts)
}

test('outcomes are recorded within half a second, while the rest of the shipment is in flight', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth <= 3 ? 200 : null)
  const destination = await rig.destination('slow', { urls: [receiver.url], maxInFlight: 2, timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 10)
  await rig.until(() => receiver.waiting === 2 && rig.attempts.length === 3)
  assert.equal(rig.settlements.length, 0)
  rig.clock.advance(499)
  await rig.untilStoreAnswered()
  assert.equal(rig.settlements.length, 0)
  rig.clock.advance(1)
  await rig.untilLedger(destination, { owed: 10, delivered: 3, pending: 7 })
  await rig.assertBooksAgree()
  const pending = await rig.store.history.deliveries({ state: 'pending' }, { limit: 20, cursor: null })
  assert.equal(pending.data.length, 7)
  // The shipment is still held, so no other node can claim it.
  const claim = { destinationId: destination.id, nowMs: rig.clock.scheduleMs(), maxFresh: 10, maxRetries: 10, maxBytes: 1_000_000 }
  assert.deepEqual((await rig.store.delivery.claim(claim)).shipments, [])

  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 10, pending: 0 })
  await rig.untilIdle()
  assert.equal(receiver.received.length, 10)
  assert.deepEqual(rig.settlements.map(endedIn), [3, 7])
  assert.deepEqual(rig.troubles, [])
  await rig.stop()
})

test('outcomes of a large shipment are recorded before there are a hundred; a shipment of a hundred is recorded once', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 50, timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 160)
  for (const [nth, waiting] of [50, 50, 50, 10].entries()) {
    await rig.until(() => receiver.waiting === waiting)
    assert.equal(rig.settlements.length, nth)
    receiver.release()
    await rig.until(() => rig.settlements.length === nth + 1)
  }
  assert.deepEqual(
    rig.settlements.map((settlement) => [endedIn(settlement), keptIn(settlement)]),
    [
      [50, 110],
      [50, 60],
      [50, 10],
      [10, 0],
    ],
  )
  await rig.untilLedger(destination, { delivered: 160 })
  await rig.accept([destination], 100)
  for (const waiting of [50, 50]) {
    await rig.until(() => receiver.waiting === waiting)
    receiver.release()
  }
  await rig.untilLedger(destination, { delivered: 260 })
  await rig.untilIdle()
  assert.deepEqual(rig.settlements.slice(4).map(endedIn), [100])
  await rig.stop()
})

test('a message that fails early in a long shipment is retried when due, while the rest is in flight', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 500 : null)
  const destination = await rig.destination('slow', { urls: [receiver.url], maxInFlight: 2, timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.until(() => receiver.waiting === 2)
  rig.clock.advance(500)
  await rig.until(() => rig.settlements.length === 1)
  await answerAll(rig, receiver)
  rig.clock.advance(4_000)
  await rig.until(() => receiver.received.length === 4)
  assert.deepEqual([idOf(receiver.received[3] as Received), receiver.received[3]?.headers['x-attempt']], ['m-1', '2'])
  receiver.release()
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  await rig.untilIdle()
  await rig.stop()
})

test('each message of a shipment is retried within its own window', async (t) => {
  const windowMs = 10_000
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('failing', { urls: [receiver.url], maxInFlight: 1, timeoutMs: 60_000, retryWindowMs: windowMs })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 4)
  for (let nth = 0; (await rig.ledger(destination)).pending > 0; nth++) {
    assert.ok(nth < 200, 'the deliveries do not end')
    await rig.untilStoreAnswered()
    rig.clock.advance(1_000)
    await rig.untilStoreAnswered()
    if (nth % 3 === 2 && receiver.waiting > 0) await answerAll(rig, receiver, 500)
  }
  const tries = new Map<unknown, number[]>()
  for (const received of receiver.received) tries.set(idOf(received), [...(tries.get(idOf(received)) ?? []), received.atMs])
  assert.equal(tries.size, 4)
  for (const [id, times] of tries) {
    const lastedMs = (times.at(-1) as number) - (times[0] as number)
    // A retry that is due while another one is in flight waits for it.
    assert.ok(lastedMs <= windowMs + 3_000, `${String(id)} was tried for ${lastedMs} ms`)
  }
  await rig.stop()
})

test('a delivery is recorded although one of its URLs hangs, and the answer of that URL is recorded later', async (t) => {
  const rig = await startRig(t)
  const [good, hanging] = [await rig.receiver(), await rig.receiver()]
  hanging.answer = () => null
  const destination = await rig.destination('two', { urls: [good.url, hanging.url], timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 2)
  await rig.until(() => good.received.length === 2 && hanging.waiting === 2)
  // No event is emitted for the first answer.
  while (rig.delivery.health(destination.id)?.inFlight !== 0) await rig.untilStoreAnswered()
  rig.clock.advance(500)
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  await rig.assertBooksAgree()
  assert.equal(rig.memory.heldBytes, 0)
  hanging.release(503)
  await rig.until(() => rig.settlements.length === 2)
  const { data } = await rig.store.history.deliveries({ state: 'delivered' }, { limit: 10, cursor: null })
  assert.deepEqual(
    data.map(({ attempts }) => attempts),
    [1, 1],
  )
  const detail = await rig.store.history.delivery((data[0] as (typeof data)[0]).id)
  assert.deepEqual(
    detail?.history.map(({ attempt, url, status }) => [attempt, url, status]),
    [
      [1, good.url, 200],
      [1, hanging.url, 503],
    ],
  )
  assert.equal(detail?.state, 'delivered')
  await rig.untilIdle()
  await rig.stop()
})

test('when delivery stops in the middle of a shipment, the rest is released and sent after the next start', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth <= 4 ? 200 : null)
  const destination = await rig.destination('slow', { urls: [receiver.url], maxInFlight: 1, timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 8)
  await rig.until(() => receiver.waiting === 1)
  rig.clock.advance(500)
  await rig.untilLedger(destination, { delivered: 4, pending: 4 })
  await rig.stop(0)
  assert.deepEqual([rig.memory.heldBytes, rig.slots.free, rig.clock.timers], [0, rig.slotCount, 0])
  receiver.answer = () => 200
  receiver.release()
  rig.start()
  await rig.untilLedger(destination, { delivered: 8, pending: 0 })
  const times = new Map<unknown, number>()
  for (const received of receiver.received) times.set(idOf(received), (times.get(idOf(received)) ?? 0) + 1)
  assert.deepEqual([...times.values()], [1, 1, 1, 1, 2, 1, 1, 1])
  await rig.untilIdle()
  await rig.stop()
})

/** Sends a shipment to a receiver that has answered the first message and keeps the second one waiting. */
async function oneAnswered(t: TestContext, messages: number, timeoutMs = 60_000) {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 200 : null)
  const destination = await rig.destination('slow', { urls: [receiver.url], maxInFlight: 1, timeoutMs })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], messages)
  await rig.until(() => receiver.waiting === 1)
  return { rig, receiver, destination }
}

test('a message purged while its shipment is in progress is not sent, and is recorded as cancelled before the rest ends', async (t) => {
  const { rig, receiver, destination } = await oneAnswered(t, 4)
  rig.clock.advance(500)
  await rig.untilLedger(destination, { delivered: 1, pending: 3 })
  await rig.store.deletions.create({ userIds: ['user of m-3'], sourceIds: null, suppress: false })
  while ((await rig.ledger(destination)).cancelled === 0) {
    rig.clock.advance(500)
    await rig.untilStoreAnswered()
  }
  assert.equal(receiver.waiting, 1)
  receiver.answer = () => 200
  receiver.release()
  // The delivered messages include the delete message.
  await rig.untilLedger(destination, { delivered: 4, cancelled: 1, pending: 0 })
  assert.deepEqual(receiver.received.map(idOf).filter(Boolean).map(String).sort(), ['m-1', 'm-2', 'm-4'])
  await rig.untilIdle()
  await rig.stop()
})

test('when a destination is deleted in the middle of a shipment, the request in flight is completed and the rest is cancelled', async (t) => {
  const { rig, receiver, destination } = await oneAnswered(t, 4)
  rig.clock.advance(500)
  await rig.untilLedger(destination, { delivered: 1, pending: 3 })
  await rig.store.resources.deleteDestination(destination.id)
  receiver.release()
  await rig.untilLedger(destination, { delivered: 2, cancelled: 2, pending: 0 })
  await rig.untilIdle()
  await rig.stop()
})

test('if the store rejects the outcomes of a shipment, the rest is not sent, and the whole shipment is released later', async (t) => {
  const { rig, receiver, destination } = await oneAnswered(t, 5, 3_600_000)
  rig.storeErrors.settle = new Error('refused')
  for (const [tries, ms] of [500, 250, 500].entries()) {
    rig.clock.advance(ms)
    await rig.until(() => rig.settleCalls === tries + 1)
    await rig.untilStoreAnswered()
    // Another outcome, which is recorded only after the earlier ones.
    if (tries === 0) await answerAll(rig, receiver)
  }
  delete rig.storeErrors.settle
  await rig.until(() => receiver.waiting === 1)
  rig.clock.advance(5_000)
  await answerAll(rig, receiver)
  await rig.untilIdle()
  assert.deepEqual([receiver.received.map(idOf), rig.settleCalls], [['m-1', 'm-2', 'm-3'], 3])
  receiver.answer = () => 200
  rig.clock.advance(RELEASE_REJECTED_MS)
  await rig.untilLedger(destination, { delivered: 5, pending: 0 })
  assert.deepEqual(receiver.received.slice(3).map(idOf), ['m-1', 'm-2', 'm-3', 'm-4', 'm-5'])
  await rig.untilIdle()
  await rig.stop()
})

test('a node that has lost its claim on a shipment learns it when it records outcomes, and sends nothing more of it', async (t) => {
  const { rig, receiver } = await oneAnswered(t, 5)
  rig.storeErrors.settle = new ClaimLost('another node holds the claim')
  rig.clock.advance(500)
  await rig.until(() => rig.troubles.length === 1)
  await answerAll(rig, receiver)
  await rig.untilIdle()
  assert.deepEqual([receiver.received.length, rig.settleCalls], [2, 1])
  await rig.stop()
})

test('a shipment that ends while earlier outcomes of it are being recorded does not delay the recording of later ones', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 200 : null)
  const batch = { size: 100, bytes: 500_000, lingerMs: 0 }
  const destination = await rig.destination('batches', { urls: [receiver.url], batch, maxInFlight: 3, timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  rig.storeErrors.settle = unavailable()
  await rig.accept([destination], 300)
  await rig.until(() => rig.settleCalls === 1 && receiver.waiting === 2)
  await answerAll(rig, receiver)
  delete rig.storeErrors.settle
  await rig.untilStoreAnswered()
  rig.clock.advance(250)
  await rig.untilLedger(destination, { delivered: 300 })
  await rig.untilIdle()

  const before = rig.settlements.length
  const seen = receiver.received.length
  receiver.answer = (_, nth) => (nth === seen + 1 ? 200 : null)
  await rig.accept([destination], 300)
  await rig.until(() => receiver.waiting === 2 && rig.attempts.length === 4)
  await rig.untilStoreAnswered()
  assert.deepEqual(rig.settlements.slice(before).map(endedIn), [100], 'recorded immediately, because there are more than fifty')
  receiver.release()
  await rig.untilLedger(destination, { delivered: 600 })
  await rig.untilIdle()
  await rig.stop()
})
