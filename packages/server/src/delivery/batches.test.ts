// Batch delivery: messages are collected, split into batches, sent as an array and retried as a unit; also what happens to waiting
// messages when the settings change.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Received } from './fixtures/receiver.ts'
import { startRig } from './fixtures/rig.ts'

function sizes(received: readonly Received[]): number[] {
  return received.map(({ messages }) => messages.length)
}

function ids(received: readonly Received[]): string[] {
  return received.flatMap(({ messages }) => messages.map(({ messageId }) => messageId as string))
}

function isBatch({ body }: Received): boolean {
  return body.startsWith('[')
}

test('messages that arrive within the linger time form one batch, sent when it is full or the time is over', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], batch: { size: 10, bytes: 500_000, lingerMs: 1_000 } })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 5; nth++) await rig.accept([destination], 2)
  await rig.untilLedger(destination, { delivered: 10 })
  for (let nth = 0; nth < 2; nth++) await rig.accept([destination], 2)
  assert.equal(receiver.received.length, 1)
  rig.clock.advance(999)
  assert.equal(receiver.received.length, 1)
  rig.clock.advance(1)
  await rig.untilLedger(destination, { delivered: 14 })
  assert.deepEqual([sizes(receiver.received), receiver.received.every(isBatch)], [[10, 4], true])
  assert.equal(new Set(ids(receiver.received)).size, 14)
  await rig.untilIdle()
  await rig.stop()
})

test('without a linger time, messages accepted together form a batch, split by size', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', {
    urls: [receiver.url],
    maxInFlight: 1,
    batch: { size: 10, bytes: 500_000, lingerMs: 0 },
  })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 25)
  await rig.untilLedger(destination, { delivered: 25 })
  await rig.accept([destination], 1)
  await rig.untilLedger(destination, { delivered: 26 })
  assert.deepEqual([sizes(receiver.received), receiver.received.every(isBatch)], [[10, 10, 5, 1], true])
})

test('a backlog is batched too, with or without a linger time', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const batch = { size: 10, bytes: 500_000, lingerMs: 0 }
  const destination = await rig.destination('one', { urls: [receiver.url], enabled: false, batch })
  for (let nth = 0; nth < 25; nth++) await rig.accept([destination], 1)
  await rig.store.resources.updateDestination(destination.id, { enabled: true })
  await rig.untilLedger(destination, { delivered: 25 })
  assert.deepEqual(
    sizes(receiver.received).sort((a, b) => a - b),
    [5, 10, 10],
  )
})

test('no batch exceeds the byte limit, unless a single message does', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const batch = { size: 1_000, bytes: 10_000, lingerMs: 0 }
  const destination = await rig.destination('one', { urls: [receiver.url], batch })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 20, { properties: { pad: 'é'.repeat(1_000) } })
  await rig.accept([destination], 1, { properties: { pad: 'x'.repeat(20_000) } })
  await rig.untilLedger(destination, { delivered: 21 })
  const large = receiver.received.filter(({ body }) => Buffer.byteLength(body) > 10_000)
  assert.deepEqual(sizes(large), [1])
  assert.ok(sizes(receiver.received).some((size) => size === 4))
})

test('a batch that fails is retried unchanged and under the same id, whatever else arrives', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth <= 2 ? 500 : 200)
  const batch = { size: 6, bytes: 500_000, lingerMs: 500 }
  const signingSecrets = ['whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX']
  const destination = await rig.destination('one', { urls: [receiver.url], batch, signingSecrets })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.accept([destination], 3)
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  rig.clock.advance(4_000)
  await rig.until(() => receiver.received.length === 2)
  await rig.untilIdle()
  await rig.accept([destination], 2)
  rig.clock.advance(8_000)
  await rig.untilLedger(destination, { delivered: 8, pending: 0 })
  const tries = receiver.received.filter(({ messages }) => messages.length === 6)
  assert.deepEqual(
    tries.map((request) => [ids([request]).join(), request.headers['x-attempt'], request.headers['webhook-id']]),
    ['1', '2', '3'].map((nth) => ['m-1,m-2,m-3,m-4,m-5,m-6', nth, tries[0]?.headers['webhook-id']]),
  )
  assert.deepEqual(
    sizes(receiver.received).sort((a, b) => a - b),
    [2, 6, 6, 6],
  )
  await rig.stop()
})

test('delete messages are never in a batch with others', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], batch: { size: 100, bytes: 500_000, lingerMs: 1_000 } })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 2)
  await rig.store.deletions.create({ userIds: ['a', 'b'], sourceIds: null, suppress: false })
  await rig.accept([destination], 2)
  rig.clock.advance(1_000)
  await rig.untilStoreAnswered()
  rig.clock.advance(1_000)
  await rig.untilLedger(destination, { delivered: 6, pending: 0 })
  for (const { messages } of receiver.received) {
    if (messages.some(({ type }) => type === 'delete')) assert.equal(messages.length, 1)
  }
})

test('when a destination switches from batches to single messages, no waiting message is lost', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const batch = { size: 4, bytes: 500_000, lingerMs: 60_000 }
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1, batch, timeoutMs: 20_000 })
  await rig.until(() => rig.claims.length === 1)
  // One batch is in flight, one is complete and waiting, and two messages are lingering.
  await rig.accept([destination], 8)
  await rig.accept([destination], 2)
  await rig.until(() => receiver.waiting === 1)
  await rig.store.resources.updateDestination(destination.id, { batch: { size: 1, bytes: 500_000, lingerMs: 0 } })
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 10, pending: 0 })
  assert.deepEqual(sizes(receiver.received), [4, 1, 1, 1, 1, 1, 1])
  assert.deepEqual(receiver.received.map(isBatch), [true, ...Array(6).fill(false)])
  assert.equal(new Set(ids(receiver.received)).size, 10)
  await rig.untilIdle()
  await rig.stop()
})

test('a batch that failed before the switch is still retried as a batch', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 500 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url], batch: { size: 4, bytes: 500_000, lingerMs: 0 } })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 4)
  await rig.until(() => receiver.received.length === 1)
  await rig.untilIdle()
  await rig.store.resources.updateDestination(destination.id, { batch: { size: 1, bytes: 500_000, lingerMs: 0 } })
  rig.clock.advance(5_000)
  await rig.untilLedger(destination, { delivered: 4 })
  assert.deepEqual([sizes(receiver.received), receiver.received.every(isBatch)], [[4, 4], true])
})

test('when a destination switches from single messages to batches, waiting messages are sent in batches', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1, timeoutMs: 20_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 9)
  await rig.until(() => receiver.waiting === 1)
  await rig.store.resources.updateDestination(destination.id, { batch: { size: 4, bytes: 500_000, lingerMs: 0 } })
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 9 })
  assert.deepEqual(sizes(receiver.received), [1, 4, 4])
})

test('lingering messages are released when the service stops, and purged ones are left out', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], batch: { size: 100, bytes: 500_000, lingerMs: 1_000 } })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 2, { userId: 'kept' })
  await rig.accept([destination], 2, { userId: 'gone' })
  await rig.store.deletions.create({ userIds: ['gone'], sourceIds: null, suppress: false })
  await rig.until(() => receiver.received.length > 0)
  await rig.untilLedger(destination, { cancelled: 2 })
  assert.deepEqual(
    receiver.received[0]?.messages.map(({ userId }) => userId),
    ['kept', 'kept'],
  )
  rig.clock.advance(1_000)
  await rig.untilLedger(destination, { delivered: 3 })
  await rig.accept([destination], 3)
  assert.ok(rig.memory.heldBytes > 0)
  await rig.stop()
  assert.deepEqual([rig.memory.heldBytes, rig.clock.timers], [0, 0])
  assert.equal((await rig.ledger(destination)).pending, 3)
})

for (const thread of [undefined, new URL('./sender/sender-thread.ts', import.meta.url)]) {
  test(`a batch whose body would be too large after shaping is sent in several requests, ${thread ? 'by a thread' : 'in this thread'}`, async (t) => {
    const rig = await startRig(t, { thread })
    const receiver = await rig.receiver()
    // One request fails: it is retried as the batch that it was.
    receiver.answer = (_, nth) => (nth === 2 ? 500 : 200)
    const body = { text: 'x'.repeat(60_000), messageId: { '@path': '$.messageId' } }
    const destination = await rig.destination('one', {
      urls: [receiver.url],
      batch: { size: 100, bytes: 200_000, lingerMs: 0 },
      request: { method: 'POST', path: '', headers: {}, body, format: 'json' },
    })
    await rig.until(() => rig.claims.length === 1)
    const sent = await rig.accept([destination], 20)
    await rig.untilLedger(destination, { delivered: 17, pending: 3 })
    rig.clock.advance(60_000)
    await rig.untilLedger(destination, { delivered: 20 })
    assert.deepEqual(
      sizes(receiver.received).sort((a, b) => a - b),
      [2, 3, 3, 3, 3, 3, 3, 3],
    )
    const failed = ids(receiver.received.slice(1, 2))
    assert.deepEqual(ids(receiver.received.slice(-1)), failed)
    assert.deepEqual(new Set(ids(receiver.received)), new Set(sent))
    assert.deepEqual(
      rig.attempts.map(({ attempt }) => attempt).sort((a, b) => a - b),
      [1, 1, 1, 1, 1, 1, 1, 2],
    )
    await rig.untilIdle()
    await rig.stop()
  })
}
