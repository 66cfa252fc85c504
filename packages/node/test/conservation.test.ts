// Every call has exactly one outcome, with random settings, plugins, responses, flushes and closes. The test compares the counts of
// calls and outcomes. A failing run prints its seed.

import assert from 'node:assert/strict'
import test from 'node:test'
import { Analytics, type AnalyticsSettings, type Context } from '@switchyard/node'
import { type PlannedAnswer, type ReceivedRequest, startTrackingServer } from './tracking-server.ts'

/** The random number generator Mulberry32, which returns the same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

async function run(seed: number): Promise<void> {
  const random = randomOf(seed)
  const pick = <Item>(...items: Item[]): Item => items[Math.floor(random() * items.length)] as Item
  const chance = (share: number): boolean => random() < share

  const answer = ({ body }: ReceivedRequest): PlannedAnswer => {
    const delayMs = chance(0.2) ? random() * 10 : 0
    if (chance(0.1)) return { status: pick(500, 503, 429), delayMs }
    if (chance(0.05)) return { status: 400, delayMs }
    if (chance(0.05)) return { reset: true }
    if (chance(0.2)) {
      const rejected = body.batch.flatMap((_, index) => (chance(0.3) ? [{ index, code: 'no', message: 'no' }] : []))
      return { body: JSON.stringify({ success: true, rejected }), delayMs }
    }
    return { delayMs }
  }
  await using server = await startTrackingServer(answer)
  const settings: AnalyticsSettings = {
    writeKey: 'wk',
    host: server.url,
    flushAt: pick(1, 3, 15),
    maxInFlight: pick(1, 3, 8),
    maxRetries: pick(0, 1),
    maxQueueBytes: pick(40_000, 10_000_000),
    gzip: chance(0.3),
  }
  const analytics = new Analytics(settings).on('error', () => {})
  if (chance(0.6)) {
    const mayFail = (ctx: Context): Context => {
      if (chance(0.05)) throw new Error('mine')
      if (chance(0.05)) ctx.cancel()
      if (chance(0.2)) ctx.updateEvent('properties.text', 'x'.repeat(random() * 2_000))
      return ctx
    }
    const track = chance(0.5) ? mayFail : async (ctx: Context) => (await Promise.resolve(), mayFail(ctx))
    await analytics.register({ name: 'p', type: pick('before', 'enrichment'), isLoaded: () => true, load: async () => {}, track })
  }

  const outcomes = new Map<string, (string | undefined)[]>()
  const calls = 300
  const flushes: Promise<{ pending: number }>[] = []
  for (let i = 0; i < calls; i++) {
    const messageId = `m-${i}`
    outcomes.set(messageId, [])
    const userId = chance(0.03) ? '' : 'u'
    analytics.track({ userId, event: 'e', messageId }, (error) => outcomes.get(messageId)?.push(error?.code))
    if (chance(0.05)) flushes.push(analytics.flush(chance(0.3) ? { timeout: random() * 5 } : {}))
    if (chance(0.1)) await new Promise(setImmediate)
  }
  const closed = await analytics.closeAndFlush()
  assert.equal(closed.pending, 0)
  await Promise.all(flushes)

  const received = new Set(server.messages().map((message) => message.messageId))
  for (const [messageId, told] of outcomes) {
    assert.equal(told.length, 1, `${messageId} was told ${told.length} times`)
    if (told[0] === undefined) assert.ok(received.has(messageId), `${messageId} was said to be delivered`)
  }
}

for (let round = 0; round < 12; round++) {
  const seed = Math.floor(Math.random() * 2 ** 31)
  test(`every call has one outcome (seed ${seed})`, { timeout: 120_000 }, () => run(seed))
}

test('successive flushes report every call exactly once', async () => {
  const random = randomOf(7)
  await using server = await startTrackingServer(() => (random() < 0.2 ? { status: 400 } : {}))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 5 }).on('error', () => {})
  const sum = { delivered: 0, failed: 0 }
  let calls = 0
  for (let round = 0; round < 40; round++) {
    for (let i = 0; i < random() * 30; i++) {
      analytics.track({ userId: random() < 0.1 ? '' : 'u', event: 'e' })
      calls++
      if (random() < 0.2) await new Promise(setImmediate)
    }
    const { delivered, failed, pending } = await analytics.flush()
    assert.equal(pending, 0)
    sum.delivered += delivered
    sum.failed += failed
  }
  assert.equal(sum.delivered + sum.failed, calls)
  await analytics.closeAndFlush()
})
