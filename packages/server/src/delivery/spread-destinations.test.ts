// Destinations that are spread over several real sender threads. The test says how busy a thread is.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Destination, NewDestination } from '../store/store.ts'
import type { Receiver } from './fixtures/receiver.ts'
import { type Rig, startRig } from './fixtures/rig.ts'

const THREAD = new URL('./sender/sender-thread.ts', import.meta.url)
const FAILING = new URL('./fixtures/failing-sender-thread.ts', import.meta.url)
const FIRST = 'switchyard-sender-1'

const OAUTH = {
  type: 'oauth2',
  tokenUrl: 'http://127.0.0.1:9/',
  clientId: 'client',
  clientSecret: 'secret',
  scope: null,
  audience: null,
  credentials: 'basic',
} as const

interface Spread {
  rig: Rig
  receiver: Receiver
  destination: Destination
  /** How busy each thread is. */
  busy: Map<string, number>
  /** How often the threads were measured. */
  samples: { count: number }
  width: () => number
  /** Accepts messages until the destination has this many senders. */
  untilWidth: (width: number) => Promise<void>
}

/** A destination whose sender is busy from the start, with two others that are not. */
async function startSpread(t: TestContext, change: Partial<NewDestination> = {}, thread = THREAD): Promise<Spread> {
  const busy = new Map([[FIRST, 1]])
  const samples = { count: 0 }
  const utilizationOf = (name: string): number => {
    if (name === FIRST) samples.count++
    return busy.get(name) ?? 0
  }
  const spreading = { sampleMs: 5, busySamples: 1, calmSamples: 1, minUnits: 1, utilizationOf }
  const rig = await startRig(t, { thread, senderCount: 3, spreading })
  const receiver = await rig.receiver()
  // Requests wait until the test answers them, which may take long on a busy machine.
  const destination = await rig.destination('one', { urls: [receiver.url], maxInFlight: 4, timeoutMs: 300_000, ...change })
  await rig.until(() => rig.claims.length === 1)
  const width = (): number => rig.senders.of(destination).widthOf?.(destination.id) ?? 1
  const untilWidth = async (wanted: number): Promise<void> => {
    while (width() !== wanted) {
      await rig.accept([destination], 5)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  return { rig, receiver, destination, busy, samples, width, untilWidth }
}

async function untilDelivered({ rig, destination }: Spread): Promise<void> {
  while ((await rig.ledger(destination)).pending > 0) {
    // Retries are due later.
    const waitsMs = (rig.delivery.health(destination.id)?.nextAttemptAtMs ?? 0) - rig.clock.scheduleMs()
    if (waitsMs > 0) rig.clock.advance(waitsMs)
    await rig.untilStoreAnswered()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await rig.untilIdle()
}

/** The ids of the messages that were received, sorted. */
function idsOf({ received }: Receiver): string[] {
  return received.flatMap(({ messages }) => messages.map(({ messageId }) => messageId as string)).sort()
}

const acceptedIds = (count: number): string[] => Array.from({ length: count }, (_, at) => `m-${at + 1}`).sort()

test('a destination is spread over a second sender and a third, and then again has one: each message is sent once, and never more at a time than allowed', async (t) => {
  const spread = await startSpread(t)
  const { rig, receiver, destination, busy, untilWidth } = spread
  // Several requests wait for their answers at the same time.
  receiver.answer = () => null
  const releasing = setInterval(() => receiver.release(), 2)
  t.after(() => clearInterval(releasing))
  await untilWidth(2)
  for (const count of [1, 40, 7, 200]) await rig.accept([destination], count)
  busy.set('switchyard-sender-2', 1)
  await untilWidth(3)
  for (const count of [100, 3]) await rig.accept([destination], count)
  busy.clear()
  await untilWidth(1)
  await rig.accept([destination], 50)
  await untilDelivered(spread)
  const { owed } = await rig.ledger(destination)
  assert.deepEqual(idsOf(receiver), acceptedIds(owed))
  assert.ok(receiver.mostAtOnce <= 4, `${receiver.mostAtOnce} requests at once`)
  assert.deepEqual([rig.troubles, rig.breakers], [[], []])
  await rig.stop()
})

test('while it is spread, all of the limit is used, also for the messages of one large batch', async (t) => {
  const spread = await startSpread(t)
  const { rig, receiver, destination, untilWidth } = spread
  await untilWidth(2)
  await untilDelivered(spread)
  const before = receiver.received.length
  receiver.answer = () => null
  // The sender runs ahead, so one thread alone could hold all of it.
  await rig.accept([destination], 60)
  for (let nth = 1; nth <= 15; nth++) {
    await rig.until(() => receiver.received.length === before + 4 * nth)
    assert.deepEqual([receiver.waiting, rig.delivery.health(destination.id)?.inFlight], [4, 4])
    receiver.release()
  }
  await untilDelivered(spread)
  assert.equal(receiver.mostAtOnce, 4)
})

for (const [title, change] of [
  ['receives batches', { batch: { size: 2, bytes: 500_000, lingerMs: 0 } }],
  ['has a transformation', { transformation: { code: 'export default (event) => event', timeoutMs: 1_000, memoryMb: 16 } }],
  ['gets access tokens', { auth: OAUTH }],
  ['allows one request at a time', { maxInFlight: 1 }],
] as const) {
  test(`a destination that ${title} keeps one sender`, async (t) => {
    const { rig, destination, width, samples, untilWidth } = await startSpread(t, change)
    const from = samples.count
    while (samples.count < from + 20) {
      await rig.accept([destination], 5)
      await new Promise((resolve) => setTimeout(resolve, 5))
      assert.equal(width(), 1)
    }
    // With other settings, it is spread.
    const usual = { batch: { size: 1, bytes: 500_000, lingerMs: 0 }, transformation: null, auth: null, maxInFlight: 4 }
    await rig.store.resources.updateDestination(destination.id, usual)
    await untilWidth(2)
  })
}

test('a change of settings while it is spread concerns all senders, and settings that do not allow it end it', async (t) => {
  const spread = await startSpread(t)
  const { rig, receiver, destination, width, untilWidth } = spread
  await untilWidth(2)
  await untilDelivered(spread)
  await rig.accept([destination], 100)
  await rig.store.resources.updateDestination(destination.id, { headers: { 'X-New': 'yes' } })
  await rig.accept([destination], 100)
  await untilDelivered(spread)
  const before = receiver.received.length
  await rig.accept([destination], 60)
  await untilDelivered(spread)
  assert.ok(receiver.received.slice(before).every(({ headers }) => headers['x-new'] === 'yes'))
  assert.deepEqual(idsOf(receiver), acceptedIds((await rig.ledger(destination)).owed))
  await untilWidth(2)
  await rig.store.resources.updateDestination(destination.id, { batch: { size: 10, bytes: 500_000, lingerMs: 0 } })
  await rig.accept([destination], 100)
  await untilDelivered(spread)
  assert.equal(width(), 1)
  assert.deepEqual(idsOf(receiver), acceptedIds((await rig.ledger(destination)).owed))
})

test('a sender that dies while it has a part of a destination leaves it to the other: nothing is lost, and the receiver is not judged', async (t) => {
  const spread = await startSpread(t, {}, FAILING)
  const { rig, receiver, destination, untilWidth } = spread
  await untilWidth(2)
  await untilDelivered(spread)
  receiver.answer = () => null
  await rig.accept([destination], 20)
  await rig.until(() => receiver.waiting === 4)
  // It gets the third sender, and then the first one, because these have the fewest destinations.
  for (const name of ['two', 'three']) {
    const crashing = await rig.destination(name, { urls: [new URL('/crash', receiver.url).href] })
    await rig.accept([crashing], 1)
    await rig.until(() => rig.attempts.some((attempt) => attempt.destination.id === crashing.id))
    await rig.store.resources.updateDestination(crashing.id, { paused: true })
  }
  receiver.answer = () => 200
  receiver.release()
  await untilDelivered(spread)
  const lost = rig.attempts.filter((attempt) => attempt.destination.id === destination.id && attempt.outcome.reason === 'sender_lost')
  assert.ok(lost.length > 0)
  const { owed, delivered } = await rig.ledger(destination)
  assert.deepEqual([owed, rig.breakers], [delivered, []])
  assert.deepEqual([...new Set(idsOf(receiver))], acceptedIds(owed))
})

test('a pause takes back what waits in all senders, and a failing receiver stops all of them', async (t) => {
  const spread = await startSpread(t)
  const { rig, receiver, destination, untilWidth } = spread
  await untilWidth(2)
  await untilDelivered(spread)
  const before = receiver.received.length
  receiver.answer = () => null
  await rig.accept([destination], 60)
  await rig.until(() => receiver.waiting === 4)
  await rig.store.resources.updateDestination(destination.id, { paused: true })
  // Those in flight keep their slots; the others come back.
  while (rig.slots.free < rig.slotCount - 4) await new Promise((resolve) => setTimeout(resolve, 5))
  receiver.answer = () => 200
  receiver.release()
  await rig.untilIdle()
  assert.equal(receiver.received.length, before + 4)
  receiver.answer = () => 503
  await rig.store.resources.updateDestination(destination.id, { paused: false })
  await rig.until(() => rig.breakers.length === 1)
  await rig.untilIdle()
  const failed = rig.attempts.filter(({ outcome }) => outcome.verdict !== 'success').length
  assert.ok(failed < 30, `${failed} attempts although the receiver fails`)
  receiver.answer = () => 200
  await untilDelivered(spread)
  const { owed } = await rig.ledger(destination)
  assert.deepEqual([...new Set(idsOf(receiver))], acceptedIds(owed))
  assert.equal(receiver.received.length, rig.attempts.length)
})

test('a destination that is removed while it is spread leaves nothing behind, and can be created again', async (t) => {
  const spread = await startSpread(t)
  const { rig, receiver, destination, width, untilWidth } = spread
  await untilWidth(2)
  await untilDelivered(spread)
  receiver.answer = () => null
  await rig.accept([destination], 60)
  await rig.until(() => receiver.waiting === 4)
  await rig.store.resources.deleteDestination(destination.id)
  receiver.answer = () => 200
  receiver.release()
  await rig.untilIdle()
  await rig.until(() => width() === 1)
  const other = await rig.destination('two', { urls: [receiver.url] })
  await rig.until(() => rig.claims.some(({ destinationId }) => destinationId === other.id))
  await rig.accept([other], 30)
  await rig.untilLedger(other, { owed: 30, delivered: 30 })
  await rig.stop()
})

test('a stop while it is spread takes back what waits in all senders', async (t) => {
  const spread = await startSpread(t, { timeoutMs: 60_000 })
  const { rig, receiver, destination, untilWidth } = spread
  await untilWidth(2)
  await untilDelivered(spread)
  const { delivered } = await rig.ledger(destination)
  receiver.answer = () => null
  await rig.accept([destination], 60)
  await rig.until(() => receiver.waiting === 4)
  await rig.stop(0)
  await rig.untilLedger(destination, { delivered, pending: 60 })
})
