// Failed deliveries are retried when due and within their window, without blocking others. Uses a manual clock.

import assert from 'node:assert/strict'
import test from 'node:test'
import { ManualClock } from './fixtures/manual-clock.ts'
import type { Received, Receiver } from './fixtures/receiver.ts'
import { advanceUntil, attemptsOf, deadDestination, HOUR_MS, MINUTE_MS } from './fixtures/retried-deliveries.ts'
import { startRig } from './fixtures/rig.ts'

test('a 500 is retried with a growing backoff until it succeeds, under the same webhook-id', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth < 6 ? 500 : 200)
  const signingSecrets = ['whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX']
  const destination = await rig.destination('one', { urls: [receiver.url], signingSecrets })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  assert.equal(rig.delivery.health(destination.id)?.nextAttemptAtMs, rig.clock.scheduleMs() + 3_750)
  await advanceUntil(rig, 250, () => receiver.received.length === 6)
  await rig.untilLedger(destination, { delivered: 1, pending: 0 })
  const gaps = receiver.received.slice(1).map(({ atMs }, at) => atMs - (receiver.received[at] as Received).atMs)
  assert.deepEqual(gaps, [3_750, 7_500, 15_000, 30_000, 60_000])
  assert.deepEqual(attemptsOf(receiver.received), ['1', '2', '3', '4', '5', '6'])
  assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1)
  await rig.untilIdle()
  assert.equal(rig.delivery.health(destination.id)?.nextAttemptAtMs, null)
  await rig.stop()
})

test('the retry policy of a destination decides when and after which statuses it is retried, for up to 14 days', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const statuses = [409, 409, 409, 500, 503]
  receiver.answer = (_, nth) => statuses[nth - 1] ?? 200
  const retry = { initialMs: 200, maxMs: 24 * HOUR_MS, factor: 10, retryStatuses: [409], failStatuses: [503] }
  const destination = await rig.destination('one', { urls: [receiver.url], retry, retryWindowMs: 14 * 24 * HOUR_MS })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  for (const [at, waitMs] of [150, 1_500, 15_000, 150_000].entries()) {
    assert.equal(rig.delivery.health(destination.id)?.nextAttemptAtMs, rig.clock.scheduleMs() + waitMs)
    rig.clock.advance(waitMs)
    await rig.until(() => receiver.received.length === at + 2)
    await rig.untilIdle()
  }
  await rig.untilLedger(destination, { failed: 1, pending: 0 })
  // A permanent failure says that the receiver works, also if it is one by the policy.
  assert.equal(rig.delivery.health(destination.id)?.breaker, 'closed')
  await rig.stop()
})

test('a permanent failure is final immediately and keeps its reason', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 410
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 2)
  await rig.untilLedger(destination, { failed: 2, pending: 0 })
  const { data } = await rig.store.history.deliveries({ state: 'failed' }, { limit: 10, cursor: null })
  assert.deepEqual(
    data.map(({ reason, attempts }) => [reason, attempts]),
    [
      ['http_410', 1],
      ['http_410', 1],
    ],
  )
  assert.deepEqual(rig.breakers, [])
  await rig.stop()
})

test('only the messages of a shipment that failed are retried', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const failing = new Set(['m-2', 'm-4'])
  receiver.answer = ({ messages }) => (failing.delete(messages[0]?.['messageId'] as string) ? 503 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 5)
  await rig.untilLedger(destination, { delivered: 3, pending: 2 })
  rig.clock.advance(5_000)
  await rig.untilLedger(destination, { delivered: 5, pending: 0 })
  assert.deepEqual(
    receiver.received.slice(5).map(({ messages, headers }) => [messages[0]?.['messageId'], headers['x-attempt']]),
    [
      ['m-2', '2'],
      ['m-4', '2'],
    ],
  )
  await rig.stop()
})

test('Retry-After slows the whole destination, which then holds nothing in memory', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? { status: 429, headers: { 'retry-after': '120' } } : 200)
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  const startedAtMs = rig.clock.scheduleMs()
  await rig.accept([destination], 3)
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  await rig.accept([destination], 2)
  assert.equal(rig.memory.heldBytes, 0)
  assert.equal(rig.delivery.health(destination.id)?.nextAttemptAtMs, startedAtMs + 120_000)
  rig.clock.advance(119_999)
  await rig.untilStoreAnswered()
  assert.equal(receiver.received.length, 1)
  rig.clock.advance(1)
  await rig.untilLedger(destination, { delivered: 5, pending: 0 })
  assert.equal(attemptsOf(receiver.received).filter((nth) => nth === '2').length, 1)
  await rig.untilIdle()
  await rig.stop()
})

test('a Retry-After beyond the retry window blocks a destination no longer than the window', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? { status: 503, headers: { 'retry-after': '999999999' } } : 200)
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1, retryWindowMs: HOUR_MS })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1)
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  await rig.accept([destination], 1)
  await advanceUntil(rig, MINUTE_MS, async () => (await rig.ledger(destination)).pending === 0)
  // The first is due at the end of its window, when the block ends too. The second was never attempted before.
  const { delivered, expired } = await rig.ledger(destination)
  assert.equal(delivered + expired, 2)
  assert.ok(delivered >= 1)
  assert.ok(receiver.received.slice(1).every(({ atMs }) => atMs - (receiver.received[0] as Received).atMs <= HOUR_MS + MINUTE_MS))
})

test('a delivery expires when its window is over, and not before', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], retryWindowMs: 10 * MINUTE_MS })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  const firstAtMs = (receiver.received[0] as Received).atMs
  await advanceUntil(rig, 5_000, async () => (await rig.ledger(destination)).pending === 0)
  assert.equal((await rig.ledger(destination)).expired, 1)
  const lastAtMs = (receiver.received.at(-1) as Received).atMs
  assert.ok(lastAtMs - firstAtMs <= 10 * MINUTE_MS + 5_000)
  assert.ok(lastAtMs - firstAtMs >= 5 * MINUTE_MS)
  const { data } = await rig.store.history.deliveries({ state: 'expired' }, { limit: 10, cursor: null })
  assert.deepEqual(
    data.map(({ reason, attempts }) => [reason, attempts]),
    [['http_500', receiver.received.length]],
  )
  await rig.stop()
})

test('all URLs of a destination are tried at once, one success is enough, and only temporary failures are retried', async (t) => {
  const rig = await startRig(t)
  const receivers: Receiver[] = [await rig.receiver(), await rig.receiver(), await rig.receiver()]
  const [a, b, c] = receivers as [Receiver, Receiver, Receiver]
  const destination = await rig.destination('one', { urls: receivers.map(({ url }) => url) })
  await rig.until(() => rig.claims.length === 1)
  for (const receiver of receivers) receiver.answer = () => null
  await rig.accept([destination])
  await rig.until(() => receivers.every(({ waiting }) => waiting === 1))
  a.release(500)
  b.release(200)
  c.release(404)
  await rig.untilLedger(destination, { delivered: 1, pending: 0 })
  await rig.untilIdle()
  for (const receiver of receivers) receiver.received.length = 0

  a.answer = (_, nth) => (nth === 1 ? 500 : 200)
  b.answer = () => 503
  c.answer = () => 404
  await rig.accept([destination])
  await rig.until(() => receivers.every(({ received }) => received.length === 1))
  await rig.untilIdle()
  rig.clock.advance(5_000)
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  await rig.until(() => b.received.length === 2)
  assert.deepEqual(
    receivers.map(({ received }) => attemptsOf(received)),
    [['1', '2'], ['1', '2'], ['1']],
  )
  await rig.untilIdle()

  for (const receiver of receivers) receiver.answer = () => 400
  await rig.accept([destination])
  await rig.untilLedger(destination, { failed: 1, pending: 0 })
  await rig.stop()
})

test('a retry whose window ends during a pause is made once after the pause', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], retryWindowMs: HOUR_MS })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  await rig.store.resources.updateDestination(destination.id, { paused: true })
  rig.clock.advance(2 * HOUR_MS)
  await rig.untilStoreAnswered()
  assert.equal(receiver.received.length, 1)
  await rig.store.resources.updateDestination(destination.id, { paused: false })
  await rig.untilLedger(destination, { expired: 1, pending: 0 })
  assert.deepEqual(attemptsOf(receiver.received), ['1', '2'])
  await rig.stop()
})

test('large batches whose windows end together are recorded in settlements of limited size', async (t) => {
  const rig = await startRig(t)
  const destination = await deadDestination(rig, 12, 1_000)
  await advanceUntil(rig, 10_000, async () => (await rig.ledger(destination)).expired === 12_000)
  const expired = rig.settled.map((event) => event.expired).filter((count) => count > 0)
  assert.ok(Math.max(...expired) <= 5_000, expired.join())
  await rig.stop()
  assert.equal(rig.memory.heldBytes, 0)
})

test('with a limit of one request in flight, first attempts and retries alternate', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth <= 8 ? 500 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 8)
  await rig.until(() => receiver.received.length === 8)
  await rig.untilIdle()
  receiver.answer = () => null
  await rig.accept([destination], 8)
  await rig.until(() => receiver.waiting === 1)
  // The retries are claimed while first attempts use the whole limit.
  rig.clock.advance(10_000)
  await rig.untilStoreAnswered()
  receiver.release()
  for (let nth = 1; nth < 16; nth++) {
    await rig.until(() => receiver.waiting === 1)
    receiver.release()
  }
  await rig.untilLedger(destination, { delivered: 16 })
  const order = attemptsOf(receiver.received.slice(8)).join('')
  assert.match(order, /^1(21){7}2$/)
  await rig.stop()
})

test('if both are waiting, retries get half of the limit, and first attempts the rest', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 6, timeoutMs: 20_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 8)
  await rig.until(() => receiver.received.length === 8)
  await rig.untilIdle()
  receiver.answer = () => null
  await rig.accept([destination], 20)
  await rig.until(() => receiver.waiting === 6)
  rig.clock.advance(10_000)
  await rig.untilStoreAnswered()
  receiver.release()
  await rig.until(() => receiver.waiting === 6)
  const kinds = attemptsOf(receiver.received.slice(-6))
  assert.deepEqual([kinds.filter((nth) => nth === '1').length, kinds.filter((nth) => nth === '2').length], [3, 3])
  await rig.stop(0)
})

test('when the wall clock jumps an hour either way, nothing expires early and no retry is delayed', async (t) => {
  for (const jumpMs of [HOUR_MS, -HOUR_MS]) {
    const rig = await startRig(t)
    const receiver = await rig.receiver()
    receiver.answer = (_, nth) => (nth < 4 ? 500 : 200)
    const destination = await rig.destination('one', { urls: [receiver.url], retryWindowMs: 30 * MINUTE_MS })
    await rig.until(() => rig.claims.length === 1)
    await rig.accept([destination])
    await rig.until(() => receiver.received.length === 1)
    await rig.untilIdle()
    rig.clock.jumpWall(jumpMs)
    await advanceUntil(rig, 250, () => receiver.received.length === 4)
    await rig.untilLedger(destination, { delivered: 1, expired: 0, pending: 0 })
    const gaps = receiver.received.slice(1).map(({ atMs }, at) => atMs - (receiver.received[at] as Received).atMs)
    assert.deepEqual(gaps, [3_750, 7_500, 15_000])
    await rig.stop()
  }
})

test('after a restart with schedule time ahead of the wall clock, retries are made when due', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 500 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  await rig.stop()
  // The next process finds the wall clock two hours behind, and continues from the last schedule time.
  rig.clock.jumpWall(-2 * HOUR_MS)
  rig.start()
  await rig.until(() => rig.claims.length === 2)
  await rig.untilStoreAnswered()
  assert.equal(receiver.received.length, 1)
  await advanceUntil(rig, 250, () => receiver.received.length === 2)
  assert.equal((receiver.received[1] as Received).atMs - (receiver.received[0] as Received).atMs, 3_750)
  await rig.untilLedger(destination, { delivered: 1 })
  await rig.stop()
})

test('a retry whose window ended while the service was down is tried once more', async (t) => {
  const clock = new ManualClock()
  const rig = await startRig(t, { clock })
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 500 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1)
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  await rig.stop()
  await rig.accept([destination], 1)
  clock.advance(24 * HOUR_MS)
  rig.start()
  await rig.untilLedger(destination, { delivered: 2, expired: 0, pending: 0 })
  await rig.stop()
})

test('a replay is sent immediately, on its own, and is marked as a replay', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 400 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.untilLedger(destination, { failed: 1 })
  const { data } = await rig.store.history.deliveries({ state: 'failed' }, { limit: 1, cursor: null })
  await rig.store.replays.replay(data[0]?.id as string)
  await rig.untilLedger(destination, { owed: 2, failed: 1, delivered: 1 })
  assert.deepEqual(
    receiver.received.map(({ headers }) => [headers['x-attempt'], headers['x-replay']]),
    [
      ['1', undefined],
      ['1', 'true'],
    ],
  )
  await rig.untilIdle()
})
