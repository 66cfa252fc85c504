// Batch delivery: the body is an array of messages, within the limits of the destination's `batch`. It is sent and retried as a unit, and
// each message has its own delivery.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { verifyWebhook } from '@switchyard/webhook'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Behaviour, type Receiver, startReceiver } from '../system/receiver.ts'
import { type Wiring, wire } from '../system/wiring.ts'

const SECRET = 'a shared secret'
/** So long that only full batches are sent. */
const NEVER_MS = 60_000

let service: InProcessService
const receivers: Receiver[] = []

before(async () => {
  service = await startInProcess()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  for (const receiver of receivers) await receiver.close()
})

async function webhook(batch: object, settings: object = {}, answer?: Behaviour): Promise<{ wiring: Wiring; receiver: Receiver }> {
  const receiver = await startReceiver(answer)
  receivers.push(receiver)
  return { receiver, wiring: await wire(service, { urls: [receiver.url], batch, ...settings }) }
}

let count = 0
const messages = (many: number, fields: object = {}): { type: string; messageId: string }[] =>
  Array.from({ length: many }, () => ({ type: 'track', messageId: `batched-${++count}`, userId: 'u-1', event: 'Tested', ...fields }))
const idsOf = (batch: readonly { messageId?: string }[]): (string | undefined)[] => batch.map(({ messageId }) => messageId)

describe('Batch delivery', () => {
  test('a batch body is an array of message objects, in the order they were accepted', async () => {
    const { wiring, receiver } = await webhook({ size: 10, lingerMs: NEVER_MS })
    const sent = messages(10)
    await wiring.send(sent)
    await receiver.until(() => receiver.arrivals.length === 1)
    const [arrival] = receiver.arrivals
    assert.deepEqual([arrival?.isBatch, idsOf(arrival?.messages ?? [])], [true, idsOf(sent)])
    const text = arrival?.bytes.toString() ?? ''
    assert.equal(text, JSON.stringify(JSON.parse(text)))
  })

  test('size 1 is off, and the default: one message object per request', async () => {
    for (const batch of [{ size: 1 }, {}]) {
      const { wiring, receiver } = await webhook(batch)
      await wiring.send(messages(5))
      await receiver.until(() => receiver.arrivals.length === 5)
      assert.ok(receiver.arrivals.every(({ isBatch, messages }) => !isBatch && messages.length === 1))
    }
  })

  test('a batch larger than the memory of its destination is sent when that is full, without waiting', async () => {
    const { wiring, receiver } = await webhook({ size: 1_000, bytes: 5 * 1024 * 1024, lingerMs: NEVER_MS })
    const sent = messages(120, { properties: { filler: 'x'.repeat(30_000) } })
    for (let at = 0; at < sent.length; at += 15) await wiring.send(sent.slice(at, at + 15))
    // A small batch that follows may arrive first.
    await receiver.until(() => receiver.arrivals.some(({ messages: of }) => of.length >= 40))
  })

  test('size is 1 to 1000; other values are refused', async () => {
    for (const size of [0, 1_001, 1.5, '10']) await assert.rejects(webhook({ size }), /: 400 .*"field":"batch\.size"/)
    const { wiring, receiver } = await webhook({ size: 1_000, lingerMs: NEVER_MS })
    await wiring.send(messages(1_000))
    await receiver.until(() => receiver.arrivals.length === 1)
    assert.equal(receiver.arrivals[0]?.messages.length, 1_000)
  })

  test('more messages than size are sent in several batches, the last of them after lingerMs', async () => {
    const { wiring, receiver } = await webhook({ size: 4, lingerMs: 300 })
    const sent = messages(10)
    await wiring.send(sent)
    await receiver.until(() => receiver.byMessageId.size === 10)
    assert.deepEqual(
      receiver.arrivals.map(({ messages }) => messages.length).sort((a, b) => a - b),
      [2, 4, 4],
    )
    assert.deepEqual(new Set(idsOf(receiver.messages())), new Set(idsOf(sent)))
  })

  test('messages of several requests are collected in one batch', async () => {
    const { wiring, receiver } = await webhook({ size: 6, lingerMs: NEVER_MS })
    const sent = messages(6)
    for (const at of [0, 2, 4]) await wiring.send(sent.slice(at, at + 2))
    await receiver.until(() => receiver.arrivals.length === 1)
    assert.deepEqual(idsOf(receiver.arrivals[0]?.messages ?? []), idsOf(sent))
    for (const { messageId } of sent) {
      const delivery = await wiring.settled(messageId)
      assert.deepEqual([delivery.state, delivery.attemptCount, delivery.attempts.length], ['delivered', 1, 1])
    }
  })

  test('a single message is sent after lingerMs, as an array of one', async () => {
    const { wiring, receiver } = await webhook({ size: 100, lingerMs: 50 })
    await wiring.send(messages(1))
    await receiver.until(() => receiver.arrivals.length === 1)
    assert.deepEqual([receiver.arrivals[0]?.isBatch, receiver.arrivals[0]?.messages.length], [true, 1])
  })

  test('bytes limits the body; a message that is larger is sent alone', async () => {
    const { wiring, receiver } = await webhook({ size: 1_000, bytes: 5_000, lingerMs: 50 })
    await wiring.send([
      ...messages(8, { properties: { text: 'x'.repeat(1_000) } }),
      ...messages(1, { properties: { text: 'x'.repeat(9_000) } }),
    ])
    await receiver.until(() => receiver.byMessageId.size === 9)
    for (const { bytes, messages } of receiver.arrivals) assert.ok(bytes.length <= 5_000 || messages.length === 1, `${bytes.length} bytes`)
    assert.ok(receiver.arrivals.length <= 5, `${receiver.arrivals.length} requests`)
  })

  test('the batch is retried as a unit: the same body, the same webhook-id, X-Attempt: 2', async () => {
    const signingSecrets = [`whsec_${Buffer.alloc(24, 7).toString('base64')}`]
    const { wiring, receiver } = await webhook({ size: 4, lingerMs: NEVER_MS }, { signingSecrets, sharedSecret: SECRET }, ({ number }) =>
      number === 1 ? { status: 503 } : undefined,
    )
    const sent = messages(4)
    // The batch has messages of two requests.
    await wiring.send(sent.slice(0, 3))
    await wiring.send(sent.slice(3))
    for (const { messageId } of sent) await wiring.attempted(messageId, 1)
    // Later messages are not added to it.
    const later = messages(4)
    await wiring.send(later)
    await service.later(5_000)
    for (const { messageId } of [...sent, ...later]) assert.equal((await wiring.settled(messageId)).state, 'delivered')
    const [first, again] = receiver.byMessageId.get(sent[0]?.messageId ?? '') ?? []
    assert.deepEqual([first?.headers['x-attempt'], again?.headers['x-attempt']], ['1', '2'])
    assert.equal(again?.bytes.toString(), first?.bytes.toString())
    assert.equal(again?.headers['webhook-id'], first?.headers['webhook-id'])
    assert.equal(again?.headers['x-signature'], first?.headers['x-signature'])
    assert.equal(receiver.arrivals.length, 3)
    const verified = verifyWebhook(
      { headers: again?.headers ?? {}, body: again?.bytes ?? '' },
      { sharedSecret: SECRET, signingSecrets, toleranceSeconds: 600 },
    )
    assert.ok(verified.ok)
  })

  test('after a permanent failure of a batch, each of its deliveries has failed and can be replayed', async () => {
    const { wiring, receiver } = await webhook({ size: 3, lingerMs: NEVER_MS }, {}, ({ number }) =>
      number === 1 ? { status: 400 } : undefined,
    )
    const sent = messages(3)
    await wiring.send(sent)
    const deliveries = await Promise.all(sent.map(({ messageId }) => wiring.settled(messageId)))
    assert.deepEqual(
      deliveries.map(({ state, reason }) => [state, reason]),
      sent.map(() => ['failed', 'http_400']),
    )
    await service.api(`/deliveries/${deliveries[1]?.id}/replay`, { method: 'POST' })
    await receiver.until(() => receiver.arrivals.length === 2)
    const replayed = receiver.arrivals[1]
    assert.deepEqual(
      [replayed?.isBatch, idsOf(replayed?.messages ?? []), replayed?.headers['x-replay']],
      [true, [sent[1]?.messageId], 'true'],
    )
  })

  test('a delete message is never batched with others', async () => {
    const { wiring, receiver } = await webhook({ size: 100, lingerMs: 100 })
    await wiring.send(messages(3, { userId: 'u-other' }))
    await service.api('/deletions', { method: 'POST', body: { userIds: ['u-a', 'u-b'], sourceIds: [wiring.sourceId] } })
    await receiver.until(() => receiver.messages().length === 5)
    const shapes = receiver.arrivals.map(({ messages }) => messages.map(({ type }) => type).join())
    assert.deepEqual(shapes.sort(), ['delete', 'delete', 'track,track,track'])
  })

  test('the API shows the whole batch in which a delivery was sent', async () => {
    const signingSecrets = [`whsec_${Buffer.alloc(24, 7).toString('base64')}`]
    const { wiring, receiver } = await webhook({ size: 3, lingerMs: NEVER_MS }, { sharedSecret: SECRET, signingSecrets })
    const sent = messages(3)
    await wiring.send(sent)
    for (const { messageId } of sent) {
      const { request } = await wiring.settled(messageId)
      const [arrival] = receiver.arrivals
      assert.equal(request?.body, arrival?.bytes.toString())
      assert.equal(request?.headers['X-Signature'], arrival?.headers['x-signature'])
      assert.equal(request?.headers['webhook-id'], arrival?.headers['webhook-id'])
      assert.equal(request?.headers['webhook-signature'], arrival?.headers['webhook-signature'])
    }
  })

  test('turning batches off while one is waiting loses nothing', async () => {
    const { wiring, receiver } = await webhook({ size: 100, lingerMs: NEVER_MS })
    const sent = messages(3)
    await wiring.send(sent)
    await wiring.change({ batch: { size: 1 } })
    await receiver.until(() => receiver.byMessageId.size === 3)
    await wiring.send(messages(1))
    await receiver.until(() => receiver.byMessageId.size === 4)
    assert.equal(receiver.arrivals.at(-1)?.isBatch, false)
  })
})
