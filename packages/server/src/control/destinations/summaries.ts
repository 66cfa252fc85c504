// A list of all destinations without most settings, for pages and programs that need the names of all of them.

import { array, boolean, nullable, object, optional, string } from '../../api/schema.ts'
import type { Destination } from '../../store/store.ts'
import { pageOf } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const SUMMARY = object(
  {
    id: string(),
    name: string(),
    enabled: boolean(),
    paused: boolean(),
    filtered: boolean({ description: 'Whether `filter` or `subscribe` excludes messages.' }),
    sourceIds: array(string()),
    shared: optional(boolean({ description: 'True if the destination also serves sources outside of your access; otherwise left out.' })),
  },
  { title: 'DestinationSummary' },
)

export function summaryRoute({ store }: ControlParts): Route {
  return route('GET', '/destinations/summary', {
    compressed: true,
    summary: 'List all destinations without most settings, oldest first',
    description: 'Like `GET /api/destinations`, but only with these fields, and all destinations are in one response.',
    access: { role: 'viewer', sources: 'limited' },
    answer: object({ data: array(SUMMARY), next: nullable(string({ description: 'Always null: the list is complete.' })) }),
    handle({ isWhole }) {
      const { data } = pageOf(store.configuration().destinations.values(), { limit: Number.POSITIVE_INFINITY, cursor: null })
      return { data: data.map((each) => Object.assign(summaryOf(each), isWhole(each.id) ? {} : { shared: true })), next: null }
    },
  })
}

function summaryOf({ id, name, enabled, paused, sourceIds, filter: { types, events }, subscribe }: Destination) {
  const lists = [types?.allow, types?.deny, events?.allow, events?.deny]
  return {
    id,
    name,
    enabled,
    paused,
    filtered: subscribe !== null || lists.some((list) => list !== undefined && list.length > 0),
    sourceIds,
  }
}
