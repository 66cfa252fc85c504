import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { LedgerRow, Routing } from '../../store/store.ts'
import { BASIC, trackingApi } from '../fixtures/tracking-api.ts'
import { BacklogLimit } from './backlog-limit.ts'

const TRACK = { type: 'track', event: 'Tested', userId: 'u-1' }

function routingTo(...ids: string[]): Routing {
  return { shipments: ids.map((destinationId) => ({ destinationId, indexes: null })), skips: [] }
}

function row(destinationId: string, pending: number): LedgerRow {
  return { destinationId, owed: pending, delivered: 0, pending, failed: 0, expired: 0, cancelled: 0 }
}

function limitOf(t: TestContext, rows: () => Promise<LedgerRow[]>) {
  const state = { behind: [] as string[], reads: 0 }
  const limit = new BacklogLimit({
    maxPending: 100,
    ledger: () => {
      state.reads++
      return rows()
    },
    behind: () => state.behind,
  })
  t.after(() => limit.close())
  const check = async (times: number): Promise<void> => {
    for (let nth = 0; nth < times; nth++) await limit.check()
  }
  return { limit, state, check }
}

test('the limit counts only destinations that are behind, and applies only to requests for them', async (t) => {
  const { limit, state, check } = limitOf(t, async () => [row('full', 100), row('small', 99), row('dead', 10_000_000)])
  await check(5)
  assert.deepEqual([limit.isReached(routingTo('full', 'dead')), state.reads], [false, 0], 'nothing is read while nothing is behind')
  state.behind = ['full', 'small']
  await check(2)
  assert.deepEqual(
    [routingTo('full'), routingTo('small', 'dead'), routingTo(), routingTo('small', 'full')].map((plan) => limit.isReached(plan)),
    [true, false, false, true],
  )
})

test('a destination must be behind in two checks to count, and stops counting soon after it has caught up', async (t) => {
  const { limit, state, check } = limitOf(t, async () => [row('full', 500)])
  state.behind = ['full']
  await check(1)
  assert.equal(limit.isReached(routingTo('full')), false)
  await check(2)
  state.behind = []
  await check(1)
  assert.equal(limit.isReached(routingTo('full')), true)
  await check(1)
  assert.equal(limit.isReached(routingTo('full')), false)
})

test('a ledger that cannot be read leaves the limit as it was', async (t) => {
  let fails = false
  const { limit, state, check } = limitOf(t, async () => {
    if (fails) throw new Error('away')
    return [row('full', 500)]
  })
  state.behind = ['full']
  await check(2)
  fails = true
  await check(2)
  assert.equal(limit.isReached(routingTo('full')), true)
})

test('at the limit a request gets 503 with Retry-After, stores nothing and is not charged', async (t) => {
  let isReached = true
  const api = await trackingApi(t, { rateLimitPerSecond: 1 }, { route: () => routingTo('d'), backlogLimit: { isReached: () => isReached } })
  for (let times = 0; times < 5; times++) {
    const { status, headers, body } = await api.post('/v1/batch', { batch: [TRACK] }, BASIC)
    assert.deepEqual([status, headers['retry-after'], body['code']], [503, '5', 'overloaded'])
    assert.match(String(body['message']), /deliveries .* pending/)
  }
  assert.deepEqual([api.accepted.length, api.rejections.length], [0, 0], 'the client sends it again, so it is not recorded as rejected')
  const pixel = await api.send('GET', `/v1/pixel/track?data=${btoa(JSON.stringify({ ...TRACK, writeKey: 'key-1' }))}`)
  assert.deepEqual([pixel.status, api.rejections.map(({ code }) => code)], [200, ['overloaded']], 'a browser does not send an image again')
  isReached = false
  assert.equal((await api.post('/v1/batch', { batch: [TRACK] }, BASIC)).status, 200)
})
