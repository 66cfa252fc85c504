// When pending deliveries expire: in lists, in details, and in the health of destinations.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { DestinationHealth } from '../../delivery/delivery.ts'
import { claimOne, settle } from '../../store/conformance/fixtures.ts'
import { accept, STILL, startControl } from '../fixtures/start-control.ts'

test('a pending delivery expires a retry window after its first attempt, but not while its destination is held, paused or disabled', async (t) => {
  let held: string | null = null
  const health = (): DestinationHealth => ({
    breaker: 'closed',
    openSinceMs: null,
    inFlight: 0,
    nextAttemptAtMs: null,
    held,
    failure: null,
    mostFrequentFailure: null,
    success: null,
    latencyMs: null,
    urls: [],
  })
  const { call, store, deps } = await startControl(t, { delivery: { ...STILL, health } })
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const settings = { name: 'Hook', urls: ['https://example.com/hook'], sourceIds: [source.id], retryWindowMs: 3_600_000 }
  const { body: destination } = await call('POST', '/api/destinations', settings)
  const items = [{ type: 'track', event: 'e', userId: 'u', messageId: 'm' }]
  await accept(store, source.id, items, { shipments: [{ destinationId: destination.id, indexes: null }] })
  const expiries = async (): Promise<string[]> => {
    const { data } = (await call('GET', `/api/deliveries?destinationId=${destination.id}`)).body
    const all = (await call('GET', '/api/destinations/health')).body
    return [
      data[0].expiresAt,
      (await call('GET', `/api/deliveries/${data[0].id}`)).body.expiresAt,
      (await call('GET', '/api/messages/m')).body.deliveries[0].expiresAt,
      (await call('GET', `/api/destinations/${destination.id}/health`)).body.nextExpiryAt,
      all.data[0].nextExpiryAt,
    ]
  }
  const change = (body: object) => call('PATCH', `/api/destinations/${destination.id}`, body)
  const none = [null, null, null, null, null]
  assert.deepEqual(await expiries(), none, 'it was never attempted')
  const firstAttemptAtMs = deps.clock.scheduleMs()
  const expectedMs = deps.clock.wallMs() + 3_600_000
  await settle(store, await claimOne(store, destination.id), 'retry', { firstAttemptAtMs, dueAtMs: firstAttemptAtMs + 60_000 })
  // The two clocks may differ by a few milliseconds.
  for (const expiresAt of await expiries()) assert.ok(Math.abs(Date.parse(expiresAt) - expectedMs) < 5_000, expiresAt)
  held = 'An action is gone.'
  assert.deepEqual(await expiries(), none)
  held = null
  await change({ paused: true })
  assert.deepEqual(await expiries(), none)
  await change({ paused: false, enabled: false })
  assert.deepEqual(await expiries(), none)
  await change({ enabled: true, retryWindowMs: 7_200_000 })
  for (const expiresAt of await expiries()) assert.ok(Math.abs(Date.parse(expiresAt) - expectedMs - 3_600_000) < 5_000, expiresAt)
})
