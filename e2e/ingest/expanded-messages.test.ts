// Batches whose messages are small as sent and large as delivered, because the context of the batch is merged into each of them. With a small heap,
// so that a service that held all of them in memory would crash.

import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { startService, track } from '../system/service.ts'

/** Only counts messages, because hundreds of megabytes arrive. */
async function startCounter(): Promise<AsyncDisposable & { url: string; bytes: number }> {
  const server: Server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      counter.bytes += chunk.length
    })
    request.on('end', () => response.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const counter = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    bytes: 0,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return counter
}

const HEAP_MB = 256
const batch = (count: number): object[] => Array.from({ length: count }, (_, at) => track(`m-${at}`))

test('a batch with a context of 400 KB for 900 messages is refused, with the reason', async () => {
  await using service = await startService({ log: 'fatal' })
  await using receiver = await startReceiver()
  await service.destination({ urls: [receiver.url] })
  const body = JSON.stringify({ batch: batch(900), context: { app: 'x'.repeat(400_000) }, writeKey: service.writeKey })
  assert.ok(body.length < 512_000)
  const answer = await service.post('/v1/batch', body)
  assert.deepEqual([answer.status, answer.body.code, answer.body.rejected?.length], [400, 'message_too_large', 900])
  assert.match(answer.body.message ?? '', /context and integrations of the batch count/)
  await service.send([track('after')])
  await receiver.until(() => receiver.byMessageId.has('after'))
  assert.equal(receiver.arrivals.length, 1)
})

for (const senders of ['0', '1']) {
  test(`the largest batch that is accepted is delivered to six destinations, with ${senders} sender threads`, async (t) => {
    await using service = await startService({
      log: 'error',
      env: { SWITCHYARD_SENDERS: senders },
      execArgv: [`--max-old-space-size=${HEAP_MB}`],
    })
    await using counter = await startCounter()
    await using bystander = await startReceiver()
    const code = 'export default (message) => message'
    const batched = { size: 1_000, lingerMs: 0 }
    const shaped = { body: { copy: { '@path': '$.' }, note: 'n'.repeat(10_000) } }
    const single = { batch: { size: 1, lingerMs: 0 } }
    const settings = [{}, {}, {}, { transformation: { code } }, { request: shaped }, single]
    const ids: string[] = []
    for (const [at, each] of settings.entries())
      ids.push(await service.destination({ name: `d${at}`, urls: [counter.url], timeoutMs: 5_000, batch: batched, ...each }))
    const apart = await service.api<{ id: string; writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'apart' } })
    await service.api('/destinations', {
      method: 'POST',
      body: { type: 'webhook', name: 'bystander', sourceIds: [apart.id], urls: [bystander.url] },
    })
    const context = { app: 'x'.repeat(32_100) }
    const body = JSON.stringify({ batch: batch(2_500), context, writeKey: service.writeKey })
    assert.ok(body.length < 512_000)
    const answer = await service.post('/v1/batch', body)
    assert.deepEqual([answer.status, answer.body.rejected], [200, undefined])
    const sentAtMs = performance.now()
    const authorization = `Basic ${btoa(`${apart.writeKeys[0]}:`)}`
    assert.equal((await service.post('/v1/track', JSON.stringify(track('alone')), { authorization })).status, 200)
    await bystander.until(() => bystander.byMessageId.has('alone'), { deadlineMs: 180_000 })
    t.diagnostic(`the bystander got its message after ${(performance.now() - sentAtMs).toFixed()} ms`)
    const ledger = await service.settled(6 * 2_500 + 1, { deadlineMs: 400_000 })
    for (const id of ids) {
      const row = ledger.find(({ destinationId }) => destinationId === id)
      assert.deepEqual([row?.owed, row?.delivered], [2_500, 2_500], id)
    }
    assert.ok(counter.bytes > 6 * 2_500 * 32_000)
  })
}

test('shaped batches to a receiver that hangs use limited memory, and delay no other destination', async () => {
  await using service = await startService({
    log: 'error',
    env: { SWITCHYARD_SENDERS: '1' },
    execArgv: [`--max-old-space-size=${HEAP_MB}`],
  })
  await using hanging = await startReceiver(() => ({ hang: true }), { forgets: true })
  await using healthy = await startReceiver()
  const request = { body: { note: 'n'.repeat(60_000), id: { '@path': '$.messageId' } } }
  await service.destination({ name: 'hangs', urls: [hanging.url], batch: { size: 1_000, lingerMs: 0 }, maxInFlight: 100, request })
  await service.destination({ name: 'healthy', urls: [healthy.url], batch: { size: 1_000, lingerMs: 0 } })
  for (let nth = 0; nth < 10; nth++) {
    await service.send(Array.from({ length: 1_000 }, (_, at) => track(`m-${nth}-${at}`)))
  }
  await healthy.until(() => healthy.byMessageId.size === 10_000)
  await service.send([track('after')])
  await healthy.until(() => healthy.byMessageId.has('after'))
  assert.deepEqual(service.log(), [])
})
