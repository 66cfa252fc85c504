// How new messages get from acceptance to a recorded outcome, the limits on the way, and how the stage follows the configuration.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Destination } from '../store/store.ts'
import { contentOf, items } from './fixtures/claimed-shipments.ts'
import { startRig } from './fixtures/rig.ts'
import { chargeOf } from './recording/memory.ts'

function idsOf(received: readonly { messages: Record<string, unknown>[] }[]): unknown[] {
  return received.flatMap(({ messages }) => messages.map(({ messageId }) => messageId))
}

test('accepted messages are delivered from memory and recorded, with nothing read back', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  const sent = await rig.accept([destination], 3)
  await rig.untilLedger(destination, { owed: 3, delivered: 3, pending: 0 })
  assert.deepEqual(new Set(idsOf(receiver.received)), new Set(sent))
  assert.deepEqual([rig.claimed, rig.settlements.length, rig.releases], [0, 1, []])
  await rig.untilIdle()
  assert.deepEqual(
    rig.attempts.map(({ messages, attempt, count, url }) => [messages[0]?.messageId, attempt, count, url]),
    sent.map((id) => [id, 1, 1, receiver.url]),
  )
  const { breaker, inFlight, success, nextAttemptAtMs, urls } = rig.delivery.health(destination.id) ?? assert.fail()
  assert.deepEqual([breaker, inFlight, success, nextAttemptAtMs], ['closed', 0, 1, null])
  assert.deepEqual(
    urls.map(({ url, inFlight: at, success: ok }) => [url, at, ok]),
    [[receiver.url, 0, 1]],
  )
  assert.equal(rig.delivery.health('dst_unknown'), undefined)
  await rig.stop()
})

test('deliveries that were pending before the start are claimed and sent', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], enabled: false })
  for (let nth = 0; nth < 40; nth++) await rig.accept([destination], 2)
  await rig.store.resources.updateDestination(destination.id, { enabled: true })
  await rig.untilLedger(destination, { delivered: 80, pending: 0 })
  assert.equal(new Set(idsOf(receiver.received)).size, 80)
  await rig.untilIdle()
  await rig.stop()
})

test('a destination never has more requests in flight than it allows', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 3 })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 4; nth++) await rig.accept([destination], 5)
  for (let left = 20; left > 0; left -= 3) {
    await rig.until(() => receiver.waiting === Math.min(3, left))
    assert.equal(rig.delivery.health(destination.id)?.inFlight, receiver.waiting)
    receiver.release()
  }
  await rig.untilLedger(destination, { delivered: 20 })
  assert.equal(receiver.mostAtOnce, 3)
})

test('a lane whose requests hang does not use up the slots of other lanes', async (t) => {
  const rig = await startRig(t, { slots: 4 })
  const [slow, quick] = [await rig.receiver(), await rig.receiver()]
  slow.answer = () => null
  const hanging = await rig.destination('slow', { urls: [slow.url], maxInFlight: 3, timeoutMs: 10_000 })
  const healthy = await rig.destination('quick', { urls: [quick.url], maxInFlight: 10 })
  await rig.until(() => rig.claims.length === 2)
  await rig.accept([hanging], 30)
  await rig.until(() => slow.waiting === 3)
  await rig.accept([healthy], 50)
  await rig.untilLedger(healthy, { delivered: 50 })
  assert.deepEqual([quick.mostAtOnce, slow.waiting], [1, 3])
  assert.deepEqual(await rig.delivery.stop(0), { requests: 3, recorded: true })
  await rig.stop(0)
})

test('every request uses a slot, even to a URL that hangs while another URL answers, and other destinations still get slots', async (t) => {
  const rig = await startRig(t, { slots: 40 })
  const [good, hanging, quick] = [await rig.receiver(), await rig.receiver(), await rig.receiver()]
  hanging.answer = () => null
  const urls = [good.url, ...[1, 2, 3, 4].map((nth) => `${hanging.url}/${nth}`)]
  const slow: Destination[] = []
  for (const name of ['a', 'b', 'c']) slow.push(await rig.destination(name, { urls, maxInFlight: 1, timeoutMs: 60_000 }))
  const other = await rig.destination('quick', { urls: [quick.url] })
  await rig.until(() => rig.claims.length === 4)
  await rig.accept(slow, 30)
  await rig.accept([other], 50)
  // The lanes do not wait for hanging requests until these use half of the slots; then each lane sends one delivery at a time.
  await rig.untilLedger(other, { delivered: 50 })
  await rig.until(() => hanging.waiting === 20 + 3 * 4)
  assert.deepEqual([rig.slots.free, good.received.length], [8, 8])
  hanging.answer = () => 503
  hanging.release(503)
  for (const destination of slow) await rig.untilLedger(destination, { delivered: 30, pending: 0 })
  await rig.untilIdle()
  assert.ok(good.mostAtOnce + hanging.mostAtOnce <= 40, `${good.mostAtOnce} and ${hanging.mostAtOnce} at once`)
  await rig.stop()
})

test('a backlog that exceeds memory stays in the store, is claimed later, and every message is delivered once', async (t) => {
  const rig = await startRig(t, { memoryBytes: 40_000 })
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 2 })
  await rig.until(() => rig.claims.length === 1)
  const sent: string[] = []
  for (let nth = 0; nth < 60; nth++) sent.push(...(await rig.accept([destination], 1, { properties: { pad: 'x'.repeat(1_000) } })))
  assert.ok(rig.memory.heldBytes <= 40_000, String(rig.memory.heldBytes))
  await rig.until(() => receiver.waiting === 2)
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 60, pending: 0 })
  assert.deepEqual(idsOf(receiver.received), sent)
  assert.ok(rig.claims.length > 1)
  await rig.untilIdle()
  // Once it has caught up, messages are delivered from memory again.
  const claims = rig.claims.length
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 61 })
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 62 })
  assert.ok(rig.claims.length <= claims + 1)
  await rig.stop()
})

test('a lane that fills the memory does not block another lane', async (t) => {
  const rig = await startRig(t, { memoryBytes: 20_000 })
  const [slow, quick] = [await rig.receiver(), await rig.receiver()]
  slow.answer = () => null
  const hanging = await rig.destination('slow', { urls: [slow.url], maxInFlight: 1, timeoutMs: 10_000 })
  const healthy = await rig.destination('quick', { urls: [quick.url] })
  await rig.until(() => rig.claims.length === 2)
  for (let nth = 0; nth < 10; nth++) await rig.accept([hanging], 1, { properties: { pad: 'x'.repeat(2_000) } })
  await rig.until(() => slow.waiting === 1)
  for (let nth = 0; nth < 20; nth++) await rig.accept([healthy], 1, { properties: { pad: 'x'.repeat(8_000) } })
  await rig.untilLedger(healthy, { delivered: 20 })
  await rig.stop(0)
})

test('a wake-up during a claim is not lost', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  const claim = rig.claimGate()
  rig.consumer.wake(destination.id)
  await claim.reached
  // The claim has already read the store, so it does not see what is added now.
  assert.equal(rig.consumer.reserve(destination.id, 10), true)
  rig.consumer.cancelReservation(destination.id, 10)
  rig.consumer.wake(destination.id)
  claim.open()
  await rig.until(() => rig.claims.length === 3)
  await rig.untilIdle()
})

test('the deliveries of a disabled destination stay pending and are sent once it is enabled', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.accept([destination], 2)
  await rig.until(() => receiver.waiting === 1)
  await rig.store.resources.updateDestination(destination.id, { enabled: false })
  receiver.release()
  await rig.untilLedger(destination, { delivered: 1, pending: 4 })
  await rig.untilIdle()
  await rig.accept([destination], 1)
  rig.clock.advance(10 * 3_600_000)
  assert.deepEqual([receiver.received.length, rig.delivery.health(destination.id)?.nextAttemptAtMs], [1, null])
  receiver.answer = () => 200
  await rig.store.resources.updateDestination(destination.id, { enabled: true })
  await rig.untilLedger(destination, { delivered: 6, pending: 0 })
  assert.deepEqual(
    receiver.received.map(({ headers }) => headers['x-attempt']),
    Array(6).fill('1'),
  )
  assert.equal(new Set(idsOf(receiver.received)).size, 6)
  await rig.untilIdle()
  await rig.stop()
})

test('a paused destination is sent nothing, even after a restart, and everything pending is sent when it is resumed', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.until(() => receiver.waiting === 1)
  await rig.store.resources.updateDestination(destination.id, { paused: true })
  // The request in flight is completed.
  receiver.release()
  await rig.untilLedger(destination, { delivered: 1, pending: 2 })
  await rig.untilIdle()
  await rig.accept([destination], 4)
  rig.clock.advance(10 * 3_600_000)
  await rig.untilStoreAnswered()
  assert.deepEqual([receiver.received.length, rig.memory.heldBytes, rig.delivery.health(destination.id)?.nextAttemptAtMs], [1, 0, null])
  await rig.delivery.stop(5_000)
  rig.start()
  await rig.accept([destination], 1)
  await rig.untilStoreAnswered()
  assert.equal(receiver.received.length, 1)
  receiver.answer = () => 200
  // A disabled destination that is resumed is still disabled.
  await rig.store.resources.updateDestination(destination.id, { enabled: false })
  await rig.store.resources.updateDestination(destination.id, { paused: false })
  await rig.untilStoreAnswered()
  assert.equal(receiver.received.length, 1)
  await rig.store.resources.updateDestination(destination.id, { enabled: true })
  await rig.untilLedger(destination, { delivered: 8, pending: 0 })
  assert.equal(new Set(idsOf(receiver.received)).size, 8)
  assert.equal(receiver.received.length, 8)
  await rig.untilIdle()
  await rig.stop()
})

test('requests in flight to a deleted destination are completed, and its other deliveries are cancelled', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 2 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  for (let nth = 0; nth < 5; nth++) await rig.accept([destination], 1)
  await rig.until(() => receiver.waiting === 2)
  await rig.store.resources.deleteDestination(destination.id)
  receiver.release()
  await rig.untilLedger(destination, { delivered: 2, cancelled: 6, pending: 0 })
  assert.equal(receiver.received.length, 2)
  await rig.untilIdle()
  assert.deepEqual([rig.troubles, rig.delivery.health(destination.id)], [[], undefined])
  await rig.stop()
})

test('a request in flight to a deleted destination that fails is cancelled, not retried', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 2)
  await rig.until(() => receiver.waiting === 2)
  await rig.store.resources.deleteDestination(destination.id)
  receiver.release(500)
  await rig.untilIdle()
  await rig.untilLedger(destination, { cancelled: 2, pending: 0 })
  rig.clock.advance(3_600_000)
  assert.equal(receiver.received.length, 2)
  await rig.stop()
})

test('after a change of URL, requests that fail at the old URL are retried at the new one and do not count against it', async (t) => {
  const rig = await startRig(t)
  const [old, now] = [await rig.receiver(), await rig.receiver()]
  old.answer = () => null
  const destination = await rig.destination('one', { urls: [old.url], maxInFlight: 20 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 20)
  await rig.until(() => old.waiting === 20)
  await rig.store.resources.updateDestination(destination.id, { urls: [now.url] })
  old.release(503)
  await rig.untilIdle()
  assert.deepEqual([rig.breakers, rig.delivery.health(destination.id)?.success], [[], null])
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 1 })
  rig.clock.advance(6_000)
  await rig.untilLedger(destination, { delivered: 21, pending: 0 })
  assert.deepEqual([old.received.length, now.received.length], [20, 21])
  await rig.untilIdle()
})

test('messages purged while they are waiting are not sent and end as cancelled', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 2, { userId: 'kept' })
  await rig.accept([destination], 2, { userId: 'gone' })
  await rig.accept([destination], 1, { userId: 'kept' })
  await rig.until(() => receiver.waiting === 1)
  await rig.store.deletions.create({ userIds: ['gone'], sourceIds: null, suppress: false })
  await rig.untilLedger(destination, { cancelled: 2 })
  receiver.answer = () => 200
  receiver.release()
  // Three messages of the other user, and the delete message.
  await rig.untilLedger(destination, { delivered: 4, cancelled: 2, pending: 0 })
  assert.deepEqual(
    receiver.received.map(({ messages }) => [messages[0]?.['type'], messages[0]?.['userId']]),
    [
      ['track', 'kept'],
      ['track', 'kept'],
      ['track', 'kept'],
      ['delete', 'gone'],
    ],
  )
  await rig.untilIdle()
  assert.deepEqual(rig.troubles, [])
  await rig.stop()
})

test('a purge of all messages that a task has left settles the task once', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 200 : null)
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1, { userId: 'kept' })
  await rig.untilLedger(destination, { delivered: 1 })
  await rig.accept([destination], 1, { userId: 'kept' })
  await rig.until(() => receiver.waiting === 1)
  await rig.accept([destination], 3, { userId: 'gone' })
  await rig.store.deletions.create({ userIds: ['gone'], sourceIds: null, suppress: false })
  await rig.untilLedger(destination, { cancelled: 3 })
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 3, cancelled: 3, pending: 0 })
  await rig.untilIdle()
  assert.deepEqual(rig.troubles, [])
})

test('stopping completes the requests in flight, releases the rest, and leaves no timer behind', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 2 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.accept([destination], 4)
  await rig.until(() => receiver.waiting === 2)
  const stopped = rig.delivery.stop(5_000)
  receiver.release()
  await stopped
  assert.deepEqual([receiver.received.length, rig.clock.timers], [2, 0])
  await rig.assertBooksAgree()
  const { delivered, pending } = await rig.ledger(destination)
  assert.deepEqual([delivered, pending], [2, 5])
  assert.deepEqual([rig.memory.heldBytes, rig.slots.free, rig.troubles], [0, rig.slotCount, []])
  // Messages accepted after that stay in the store.
  await rig.accept([destination], 1)
  assert.equal((await rig.ledger(destination)).pending, 6)
})

test('shipments that arrive after the stop are recorded or released, and leave no timer behind', async (t) => {
  const rig = await startRig(t)
  const destination = await rig.destination('one', { urls: ['http://127.0.0.1:9/'], paused: true })
  await rig.accept([destination], 2)
  const request = { destinationId: destination.id, nowMs: rig.clock.scheduleMs(), maxFresh: 1, maxRetries: 0, maxBytes: 1_000_000 }
  const [claimed] = (await rig.store.delivery.claim(request)).shipments
  assert.ok(claimed)
  await rig.delivery.stop(0)
  // The user of the first message was deleted in the meantime, which is recorded as the outcome.
  const bodies = new Map([...claimed.bodies].map(([id, body]) => [id, body.without([0])]))
  rig.memory.add(chargeOf(claimed.bytes))
  rig.consumer.deliver({ ...claimed, bodies })
  await rig.untilLedger(destination, { cancelled: 1, pending: 1 })
  await rig.untilStoreAnswered()
  assert.deepEqual([rig.clock.timers, rig.memory.heldBytes, rig.troubles], [0, 0, []])
})

test('shipments still in flight at the end of the grace period are released, and the attempt does not count', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], timeoutMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.until(() => receiver.waiting === 3)
  await rig.stop(0)
  assert.equal((await rig.ledger(destination)).pending, 3)
  receiver.answer = () => 200
  rig.start()
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  assert.deepEqual(
    receiver.received.map(({ headers }) => headers['x-attempt']),
    Array(6).fill('1'),
  )
  await rig.stop()
})

test('a test bypasses the queue and the breaker, is not stored, and sends a normal request', async (t) => {
  const rig = await startRig(t)
  const [good, bad] = [await rig.receiver(), await rig.receiver()]
  bad.answer = () => 404
  const destination = await rig.destination('one', { urls: [good.url, bad.url], enabled: false, sharedSecret: 'secret' })
  const sent = await rig.delivery.test(destination.id, { type: 'track', event: 'Test' })
  assert.deepEqual(
    sent?.attempts.map(({ url, status, reason }) => [url, status, reason]),
    [
      [good.url, 200, null],
      [bad.url, 404, 'http_404'],
    ],
  )
  const [first] = sent?.attempts ?? []
  assert.ok(first !== undefined && !('indexes' in first))
  // The result contains the request as sent.
  assert.equal(sent?.request?.body, JSON.stringify({ type: 'track', event: 'Test' }))
  assert.equal(sent?.request?.headers['X-Signature'], good.received[0]?.headers['x-signature'])
  assert.match(String(good.received[0]?.headers['x-signature']), /^[0-9a-f]{40}$/)
  assert.equal((await rig.ledger(destination)).owed, 0)
  assert.equal(await rig.delivery.test('dst_unknown', {}), undefined)
})

test('a request that would be too large with the context of its batch is not reconstructed', async (t) => {
  const rig = await startRig(t)
  const destination = await rig.destination('one', { urls: ['http://127.0.0.1:9/'], batch: { size: 1_000, bytes: 500_000, lingerMs: 0 } })
  const [messages, context] = [items(600), { app: 'x'.repeat(30_000) }]
  const content = { ...contentOf(messages), context }
  const about = { deliveryId: '1-0', attempt: 1, replay: false, atMs: 0 }
  const shown = (count: number) =>
    rig.delivery.describeRequest(destination, [{ content, indexes: [...messages.keys()].slice(0, count) }], about)
  assert.equal(await shown(600), null)
  assert.ok(Number((await shown(10))?.body.length) > 300_000)
})

test('violations of the tracking plan are sent only to destinations that ask for them', async (t) => {
  const rig = await startRig(t)
  const [plain, asking] = [await rig.receiver(), await rig.receiver()]
  const one = await rig.destination('one', { urls: [plain.url] })
  const two = await rig.destination('two', { urls: [asking.url], includeViolations: true })
  const violation = { rule: 'track Tested', code: 'wrong_type', path: 'properties.a', expected: 'a number', found: 'a string' } as const
  await rig.accept([one, two], 1, {}, { violations: { 0: [violation] } })
  for (const destination of [one, two]) await rig.untilLedger(destination, { delivered: 1 })
  const contexts = [plain, asking].map(({ received }) => received[0]?.messages[0]?.['context'])
  assert.deepEqual(contexts, [{}, { violations: [violation] }])
  await rig.untilIdle()
  await rig.stop()
})
