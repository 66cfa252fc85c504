// A destination's filter as a function of a message: which rule keeps it back, if one does. Deny wins over allow, and
// types come before events. Made once per configuration, so that a list of a thousand names costs a message one look-up.

import type { JsonObject } from '@switchyard/protocol'
import type { EventFilter, FilterRule } from '../store/store.ts'

/** Null: the message passes. */
export type FilterJudge = (item: JsonObject) => FilterRule | null

/** Null for a filter that lets everything through. */
export function filterJudge({ types, events }: EventFilter): FilterJudge | null {
  const isOpen = [types.allow, types.deny, events.allow, events.deny].every((names) => names.length === 0)
  if (isOpen) return null
  const [allowedTypes, deniedTypes] = [new Set<unknown>(types.allow), new Set<unknown>(types.deny)]
  const [allowedEvents, deniedEvents] = [new Set<unknown>(events.allow), new Set<unknown>(events.deny)]
  return ({ type, event }) => {
    // A request to delete a user is no event, and none of its destinations may be kept from it.
    if (type === 'delete') return null
    if (deniedTypes.has(type)) return 'type_denied'
    if (allowedTypes.size > 0 && !allowedTypes.has(type)) return 'type_not_allowed'
    if (type !== 'track') return null
    if (deniedEvents.has(event)) return 'event_denied'
    if (allowedEvents.size > 0 && !allowedEvents.has(event)) return 'event_not_allowed'
    return null
  }
}
