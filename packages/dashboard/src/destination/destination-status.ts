// The status of a destination: a name with a colour, a sentence, and an order by urgency. Pure.

import { duration, plural, share } from '../text/format.ts'
import { responseText } from '../text/response-text.ts'

/** Most urgent first. */
export const STATUS_NAMES = ['held', 'failing', 'degraded', 'behind', 'no source', 'paused', 'disabled', 'idle', 'healthy'] as const
export type StatusName = (typeof STATUS_NAMES)[number]

export interface Status {
  name: StatusName
  color: string
  /** One sentence or two. */
  summary: string
}

export const STATUS_COLORS: Readonly<Record<StatusName, string>> = {
  held: 'red',
  failing: 'red',
  degraded: 'orange',
  behind: 'orange',
  'no source': 'grape',
  paused: 'indigo',
  disabled: 'gray',
  idle: 'blue',
  healthy: 'teal',
}

/** Why nothing is sent to a destination. New messages skip a disabled destination; for a paused one they are queued. */
export type Hold = 'disabled' | 'paused'

export interface HoldSettings {
  enabled: boolean
  paused: boolean
}

/** Returns null if the destination is neither disabled nor paused. */
export function holdOf({ enabled, paused }: HoldSettings): Hold | null {
  return !enabled ? 'disabled' : paused ? 'paused' : null
}

export interface StatusSettings extends HoldSettings {
  sourceIds: readonly string[]
}

export interface StatusHealth {
  breaker: 'closed' | 'open' | 'probing'
  /** Share of the recent attempts that succeeded; null if there were none. */
  success: number | null
  pending: number
  oldestPendingAt: string | null
  /** Why the service holds deliveries back by itself; null if it does not. */
  held: string | null
  /** When the circuit breaker opened. */
  openSince: string | null
  /** Why the latest attempt failed; null if it succeeded, or if another node made it. */
  failure: { reason: string; error: string } | null
  /** The most frequent reason why recent attempts failed; null if none failed. */
  mostFrequentFailure: { error: string; attempts: number; responseStart: string | null } | null
  /** Tables of a warehouse that cannot be loaded. */
  failingTables?: readonly { table: string; error: string }[]
}

/** Below this share of successful recent attempts, a destination is degraded. */
const MIN_SUCCESS = 0.95
/** If so many attempts failed for one reason and none succeeded, a destination is failing. Permanent failures do not open the circuit breaker. */
const MIN_FAILURES = 10
/** The age of the oldest pending delivery from which a destination is behind. The service's own diagnostics use the same limit. */
const BEHIND_MS = 3_600_000

export function statusOf(
  { enabled, paused, sourceIds }: StatusSettings,
  { breaker, success, pending, oldestPendingAt, held: misfit, openSince, failure, mostFrequentFailure, failingTables = [] }: StatusHealth,
  nowMs: number,
): Status {
  const held = pending > 0 ? 'Pending deliveries are held' : 'No deliveries are pending'
  const hold = holdOf({ enabled, paused })
  if (hold === 'disabled') return status('disabled', `Disabled. ${held}; new messages skip this destination.`)
  if (hold === 'paused') return status('paused', `Paused. ${held}; new messages are queued until you resume it.`)
  if (misfit !== null)
    return status('held', `Does not fit the installed version of its integration: ${misfit} Deliveries stay pending until it fits.`)
  if (breaker !== 'closed') {
    const cause = failingText({ openSince, failure }, nowMs)
    return status('failing', `${cause} ${breaker === 'probing' ? 'One delivery is being tried.' : 'One delivery is tried at a time.'}`)
  }
  if (failingTables.length > 0) return status('degraded', failingTablesText(failingTables))
  if (success !== null && success < MIN_SUCCESS) {
    const isFailing = success === 0 && (mostFrequentFailure?.attempts ?? 0) >= MIN_FAILURES
    return status(isFailing ? 'failing' : 'degraded', degradedText(success, mostFrequentFailure))
  }
  if (oldestPendingAt !== null && nowMs - Date.parse(oldestPendingAt) > BEHIND_MS)
    return status('behind', 'The oldest pending delivery is more than an hour old.')
  if (sourceIds.length === 0) return status('no source', 'No source sends to this destination. Choose one in its settings.')
  if (success === null) return status('idle', 'No attempts since the service started.')
  return status('healthy', 'Recent attempts succeeded.')
}

/** The cause first, then since when. */
export function failingText({ openSince, failure }: Pick<StatusHealth, 'openSince' | 'failure'>, nowMs: number): string {
  const since = openSince === null ? '' : ` for ${duration(Math.max(1_000, Math.floor((nowMs - Date.parse(openSince)) / 1_000) * 1_000))}`
  return failure === null ? `Attempts have failed${since}.` : `${failure.error} Failing${since}.`
}

/** The tables may fail for different reasons; the one that has failed for the longest time comes first. */
function failingTablesText(failing: NonNullable<StatusHealth['failingTables']>): string {
  const [first] = failing
  const others = failing.length === 1 ? '' : ` ${plural(failing.length - 1, 'other table')} cannot be loaded either.`
  return `${first?.table} cannot be loaded: ${first?.error}${others} All remaining tables are loaded. Messages of tables that cannot be loaded are retried.`
}

function degradedText(success: number, failure: StatusHealth['mostFrequentFailure']): string {
  if (failure === null) return `${share(success)} of recent attempts succeeded.`
  const response = responseText(failure.responseStart)
  const count = plural(failure.attempts, 'recent attempt')
  return `${[failure.error, response].filter(Boolean).join(' ')} ${count} failed for this reason; ${share(success)} of all recent attempts succeeded.`
}

function status(name: StatusName, summary: string): Status {
  return { name, color: STATUS_COLORS[name], summary }
}

/** Sorts the most urgent first. */
export function byUrgency(a: StatusName, b: StatusName): number {
  return STATUS_NAMES.indexOf(a) - STATUS_NAMES.indexOf(b)
}
