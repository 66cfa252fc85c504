import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BASIC, NOW, trackingApi } from '../fixtures/tracking-api.ts'

const DAY_MS = 86_400_000
const iso = (ms: number): string => new Date(ms).toISOString()
const track = (messageId: string, more: object) => ({ type: 'track', userId: 'u', event: 'E', messageId, ...more })

test('times that are ignored or far in the future are accepted with a warning, and counted by code', async (t) => {
  const api = await trackingApi(t)
  const batch = [
    track('good', { timestamp: iso(NOW) }),
    track('word', { timestamp: 'yesterday' }),
    track('type', { timestamp: {} }),
    track('original', { timestamp: iso(NOW), originalTimestamp: '30.2.2026' }),
    track('future', { timestamp: iso(NOW + 2 * DAY_MS) }),
    track('own', { timestamp: iso(NOW), sentAt: 'now' }),
    { type: 'track', userId: 'u', event: 'E' },
  ]
  const { status, body } = await api.post('/v1/batch', { batch, sentAt: 'later' }, BASIC)
  assert.equal(status, 200)
  assert.deepEqual([body['success'], api.accepted[0]?.content.items.length], [true, 7])
  const warnings = body['warnings'] as { index: number; messageId: string; code: string; field: string; message: string }[]
  assert.deepEqual(
    warnings.map(({ index, messageId, code, field }) => [index, messageId, code, field]),
    [
      [null, null, 'sent_at_invalid', 'sentAt'],
      [1, 'word', 'timestamp_invalid', 'timestamp'],
      [2, 'type', 'timestamp_invalid', 'timestamp'],
      [3, 'original', 'timestamp_invalid', 'originalTimestamp'],
      [4, 'future', 'timestamp_in_future', 'timestamp'],
      [5, 'own', 'sent_at_invalid', 'sentAt'],
    ],
  )
  assert.match(warnings[1]?.message ?? '', /^timestamp is not a valid time, so it is ignored\./)
  assert.deepEqual(
    api.warned.map(({ code, messages }) => [code, messages]),
    [
      ['sent_at_invalid', 2],
      ['timestamp_invalid', 3],
      ['timestamp_in_future', 1],
    ],
  )
})

test('usual messages have the usual response, and a wrong clock that is corrected is no warning', async (t) => {
  const api = await trackingApi(t)
  const aheadMs = NOW + 30 * DAY_MS
  for (const body of [
    { batch: [track('a', { timestamp: iso(NOW - 400 * DAY_MS) }), track('b', { timestamp: NOW }), track('c', { timestamp: null })] },
    { batch: [track('d', { timestamp: iso(aheadMs) })], sentAt: iso(aheadMs + 5) },
    { batch: [track('e', { timestamp: '2026-11-14' })], sentAt: NOW },
  ])
    assert.deepEqual((await api.post('/v1/batch', body, BASIC)).body, { success: true })
  assert.deepEqual(api.warned, [])
})

test('the list is bounded, and a single call and a partly rejected batch have warnings, too', async (t) => {
  const api = await trackingApi(t)
  const many = Array.from({ length: 50 }, (_, at) => track(`m-${at}`, { timestamp: 'x' }))
  const { body } = await api.post('/v1/batch', { batch: many }, BASIC)
  assert.deepEqual([(body['warnings'] as unknown[]).length, api.warned[0]?.messages], [10, 50])
  const single = await api.post('/v1/track', track('one', { timestamp: 'x' }), BASIC)
  assert.equal((single.body['warnings'] as { index: number }[])[0]?.index, 0)
  const partly = await api.post('/v1/batch', { batch: [{ type: 'group', userId: 'u' }, track('two', { timestamp: 'x' })] }, BASIC)
  assert.deepEqual(
    [partly.body['accepted'], (partly.body['rejected'] as unknown[]).length, (partly.body['warnings'] as { index: number }[])[0]?.index],
    [1, 1, 1],
  )
})
