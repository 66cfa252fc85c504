// The sample messages that a test of a destination sends, one for each type. They have the same form as other outgoing messages and are
// easy to recognise as tests.

import { randomUUID } from 'node:crypto'
import { isoTime, type JsonObject, MESSAGE_TYPES, type MessageType } from '@switchyard/protocol'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import type { SegmentContent } from '../../store/store.ts'

export const SAMPLE_TYPES = [...MESSAGE_TYPES, 'delete'] as const
export type SampleType = (typeof SAMPLE_TYPES)[number]

const USER_ID = 'switchyard-test-user'

const PARTS: Record<SampleType, JsonObject> = {
  identify: { userId: USER_ID, traits: { name: 'Test User', email: 'test@example.com' } },
  track: { userId: USER_ID, event: 'Switchyard Test', properties: { test: true } },
  page: { userId: USER_ID, name: 'Test', properties: { path: '/test', referrer: '', title: 'Test', url: 'https://example.com/test' } },
  screen: { userId: USER_ID, name: 'Test' },
  group: { userId: USER_ID, groupId: 'switchyard-test-group', traits: { name: 'Test Group' } },
  alias: { userId: USER_ID, previousId: 'switchyard-test-anonymous' },
  delete: { userId: USER_ID },
} satisfies Record<MessageType | 'delete', JsonObject>

const CONTEXT = {
  library: { name: 'switchyard-test', version: '1.0' },
  device: { model: 'Test Device', type: 'test' },
  os: { name: 'Test OS', version: '1.0' },
  app: { name: 'Switchyard Test', version: '1.0', build: '1' },
}

export function sampleMessage(type: SampleType, nowMs: number): JsonObject {
  return outboundMessage(sampleContent(nowMs, type), 0)
}

export function sampleContent(nowMs: number, type: SampleType = 'track'): SegmentContent {
  const now = isoTime(nowMs)
  const item = { type, ...PARTS[type], context: CONTEXT, messageId: `switchyard-test-${randomUUID()}`, timestamp: now }
  return {
    sourceId: '',
    receivedAtMs: nowMs,
    ip: null,
    browser: false,
    sentAt: now,
    context: null,
    integrations: null,
    trace: null,
    items: [item],
  }
}
