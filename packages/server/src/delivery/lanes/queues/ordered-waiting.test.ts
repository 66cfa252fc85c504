// When the ordered shipments of a destination are claimed. Which messages start is tested with the queues of keys, and with whole services.

import assert from 'node:assert/strict'
import test from 'node:test'
import { webhookOf } from '../../../destinations/fixtures/webhook.ts'
import type { Verdict } from '../../../destinations/port/kind.ts'
import type { ClaimedShipment, DeliveryStore, OrderedClaimRequest, Part, Shipment } from '../../../store/store.ts'
import { withResolvers } from '../../fixtures/attempts.ts'
import { results } from '../../fixtures/claimed-shipments.ts'
import { ManualClock } from '../../fixtures/manual-clock.ts'
import { orderedOf } from '../../fixtures/ordered-shipments.ts'
import { Backlog } from '../../recording/backlog.ts'
import { HeldShipments } from '../../recording/held-shipments.ts'
import { Memory } from '../../recording/memory.ts'
import { StoreState } from '../../recording/store-state.ts'
import type { Unit } from '../../shipments/unit.ts'
import { OrderedWaiting } from './ordered-waiting.ts'

/** A store that has these shipments, and records a settlement when the test says so. The test acts as the lane: it claims, starts and ends. */
function setUp(...shipments: ClaimedShipment[]) {
  return setUpWith({}, ...shipments)
}

/** The shipment as a store gives it that has no messages of leaving keys in one with others. */
function divided(claimed: ClaimedShipment, leaving: ReadonlySet<number>): ClaimedShipment[] {
  const { shipment } = claimed
  const [{ indexes, keys = [], ...part }] = shipment.parts as [Part]
  const some = (does: boolean): number[] => [...indexes.keys()].filter((at) => leaving.has(keys[at] as number) === does)
  if (some(true).length === 0 || some(false).length === 0) return [claimed]
  const half = (does: boolean): ClaimedShipment => {
    const own = { ...part, indexes: some(does).map((at) => indexes[at] as number), keys: some(does).map((at) => keys[at] as number) }
    return { ...claimed, shipment: { ...shipment, id: does ? Number(shipment.id) + 1_000 : shipment.id, parts: [own] } }
  }
  return [half(true), half(false)]
}

function setUpWith(settings: Parameters<typeof webhookOf>[0], ...shipments: ClaimedShipment[]) {
  const stored = new Map(shipments.map((claimed) => [claimed.shipment.id, claimed]))
  const taken = new Map<Shipment['id'], ClaimedShipment>()
  const clock = new ManualClock()
  const memory = new Memory(100_000_000)
  const recorded: (() => void)[] = []
  let claims = 0
  let answer = Promise.resolve()
  let leavesSome = false
  const store = {
    orderedUntilMs: () => Number.POSITIVE_INFINITY,
    async claimOrdered({ leaving = [], maxWaiting }: OrderedClaimRequest) {
      claims++
      const isLeft = ({ shipment: { order } }: ClaimedShipment): boolean => order?.row === 'waiting' && maxWaiting === 0
      const left = [...stored.values()].filter(isLeft)
      const found = [...stored.values()].filter((one) => !isLeft(one)).flatMap((one) => divided(one, new Set(leaving)))
      const claimed = found.sort((a, b) => Number(a.shipment.order?.ord) - Number(b.shipment.order?.ord))
      for (const one of claimed) taken.set(one.shipment.id, one)
      stored.clear()
      for (const one of left) stored.set(one.shipment.id, one)
      await answer
      return { shipments: claimed, more: leavesSome || left.length > 0, nextHeadAtMs: null }
    },
    settle: () => new Promise<void>((resolve) => recorded.push(resolve)),
    release: (released: readonly Shipment[]) => {
      for (const shipment of released) stored.set(shipment.id, { ...(taken.get(shipment.id) as ClaimedShipment), shipment })
    },
  } as unknown as DeliveryStore
  const destination = webhookOf({ order: { by: 'user', onFailure: 'skip', maxWaiting: 10_000 }, ...settings })
  const nothing = (): void => {}
  const own = { store, memory, clock, setTimer: clock.setTimer, destination: () => destination }
  const ordered: OrderedWaiting = new OrderedWaiting({
    ...own,
    held: () => held,
    onTaken: (_, mustLeave) => mustLeave && held.release(held.stopAll()),
    wake: nothing,
    onEnd: nothing,
  })
  const held = new HeldShipments({
    ...own,
    random: () => 0.5,
    events: { attempted: nothing, breaker: nothing, trouble: (_, error) => assert.fail(String(error)) },
    storeState: new StoreState(nothing),
    backlog: new Backlog(),
    ordered,
    onReleased: nothing,
    onRecorded: nothing,
  })
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  return {
    ordered,
    clock,
    /** The row ids of the shipments that are not claimed. */
    stored: () => [...stored.keys()],
    accept: (claimed: ClaimedShipment) => {
      stored.set(claimed.shipment.id, claimed)
      ordered.announce()
    },
    /** Claims as often as the lane would, but no more than ten times. Returns how often it claimed. */
    async claim(probe = false) {
      const before = claims
      for (let nth = 0, last = -1; nth < 10 && last !== claims; nth++) {
        last = claims
        ordered.claimIfNeeded(clock.scheduleMs(), probe)
        await settled()
      }
      return claims - before
    },
    /** Whether claims say that the store has more. */
    leaveSome: (does: boolean) => {
      leavesSome = does
    },
    /** The next claim is not answered until the returned function is called. */
    holdAnswer(): () => void {
      const { promise, resolve } = withResolvers()
      answer = promise
      return resolve
    },
    start(): { index: number; end(verdict: Verdict): void } {
      const next = ordered.next() ?? assert.fail('nothing may start')
      const { task, first } = next
      const unit: Unit = next.start(clock.scheduleMs())
      return {
        index: first.index,
        end(verdict) {
          task.finish(unit, results(verdict))
          held.changed(task)
        },
      }
    },
    /** Records the settlement that was made first. */
    async record() {
      recorded.shift()?.()
      await settled()
    },
  }
}

test('if everything that was claimed must go back, the next claim waits until something has changed, or for 200 ms', async () => {
  // The key 1 has a message in each request; the second request has another key, too.
  const lane = setUp(orderedOf(1, 6, [0], [1]), orderedOf(2, 7, [0, 1], [1, 2]))
  assert.equal(await lane.claim(), 1)
  const [first, other] = [lane.start(), lane.start()]
  first.end('permanent')
  await new Promise((resolve) => setImmediate(resolve))
  lane.accept(orderedOf(3, 8, [0], [1]))
  assert.deepEqual([await lane.claim(), lane.stored()], [1, [3]], 'it goes back, because a message before it is on its way back')
  assert.deepEqual([lane.ordered.hasMore, lane.ordered.nextAtMs], [true, lane.clock.scheduleMs() + 200])
  lane.clock.advance(199)
  assert.equal(await lane.claim(), 0)
  lane.clock.advance(1)
  assert.equal(await lane.claim(), 1)
  lane.accept(orderedOf(4, 6, [1], [3]))
  assert.equal(await lane.claim(), 2, 'new work is claimed at once')
  const last = lane.start()
  assert.equal(last.index, 1)
  await lane.record()
  assert.equal(await lane.claim(), 1, 'an outcome was recorded')
  other.end('success')
  await lane.record()
  assert.deepEqual(lane.stored(), [3, 2], 'the second request is back')
  assert.equal(await lane.claim(), 1)
  assert.deepEqual(lane.stored(), [])
  for (const origin of [7, 8]) {
    const next = lane.ordered.next() ?? assert.fail('nothing may start')
    assert.equal(next.first.content.origin, origin, 'the key goes on in order')
    const message = lane.start()
    message.end('success')
    await lane.record()
  }
})

/**
 * After a message of key 1 has failed, five requests come, each with a message of key 1 and another one. One message is always in flight.
 * Returns the keys of the messages that were started.
 */
async function startedMeanwhile(lane: ReturnType<typeof setUpWith>, failing: ReturnType<typeof lane.start>) {
  let before = lane.start()
  failing.end('permanent')
  await new Promise((resolve) => setImmediate(resolve))
  await lane.record()
  const started: number[] = []
  for (let nth = 3; nth < 8; nth++) {
    lane.accept(orderedOf(nth, 6 + (nth % 3), [0, 1], [1, nth]))
    await lane.claim()
    const { first } = lane.ordered.next() ?? assert.fail('nothing may start')
    started.push(first.key)
    const next = lane.start()
    before.end('success')
    await new Promise((resolve) => setImmediate(resolve))
    await lane.record()
    before = next
  }
  return started
}

test('a key goes on, although each request that comes meanwhile has a message of it and one that is in flight until the next has come', async () => {
  const lane = setUp(orderedOf(1, 6, [0], [1]), orderedOf(2, 7, [0, 1], [1, 2]))
  await lane.claim()
  const failing = lane.start()
  assert.deepEqual((await startedMeanwhile(lane, failing)).slice(0, 2), [3, 1])
})

test('with batches, a key also goes on: its messages share no batch with those of other keys while some are on their way back', async () => {
  const lane = setUpWith({ batch: { size: 2, bytes: 500_000, lingerMs: 0 } }, orderedOf(1, 6, [0], [1]))
  await lane.claim()
  const failing = lane.start()
  lane.accept(orderedOf(2, 7, [0, 1], [1, 2]))
  await lane.claim()
  assert.deepEqual((await startedMeanwhile(lane, failing)).slice(0, 2), [3, 1])
})

test('the next claim does not wait if what the messages wait for was recorded during the claim that refused them', async () => {
  const lane = setUp(orderedOf(1, 6, [0], [1]))
  assert.equal(await lane.claim(), 1)
  lane.start().end('permanent')
  await new Promise((resolve) => setImmediate(resolve))
  const answer = lane.holdAnswer()
  lane.accept(orderedOf(2, 7, [0], [1]))
  assert.equal(await lane.claim(), 1)
  await lane.record()
  answer()
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([lane.stored(), lane.ordered.hasMore], [[2], true], 'it was refused')
  assert.equal(await lane.claim(), 1)
  assert.equal(lane.start().index, 0)
})

test('what a claim brings that began before partitions left this node goes back, and what the next one brings stays', async () => {
  const lane = setUp(orderedOf(1, 6, [0], [1]))
  const answer = lane.holdAnswer()
  assert.equal(await lane.claim(), 1)
  lane.ordered.partitionsLeave()
  answer()
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([lane.stored(), lane.ordered.next()], [[1], undefined])
  assert.equal(await lane.claim(), 1)
  assert.deepEqual([lane.stored(), lane.start().index], [[], 0])
  lane.ordered.partitionsLeave()
  lane.accept(orderedOf(2, 7, [0], [2]))
  assert.equal(await lane.claim(), 1)
  assert.deepEqual([lane.stored(), lane.start().index], [[], 0], 'no claim was in progress when they left')
})

test('there is a backlog only while the store has more than a claim takes, or than there is room for', async () => {
  const lane = setUp(orderedOf(1, 6, [0], [1]))
  assert.equal(lane.ordered.hasBacklog, false, 'nothing is known yet')
  lane.leaveSome(true)
  lane.ordered.claimIfNeeded(lane.clock.scheduleMs(), false)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(lane.ordered.hasBacklog, true)
  lane.leaveSome(false)
  await lane.claim()
  assert.equal(lane.ordered.hasBacklog, false)
})

test('messages that wait for others to form a batch are no backlog', async () => {
  const lane = setUpWith({ batch: { size: 10, bytes: 500_000, lingerMs: 1_000 } })
  lane.clock.advance(1_000)
  await lane.claim()
  lane.clock.advance(1_000)
  await lane.claim()
  lane.accept(orderedOf(1, 6, [0], [1]))
  assert.equal(await lane.claim(), 0)
  assert.deepEqual([lane.ordered.hasMore, lane.ordered.hasBacklog], [true, false])
})

test('a message that waited is the probe if the store has no head and no new message', async () => {
  const waitingOf = (id: number, origin: number): ClaimedShipment => {
    const claimed = orderedOf(id, origin, [0], [1])
    return { ...claimed, shipment: { ...claimed.shipment, order: { row: 'waiting', ord: id, key: 1 } } }
  }
  const lane = setUp(waitingOf(1, 6), waitingOf(2, 7))
  assert.equal(await lane.claim(true), 1)
  assert.ok(lane.ordered.next() !== undefined)
})
