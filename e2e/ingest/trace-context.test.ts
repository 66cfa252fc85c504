// The caller's trace context (W3C), from its request to the webhook.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import { wire } from '../system/wiring.ts'

let service: InProcessService
let receiver: Receiver

before(async () => {
  service = await startInProcess()
  receiver = await startReceiver()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

describe("The caller's trace", () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const tracestate = 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7'
  const headersOf = (arrival: Arrival | undefined): unknown => [arrival?.headers['traceparent'], arrival?.headers['tracestate']]

  test('is carried to the webhook at the first attempt, at a retry after a restart, and in a replay', async () => {
    await using own = await startInProcess()
    await using receiver = await startReceiver(({ number }) => (number === 1 ? { status: 500 } : undefined))
    const wiring = await wire(own, { urls: [receiver.url] })
    await wiring.post('/v1/track', { messageId: 'traced', userId: 'u', event: 'Tested' }, { traceparent, tracestate })
    await wiring.attempted('traced', 1)
    await own.restart({ laterMs: 60_000 })
    const { id, traceId, request } = await wiring.settled('traced')
    await own.api(`/deliveries/${id}/replay`, { method: 'POST' })
    await receiver.until(() => receiver.arrivals.length === 3)
    assert.deepEqual(
      receiver.arrivals.map(headersOf),
      Array.from({ length: 3 }, () => [traceparent, tracestate]),
    )
    assert.deepEqual(
      [traceId, request?.headers['traceparent'], request?.headers['tracestate']],
      [traceparent.slice(3, 35), traceparent, tracestate],
    )
    const { traceId: ofMessage, story } = await wiring.message('traced')
    assert.equal(ofMessage, traceparent.slice(3, 35))
    assert.match(story[0]?.sentence ?? '', /in trace 0af7651916cd43dd8448eb211c80319c/)
  })

  test('is ignored if it is invalid, and no part of it reaches the webhook', async () => {
    const wiring = await wire(service, { urls: [receiver.url] })
    const invalid: Record<string, string>[] = [
      { traceparent: traceparent.toUpperCase() },
      { traceparent: `${traceparent}-x` },
      { tracestate },
    ]
    for (const headers of invalid) {
      const messageId = randomUUID()
      await wiring.post('/v1/track', { messageId, userId: 'u', event: 'Tested' }, headers)
      assert.equal((await wiring.settled(messageId)).traceId, null)
      assert.deepEqual(headersOf(receiver.byMessageId.get(messageId)?.[0]), [undefined, undefined])
    }
  })

  test('is sent with a batch if all its messages have the same trace', async () => {
    const own = await startReceiver()
    const wiring = await wire(service, { urls: [own.url], batch: { size: 2, lingerMs: 60_000 } })
    const send = (headers: Record<string, string>): Promise<void> =>
      wiring.post('/v1/track', { messageId: randomUUID(), userId: 'u', event: 'Tested' }, headers)
    const other = traceparent.replace('0af7', '1af7')
    for (const pair of [
      [traceparent, traceparent],
      [traceparent, other],
    ]) {
      for (const each of pair) await send({ traceparent: each })
    }
    await own.until(() => own.arrivals.length === 2)
    assert.deepEqual(
      own.arrivals.map(({ messages, headers }) => [messages.length, headers['traceparent']]),
      [
        [2, traceparent],
        [2, undefined],
      ],
    )
    await own.close()
  })
})
