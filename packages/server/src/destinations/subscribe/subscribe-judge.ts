// Compiles a destination's subscribe expression into a function that says whether a message matches it.

import { type Condition, type GroupCondition, validate } from '@segment/destination-subscriptions'
import type { JsonObject } from '@switchyard/protocol'
import { outboundContext } from '../../outbound/outbound-message.ts'
import type { SegmentContent } from '../../store/store.ts'
import { keysRead, parseSubscribe, subscribeProblem } from './parse-subscribe.ts'

export type SubscribeJudge = (item: JsonObject, content: SegmentContent) => boolean

export function subscribeJudge(expression: string): SubscribeJudge {
  const conditions = stored(expression)
  if (conditions === null) return () => false
  const readsContext = withKeys(conditions)
  return (item, content) => {
    if (!readsContext) return validate(conditions, item)
    const { type, userId, event, name, properties, traits } = item
    // The context is the one that receivers get: that of the message over that of its batch, with the address of a browser.
    return validate(conditions, { type, userId, event, name, properties, traits, context: outboundContext(content, item) })
  }
}

/** Expressions are checked when they are saved. One that a later version saved may not be valid here: then nothing is sent, rather than everything. */
function stored(expression: string): GroupCondition | null {
  return subscribeProblem(expression) === null ? parseSubscribe(expression) : null
}

/**
 * Replaces each name by the keys it consists of, and returns whether one of them is in the context. `validate` accepts either; it splits a
 * name with a regular expression for each message, which is most of its time (5 conditions: 1.8 µs with names, 0.27 µs with keys).
 */
function withKeys(condition: Condition): boolean {
  if (condition.type === 'group') return condition.children.map(withKeys).includes(true)
  if ('name' in condition) Object.assign(condition, { name: keysRead(condition.name) })
  return condition.type === 'event-context'
}
