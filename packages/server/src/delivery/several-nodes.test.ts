// A destination whose limit is shared with other nodes, and a node whose hold on its work has run out.

import assert from 'node:assert/strict'
import test from 'node:test'
import { ClaimLost, type NodeSummary, type Nodes } from '../store/store.ts'
import { startRig } from './fixtures/rig.ts'
import { FAILURES_TO_OPEN } from './lanes/breaker.ts'

/** This node and one other, which tells what the test says. */
class TwoNodes implements Nodes {
  readonly nodes: readonly NodeSummary[] = []
  readonly count = 2
  readonly rank = 0
  readonly told = new Map<string, unknown>()
  doc: Record<string, unknown> = {}
  readonly #listeners: (() => void)[] = []

  others(): NodeSummary[] {
    return [{ num: 1, name: 'b', version: '1', startedAtMs: 0, seenAtMs: 0, isSelf: false, doc: this.doc }]
  }

  announce(key: string, value: unknown): void {
    this.told.set(key, value)
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  beat(): void {
    for (const listener of this.#listeners) listener()
  }
}

test('never more is in flight than the share, and a larger share is used as soon as it is there', async (t) => {
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

test('a node without a share leaves the work in the store, and takes it when it gets one', async (t) => {
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

test('a node that loses its share gives back what it has not begun', async (t) => {
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

test('what is no longer held is neither begun nor given back, and what was in flight is not recorded again and again', async (t) => {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => null
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 1 })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 4; nth++) await rig.accept([destination], 1)
  await rig.until(() => receiver.waiting === 1)
  rig.shut.settle = new ClaimLost('another has it')
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

test('a receiver that other nodes found failing is not tried until its probe is due', async (t) => {
  const nodes = new TwoNodes()
  const rig = await startRig(t, { nodes })
  const receiver = await rig.receiver()
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 4 })
  await rig.until(() => rig.claims.length === 1)
  nodes.doc = { lanes: { [destination.id]: ['o', 7, 2_500, 2_500, 100, null], dst_other: 'nonsense', dst_worse: ['?', -1] } }
  nodes.beat()
  const health = rig.delivery.health(destination.id)
  assert.deepEqual([health?.breaker, health?.inFlight], ['open', 7])
  assert.deepEqual(rig.breakers.length, 1)
  await rig.accept([destination], 3)
  assert.equal(receiver.received.length, 0)
  // What is only heard is told on as a state, and not as a failure of one's own.
  nodes.beat()
  const [state, , , openForMs] = (nodes.told.get('lanes') as Record<string, unknown[]>)[destination.id] as unknown[]
  assert.deepEqual([state, openForMs], ['o', null])
  rig.clock.advance(60_000)
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  await rig.untilIdle()
  await rig.stop()
})

test('what this node found failing is told, with when it is tried again', async (t) => {
  const nodes = new TwoNodes()
  const rig = await startRig(t, { nodes })
  const receiver = await rig.receiver()
  receiver.answer = () => 503
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: FAILURES_TO_OPEN })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN)
  await rig.until(() => rig.settlements.length === 1 && rig.memory.heldBytes === 0)
  nodes.beat()
  const [state, inFlight, nextInMs, openForMs, failedAgoMs] = (nodes.told.get('lanes') as Record<string, unknown[]>)[
    destination.id
  ] as unknown[]
  assert.deepEqual([state, inFlight, failedAgoMs], ['o', 0, 0])
  assert.ok(Number(openForMs) > 0 && Number(nextInMs) >= Number(openForMs))
  await rig.stop()
})
