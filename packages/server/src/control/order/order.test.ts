// The routes of ordered destinations: which keys wait or are held, and what operators do about them.

import assert from 'node:assert/strict'
import test from 'node:test'
import { claim, fail, waitingKey } from '../fixtures/ordered.ts'
import { startControl } from '../fixtures/start-control.ts'

test('a destination without waiting keys has an empty list; one that does not exist is 404', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', { name: 'Hook', urls: ['https://example.com/hook'] })
  const empty = { waitingKeys: 0, waitingMessages: 0, heldKeys: 0, keylessMessages: 0, oldest: null, data: [], next: null }
  assert.deepEqual((await call('GET', `/api/destinations/${body.id}/order`)).body, empty)
  assert.equal((await call('GET', '/api/destinations/dst_none/order')).body.code, 'destination_not_found')
})

test('a waiting key is shown with its head, and so is the message that a delivery waits for', async (t) => {
  const fixture = await startControl(t)
  const { call } = fixture
  const { destinationId, head, waiting } = await waitingKey(fixture, { userId: 'u-1', waiting: 2 })
  const { body } = await call('GET', `/api/destinations/${destinationId}/order`)
  assert.deepEqual([body.waitingKeys, body.waitingMessages, body.heldKeys, body.next], [1, 2, 0, null])
  const [key] = body.data
  assert.deepEqual(body.oldest, { key: 'u-1', since: key.since, messageId: head, reason: 'http_500' })
  assert.deepEqual(
    [key.key, key.state, key.waiting, key.head.messageId, key.head.state, key.head.attempts],
    ['u-1', 'waiting', 2, head, 'pending', 1],
  )
  assert.ok(Date.parse(key.head.nextAttemptAt) > Date.now() + 3_000_000)
  const { body: message } = await call('GET', `/api/messages/${waiting[0]}`)
  assert.deepEqual(message.deliveries[0].waitingFor, { messageId: head, key: 'u-1' })
  const last = message.story.at(-1)
  assert.equal(last.reason, 'key_waiting')
  assert.equal(last.sentence, `Waits for the message "${head}", which has the same key "u-1" and must end first at "Ordered".`)
  const { body: listed } = await call('GET', `/api/deliveries?destinationId=${destinationId}`)
  assert.deepEqual(listed.data.map((each: { waitingFor: unknown }) => each.waitingFor).filter(Boolean), [
    { messageId: head, key: 'u-1' },
    { messageId: head, key: 'u-1' },
  ])
})

test('skip ends the head of a waiting key, and answers 404 and 409 like the contract', async (t) => {
  const fixture = await startControl(t)
  const { call } = fixture
  const { destinationId, head, waiting } = await waitingKey(fixture, { userId: 'u-1' })
  const skip = (body: object) => call('POST', `/api/destinations/${destinationId}/order/skip`, body)
  assert.equal((await skip({})).body.field, 'key')
  assert.deepEqual((await skip({ key: 'u-2' })).body.code, 'key_not_waiting')
  const notHead = await skip({ key: 'u-1', messageId: waiting[0] })
  assert.deepEqual([notHead.status, notHead.body.code, (await skip({ key: 'u-2' })).status], [409, 'not_head_of_key', 404])
  const { status, body } = await skip({ key: 'u-1', messageId: head })
  assert.deepEqual([status, body.state, body.done], [200, 'waiting', true])
  const { body: delivery } = await call('GET', `/api/deliveries/${body.deliveryId}`)
  assert.deepEqual([delivery.state, delivery.reason], ['cancelled', 'skipped_by_operator'])
  const { body: message } = await call('GET', `/api/messages/${head}`)
  assert.match(message.story.at(-1).sentence, /cancelled after 1 attempt: somebody skipped it/)
  assert.equal((await claim(fixture, destinationId)).length, 1)
  assert.deepEqual((await call('GET', `/api/destinations/${destinationId}/order`)).body.waitingKeys, 0)
})

test('a held key is resumed or released; a replay without resume is outside the order', async (t) => {
  const fixture = await startControl(t)
  const { call } = fixture
  const { destinationId, head, waiting } = await waitingKey(fixture, { userId: 'u-1', onFailure: 'hold' })
  const order = async () => (await call('GET', `/api/destinations/${destinationId}/order`)).body
  const [held] = (await order()).data
  assert.deepEqual(
    [held.state, held.head.state, held.head.nextAttemptAt, held.head.reasonSentence !== null],
    ['held', 'failed', null, true],
  )
  const { body: message } = await call('GET', `/api/messages/${waiting[0]}`)
  assert.equal(message.story.at(-1).reason, 'key_held')
  const replay = (id: string, body?: object) => call('POST', `/api/deliveries/${id}/replay`, body)
  assert.equal((await replay(held.head.deliveryId)).status, 202)
  assert.equal((await order()).heldKeys, 1)
  const resumed = await replay(held.head.deliveryId, { resume: true })
  assert.equal(resumed.status, 202)
  assert.deepEqual([(await order()).heldKeys, (await order()).data[0].head.deliveryId], [0, resumed.body.id])
  assert.deepEqual((await replay(held.head.deliveryId, { resume: true })).body.code, 'holds_no_key')
  const { body: again } = await call('GET', `/api/messages/${head}`)
  const queued = again.story.filter(({ what }: { what: string }) => what === 'owed').map(({ sentence }: { sentence: string }) => sentence)
  assert.ok(
    queued.some((sentence: string) => sentence.includes('outside the order of its key')),
    queued.join('\n'),
  )
  assert.ok(
    queued.some((sentence: string) => sentence.includes('at the head of its key')),
    queued.join('\n'),
  )
  await fail(fixture, destinationId, true)
  assert.equal((await order()).heldKeys, 1)
  const retried = await call('POST', `/api/destinations/${destinationId}/order/retry`, { key: 'u-1', messageId: head })
  assert.deepEqual([retried.status, retried.body.state], [200, 'held'])
  await fail(fixture, destinationId, true)
  const released = await call('POST', `/api/destinations/${destinationId}/order/skip`, { key: 'u-1' })
  assert.deepEqual([released.status, released.body.state, (await order()).data], [200, 'held', []])
  const { body: ledger } = await call('GET', '/api/ledger')
  const own = ledger.data.find((row: { destinationId: string }) => row.destinationId === destinationId)
  assert.deepEqual([own.owed, own.failed, own.pending], [5, 3, 2])
})

test('a caller without all sources of the destination, and a viewer, cannot skip', async (t) => {
  const fixture = await startControl(t)
  const { call } = fixture
  const { destinationId, sourceId } = await waitingKey(fixture, { userId: 'u-1' })
  const { body: other } = await call('POST', '/api/sources', { name: 'Other' })
  const token = async (body: object) => (await call('POST', '/api/tokens', { name: 'x', ...body })).body.token as string
  const viewer = await token({ role: 'viewer', sources: 'all' })
  const limited = await token({ role: 'editor', sources: [sourceId] })
  const path = `/api/destinations/${destinationId}/order`
  assert.equal((await call('GET', path, undefined, { token: viewer })).status, 200)
  assert.equal((await call('POST', `${path}/skip`, { key: 'u-1' }, { token: viewer })).status, 403)
  assert.equal((await call('GET', path, undefined, { token: limited })).status, 200)
  await call('PATCH', `/api/destinations/${destinationId}`, { sourceIds: [sourceId, other.id] })
  const refused = await call('POST', `${path}/skip`, { key: 'u-1' }, { token: limited })
  assert.ok(refused.status === 403 || refused.status === 404, `${refused.status} ${refused.text}`)
  assert.notEqual((await call('GET', path, undefined, { token: limited })).status, 200)
})
