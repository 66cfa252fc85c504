// Compiles a destination's filter into a function that returns the rule by which a message is filtered out, if any. Deny takes
// precedence over allow, and types over events. It is compiled once per configuration, so a list of a thousand names costs one lookup per message.

import type { JsonObject } from '@switchyard/protocol'
import type { EventFilter, FilterRule } from '../store/store.ts'

/** Returns null if the message passes. */
export type FilterJudge = (item: JsonObject) => FilterRule | null

/** Returns null for a filter that passes every message. */
export function filterJudge({ types, events }: EventFilter): FilterJudge | null {
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
