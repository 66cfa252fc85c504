import assert from 'node:assert/strict'
import test from 'node:test'
import { startRig } from './fixtures/rig.ts'

const THREAD = new URL('./sender/sender-thread.ts', import.meta.url)
const FAILING = new URL('./fixtures/failing-sender-thread.ts', import.meta.url)

test('a sender thread gets more work than may be in flight, and sends no more at a time than allowed', async (t) => {
  const rig = await startRig(t, { thread: THREAD })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 4 })
  await rig.until(() => rig.claims.length === 1)
  // The sender runs ahead once it has seen that the receiver answers quickly.
  await rig.accept([destination], 20)
  await rig.untilLedger(destination, { delivered: 20 })
  receiver.answer = () => null
  for (let nth = 0; nth < 4; nth++) await rig.accept([destination], 5)
  for (let nth = 0; nth < 5; nth++) {
    await rig.until(() => receiver.received.length === 20 + 4 * (nth + 1))
    assert.deepEqual([receiver.waiting, rig.delivery.health(destination.id)?.inFlight], [4, 4])
    receiver.release()
  }
  await rig.untilLedger(destination, { owed: 40, delivered: 40, pending: 0 })
  await rig.untilIdle()
})

test('when a receiver fails, what waits in the sender thread is taken back, and nothing is lost or counted as an attempt', async (t) => {
  const rig = await startRig(t, { thread: THREAD })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 4 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 20)
  await rig.untilLedger(destination, { delivered: 20 })
  receiver.answer = () => 503
  await rig.accept([destination], 100)
  await rig.until(() => rig.breakers.length === 1)
  await rig.untilIdle()
  const failed = rig.attempts.filter(({ outcome }) => outcome.verdict !== 'success').length
  assert.ok(failed < 30, `${failed} attempts although the receiver fails`)
  assert.equal(receiver.received.length, 20 + failed)
  await rig.untilLedger(destination, { owed: 120, delivered: 20, pending: 100 })
  receiver.answer = () => 200
  while ((await rig.ledger(destination)).delivered < 120) {
    rig.clock.advance(10_000)
    await rig.untilStoreAnswered()
  }
  await rig.untilIdle()
  assert.equal(receiver.received.length, rig.attempts.length)
})

test('a sender thread that crashes is replaced: its requests are recorded as lost, and retried without judging the receiver', async (t) => {
  const rig = await startRig(t, { thread: FAILING })
  const receiver = await rig.receiver()
  const crashing = new URL('/crash', receiver.url).href
  const [destination, other] = [await rig.destination('one', { urls: [crashing] }), await rig.destination('two', { urls: [receiver.url] })]
  await rig.until(() => rig.claims.length === 2)
  await rig.accept([destination], 3)
  await rig.until(() => rig.attempts.length >= 3)
  assert.deepEqual(new Set(rig.attempts.map(({ outcome }) => outcome.reason)), new Set(['sender_lost']))
  assert.deepEqual([rig.breakers, receiver.received.length], [[], 0])
  await rig.store.resources.updateDestination(destination.id, { urls: [receiver.url] })
  await rig.accept([other], 2)
  for (const each of [destination, other]) {
    while ((await rig.ledger(each)).pending > 0) {
      rig.clock.advance(10_000)
      await rig.untilStoreAnswered()
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  await rig.untilLedger(destination, { owed: 3, delivered: 3 })
  await rig.untilLedger(other, { owed: 2, delivered: 2 })
  assert.equal(receiver.received.length, 5)
})

test('a stop takes back what waits in a sender thread', async (t) => {
  const rig = await startRig(t, { thread: THREAD })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 2, timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 20)
  await rig.untilLedger(destination, { delivered: 20 })
  receiver.answer = () => null
  await rig.accept([destination], 10)
  await rig.until(() => receiver.waiting === 2)
  await rig.stop(0)
  await rig.untilLedger(destination, { owed: 30, delivered: 20, pending: 10 })
  assert.equal(rig.attempts.length, 20)
})
