// How requests are charged to the rate limit of a source, over real connections. The limit itself is tested in rate-limit.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailable } from '../../store/store.ts'
import { type Answer, trackingApi } from '../fixtures/tracking-api.ts'

const good = { type: 'track', userId: 'u', event: 'e', messageId: 'm' }

const outcome = ({ status, body }: Answer): [status: number, code: unknown] => [status, body['code']]

test('a source that exceeds its limit gets a Retry-After header', async (t) => {
  const api = await trackingApi(t, { rateLimitPerSecond: 2 })
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good, good, good, good, good, good] })), [200, undefined])
  const answer = await api.post('/v1/batch', { batch: [good] })
  assert.deepEqual(outcome(answer), [429, 'rate_limited'])
  assert.deepEqual([answer.headers['retry-after'], answer.headers['access-control-expose-headers']], ['2', 'Retry-After'])
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good], writeKey: 'first' }, {})), [200, undefined])
  api.clock.scheduleMs += 2_500
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good] })), [200, undefined])
})

test('a rejected request is charged as one message, however many it contains', async (t) => {
  const api = await trackingApi(t, { rateLimitPerSecond: 3 })
  assert.deepEqual(outcome(await api.post('/v1/batch', `{"batch":[${'0,'.repeat(240_000)}0]}`)), [400, 'too_many_messages'])
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: Array.from({ length: 2_500 }, () => ({})) })), [400, 'unknown_type'])
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good] })), [200, undefined])
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good] })), [429, 'rate_limited'])
  api.clock.scheduleMs += 1_000
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good] })), [200, undefined])
})

test('for a batch with valid and invalid messages, only the valid ones are charged', async (t) => {
  const api = await trackingApi(t, { rateLimitPerSecond: 2 })
  const answer = await api.post('/v1/batch', { batch: [good, ...Array.from({ length: 1_000 }, () => ({}))] })
  assert.deepEqual([answer.status, answer.body['accepted']], [200, 1])
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good] })), [200, undefined])
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch: [good] })), [429, 'rate_limited'])
})

test('a batch that could not be stored is not charged', async (t) => {
  const api = await trackingApi(t, { rateLimitPerSecond: 2 })
  const { accept } = api.store
  api.store.accept = () => Promise.reject(new StoreUnavailable('away'))
  const batch = Array.from({ length: 100 }, () => good)
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch })), [503, 'store_unavailable'])
  api.store.accept = accept
  assert.deepEqual(outcome(await api.post('/v1/batch', { batch })), [200, undefined])
})
