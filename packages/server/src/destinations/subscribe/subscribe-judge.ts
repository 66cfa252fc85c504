// Compiles a destination's subscribe expression into a function that says whether a message matches it.

import { type Condition, type GroupCondition, validate } from '@segment/destination-subscriptions'
import type { JsonObject } from '@switchyard/protocol'
import type { SegmentContent } from '../../model/messages.ts'
import { outboundContext } from '../../outbound/outbound-message.ts'
import { keysRead, parseSubscribe, subscribeProblem } from './parse-subscribe.ts'

/** These decide whether the message gets the address of a browser. */
const ADDRESS_KEYS = ['ip', 'direct']

export type SubscribeJudge = (item: JsonObject, content: SegmentContent) => boolean

export function subscribeJudge(expression: string): SubscribeJudge {
  const conditions = stored(expression)
  if (conditions === null) return () => false
  const contextKeys = new Set<string>()
  withKeys(conditions, contextKeys)
  if (contextKeys.size === 0) return (item) => validate(conditions, item)
  const keys = [...contextKeys]
  return (item, content) => {
    const { type, userId, event, name, properties, traits } = item
    const context = partOfContext(content, item, keys)
    return validate(conditions, { type, userId, event, name, properties, traits, context })
  }
}

/**
 * The context that receivers get: that of the message over that of its batch, with the address of a browser. At least these keys of it: merging all of
 * it for each message would take seconds for a batch whose context has thousands of keys.
 */
export function partOfContext(content: SegmentContent, item: JsonObject, keys: readonly string[]): JsonObject {
  if (content.context === null) return outboundContext(content, item)
  return outboundContext({ ...content, context: picked(content.context, keys) }, { context: picked(item['context'], keys) })
}

function picked(object: JsonObject | null | undefined, keys: readonly string[]): JsonObject | null {
  if (object == null) return null
  const some: JsonObject = {}
  for (const key of [...keys, ...ADDRESS_KEYS]) if (Object.hasOwn(object, key)) some[key] = object[key]
  return some
}

/** Expressions are checked when they are saved. One that a later version saved may not be valid here: then nothing is sent, rather than everything. */
function stored(expression: string): GroupCondition | null {
  return subscribeProblem(expression) === null ? parseSubscribe(expression) : null
}

/**
 * Replaces each name by the keys it consists of, and collects the keys of the context that are read. `validate` accepts either; it splits a
 * name with a regular expression for each message, which is most of its time (5 conditions: 1.8 µs with names, 0.27 µs with keys).
 */
function withKeys(condition: Condition, contextKeys: Set<string>): void {
  if (condition.type === 'group') for (const child of condition.children) withKeys(child, contextKeys)
  else if ('name' in condition) {
    const keys = keysRead(condition.name)
    Object.assign(condition, { name: keys })
    if (condition.type === 'event-context' && keys[0] !== undefined) contextKeys.add(keys[0])
  }
}
