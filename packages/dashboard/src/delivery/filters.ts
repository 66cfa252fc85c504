// The filters of the list of deliveries: parsed from the URL, and turned into a query of the API and into a replay of all matches.

import type { Operations } from '../api/types.ts'
import { isoTime } from '../url/local-time.ts'

export const STATES = ['pending', 'delivered', 'failed', 'expired', 'cancelled'] as const
export type State = (typeof STATES)[number]
export const FAILURE_STATES = ['failed', 'expired', 'cancelled'] as const
export type FailureState = (typeof FAILURE_STATES)[number]

/** The relative periods, which end now. */
export const PERIODS = {
  '15m': { label: 'Last 15 minutes', ms: 900_000 },
  '1h': { label: 'Last hour', ms: 3_600_000 },
  '6h': { label: 'Last 6 hours', ms: 21_600_000 },
  '24h': { label: 'Last 24 hours', ms: 86_400_000 },
  '7d': { label: 'Last 7 days', ms: 604_800_000 },
  '30d': { label: 'Last 30 days', ms: 2_592_000_000 },
} as const
export type Period = keyof typeof PERIODS

export interface Filters {
  destinationId: string | undefined
  state: State | undefined
  reason: string | undefined
  userId: string | undefined
  event: string | undefined
  within: Period | undefined
  /** Exact times in ISO format; never together with `within`. */
  from: string | undefined
  to: string | undefined
  view: 'list' | 'causes'
}

type Params = Pick<URLSearchParams, 'get'>

export function filtersOf(params: Params): Filters {
  // Other pages use either name in their links.
  const text = (...names: string[]): string | undefined => names.map((name) => params.get(name) ?? '').find((value) => value !== '')
  const state = oneOf(STATES, text('state'))
  const within = oneOf(Object.keys(PERIODS) as Period[], text('within'))
  const [reason, userId, event] = [text('reason'), text('user', 'userId'), text('event')]
  const filters = {
    destinationId: text('destination', 'destinationId'),
    state,
    reason,
    userId,
    event,
    within,
    from: within === undefined ? isoTime(text('from')) : undefined,
    to: within === undefined ? isoTime(text('to')) : undefined,
  }
  const requested = oneOf(['list', 'causes'] as const, text('view'))
  // What failed is shown first, because that is what somebody looks for.
  const isOfFailures = (state === undefined || isFailure(state)) && reason === undefined
  return { ...filters, view: canGroup(filters) ? (requested ?? (isOfFailures ? 'causes' : 'list')) : 'list' }
}

export function isNarrowed({ destinationId, state, reason, userId, event, within, from, to }: Filters): boolean {
  return [destinationId, state, reason, userId, event, within, from, to].some((value) => value !== undefined)
}

/** Whether failures can be grouped by cause: the API groups by destination and time, but not by user or event, and only failures. */
export function canGroup({ state, userId, event }: Pick<Filters, 'state' | 'userId' | 'event'>): boolean {
  return (state === undefined || isFailure(state)) && userId === undefined && event === undefined
}

export function isFailure(state: State | undefined): state is FailureState {
  return state !== undefined && (FAILURE_STATES as readonly State[]).includes(state)
}

/** A relative period counts back from `nowMs`, which must stay the same for all pages of a list. */
export function timesOf(
  { within, from, to }: Pick<Filters, 'within' | 'from' | 'to'>,
  nowMs: number,
): { from: string | undefined; to: string | undefined } {
  if (within === undefined) return { from, to }
  return { from: new Date(nowMs - PERIODS[within].ms).toISOString(), to: undefined }
}

export type ListQuery = Omit<Operations['GET /api/deliveries']['query'], 'cursor'>

export function listQuery(filters: Filters, nowMs: number): ListQuery {
  const { destinationId, state, reason, userId, event } = filters
  return { destinationId, state, reason, userId, event, ...timesOf(filters, nowMs) }
}

export type ReplayBody = Omit<Operations['POST /api/replays']['body'], 'dryRun' | 'ratePerSecond'>

/** The body of the request that replays all matches, or why they cannot be replayed. */
export function replayOf(filters: Filters, nowMs: number): { body: ReplayBody; why?: undefined } | { body?: undefined; why: string } {
  const { destinationId, state, reason, userId, event } = filters
  if (userId !== undefined || event !== undefined) {
    const which = [...(userId === undefined ? [] : ['user']), ...(event === undefined ? [] : ['event'])].join(' and ')
    return {
      why: `Matches of a filter by ${which} cannot be replayed all at once. Select deliveries with the checkboxes, or remove the filter.`,
    }
  }
  if (state === 'pending') return { why: 'Pending deliveries are sent automatically and cannot be replayed. Choose another state.' }
  if (state === undefined && reason === undefined) return { why: 'Choose a state first: failed, expired, cancelled or delivered.' }
  return { body: { destinationId, states: state === undefined ? [...FAILURE_STATES] : [state], reason, ...timesOf(filters, nowMs) } }
}

/** The URL of a list, with the filters that are set. */
export function deliveriesAddress({ destinationId, state, reason, userId, event, within, from, to, view }: Partial<Filters>): string {
  const params = new URLSearchParams()
  const values = { destination: destinationId, state, reason, user: userId, event, within, from, to, view }
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== '') params.set(name, value)
  const text = params.toString()
  return text === '' ? '/deliveries' : `/deliveries?${text}`
}

function oneOf<T extends string>(values: readonly T[], value: string | undefined): T | undefined {
  return values.find((each) => each === value)
}
