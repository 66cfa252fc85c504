// Errors and responses that the health of a destination shows may quote messages. They are shown only while the destination serves the sources of these
// messages, and only until the messages are deleted.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { NewDestination } from '../store/store.ts'
import type { Received, Receiver } from './fixtures/receiver.ts'
import { type Rig, startRig } from './fixtures/rig.ts'

const NOT_QUOTED = ['The receiver answered 400 Bad Request.', null]

function quote({ messages }: Received): { status: number; headers: Record<string, string>; body: string } {
  return { status: 400, headers: {}, body: `bad: ${JSON.stringify(messages[0])}` }
}

async function start(t: TestContext, settings: Partial<NewDestination> = {}) {
  const rig = await startRig(t)
  const other = await rig.store.resources.createSource({ name: 'other', enabled: true, writeKeys: ['other'], requireOAuth: false })
  const receiver = await rig.receiver()
  receiver.answer = quote
  const destination = await rig.destination('shared', { urls: [receiver.url], sourceIds: [rig.source.id, other.id], ...settings })
  await rig.until(() => rig.claims.length === 1)
  return { rig, other, receiver, destination }
}

function texts(rig: Rig, id: string) {
  const health = rig.delivery.health(id)
  return [health?.failure?.error, health?.mostFrequentFailure?.responseStart]
}

function quoted(receiver: Receiver, nth: number) {
  return ['The receiver answered 400 Bad Request.', quote(receiver.received[nth] as Received).body]
}

test('responses that quote messages of a source are forgotten when the destination no longer serves it', async (t) => {
  const { rig, other, receiver, destination } = await start(t)
  const { id } = destination
  await rig.accept([destination], 1, {}, { sourceId: other.id })
  await rig.untilLedger(destination, { failed: 1 })
  assert.deepEqual(texts(rig, id), quoted(receiver, 0))
  await rig.store.resources.updateDestination(id, { sourceIds: [rig.source.id] })
  assert.deepEqual(texts(rig, id), NOT_QUOTED)
  // A message of the other source may still have been pending.
  await rig.accept([destination], 1, {}, { sourceId: other.id })
  await rig.untilLedger(destination, { failed: 2 })
  assert.deepEqual([rig.delivery.health(id)?.mostFrequentFailure?.attempts, ...texts(rig, id)], [2, ...NOT_QUOTED])
  await rig.accept([destination])
  await rig.untilLedger(destination, { failed: 3 })
  assert.deepEqual(texts(rig, id), quoted(receiver, 2))
  await rig.stop()
})

test('responses that quote dead letters are forgotten when the destination no longer gets dead letters of their source', async (t) => {
  const { rig, other, receiver, destination } = await start(t, { name: 'letters', sourceIds: [] })
  const settings = { urls: [receiver.url], sourceIds: [other.id], deadLetter: destination.id }
  const failing = await rig.destination('failing', settings)
  await rig.accept([failing], 1, {}, { sourceId: other.id })
  await rig.untilLedger(destination, { failed: 1 })
  assert.match(String(texts(rig, destination.id)[1]), /"userId":"user of m-1"/)
  await rig.store.resources.updateDestination(failing.id, { deadLetter: null })
  assert.deepEqual(texts(rig, destination.id), NOT_QUOTED)
  await rig.stop()
})

test('errors and responses are forgotten after a deletion, and when messages are as old as they are kept', async (t) => {
  const { rig, receiver, destination } = await start(t)
  const { id } = destination
  receiver.answer = (request) => (request.messages[0]?.['type'] === 'delete' ? null : quote(request))
  await rig.accept([destination])
  await rig.untilLedger(destination, { failed: 1 })
  assert.deepEqual(texts(rig, id), quoted(receiver, 0))
  await rig.store.deletions.create({ userIds: ['user of m-1'], sourceIds: null, suppress: false })
  // The delete messages of both sources.
  await rig.until(() => receiver.waiting === 2)
  assert.deepEqual(texts(rig, id), NOT_QUOTED)
  rig.clock.advance(1)
  await rig.accept([destination])
  await rig.untilLedger(destination, { failed: 2 })
  assert.deepEqual(texts(rig, id), quoted(receiver, 3))
  const receivedAtMs = rig.clock.wallMs()
  rig.delivery.forgetBefore(receivedAtMs)
  assert.deepEqual(texts(rig, id), quoted(receiver, 3))
  rig.delivery.forgetBefore(receivedAtMs + 1)
  assert.deepEqual(texts(rig, id), NOT_QUOTED)
  receiver.release()
  await rig.stop()
})
