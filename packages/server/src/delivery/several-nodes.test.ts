// Destinations whose limit is shared with other nodes, nodes that lost their claims, and reports between nodes.

import assert from 'node:assert/strict'
import test from 'node:test'
import { ClaimLost, type NodeSummary, type Nodes } from '../store/store.ts'
import { startRig } from './fixtures/rig.ts'
import { FAILURES_TO_OPEN } from './lanes/breaker.ts'

/** This node and another one, whose reports the test sets in `doc`. */
class TwoNodes implements Nodes {
  readonly nodes: readonly NodeSummary[] = []
  readonly count = 2
  readonly rank = 0
  readonly announced = new Map<string, unknown>()
  doc: Record<string, unknown> = {}
  readonly #listeners: (() => void)[] = []

  others(): NodeSummary[] {
    return [{ num: 1, name: 'b', version: '1', startedAtMs: 0, seenAtMs: 0, isSelf: false, doc: this.doc }]
  }

  announce(key: string, value: unknown): void {
    this.announced.set(key, value)
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  heartbeat(): void {
    for (const listener of this.#listeners) listener()
  }
}

test('a node never has more requests in flight than its share, and uses a larger share immediately', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  rig.share = () => 2
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 5 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 12)
  await rig.until(() => receiver.waiting === 2)
  rig.share = (_, maxInFlight) => maxInFlight
  rig.consumer.sharesChanged?.()
  await rig.until(() => receiver.waiting === 5)
  receiver.answer = () => 200
  receiver.release()
  await rig.untilLedger(destination, { delivered: 12, pending: 0 })
  assert.equal(receiver.mostAtOnce, 5)
  await rig.untilIdle()
  await rig.stop()
})

test('held deliveries stay in the store, other nodes see the reason, and they are sent when it is gone', async (t) => {
  const nodes = new TwoNodes()
  let hold: { problem: string | null } | null = { problem: null }
  const rig = await startRig(t, { nodes, holdOf: () => hold })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url] })
  await rig.accept([destination], 2)
  nodes.heartbeat()
  assert.deepEqual([rig.delivery.hold(destination.id), rig.delivery.health(destination.id)?.held], [{ problem: null }, null])
  hold = { problem: 'An action is gone.' }
  rig.delivery.holdsChanged()
  nodes.heartbeat()
  const [reported] = Object.values(nodes.announced.get('lanes') as Record<string, unknown[]>)
  assert.equal(reported?.[6], 'An action is gone.')
  assert.equal(rig.delivery.health(destination.id)?.held, 'An action is gone.')
  assert.equal(rig.claims.length, 0)
  // Another node may hold it for a reason of its own; a report of an earlier version has no such field.
  nodes.doc = { lanes: { [destination.id]: ['c', 0, null, null, null, null, 'Not installed.'], other: ['c', 0, null, null, null, null] } }
  hold = null
  rig.delivery.holdsChanged()
  nodes.heartbeat()
  assert.deepEqual(rig.delivery.hold(destination.id), { problem: 'Not installed.' })
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  nodes.doc = {}
  nodes.heartbeat()
  assert.equal(rig.delivery.hold(destination.id), null)
  await rig.untilIdle()
  await rig.stop()
})

test('a node without a share leaves the shipments in the store, and claims them when it gets a share', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  rig.share = () => 0
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.accept([destination], 3)
  assert.deepEqual([receiver.received.length, rig.memory.heldBytes, rig.claims.length], [0, 0, 0])
  rig.share = () => 1
  rig.consumer.sharesChanged?.()
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  assert.equal(receiver.mostAtOnce, 1)
  await rig.untilIdle()
  await rig.stop()
})

test('a node that loses its share releases the shipments that it has not started', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 3; nth++) await rig.accept([destination], 1)
  await rig.until(() => receiver.waiting === 1)
  rig.share = () => 0
  rig.consumer.sharesChanged?.()
  assert.deepEqual(rig.releases, [2])
  receiver.release()
  await rig.untilLedger(destination, { delivered: 1, pending: 2 })
  assert.equal(rig.memory.heldBytes, 0)
  await rig.stop()
})

test('after its claims are lost, a node neither sends nor releases the shipments, and tries to record an outcome only once', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 4; nth++) await rig.accept([destination], 1)
  await rig.until(() => receiver.waiting === 1)
  rig.storeErrors.settle = new ClaimLost('another node holds the claim')
  rig.consumer.claimsLost?.()
  receiver.answer = () => 200
  receiver.release()
  await rig.until(() => rig.settleCalls === 1 && rig.memory.heldBytes === 0)
  assert.equal(receiver.received.length, 1)
  assert.deepEqual(rig.releases, [])
  rig.clock.advance(3_600_000)
  assert.deepEqual([rig.settleCalls, rig.releases.length], [1, 0])
  assert.ok(rig.troubles.some((trouble) => trouble instanceof ClaimLost))
  await rig.stop()
})

test('a receiver that another node reports as failing is sent nothing until a probe is due', async (t) => {
  const nodes = new TwoNodes()
  const rig = await startRig(t, { nodes })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 4 })
  await rig.until(() => rig.claims.length === 1)
  nodes.doc = { lanes: { [destination.id]: ['o', 7, 2_500, 2_500, 100, null], dst_other: 'nonsense', dst_worse: ['?', -1] } }
  nodes.heartbeat()
  const health = rig.delivery.health(destination.id)
  assert.deepEqual([health?.breaker, health?.inFlight], ['open', 7])
  assert.deepEqual(rig.breakers.length, 1)
  await rig.accept([destination], 3)
  assert.equal(receiver.received.length, 0)
  // This node announces the state of its breaker, but no failure, because it saw none itself.
  nodes.heartbeat()
  const [state, , , openForMs] = (nodes.announced.get('lanes') as Record<string, unknown[]>)[destination.id] as unknown[]
  assert.deepEqual([state, openForMs], ['o', null])
  rig.clock.advance(60_000)
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  await rig.untilIdle()
  await rig.stop()
})

test('a node announces a receiver that fails, and when it will probe next', async (t) => {
  const nodes = new TwoNodes()
  const rig = await startRig(t, { nodes })
  const receiver = await rig.receiver()
  receiver.answer = () => 503
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: FAILURES_TO_OPEN })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN)
  await rig.until(() => rig.settlements.length === 1 && rig.memory.heldBytes === 0)
  nodes.heartbeat()
  const [state, inFlight, nextInMs, openForMs, failedAgoMs] = (nodes.announced.get('lanes') as Record<string, unknown[]>)[
    destination.id
  ] as unknown[]
  assert.deepEqual([state, inFlight, failedAgoMs], ['o', 0, 0])
  assert.ok(Number(openForMs) > 0 && Number(nextInMs) >= Number(openForMs))
  await rig.stop()
})
