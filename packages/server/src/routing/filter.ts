// Compiles the filter, the conditional filters and the subscribe expression of a destination, and the rule of its kind, into a function that returns
// the rule by which a message is filtered out, if any. Deny takes precedence over allow, types over events, the filter over conditional filters, these
// over the expression, and the expression over the rule of the kind. It is compiled once per configuration, so a list of a thousand names costs one lookup per message.

import type { JsonObject } from '@switchyard/protocol'
import { kindOf } from '../destinations/kinds.ts'
import type { FilterJudge } from '../destinations/port/kind.ts'
import { compiledFilters } from '../destinations/subscribe/conditional-filters.ts'
import { subscribeJudge } from '../destinations/subscribe/subscribe-judge.ts'
import type { ConditionalFilter } from '../model/configuration.ts'
import type { Destination, EventFilter } from '../store/store.ts'

const NONE: readonly ConditionalFilter[] = []

/** Returns null for a destination that every message passes. */
export function filterJudge(destination: Destination): FilterJudge | null {
  const { filter, conditionalFilters = [], subscribe } = destination
  const judges = [nameJudge(filter), conditionalJudge(conditionalFilters), expressionJudge(subscribe), kindJudge(destination)]
  const [first, ...rest] = judges.filter((judge) => judge !== null)
  if (first === undefined || rest.length === 0) return first ?? null
  return (item, content) => {
    let rule = first(item, content)
    for (const judge of rest) rule ??= judge(item, content)
    return rule
  }
}

function conditionalJudge(filters: readonly ConditionalFilter[]): FilterJudge | null {
  return filters.length === 0 ? null : compiledFilters(filters).exclusion
}

/** The rule of the kind reads the message without the properties that conditional filters remove, because that is what it gets. */
function kindJudge(destination: Destination): FilterJudge | null {
  const judge = kindOf(destination).filter(destination)
  const { reduced } = compiledFilters(destination.conditionalFilters ?? NONE)
  if (judge === null || reduced === null) return judge
  return (item, content) => {
    const { context } = content
    const shared = context === null ? content : { ...content, context: reduced({ context }, item, content)['context'] as JsonObject | null }
    return judge(reduced(item, item, content), shared)
  }
}

function expressionJudge(subscribe: string | null): FilterJudge | null {
  if (subscribe === null) return null
  const matches = subscribeJudge(subscribe)
  // As with the filter: a request to delete a user must reach every destination.
  return (item, content) => (item['type'] === 'delete' || matches(item, content) ? null : 'subscribe')
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
