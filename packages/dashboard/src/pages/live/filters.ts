// The filters in the URL, as a query of the API. Pure.

import type { LiveQuery } from '../../api/live.ts'

export const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete', 'dead_letter'] as const

/** The kinds of events and their labels. */
export const KINDS = { accepted: 'Accepted messages', rejected: 'Rejected calls', attempt: 'Attempts', failure: 'Failures only' } as const

export const FILTERS = ['what', 'sourceId', 'destinationId', 'type', 'event', 'userId', 'messageId'] as const

/** Leaves out an unknown type or kind, which the service would reject. */
export function filtersOf(params: URLSearchParams): LiveQuery {
  const given = (name: (typeof FILTERS)[number]): string | undefined => params.get(name)?.trim() || undefined
  const type = TYPES.find((each) => each === given('type'))
  const what = (Object.keys(KINDS) as (keyof typeof KINDS)[]).find((each) => each === given('what'))
  const texts = {
    sourceId: given('sourceId'),
    destinationId: given('destinationId'),
    event: given('event'),
    userId: given('userId'),
    messageId: given('messageId'),
  }
  return Object.fromEntries(Object.entries({ what, type, ...texts }).filter(([, value]) => value !== undefined))
}

export function isFiltered(query: LiveQuery): boolean {
  return Object.keys(query).length > 0
}
