// Builds the event that the mappings of integrations read: the message as it was received, with corrected times and the context and
// integrations of its batch. Unlike the outbound message of webhooks, it keeps fields that this service does not know.

import type { JsonObject } from '@switchyard/protocol'
import type { SegmentContent } from '../model/messages.ts'
import { itemAt, merged, outboundContext } from './outbound-message.ts'
import { messageTimes } from './outbound-message-times.ts'

export function segmentEvent(content: SegmentContent, index: number): JsonObject {
  const { writeKey: _, _metadata: __, ...item } = itemAt(content, index)
  const { timestamp, originalTimestamp, sentAt, receivedAt } = messageTimes(content, item)
  const context = outboundContext(content, item)
  // Segment's events always have it, and some definitions require it.
  const integrations = merged(content.integrations, item['integrations']) ?? {}
  return { ...item, context, integrations, timestamp, originalTimestamp, sentAt, receivedAt }
}
