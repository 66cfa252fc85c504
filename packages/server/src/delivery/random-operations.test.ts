// Random operations: receivers fail and recover, destinations are changed, disabled, paused and enabled again, messages are purged, the
// store becomes unavailable, time passes. Once everything works again, every delivery must be delivered or have a reason why it was not,
// the ledger must match a recount, and nothing may be held in memory.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Destination } from '../store/store.ts'
import { randomFrom } from './fixtures/random.ts'
import type { Receiver, Reply } from './fixtures/receiver.ts'
import { type Rig, startRig, unavailable } from './fixtures/rig.ts'

const RUNS = Number(process.env['SWITCHYARD_UPHEAVALS'] ?? 3)
const FIRST_SEED = Number(process.env['SWITCHYARD_UPHEAVAL_SEED'] ?? 1)
const STEPS = 60

const REPLIES: readonly Reply[] = [200, 200, 200, 500, 503, 400, { status: 429, headers: { 'retry-after': '30' } }]

async function runRandomOperations(t: TestContext, seed: number): Promise<void> {
  const random = randomFrom(seed)
  const upTo = (count: number): number => Math.floor(random() * count)
  const oneOf = <T>(all: readonly T[]): T => all[upTo(all.length)] as T
  const rig: Rig = await startRig(t, { random, slots: 6, memoryBytes: 60_000 })
  const receivers: Receiver[] = [await rig.receiver(), await rig.receiver(), await rig.receiver()]
  const destinations: Destination[] = []
  for (const name of ['a', 'b', 'c']) {
    const urls = name === 'c' ? receivers.map(({ url }) => url) : [oneOf(receivers).url]
    const batch = { size: 1 + upTo(4), bytes: 5_000, lingerMs: oneOf([0, 700]) }
    destinations.push(await rig.destination(name, { urls, batch, maxInFlight: 1 + upTo(5), retryWindowMs: oneOf([60_000, 4 * 3_600_000]) }))
  }
  const [a, b, c] = destinations as [Destination, Destination, Destination]
  await rig.store.resources.updateDestination(a.id, { deadLetter: b.id })
  await rig.store.resources.updateDestination(b.id, { deadLetter: c.id })
  const deletedUsers = new Set<unknown>()
  const acts: (() => unknown)[] = [
    () => rig.accept(destinations, 1 + upTo(12), { userId: `user-${upTo(4)}`, properties: { pad: 'x'.repeat(upTo(1_500)) } }),
    () => rig.accept([oneOf(destinations)], 1 + upTo(40)),
    () => {
      const reply = oneOf(REPLIES)
      oneOf(receivers).answer = () => reply
    },
    () => {
      oneOf(receivers).answer = () => oneOf(REPLIES)
    },
    () => {
      oneOf(receivers).answer = () => null
    },
    () => {
      for (const receiver of receivers) receiver.release(oneOf([200, 500]))
    },
    () => rig.store.resources.updateDestination(oneOf(destinations).id, { enabled: random() < 0.6 }),
    () => rig.store.resources.updateDestination(oneOf(destinations).id, { paused: random() < 0.4 }),
    () =>
      rig.store.resources.updateDestination(oneOf(destinations).id, {
        batch: { size: 1 + upTo(4), bytes: 5_000, lingerMs: oneOf([0, 700]) },
      }),
    () => rig.store.resources.updateDestination(oneOf(destinations).id, { urls: [oneOf(receivers).url] }),
    () => {
      const userId = `user-${upTo(4)}`
      deletedUsers.add(userId)
      return rig.store.deletions.create({ userIds: [userId], sourceIds: null, suppress: false })
    },
    () => {
      rig.storeErrors[oneOf(['claim', 'settle'] as const)] = unavailable()
    },
    () => {
      delete rig.storeErrors.claim
      delete rig.storeErrors.settle
    },
    () => rig.clock.advance(oneOf([100, 1_000, 5_000, 60_000])),
    () => rig.clock.advance(oneOf([100, 1_000, 5_000])),
    () => rig.untilStoreAnswered(),
  ]
  for (let step = 0; step < STEPS; step++) {
    await oneOf(acts)()
    if (random() < 0.3) await rig.untilStoreAnswered()
  }

  delete rig.storeErrors.claim
  delete rig.storeErrors.settle
  // Destinations that may send are not changed: a change would restart a lane that has wrongly stopped, and hide the bug.
  for (const { id, enabled, paused } of rig.store.configuration().destinations.values()) {
    if (!enabled || paused) await rig.store.resources.updateDestination(id, { enabled: true, paused: false })
  }
  for (const receiver of receivers) {
    receiver.answer = () => 200
    receiver.release()
  }
  let owing: string[] = []
  for (let nth = 0; nth < 300; nth++) {
    for (const receiver of receivers) receiver.release()
    rig.clock.advance(5_000)
    await rig.untilStoreAnswered()
    owing = (await rig.store.books.ledger()).filter(({ pending }) => pending > 0).map(({ destinationId }) => destinationId)
    if (owing.length === 0 && rig.memory.heldBytes === 0) break
  }
  assert.deepEqual(
    owing.map((id) => rig.delivery.health(id)),
    [],
  )
  await rig.untilIdle()
  assert.ok(
    rig.troubles.every((error) => error instanceof Error && error.name === 'StoreUnavailable'),
    String(rig.troubles),
  )
  await rig.stop()
  // Each delivery that failed or expired became at most one dead letter, and each dead letter is stored once, unless its user was deleted before that.
  const letters = rig.settlements.flatMap((settlement) => settlement.letters ?? []).flatMap(({ items }) => items)
  assert.equal(new Set(letters.map(({ messageId }) => messageId)).size, letters.length)
  for (const { messageId, userId } of letters) {
    const stored = (await rig.store.history.trails(messageId)).length
    assert.ok(
      stored === 1 || (stored === 0 && deletedUsers.has(userId)),
      `the dead letter ${messageId} of ${String(userId)} is stored ${stored} times`,
    )
  }
  assert.deepEqual([rig.memory.heldBytes, rig.slots.free, rig.clock.timers], [0, rig.slotCount, 0])
}

for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
  test(`after random operations, every delivery is delivered or has a reason (seed ${seed})`, (t) => runRandomOperations(t, seed))
}
