// The health of destinations: the state of delivery, the counts of the store, and when pending deliveries expire.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { DestinationHealth } from '../../delivery/delivery.ts'
import { claimOne, settle } from '../../store/conformance/fixtures.ts'
import { accept, STILL, startControl } from '../fixtures/start-control.ts'

const HOOK = { name: 'Hook', urls: ['https://example.com/hook'] }

test('health combines the state of delivery with the counts of the store', async (t) => {
  let health: DestinationHealth | undefined
  const fixture = await startControl(t, { delivery: { ...STILL, health: () => health } })
  const { call, store, deps } = fixture
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const urls = ['https://example.com/a', 'https://example.com/b']
  const { body: destination } = await call('POST', '/api/destinations', { ...HOOK, urls, sourceIds: [source.id] })
  const path = `/api/destinations/${destination.id}/health`
  const nothing = { inFlight: 0, success: null, latencyMs: null }
  assert.deepEqual((await call('GET', path)).body, {
    breaker: 'closed',
    openSince: null,
    ...nothing,
    held: null,
    pending: 0,
    oldestPendingAt: null,
    nextAttemptAt: null,
    nextExpiryAt: null,
    failure: null,
    mostFrequentFailure: null,
    ledger: { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 },
    content: { version: 1, failing: null },
    urls: urls.map((url) => Object.assign({ url }, nothing)),
  })

  const items = [{ type: 'track', event: 'e', userId: 'u', messageId: 'm' }]
  const { receivedAtMs } = await accept(store, source.id, items, { shipments: [{ destinationId: destination.id, indexes: null }] })
  const recent = { inFlight: 2, success: 0.25, latencyMs: { p50: 1, p95: 2, p99: 3 } }
  const dueMs = deps.clock.scheduleMs() + 60_000
  const failure = { reason: 'auth_refused', error: 'The token endpoint example.com refused to issue an access token (401).' }
  const mostFrequentFailure = { reason: 'http_500', error: 'The receiver answered 500.', attempts: 3, responseStart: 'oops' }
  const openSinceMs = deps.clock.scheduleMs() - 30_000
  health = {
    breaker: 'probing',
    openSinceMs,
    ...recent,
    nextAttemptAtMs: dueMs,
    held: 'An action is gone.',
    failure,
    mostFrequentFailure,
    urls: [{ url: urls[1] as string, ...recent }],
  }
  const { body } = await call('GET', path)
  assert.deepEqual([body.breaker, body.inFlight, body.success, body.latencyMs], ['probing', 2, 0.25, recent.latencyMs])
  assert.deepEqual([body.failure, body.mostFrequentFailure, body.held], [failure, mostFrequentFailure, 'An action is gone.'])
  assert.deepEqual([body.pending, body.ledger.owed, body.ledger.pending], [1, 1, 1])
  assert.ok(Math.abs(Date.parse(body.oldestPendingAt) - receivedAtMs) < 15_000)
  assert.ok(Math.abs(Date.parse(body.nextAttemptAt) - Date.now() - 60_000) < 15_000)
  assert.ok(Math.abs(Date.parse(body.openSince) - Date.now() + 30_000) < 15_000)
  assert.deepEqual(body.urls, [
    { url: urls[0], ...nothing },
    { url: urls[1], ...recent },
  ])

  // Nothing expires before it was attempted, and while the destination is held or paused.
  assert.equal(body.nextExpiryAt, null)
  const firstAttemptAtMs = deps.clock.scheduleMs()
  await settle(store, await claimOne(store, destination.id), 'retry', { firstAttemptAtMs, dueAtMs: firstAttemptAtMs + 60_000 })
  const expiries = async () => {
    const { data } = (await call('GET', `/api/deliveries?destinationId=${destination.id}`)).body
    return [
      (await call('GET', path)).body.nextExpiryAt,
      data[0].expiresAt,
      (await call('GET', `/api/deliveries/${data[0].id}`)).body.expiresAt,
    ]
  }
  assert.deepEqual(await expiries(), [null, null, null])
  health = { ...health, held: null }
  for (const expiresAt of await expiries())
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - destination.retryWindowMs) < 15_000, expiresAt)
  await call('PATCH', `/api/destinations/${destination.id}`, { paused: true })
  assert.deepEqual(await expiries(), [null, null, null])
  await call('PATCH', `/api/destinations/${destination.id}`, { paused: false })

  // The same for all destinations in one response, including one without any deliveries.
  const { body: other } = await call('POST', '/api/destinations', HOOK)
  const all = (await call('GET', '/api/destinations/health')).body
  const { ledger: _, urls: __, content: ___, ...standing } = (await call('GET', path)).body
  const found = all.data.find(({ destinationId }: { destinationId: string }) => destinationId === destination.id)
  // Schedule times are converted to wall time.
  const still = ({ openSince, nextAttemptAt, nextExpiryAt, ...rest }: Record<string, string>) => ({
    ...rest,
    isOpen: openSince !== null,
    isDue: nextAttemptAt !== null,
    expires: nextExpiryAt !== null,
  })
  assert.deepEqual(still(found), still({ destinationId: destination.id, ...standing }))
  assert.deepEqual(
    [all.data.length, all.next, all.data[1].destinationId, all.data[1].pending, all.data[1].oldestPendingAt],
    [2, null, other.id, 0, null],
  )
})
