// What a destination sends while its circuit breaker is open, and when it recovers. Uses a manual clock.

import assert from 'node:assert/strict'
import test from 'node:test'
import { freePort } from '../store/fixtures/free-port.ts'
import { advanceUntil, attemptsOf, deadDestination, HOUR_MS, MINUTE_MS } from './fixtures/retried-deliveries.ts'
import { startRig } from './fixtures/rig.ts'
import { FAILURES_TO_OPEN } from './lanes/breaker.ts'

test('the breaker of a dead receiver opens, its shipments are released, and other destinations are not affected', async (t) => {
  const rig = await startRig(t)
  const healthy = await rig.receiver()
  const dead = await rig.destination('dead', { urls: [`http://127.0.0.1:${await freePort()}/`], maxInFlight: 5 })
  const alive = await rig.destination('alive', { urls: [healthy.url] })
  await rig.until(() => rig.claims.length === 2)
  for (let nth = 0; nth < 10; nth++) await rig.accept([dead, alive], 10)
  await rig.until(() => rig.breakers.length > 0)
  assert.deepEqual(rig.breakers, ['dead open'])
  await rig.untilLedger(alive, { delivered: 100 })
  await rig.untilIdle()
  const tried = rig.attempts.filter(({ destination }) => destination.id === dead.id)
  assert.ok(tried.length >= FAILURES_TO_OPEN && tried.length < FAILURES_TO_OPEN + 5)
  assert.deepEqual(await rig.ledger(dead), {
    destinationId: dead.id,
    owed: 100,
    delivered: 0,
    pending: 100,
    failed: 0,
    expired: 0,
    cancelled: 0,
  })
  // While the breaker is open, no new shipments are held and the store is not polled.
  const claims = rig.claims.length
  await rig.accept([dead], 50)
  assert.deepEqual([rig.memory.heldBytes, rig.claims.length], [0, claims])
  assert.equal(rig.delivery.health(dead.id)?.breaker, 'open')
  await rig.stop()
})

test('an open breaker allows one probe at a time, at growing intervals, with few timers', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('dead', { urls: [receiver.url], maxInFlight: 10 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 200)
  await rig.until(() => rig.breakers.length === 1)
  await rig.untilIdle()
  const before = receiver.received.length
  const openedAtMs = rig.clock.scheduleMs()
  receiver.mostAtOnce = 0
  const firedBefore = rig.clock.fired
  await advanceUntil(rig, 1_000, () => rig.clock.scheduleMs() >= openedAtMs + 5 * MINUTE_MS)
  const probes = receiver.received.slice(before).map(({ atMs }) => atMs - openedAtMs)
  const gaps = probes.map((atMs, at) => atMs - (probes[at - 1] ?? 0))
  assert.deepEqual(gaps.slice(0, 5), [2_000, 4_000, 8_000, 16_000, 32_000])
  assert.ok(gaps.slice(5).every((gap) => gap >= MINUTE_MS && gap <= MINUTE_MS + 1_000))
  assert.equal(receiver.mostAtOnce, 1)
  // Timers fire for probes, checks for overdue deliveries and due retries only. A polling loop would have fired thousands.
  assert.ok(rig.clock.fired - firedBefore < 200, String(rig.clock.fired - firedBefore))
  await rig.stop()
})

test('on recovery the requests in flight ramp up from two, and everything is delivered', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 8, timeoutMs: 20_000 })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 10; nth++) await rig.accept([destination], 10)
  await rig.until(() => rig.breakers.length === 1)
  await rig.untilIdle()
  receiver.answer = () => null
  rig.clock.advance(3_000)
  for (const atOnce of [1, 2, 4, 8, 8]) {
    await rig.until(() => receiver.waiting === atOnce)
    assert.equal(rig.delivery.health(destination.id)?.inFlight, atOnce)
    receiver.release()
  }
  assert.deepEqual(rig.breakers, ['one open', 'one closed'])
  receiver.answer = () => 200
  await advanceUntil(rig, 1_000, async () => (await rig.ledger(destination)).pending === 0)
  assert.equal((await rig.ledger(destination)).delivered, 100)
  await rig.untilIdle()
  await rig.stop()
})

test('while the breaker is open, attempted deliveries expire at the end of their window, and unattempted ones do not', async (t) => {
  const rig = await startRig(t)
  const destination = await deadDestination(rig, 50, 1)
  const startedAtMs = rig.clock.scheduleMs()
  await advanceUntil(rig, 10_000, () => rig.clock.scheduleMs() >= startedAtMs + 9 * MINUTE_MS)
  assert.equal((await rig.ledger(destination)).expired, 0)
  // All of them expire at the end of the window. Probes alone would end one per minute.
  await advanceUntil(rig, 10_000, () => rig.clock.scheduleMs() >= startedAtMs + 11 * MINUTE_MS)
  const { expired, pending } = await rig.ledger(destination)
  const tried = new Set(rig.attempts.map(({ deliveryId }) => deliveryId)).size
  assert.ok(expired >= 40 && expired <= tried, `${expired} of ${tried}`)
  assert.equal(pending, 50 - expired)
  const { data } = await rig.store.history.deliveries({ state: 'expired' }, { limit: 100, cursor: null })
  assert.ok(data.every(({ attempts }) => attempts > 0))
  await rig.stop()
})

test('a shipment that was partly attempted when the breaker opened is settled in parts', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN + 7)
  await rig.until(() => rig.breakers.length === 1)
  await rig.untilIdle()
  assert.deepEqual([receiver.received.length, rig.settlements.length, rig.troubles], [FAILURES_TO_OPEN, 1, []])
  assert.deepEqual(
    rig.settlements[0]?.remaining.map(({ attempt, firstAttemptAtMs, parts }) => [attempt, firstAttemptAtMs, parts[0]?.indexes.length]),
    [
      [1, rig.clock.scheduleMs(), FAILURES_TO_OPEN],
      [0, null, 7],
    ],
  )
  receiver.answer = () => 200
  await advanceUntil(rig, 500, async () => (await rig.ledger(destination)).pending === 0)
  const attempts = attemptsOf(receiver.received.slice(FAILURES_TO_OPEN))
  assert.deepEqual([attempts.filter((nth) => nth === '1').length, attempts.filter((nth) => nth === '2').length], [7, FAILURES_TO_OPEN])
  await rig.stop()
})

test('an open breaker with nothing to send waits for a message and then probes with it', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], retryWindowMs: 1_000, maxInFlight: FAILURES_TO_OPEN })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN)
  await rig.untilLedger(destination, { expired: FAILURES_TO_OPEN, pending: 0 })
  await rig.untilIdle()
  assert.deepEqual(rig.breakers, ['one open'])
  const fired = rig.clock.fired
  rig.clock.advance(HOUR_MS)
  assert.ok(rig.clock.fired - fired <= 2, String(rig.clock.fired - fired))
  receiver.answer = () => 200
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 1, pending: 0 })
  assert.deepEqual(rig.breakers, ['one open', 'one closed'])
})

test('a destination with several URLs counts as recovered when it answers again, even if one URL still hangs', async (t) => {
  const rig = await startRig(t)
  const [first, second] = [await rig.receiver(), await rig.receiver()]
  for (const receiver of [first, second]) receiver.answer = () => 500
  const destination = await rig.destination('two', { urls: [first.url, second.url], timeoutMs: 3_600_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN)
  await rig.until(() => rig.breakers.length === 1)
  await rig.untilIdle()
  first.answer = () => 200
  second.answer = () => null
  for (let nth = 0; rig.breakers.length === 1; nth++) {
    assert.ok(nth < 1_000, 'the destination does not recover')
    rig.clock.advance(250)
    await rig.untilStoreAnswered()
  }
  assert.deepEqual(rig.breakers, ['two open', 'two closed'])

  // A much later answer of the other URL is ignored, because the destination may be failing by then.
  await rig.until(() => second.waiting > 0)
  first.answer = second.answer = () => 500
  await rig.accept([destination], 30)
  for (let nth = 0; rig.breakers.length === 2; nth++) {
    assert.ok(nth < 1_000, 'the breaker does not open')
    rig.clock.advance(250)
    await rig.untilStoreAnswered()
  }
  second.release()
  await rig.until(() => rig.delivery.health(destination.id)?.urls[1]?.inFlight === 0)
  assert.deepEqual(rig.breakers, ['two open', 'two closed', 'two open'])
  await rig.stop(0)
})

test('a destination whose URLs are replaced while it fails counts as recovered', async (t) => {
  const rig = await startRig(t)
  const [failing, well] = [await rig.receiver(), await rig.receiver()]
  failing.answer = () => 500
  const destination = await rig.destination('one', { urls: [failing.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN)
  await rig.until(() => rig.breakers.length === 1)
  await rig.store.resources.updateDestination(destination.id, { urls: [well.url] })
  assert.deepEqual(rig.breakers, ['one open', 'one closed'])
  await rig.stop()
})

test('retrying now sends everything as soon as the receiver works, also what would be retried much later', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('back', { urls: [receiver.url], maxInFlight: 10 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 40)
  await rig.until(() => rig.breakers.length === 1)
  await rig.untilIdle()
  // Retries are hours away, and the breaker allows a request a minute.
  await advanceUntil(rig, MINUTE_MS, () => rig.clock.scheduleMs() > HOUR_MS && rig.attempts.length > FAILURES_TO_OPEN)
  await rig.untilIdle()
  const [before, nowMs] = [receiver.received.length, rig.clock.scheduleMs()]
  assert.equal(rig.delivery.retryNow(destination.id), true)
  // It still fails: one probe, and no more.
  await rig.until(() => receiver.received.length > before)
  await rig.untilIdle()
  assert.equal(receiver.received.length, before + 1)
  receiver.answer = () => 200
  assert.equal(rig.delivery.retryNow(destination.id), true)
  await rig.untilLedger(destination, { delivered: 40 })
  assert.equal(rig.clock.scheduleMs(), nowMs, 'no time had to pass')
  assert.equal(rig.delivery.retryNow('dst_none'), false)
  await rig.stop()
})

test('an ordered destination recovers although all heads have expired, and only messages behind them are left', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('ordered', {
    urls: [receiver.url],
    retryWindowMs: 10 * MINUTE_MS,
    order: { by: 'user', onFailure: 'skip', maxWaiting: 10_000 },
  })
  await rig.until(() => rig.claims.length === 1)
  const users = Array.from({ length: FAILURES_TO_OPEN - 1 }, (_, at) => `user ${at}`)
  for (let nth = 0; nth < 2; nth++) {
    for (const userId of users) await rig.accept([destination], 1, { userId })
    await rig.until(() => rig.attempts.length >= users.length)
    await rig.untilStoreAnswered()
    await rig.untilIdle()
  }
  await rig.accept([destination], 1, { userId: 'the last one' })
  await rig.until(() => rig.breakers.length === 1)
  await advanceUntil(rig, 10_000, async () => (await rig.ledger(destination)).expired === FAILURES_TO_OPEN)
  assert.equal((await rig.ledger(destination)).pending, users.length)
  receiver.answer = () => 200
  await advanceUntil(rig, 10_000, () => rig.delivery.health(destination.id)?.breaker === 'closed')
  await rig.untilLedger(destination, { delivered: users.length })
  await rig.stop()
})
