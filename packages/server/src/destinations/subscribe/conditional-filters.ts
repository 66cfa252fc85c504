// Compiles the conditional filters of a destination: for messages that match an expression, they exclude the message, exclude a share of them, or
// remove properties. Routing excludes messages; the message that a receiver gets is built without the properties. Pure and deterministic, so a retry
// or a replay sends the same. A deletion request and a dead letter are never excluded. Of a dead letter, only the message in it loses properties.

import { isObject, type JsonObject } from '@switchyard/protocol'
import type { ConditionalFilter } from '../../model/configuration.ts'
import type { FilterRule, SegmentContent } from '../../model/messages.ts'
import { oncePerObject } from '../../model/once-per-object.ts'
import { outboundContext } from '../../outbound/outbound-message.ts'
import { partOfContext, subscribeJudge } from './subscribe-judge.ts'

type Condition = (item: JsonObject, content: SegmentContent) => boolean
type Change = (object: JsonObject) => JsonObject

export interface CompiledFilters {
  /** Returns why a message is excluded; null if it is not. */
  exclusion: (item: JsonObject, content: SegmentContent) => Extract<FilterRule, 'conditional_filter' | 'not_sampled'> | null
  /** Null if no filter removes properties. `message` is the item in any form; the conditions read the item. Nothing is changed in place. */
  reduced: ((message: JsonObject, item: JsonObject, content: SegmentContent) => JsonObject) | null
}

/** A webhook gets these fields of an alias under other names. */
const OTHER_NAMES: Readonly<Record<string, string>> = { userId: 'User ID', previousId: 'Previous ID' }

export const compiledFilters = oncePerObject((filters: readonly ConditionalFilter[]): CompiledFilters => {
  const enabled = filters.filter(({ enabled: isOn }) => isOn).map((filter) => ({ filter, applies: conditionOf(filter) }))
  const reducing = enabled.filter(({ filter: { fields } }) => fields !== null)
  const reduced: NonNullable<CompiledFilters['reduced']> = (message, item, content) => {
    if (item['type'] === 'dead_letter') {
      const inner = message['message']
      if (!isObject(inner)) return message
      // It has the form that a webhook gets.
      return { ...message, message: reduced(inner, { userId: inner['User ID'], ...inner }, content) }
    }
    let result = message
    for (const { filter, applies } of reducing) if (applies(item, content)) result = withFilter(result, filter)
    return result
  }
  return {
    exclusion(item, content) {
      for (const { filter, applies } of enabled) {
        if (filter.action === 'drop' && applies(item, content)) return 'conditional_filter'
        if (filter.action === 'sample' && applies(item, content) && !isSampled(filter, item, content)) return 'not_sampled'
      }
      return null
    },
    reduced: reducing.length === 0 ? null : reduced,
  }
})

function conditionOf({ when }: ConditionalFilter): Condition {
  const matches: Condition = when === null ? () => true : subscribeJudge(when)
  return (item, content) => item['type'] !== 'delete' && item['type'] !== 'dead_letter' && matches(item, content)
}

/** The same value is always sampled in the same way, for example all messages of a user. */
function isSampled({ share, path }: ConditionalFilter, item: JsonObject, content: SegmentContent): boolean {
  const value = path === null ? undefined : sampledValue(path.split('.'), item, content)
  const text = value === undefined || value === null ? String(item['messageId']) : typeof value === 'string' ? value : JSON.stringify(value)
  return hashed(text) < (share ?? 1) * 2 ** 32
}

/** Conditions read the same context. */
function sampledValue(keys: readonly string[], item: JsonObject, content: SegmentContent): unknown {
  const [root, ...rest] = keys
  if (root !== 'context') return keys.reduce<unknown>(valueAt, item)
  return rest.reduce<unknown>(valueAt, rest[0] === undefined ? outboundContext(content, item) : partOfContext(content, item, [rest[0]]))
}

function valueAt(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

/** Spreads texts evenly over 32 bits: FNV-1a, then the last step of MurmurHash3, because texts that differ only at their end must differ in all bits. */
function hashed(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

function withFilter(message: JsonObject, { action, fields }: ConditionalFilter): JsonObject {
  let result = message
  for (const [path, keys] of Object.entries(fields ?? {})) {
    const names = path === '' ? keys.flatMap((key) => [key, ...(OTHER_NAMES[key] === undefined ? [] : [OTHER_NAMES[key]])]) : keys
    const change = action === 'allow_properties' ? only(names) : without(names)
    result = (path === '' ? change(result) : changedAt(result, path.split('.'), change)) as JsonObject
  }
  return result
}

function without(keys: readonly string[]): Change {
  return (object) => {
    const present = keys.filter((key) => Object.hasOwn(object, key))
    return present.length === 0 ? object : Object.fromEntries(Object.entries(object).filter(([key]) => !present.includes(key)))
  }
}

function only(keys: readonly string[]): Change {
  const allowed = new Set(keys)
  return (object) => Object.fromEntries(Object.entries(object).filter(([key]) => allowed.has(key)))
}

/** The objects at a path, with the change. A list stands for all its elements. */
function changedAt(value: unknown, keys: readonly string[], change: Change): unknown {
  if (Array.isArray(value)) return value.map((element) => changedAt(element, keys, change))
  if (!isObject(value)) return value
  const [key, ...rest] = keys
  if (key === undefined) return change(value)
  if (!Object.hasOwn(value, key)) return value
  const before = value[key]
  const after = changedAt(before, rest, change)
  return after === before ? value : { ...value, [key]: after }
}
