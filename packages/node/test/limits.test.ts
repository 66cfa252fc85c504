// Sizes in true UTF-8 bytes, the bounded queue, and bursts.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { Analytics, type AnalyticsError, type Context } from '@switchyard/node'
import { MAX_BATCH_BYTES, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import { gate, startTrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }

/** Returns a track call whose message has exactly this many bytes of JSON. */
function callOf(bytes: number, fill: string) {
  const call = (text: string) => ({
    ...event,
    messageId: 'm',
    timestamp: '2026-11-15T00:00:00.000Z',
    context: { library: { name: 'x', version: '1' } },
    properties: { text },
  })
  const empty = Buffer.byteLength(JSON.stringify({ type: 'track', ...call('') }))
  const each = Buffer.byteLength(fill)
  const room = bytes - empty
  return call(fill.repeat(Math.floor(room / each)) + 'x'.repeat(room % each))
}

for (const [script, fill] of [
  ['ASCII', 'a'],
  ['two bytes a character', 'é'],
  ['three bytes a character', '✓'],
  ['four bytes a character', '🦫'],
] as const) {
  test(`a message of exactly 32 KB is accepted, and one byte more is rejected at the call: ${script}`, async () => {
    await using server = await startTrackingServer()
    const analytics = new Analytics({ writeKey: 'wk', host: server.url })
    const codes: string[] = []
    analytics.on('error', (error) => codes.push(error.code))
    analytics.track(callOf(MAX_MESSAGE_BYTES, fill))
    assert.deepEqual(codes, [])
    analytics.track(callOf(MAX_MESSAGE_BYTES + 1, fill))
    assert.deepEqual(codes, ['message_too_large'])
    await analytics.closeAndFlush()
    assert.deepEqual(
      server.messages().map((message) => Buffer.byteLength(JSON.stringify(message))),
      [MAX_MESSAGE_BYTES],
    )
  })
}

test('batches are split below 500 KB, envelope included, however many messages flushAt allows', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1_000 })
  for (let i = 0; i < 100; i++) analytics.track({ ...callOf(20_000, '✓'), messageId: `m-${i}` })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 100, failed: 0, pending: 0 })
  assert.equal(new Set(server.messages().map((message) => message.messageId)).size, 100)
  assert.ok(server.requests.length >= 5)
  for (const request of server.requests) {
    assert.ok(Buffer.byteLength(request.text) <= 500_000 && Buffer.byteLength(request.text) < MAX_BATCH_BYTES)
  }
  // Split no earlier than needed: 24 messages of 20,000 bytes fit.
  assert.equal(server.requests.length, 5)
})

test('flushAt is limited to 2,500 messages, the maximum of the service', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 10_000 })
  for (let i = 0; i < 2_600; i++) analytics.track({ userId: 'u', event: 'e' })
  await analytics.closeAndFlush()
  assert.ok(server.requests.every((request) => request.body.batch.length <= 2_500))
  assert.equal(server.messages().length, 2_600)
})

test('a burst uses at most 8 requests and connections at once, and each message arrives exactly once', async () => {
  await using server = await startTrackingServer(() => ({ after: server.arrived(8) }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const calls = 20_000
  for (let i = 0; i < calls; i++) analytics.track({ ...event, messageId: `m-${i}` })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: calls, failed: 0, pending: 0 })
  assert.equal(server.messages().length, calls)
  assert.equal(new Set(server.messages().map((message) => message.messageId)).size, calls)
  assert.equal(server.peak.requests, 8)
  assert.ok(server.peak.connections <= 9, `${server.peak.connections} connections`)
})

test('the memory of a burst is freed while it is sent', { skip: !('transfer' in ArrayBuffer.prototype) }, async (t) => {
  await using server = await startTrackingServer()
  let freed = 0
  const buffers = ArrayBuffer.prototype as unknown as { transfer(bytes: number): ArrayBuffer }
  const transfer = Reflect.get(buffers, 'transfer')
  t.mock.method(buffers, 'transfer', function (this: ArrayBuffer, bytes: number) {
    freed += this.byteLength
    return transfer.call(this, bytes)
  })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  for (let i = 0; i < 10_000; i++) analytics.track(event)
  await analytics.flush()
  const stored = 10_000 * (JSON.stringify(server.messages()[0]).length - 100)
  // The last chunk stays, to be filled by further calls.
  assert.ok(freed > stored * 0.6, `of ${stored} bytes, ${freed} were freed`)
  await analytics.closeAndFlush()
})

test('while a request can be started for each batch, none has more than flushAt messages', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 10 })
  for (let i = 0; i < 80; i++) analytics.track(event)
  await analytics.closeAndFlush()
  assert.deepEqual(
    server.requests.map((request) => request.body.batch.length),
    Array(8).fill(10),
  )
})

test('waiting batches share requests, and each message keeps its own callback, code and order', async () => {
  const rejecting = (batch: { messageId: string }[]): unknown =>
    batch.flatMap(({ messageId }, index) => (messageId.endsWith('7') ? [{ index, messageId, code: 'rejected_7', message: messageId }] : []))
  await using server = await startTrackingServer((request) => ({
    body: JSON.stringify({ success: true, rejected: rejecting(request.body.batch) }),
  }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 10, maxInFlight: 2 })
  const failed: string[] = []
  analytics.on('error', (error) => failed.push(`${error.code} ${error.message} ${error.ctx?.event.messageId}`))
  const outcomes = new Map<string, string>()
  const calls = 1_000
  for (let i = 0; i < calls; i++) {
    const messageId = `m-${i}`
    // Every third message has a callback, so that batches with and without callbacks are combined.
    if (i % 3 === 0)
      analytics.track({ ...event, messageId }, (error, ctx) => outcomes.set(messageId, `${error?.message} ${ctx?.event.messageId}`))
    else analytics.track({ ...event, messageId })
  }
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 900, failed: 100, pending: 0 })
  assert.ok(server.requests.length < 20, `${server.requests.length} requests`)
  for (const request of server.requests) assert.ok(Buffer.byteLength(request.text) < 70_000)
  assert.equal(new Set(server.messages().map((message) => message.messageId)).size, calls)
  assert.equal(failed.length, 100)
  for (let i = 7; i < calls; i += 10) assert.ok(failed.includes(`rejected_7 m-${i} m-${i}`))
  for (let i = 0; i < calls; i += 3) assert.equal(outcomes.get(`m-${i}`), `${i % 10 === 7 ? `m-${i}` : undefined} m-${i}`)
})

test('maxInFlight sets the maximum number of concurrent requests', async () => {
  await using server = await startTrackingServer(() => ({ delayMs: 5 }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxInFlight: 2, flushAt: 1 })
  for (let i = 0; i < 20; i++) analytics.track(event)
  await analytics.closeAndFlush()
  assert.equal(server.peak.requests, 2)
})

test('the timeout of a request starts with the request, not with the call, so a long queue causes no timeouts', async () => {
  await using server = await startTrackingServer(() => ({ delayMs: 60 }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxInFlight: 1, flushAt: 1, httpRequestTimeout: 500, maxRetries: 0 })
  for (let i = 0; i < 15; i++) analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 15, failed: 0, pending: 0 })
  assert.equal(server.requests.length, 15)
})

test('calls return false above the high-water mark, and drained is emitted when to continue', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, highWaterMarkBytes: 20_000 })
  let waits = 0
  for (let i = 0; i < 1_000; i++) {
    if (!analytics.track(event)) {
      waits++
      await new Promise<void>((resolve) => analytics.once('drained', resolve))
    }
  }
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1_000, failed: 0, pending: 0 })
  assert.ok(waits >= 5, `${waits} waits`)
})

test('calls above the high-water mark still fill batches', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 10, highWaterMarkBytes: 1_000 })
  for (let i = 0; i < 80; i++) analytics.track(event)
  await analytics.closeAndFlush()
  assert.deepEqual(
    server.requests.map((request) => request.body.batch.length),
    Array(8).fill(10),
  )
})

test('a call that is rejected does not return false, because no drained event would follow', async () => {
  const analytics = new Analytics({ writeKey: 'wk' })
  analytics.on('error', () => {})
  assert.equal(analytics.track({ userId: '', event: 'e' }), true)
  await analytics.closeAndFlush()
  assert.equal(analytics.track(event), true)
})

test('a message that does not fit into maxQueueBytes fails with queue_full, as an error event and in its callback', async () => {
  const { open: answer, opened: answered } = gate()
  await using server = await startTrackingServer(() => ({ after: answered }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxQueueBytes: 50_000 })
  const errors: AnalyticsError[] = []
  const callbacks: string[] = []
  analytics.on('error', (error) => errors.push(error))
  const calls = 1_000
  for (let i = 0; i < calls; i++) analytics.track({ ...event, messageId: `m-${i}` }, (error) => callbacks.push(error?.code ?? 'delivered'))
  const flushed = analytics.flush()
  answer()
  const result = await flushed
  assert.ok(errors.length > 0)
  assert.ok(errors.every((error) => error.code === 'queue_full' && error.ctx?.event.messageId.startsWith('m-')))
  assert.equal(result.failed, errors.length)
  assert.equal(result.delivered, calls - errors.length)
  assert.equal(server.messages().length, result.delivered)
  assert.equal(callbacks.length, calls)
  assert.equal(callbacks.filter((code) => code === 'queue_full').length, errors.length)
  // There is room again, so the queue accepts the next message.
  analytics.track({ ...event, messageId: 'later' })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
})

for (const [limit, settings] of [
  ['maxQueueBytes', { maxQueueBytes: 100_000 }],
  ['spool.maxBytes', { spool: true }],
] as const) {
  test(`a caller who waits for drained after false never gets queue_full, however small ${limit} is`, async () => {
    const dir = mkdtempSync(join(tmpdir(), 'switchyard-limits-'))
    await using server = await startTrackingServer()
    const spool = 'spool' in settings ? { spool: { dir, maxBytes: 100_000 } } : settings
    const analytics = new Analytics({ writeKey: 'wk', host: server.url, ...spool })
    const codes: string[] = []
    analytics.on('error', (error) => codes.push(error.code))
    for (let i = 0; i < 3_000; i++) {
      if (!analytics.track(event)) await new Promise<void>((resolve) => analytics.once('drained', resolve))
    }
    assert.deepEqual(await analytics.closeAndFlush(), { stored: 3_000, failed: 0, pending: 0 })
    assert.deepEqual(codes, [])
    rmSync(dir, { recursive: true })
  })
}

test('every byte of the queue is freed, however a message ends', async () => {
  await using server = await startTrackingServer((request) => (request.text.includes('refuse-me') ? { status: 400 } : undefined))
  const maxQueueBytes = 20_000
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, maxQueueBytes }).on('error', () => {})
  const grow = (ctx: Context): Context => {
    if (ctx.event.event === 'throw') throw new Error('mine')
    if (ctx.event.event === 'break') delete ctx.event.userId
    if (ctx.event.event === 'grow') ctx.updateEvent('properties.text', 'x'.repeat(5_000))
    if (ctx.event.event === 'too-large') ctx.updateEvent('properties.text', 'x'.repeat(30_000))
    return ctx
  }
  await analytics.register({
    name: 'p',
    type: 'enrichment',
    isLoaded: () => true,
    load: async () => {},
    track: grow,
    page: async (ctx) => ctx,
  })
  for (let round = 0; round < 30; round++) {
    for (const name of ['throw', 'break', 'grow', 'too-large', 'refuse-me', 'fine']) analytics.track({ userId: 'u', event: name })
    analytics.page({ userId: 'u' })
    await analytics.flush()
  }
  // The whole queue is free again: a message of nearly its size fits.
  analytics.identify({ userId: 'u', traits: { text: 'x'.repeat(maxQueueBytes - 500) } })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
})
