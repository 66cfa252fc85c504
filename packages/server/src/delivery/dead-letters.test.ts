// Messages whose delivery fails or expires are sent to the dead-letter destination.

import assert from 'node:assert/strict'
import test from 'node:test'
import { NO_FILTER, SYSTEM_SOURCE } from '../store/store.ts'
import type { Receiver } from './fixtures/receiver.ts'
import { type Rig, startRig } from './fixtures/rig.ts'

const HOUR_MS = 3_600_000

/** A destination whose receiver fails, and its dead-letter destination. */
async function start(rig: Rig, settings: Parameters<Rig['destination']>[1] = {}, target: Parameters<Rig['destination']>[1] = {}) {
  const [failing, receiver] = [await rig.receiver(), await rig.receiver()] as [Receiver, Receiver]
  failing.answer = () => 410
  const letters = await rig.destination('letters', { urls: [receiver.url], sourceIds: [], ...target })
  const destination = await rig.destination('orders', { urls: [failing.url], deadLetter: letters.id, ...settings })
  // A paused destination claims nothing.
  await rig.until(() => rig.claims.length >= (target.paused ? 1 : 2))
  return { failing, receiver, letters, destination }
}

test('a message that failed is sent to the dead-letter destination, whatever its filter', async (t) => {
  const rig = await startRig(t)
  const filter = { ...NO_FILTER, types: { allow: ['identify'], deny: ['track'] } }
  const { receiver, letters, destination } = await start(rig, {}, { filter, subscribe: 'type = "identify"' })
  await rig.accept([destination], 2, { properties: { total: 5 } })
  await rig.untilLedger(letters, { owed: 2, delivered: 2 })
  await rig.untilLedger(destination, { owed: 2, failed: 2 })
  const sent = receiver.received.map(({ messages }) => messages[0] as Record<string, unknown>)
  const [first] = sent.sort((x, y) => String(x['messageId']).localeCompare(String(y['messageId'])))
  assert.deepEqual(
    { ...first, message: null, messageId: null },
    {
      type: 'dead_letter',
      messageId: null,
      reason: 'http_410',
      destination: { id: destination.id, name: 'orders' },
      attempts: 1,
      lastStatus: 410,
      message: null,
    },
  )
  const message = first?.['message'] as Record<string, unknown>
  assert.deepEqual([message['type'], message['messageId'], message['properties']], ['track', 'm-1', { total: 5 }])
  await rig.stop()
})

test('a dead letter waits while its destination is paused or disabled', async (t) => {
  const rig = await startRig(t)
  const { receiver, letters, destination } = await start(rig, {}, { paused: true, enabled: false })
  await rig.accept([destination])
  await rig.untilLedger(letters, { owed: 1, pending: 1 })
  assert.equal(receiver.received.length, 0)
  await rig.store.resources.updateDestination(letters.id, { paused: false, enabled: true })
  await rig.untilLedger(letters, { delivered: 1 })
  await rig.stop()
})

test('a delivery that expires while the circuit breaker is open becomes a dead letter', async (t) => {
  const rig = await startRig(t)
  const { failing, receiver, letters, destination } = await start(rig, { retryWindowMs: HOUR_MS })
  failing.answer = () => 503
  await rig.accept([destination], 12)
  await rig.until(() => rig.breakers.length > 0)
  await rig.untilIdle()
  rig.clock.advance(HOUR_MS + 60_000)
  await rig.untilLedger(destination, { expired: 12, pending: 0 })
  await rig.untilLedger(letters, { owed: 12, delivered: 12 })
  const statuses = new Set(receiver.received.map(({ messages }) => messages[0]?.['attempts']))
  assert.ok([...statuses].every((attempts) => Number(attempts) >= 1))
  await rig.stop()
})

test('each replay that fails again makes another dead letter, and a dead letter that is cancelled or delivered makes none', async (t) => {
  const rig = await startRig(t)
  const { letters, destination } = await start(rig)
  await rig.accept([destination])
  await rig.untilLedger(letters, { delivered: 1 })
  const { data } = await rig.store.history.deliveries({ destinationId: destination.id }, { limit: 10, cursor: null })
  const replayed = await rig.store.replays.replay(data[0]?.id as string)
  assert.ok(replayed.ok)
  await rig.untilLedger(destination, { failed: 2 })
  await rig.untilLedger(letters, { owed: 2, delivered: 2 })
  assert.equal((await rig.store.history.delivery(replayed.deliveryId))?.deadLetter?.messageId, `dead-letter-${replayed.deliveryId}`)
  await rig.stop()
})

test('if the dead-letter destination is deleted, deliveries end without dead letters', async (t) => {
  const rig = await startRig(t)
  const { failing, letters, destination } = await start(rig)
  failing.answer = () => null
  await rig.accept([destination])
  await rig.until(() => failing.received.length === 1)
  await rig.store.resources.deleteDestination(letters.id)
  assert.equal(rig.store.configuration().destinations.get(destination.id)?.deadLetter, null)
  failing.release(410)
  await rig.untilLedger(destination, { failed: 1 })
  assert.deepEqual((await rig.store.history.messages({ type: 'dead_letter' }, { limit: 10, cursor: null })).data, [])
  await rig.stop()
})

test('dead letters of dead letters follow the chain', async (t) => {
  const rig = await startRig(t)
  const last = await rig.receiver()
  const end = await rig.destination('end', { urls: [last.url], sourceIds: [] })
  const { receiver, letters, destination } = await start(rig, {}, { deadLetter: end.id, batch: { size: 3, bytes: 100_000, lingerMs: 0 } })
  receiver.answer = () => 400
  await rig.accept([destination], 3)
  await rig.untilLedger(end, { owed: 3, delivered: 3 })
  await rig.untilLedger(letters, { failed: 3 })
  const received = last.received.flatMap(({ messages }) => messages)
  const [outer] = received as unknown as [{ destination: { name: string }; message: { type: string; message: { type: string } } }]
  assert.deepEqual([outer.destination.name, outer.message.type, outer.message.message.type], ['letters', 'dead_letter', 'track'])
  await rig.stop()
})

test('an alert about the dead-letter destination does not reach it as a dead letter, and its delivery says why', async (t) => {
  const rig = await startRig(t)
  await rig.store.resources.ensureSystemSource()
  const { receiver, letters, destination } = await start(rig)
  const alert = (id: string): Promise<string[]> =>
    rig.accept([destination], 1, { properties: { subject: { kind: 'destination', id } } }, { sourceId: SYSTEM_SOURCE })
  const [withheld] = await alert(letters.id)
  await rig.untilLedger(destination, { owed: 1, failed: 1 })
  await alert(destination.id)
  await rig.untilLedger(destination, { owed: 2, failed: 2 })
  await rig.untilLedger(letters, { owed: 1, delivered: 1 })
  const sent = receiver.received.flatMap(({ messages }) => messages as { message: { properties: { subject: { id: string } } } }[])
  assert.deepEqual(
    sent.map(({ message }) => message.properties.subject.id),
    [destination.id],
  )
  const { data } = await rig.store.history.deliveries({ destinationId: destination.id }, { limit: 10, cursor: null })
  const details = await Promise.all(data.map(({ id }) => rig.store.history.delivery(id)))
  const failed = details.find((detail) => detail?.messageId === withheld)
  assert.deepEqual([failed?.deadLetter, failed?.withheldFrom], [null, letters.id])
  assert.ok(details.some((detail) => detail?.deadLetter?.destinationId === letters.id && detail.withheldFrom === null))
  await rig.stop()
})
