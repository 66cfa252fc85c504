// Compiles the filter and the subscribe expression of a destination into a function that returns the rule by which a message is filtered
// out, if any. Deny takes precedence over allow, types over events, and the filter over the expression. It is compiled once per
// configuration, so a list of a thousand names costs one lookup per message.

import type { JsonObject } from '@switchyard/protocol'
import { subscribeJudge } from '../destinations/subscribe/subscribe-judge.ts'
import type { Destination, EventFilter, FilterRule, SegmentContent } from '../store/store.ts'

/** Returns null if the message passes. */
export type FilterJudge = (item: JsonObject, content: SegmentContent) => FilterRule | null

/** Returns null for a destination that every message passes. */
export function filterJudge({ filter, subscribe }: Pick<Destination, 'filter' | 'subscribe'>): FilterJudge | null {
  const byName = nameJudge(filter)
  if (subscribe === null) return byName
  const matches = subscribeJudge(subscribe)
  return (item, content) => {
    const rule = byName === null ? null : byName(item, content)
    // As with the filter: a request to delete a user must reach every destination.
    if (rule !== null || item['type'] === 'delete') return rule
    return matches(item, content) ? null : 'subscribe'
  }
}

function nameJudge({ types, events }: EventFilter): FilterJudge | null {
  const isEmpty = [types.allow, types.deny, events.allow, events.deny].every((names) => names.length === 0)
  if (isEmpty) return null
  const [allowedTypes, deniedTypes] = [new Set<unknown>(types.allow), new Set<unknown>(types.deny)]
  const [allowedEvents, deniedEvents] = [new Set<unknown>(events.allow), new Set<unknown>(events.deny)]
  return ({ type, event }) => {
    // A request to delete a user is not an event. It must reach every destination, so filters do not apply.
    if (type === 'delete') return null
    if (deniedTypes.has(type)) return 'type_denied'
    if (allowedTypes.size > 0 && !allowedTypes.has(type)) return 'type_not_allowed'
    if (type !== 'track') return null
    if (deniedEvents.has(event)) return 'event_denied'
    if (allowedEvents.size > 0 && !allowedEvents.has(event)) return 'event_not_allowed'
    return null
  }
}
