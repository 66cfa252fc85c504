// The events that metrics and counts are based on: each is emitted once, and only when it is true.

import assert from 'node:assert/strict'
import test from 'node:test'
import { accept, tracks } from '../../store/conformance/fixtures.ts'
import { SYSTEM_SOURCE } from '../../store/store.ts'
import { type Rig, startRig } from '../fixtures/rig.ts'

const NOTHING = { delivered: 0, failed: 0, expired: 0, cancelled: 0, retried: 0 }

function sum(settled: Rig['settled']): typeof NOTHING {
  const all = { ...NOTHING }
  for (const each of settled) for (const name of Object.keys(all) as (keyof typeof NOTHING)[]) all[name] += each[name]
  return all
}

test('delivered, failed and retried deliveries are reported once they are recorded', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => [200, 400, 500][(nth - 1) % 3] ?? 200
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.until(() => sum(rig.settled).retried === 1)
  assert.deepEqual(sum(rig.settled), { ...NOTHING, delivered: 1, failed: 1, retried: 1 })
  const { delivered, failed, pending } = await rig.ledger(destination)
  assert.deepEqual([delivered, failed, pending], [1, 1, 1])
  await rig.stop()
})

test('failures of messages about the service are counted on their own', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => [400, 500][nth % 2] ?? 200
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.store.resources.ensureSystemSource()
  await rig.until(() => rig.claims.length === 1)
  await accept(rig.store, SYSTEM_SOURCE, tracks(2), [destination.id])
  await rig.until(() => sum(rig.settled).retried === 1 && sum(rig.settled).failed === 1)
  await rig.accept([destination], 2)
  await rig.until(() => sum(rig.settled).retried === 2 && sum(rig.settled).failed === 2)
  assert.deepEqual(
    rig.settled.reduce((all, { system }) => all + (system?.failed ?? 0), 0),
    2,
  )
  await rig.stop()
})

test('an attempt is reported with its messages, and a delivery once, however many URLs accepted it', async (t) => {
  const rig = await startRig(t)
  const [first, second] = [await rig.receiver(), await rig.receiver()]
  const destination = await rig.destination('two', { urls: [first.url, second.url], batch: { size: 10, bytes: 500_000, lingerMs: 0 } })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 4)
  await rig.until(() => sum(rig.settled).delivered === 4)
  assert.equal(rig.attempts.length, 2)
  for (const { messages, sourceId, replay, count } of rig.attempts) {
    assert.deepEqual([sourceId, replay, count], [rig.source.id, false, 4])
    assert.deepEqual(
      messages.map(({ messageId, type, sourceId: of }) => [messageId, type, of]),
      ['m-1', 'm-2', 'm-3', 'm-4'].map((id) => [id, 'track', rig.source.id]),
    )
  }
  assert.deepEqual(
    rig.delivered.map(({ count }) => count),
    [4],
  )
  await rig.stop()
})

test('the latency of a delivery counts from acceptance and includes retries', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = (_, nth) => (nth === 1 ? 500 : 200)
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.until(() => sum(rig.settled).retried === 1)
  assert.deepEqual(rig.delivered, [])
  await rig.untilIdle()
  rig.clock.advance(60_000)
  await rig.until(() => sum(rig.settled).delivered === 1)
  const [{ latencyMs } = assert.fail()] = rig.delivered
  assert.ok(latencyMs >= 60_000 && latencyMs < 62_000, String(latencyMs))
  await rig.stop()
})

test('deliveries that expire while they are waiting are reported', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], retryWindowMs: 60_000 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination])
  await rig.until(() => sum(rig.settled).retried === 1)
  await rig.untilIdle()
  rig.clock.advance(3_600_000)
  await rig.until(() => sum(rig.settled).expired === 1)
  assert.deepEqual(sum(rig.settled), { ...NOTHING, expired: 1, retried: 1 })
  await rig.stop()
})

test('a state is reported for every destination', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const busy = await rig.destination('busy', { urls: [receiver.url] })
  const idle = await rig.destination('idle', { urls: [receiver.url] })
  await rig.until(() => rig.claims.length === 2)
  await rig.accept([busy], 2)
  await rig.until(() => receiver.waiting === 2)
  assert.deepEqual(
    new Map([...rig.delivery.states()].map(({ destinationId, breaker, inFlight }) => [destinationId, [breaker, inFlight]])),
    new Map([
      [busy.id, ['closed', 2]],
      [idle.id, ['closed', 0]],
    ]),
  )
  receiver.release()
  await rig.until(() => sum(rig.settled).delivered === 2)
  await rig.stop()
})
