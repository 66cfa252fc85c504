// Measures messages as they are after merging with the context and integrations of their batch, without merging them. The merge is shallow:
// a key of the message replaces the same key of the batch (outbound/outbound-message.ts).

import { isObject, type JsonObject } from '@switchyard/protocol'
import type { SegmentContent } from '../model/messages.ts'
import { outboundMessage } from './outbound-message.ts'

export interface SharedFields {
  context: JsonObject | null
  integrations: JsonObject | null
}

interface MeasuredField {
  name: keyof SharedFields
  /** The bytes of `"key":value` for each key. */
  keys: ReadonlyMap<string, number>
  /** The bytes of all keys, each with a comma. */
  bytes: number
}

/**
 * Returns the indexes of the messages that have more than `maxBytes` after merging; null if there are none. `itemBytes` are their sizes as they
 * were sent. Most batches need no look at their messages, because the largest one fits together with everything that is shared.
 */
export function tooLargeMerged(
  batch: readonly unknown[],
  itemBytes: readonly number[],
  shared: SharedFields,
  maxBytes: number,
): ReadonlySet<number> | null {
  const fields = measured(shared)
  // `,"context":{}` for a message that has no such field.
  const mostAdded = fields.reduce((sum, { name, bytes }) => sum + bytes + name.length + 6, 0)
  let tooLarge: Set<number> | null = null
  for (const [index, item] of batch.entries()) {
    const bytes = itemBytes[index] ?? 0
    if (bytes + mostAdded <= maxBytes) continue
    const added = fields.reduce((sum, field) => sum + addedTo(item, field), 0)
    if (bytes + added > maxBytes) tooLarge = (tooLarge ?? new Set()).add(index)
  }
  return tooLarge
}

/** By what the batch shares, which is measured once for all its messages. */
const measuredOf = new WeakMap<JsonObject, MeasuredField[]>()

/** The bytes of the message that receivers get, a few more if it gets the address of its sender. Throws if there is no message at the index. */
export function outboundBytes(content: SegmentContent, index: number): number {
  const { context, integrations } = content
  const shared = context ?? integrations
  const item = content.items[index]
  if (shared === null || item == null || item['type'] === 'delete') return jsonBytes(outboundMessage(content, index))
  let fields = measuredOf.get(shared)
  if (fields === undefined) {
    fields = measured({ context, integrations })
    measuredOf.set(shared, fields)
  }
  const own = item['type'] === 'dead_letter' ? innermost(item) : item
  const added = fields.reduce((sum, field) => sum + addedTo(own, field), 0)
  return jsonBytes(outboundMessage({ ...content, context: null, integrations: null }, index)) + added + (content.ip === null ? 0 : IP_BYTES)
}

/** `"ip":"…",` with the longest address. */
const IP_BYTES = 55

/** The message to which the context is added. */
function innermost(letter: JsonObject): unknown {
  const message = letter['message'] as JsonObject | null
  return message !== null && message['type'] === 'dead_letter' ? innermost(message) : message
}

function measured(shared: SharedFields): MeasuredField[] {
  const fields: MeasuredField[] = []
  for (const name of ['context', 'integrations'] as const) {
    const keys = new Map<string, number>()
    let bytes = 0
    for (const [key, value] of Object.entries(shared[name] ?? {})) {
      const keyBytes = jsonBytes(key) + 1 + jsonBytes(value)
      keys.set(key, keyBytes)
      bytes += keyBytes + 1
    }
    if (bytes > 0) fields.push({ name, keys, bytes })
  }
  return fields
}

/** The bytes that the field of the batch adds to a message. */
function addedTo(item: unknown, { name, keys, bytes }: MeasuredField): number {
  const own = isObject(item) ? item[name] : undefined
  if (own === undefined) return `,"${name}":{}`.length + bytes - 1
  if (own === null) return '{}'.length + bytes - 1 - 'null'.length
  if (!isObject(own)) return 0
  let replaced = 0
  let count = 0
  for (const key of Object.keys(own)) {
    count++
    const keyBytes = keys.get(key)
    if (keyBytes !== undefined) replaced += keyBytes + 1
  }
  // The last of the keys has no comma.
  return count === 0 ? bytes - 1 : bytes - replaced
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
