import assert from 'node:assert/strict'
import test from 'node:test'
import type { SegmentContent } from '../store/store.ts'
import { segmentEvent } from './segment-event.ts'

const RECEIVED = '2026-11-17T10:00:00.000Z'
const content: SegmentContent = {
  sourceId: 'src',
  receivedAtMs: Date.parse(RECEIVED),
  ip: '192.0.2.7',
  browser: true,
  sentAt: '2026-11-17T09:59:50.000Z',
  context: { app: 'shop', page: { path: '/' } },
  integrations: { All: true },
  trace: null,
  items: [],
}

test('an event is the message as received, with corrected times and what it shares with its batch', () => {
  const item = {
    type: 'track',
    event: 'Paid',
    userId: 'u',
    messageId: 'm',
    timestamp: '2026-11-17T09:59:40.000Z',
    properties: { total: 3 },
    traits: { plan: 'pro' },
    context: { app: 'web' },
    integrations: { Tool: { session: 1 } },
    channel: 'server',
    writeKey: 'secret',
    _metadata: { bundled: [] },
  }
  assert.deepEqual(segmentEvent({ ...content, items: [item] }, 0), {
    type: 'track',
    event: 'Paid',
    userId: 'u',
    messageId: 'm',
    properties: { total: 3 },
    traits: { plan: 'pro' },
    channel: 'server',
    context: { app: 'web', page: { path: '/' }, ip: '192.0.2.7' },
    integrations: { All: true, Tool: { session: 1 } },
    timestamp: '2026-11-17T09:59:50.000Z',
    originalTimestamp: '2026-11-17T09:59:40.000Z',
    sentAt: '2026-11-17T09:59:50.000Z',
    receivedAt: RECEIVED,
  })
})

test('the identifiers of an alias keep the names that the caller used', () => {
  const event = segmentEvent({ ...content, items: [{ type: 'alias', userId: 'u', previousId: 'a', messageId: 'm' }] }, 0)
  assert.equal(event['previousId'], 'a')
  assert.equal(event['userId'], 'u')
})
