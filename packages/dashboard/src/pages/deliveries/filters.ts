// The filters of the list of deliveries as they stand in the address, and what they mean: what is asked of the API, and what of it a
// replay of all that match could be made for.

import type { Operations } from '../../api/types.ts'

export const STATES = ['pending', 'delivered', 'failed', 'expired', 'cancelled'] as const
export type State = (typeof STATES)[number]
export const FAILURE_STATES = ['failed', 'expired', 'cancelled'] as const
export type FailureState = (typeof FAILURE_STATES)[number]

/** The ways to say when: from so long ago until now. */
export const PERIODS = {
  '15m': { label: 'Last 15 minutes', ms: 900_000 },
  '1h': { label: 'Last hour', ms: 3_600_000 },
  '6h': { label: 'Last 6 hours', ms: 21_600_000 },
  '24h': { label: 'Last 24 hours', ms: 86_400_000 },
  '7d': { label: 'Last 7 days', ms: 604_800_000 },
} as const
export type Period = keyof typeof PERIODS

export interface Filters {
  destinationId: string | undefined
  state: State | undefined
  reason: string | undefined
  userId: string | undefined
  event: string | undefined
  within: Period | undefined
  /** Exact times, as ISO texts; not together with `within`. */
  from: string | undefined
  to: string | undefined
  view: 'list' | 'causes'
}

type Params = Pick<URLSearchParams, 'get'>

export function filtersOf(params: Params): Filters {
  // Other views link here with either name.
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
  const asked = oneOf(['list', 'causes'] as const, text('view'))
  const isOfFailures = isFailure(state) && reason === undefined
  return { ...filters, view: canGroup(filters) ? (asked ?? (isOfFailures ? 'causes' : 'list')) : 'list' }
}

/** Groups are made of all failures of a destination and a time: not of one user's or event's, and not of what was delivered. */
export function canGroup({ state, userId, event }: Pick<Filters, 'state' | 'userId' | 'event'>): boolean {
  return (state === undefined || isFailure(state)) && userId === undefined && event === undefined
}

export function isFailure(state: State | undefined): state is FailureState {
  return state !== undefined && (FAILURE_STATES as readonly State[]).includes(state)
}

/** `nowMs`: what a period counts back from. Kept while one looks at a list, so that its pages fit together. */
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

/** What a replay of all that match is asked for with, or why there is none. */
export function replayOf(filters: Filters, nowMs: number): { body: ReplayBody; why?: undefined } | { body?: undefined; why: string } {
  const { destinationId, state, reason, userId, event } = filters
  if (userId !== undefined || event !== undefined) {
    const which = [...(userId === undefined ? [] : ['user']), ...(event === undefined ? [] : ['event'])].join(' and ')
    return {
      why: `A replay of all that match knows no filter by ${which}. Select deliveries by their boxes instead, or take that filter away.`,
    }
  }
  if (state === 'pending') return { why: 'What is pending is sent by itself. Only what has come to an end can be replayed.' }
  if (state === undefined && reason === undefined)
    return { why: 'Choose a state first: all that failed, expired, were cancelled or were delivered.' }
  return { body: { destinationId, states: state === undefined ? [...FAILURE_STATES] : [state], reason, ...timesOf(filters, nowMs) } }
}

/** The address of a list. Only what is set is in it. */
export function deliveriesAddress({ destinationId, state, reason, userId, event, within, from, to, view }: Partial<Filters>): string {
  const params = new URLSearchParams()
  const values = { destination: destinationId, state, reason, user: userId, event, within, from, to, view }
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== '') params.set(name, value)
  const text = params.toString()
  return text === '' ? '/deliveries' : `/deliveries?${text}`
}

/** For a field of the browser that takes a time in the viewer's zone. */
export function localTime(iso: string | undefined): string {
  if (iso === undefined) return ''
  const at = new Date(iso)
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** `2026-11-15T09:30` as the viewer means it; undefined when it is no time. */
export function isoTime(text: string | undefined): string | undefined {
  const ms = text === undefined || text === '' ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

function oneOf<T extends string>(values: readonly T[], value: string | undefined): T | undefined {
  return values.find((each) => each === value)
}
