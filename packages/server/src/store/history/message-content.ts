// Functions on the content of a segment, for lists. Pure.

import type { MessageFields, MessageFilter, SegmentContent } from '../store.ts'
import { hasProperty, hasText } from './message-lists/message-search.ts'

/** The content with only the given messages. A segment may be 500 KB, and a list may have a thousand messages. */
export function withOnly(content: SegmentContent, indexes: readonly number[]): SegmentContent {
  const items = Array.from<SegmentContent['items'][number]>({ length: Math.max(...indexes) + 1 }).fill(null)
  for (const index of indexes) items[index] = content.items[index] ?? null
  if (content.violations === undefined) return { ...content, items }
  const { violations, ...rest } = content
  const own = indexes.flatMap((index) => (violations[index] === undefined ? [] : [[index, violations[index]] as const]))
  return { ...rest, items, ...(own.length === 0 ? {} : { violations: Object.fromEntries(own) }) }
}

export function messageFields(content: SegmentContent | null, index: number): MessageFields {
  const item = content?.items[index] ?? {}
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)
  const { messageId, type, event, userId, anonymousId } = item as Readonly<Record<string, unknown>>
  return { messageId: text(messageId), type: text(type), event: text(event), userId: text(userId), anonymousId: text(anonymousId) }
}

/** Compares the fields of the message. The list itself compares source and time. */
export function matches(
  item: Readonly<Record<string, unknown>>,
  { type, event, userId, messageId, search, property }: MessageFilter,
): boolean {
  if (type !== undefined && item['type'] !== type) return false
  if (event !== undefined && item['event'] !== event) return false
  if (messageId !== undefined && item['messageId'] !== messageId) return false
  if (userId !== undefined && item['userId'] !== userId && item['anonymousId'] !== userId && item['previousId'] !== userId) return false
  return (search === undefined || hasText(item, search)) && (property === undefined || hasProperty(item, property))
}
