// The key of a message at an ordered destination: the value that `order.by` names, as text, read from the message as received. Pure. The store has
// only its hash; the text is read from the message again when somebody asks for it.

import type { JsonObject } from '@switchyard/protocol'

/** A hash of the key's text: a whole number of at most 53 bits. */
export type OrderKey = number

/** The part of a message's segment that a key may depend on. */
export interface KeyContext {
  sourceId: string
  /** The context of the batch. Fields of the message's own context override it. */
  context: JsonObject | null
}

export const MAX_KEY_BYTES = 1024
/** The number of partitions of a destination. It must never change, because rows of earlier versions have their partition stored. */
export const PARTITIONS = 16

/** Returns the text of the key; null if the message has none and is not ordered. */
export function orderKeyText(by: string, message: JsonObject, { sourceId, context }: KeyContext): string | null {
  if (message['type'] === 'dead_letter') return null
  if (by === 'source') return sourceId
  if (by === 'user') return textOf(message['userId']) ?? textOf(message['anonymousId'])
  return textOf(valueAt(by.split('.'), message, context))
}

export function partitionOf(key: OrderKey): number {
  return key % PARTITIONS
}

function valueAt(path: readonly string[], message: JsonObject, context: JsonObject | null): unknown {
  const own = descend(message, path)
  return own === undefined && path[0] === 'context' && context !== null ? descend({ context }, path) : own
}

function descend(from: JsonObject, path: readonly string[]): unknown {
  let value: unknown = from
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) return undefined
    value = (value as JsonObject)[name]
  }
  return value
}

function textOf(value: unknown): string | null {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string' || value === '') return null
  return value.length * 3 <= MAX_KEY_BYTES || Buffer.byteLength(value) <= MAX_KEY_BYTES ? value : null
}
