// A destination fails, is paused for longer than its retry window, and is resumed: its deliveries must not be lost. Uses a manual clock.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Receiver } from './fixtures/receiver.ts'
import { type Rig, startRig } from './fixtures/rig.ts'

const HOUR_MS = 3_600_000

/** Sets up twelve messages, some of them attempted, and an open breaker. */
async function startFailing(
  t: TestContext,
): Promise<{ rig: Rig; receiver: Receiver; destination: Awaited<ReturnType<Rig['destination']>> }> {
  const rig = await startRig(t)
  const receiver = await rig.receiver()
  receiver.answer = () => 500
  const destination = await rig.destination('one', { urls: [receiver.url], retryWindowMs: HOUR_MS })
  await rig.until(() => rig.claims.length === 1)
  for (let nth = 0; nth < 12; nth++) await rig.accept([destination])
  await rig.until(() => rig.delivery.health(destination.id)?.breaker === 'open')
  await rig.untilIdle()
  return { rig, receiver, destination }
}

test('deliveries whose window ends during a pause are not lost: the receiver is probed, and they are sent', async (t) => {
  const { rig, receiver, destination } = await startFailing(t)
  const before = receiver.received.length
  await rig.store.resources.updateDestination(destination.id, { paused: true })
  for (let nth = 0; nth < 10; nth++) {
    rig.clock.advance(HOUR_MS)
    await rig.untilStoreAnswered()
  }
  assert.deepEqual([receiver.received.length, (await rig.ledger(destination)).pending], [before, 12], 'no probe, nothing expires')
  receiver.answer = () => 200
  await rig.store.resources.updateDestination(destination.id, { paused: false })
  await rig.untilLedger(destination, { delivered: 12, expired: 0, pending: 0 })
  await rig.untilIdle()
  await rig.stop()
})

test('deliveries whose window ended during a pause get a new window, so a receiver may take some minutes more to recover', async (t) => {
  const { rig, receiver, destination } = await startFailing(t)
  await rig.store.resources.updateDestination(destination.id, { paused: true })
  rig.clock.advance(2 * HOUR_MS)
  await rig.untilStoreAnswered()
  // The probe is not answered, and nothing else may be sent meanwhile.
  receiver.answer = () => null
  await rig.store.resources.updateDestination(destination.id, { paused: false })
  for (let nth = 0; nth < 10; nth++) {
    rig.clock.advance(60_000)
    await rig.untilStoreAnswered()
  }
  const { expired, pending } = await rig.ledger(destination)
  assert.ok(expired <= 2 && pending >= 10, `${expired} expired, ${pending} pending: at most those that were sent as a probe may expire`)
  await rig.stop()
})
