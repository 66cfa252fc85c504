// How a destination does, in one word with a colour, a sentence, and a place in the order of who needs help first. Pure.

export const STATUS_NAMES = ['failing', 'struggling', 'behind', 'unconnected', 'paused', 'disabled', 'idle', 'healthy'] as const
export type StatusName = (typeof STATUS_NAMES)[number]

export interface Standing {
  name: StatusName
  color: string
  says: string
}

export const STATUS_COLORS: Readonly<Record<StatusName, string>> = {
  failing: 'red',
  struggling: 'orange',
  behind: 'orange',
  unconnected: 'grape',
  paused: 'indigo',
  disabled: 'gray',
  idle: 'blue',
  healthy: 'teal',
}

/** What keeps everything from being sent: disabled, new messages skip it; paused, they are kept for it too. */
export type Hold = 'disabled' | 'paused'

export interface HoldSettings {
  enabled: boolean
  paused: boolean
}

export function holdOf({ enabled, paused }: HoldSettings): Hold | null {
  return !enabled ? 'disabled' : paused ? 'paused' : null
}

export interface StatusSettings extends HoldSettings {
  sourceIds: readonly string[]
}

export interface Seen {
  breaker: 'closed' | 'open' | 'probing'
  success: number | null
  pending: number
  oldestPendingAt: string | null
}

/** Below this share of the recent attempts, something is not well. */
const WELL = 0.95
/** The same as the service's own diagnostics take. */
const BEHIND_MS = 3_600_000

export function statusOf(
  { enabled, paused, sourceIds }: StatusSettings,
  { breaker, success, pending, oldestPendingAt }: Seen,
  nowMs: number,
): Standing {
  const waits = pending > 0
  const hold = holdOf({ enabled, paused })
  if (hold === 'disabled')
    return standing('disabled', `Disabled. ${waits ? 'What it is owed is held' : 'Nothing is held'}; new messages skip it.`)
  if (hold === 'paused')
    return standing('paused', `Paused. ${waits ? 'What it is owed is held' : 'Nothing is held yet'}; new messages are kept for it too.`)
  if (breaker === 'probing') return standing('failing', 'It failed again and again, and is being probed with one request now.')
  if (breaker === 'open') return standing('failing', 'It fails again and again, so one request at a time probes it.')
  if (success !== null && success < WELL) return standing('struggling', 'Too many of its recent attempts fail.')
  if (oldestPendingAt !== null && nowMs - Date.parse(oldestPendingAt) > BEHIND_MS)
    return standing('behind', 'Something has been waiting for more than an hour.')
  if (sourceIds.length === 0) return standing('unconnected', 'No source sends to it: choose one in its settings.')
  if (success === null) return standing('idle', 'Nothing was sent to it since the service started.')
  return standing('healthy', 'It takes what it is sent.')
}

function standing(name: StatusName, says: string): Standing {
  return { name, color: STATUS_COLORS[name], says }
}

/** Those that need somebody first. */
export function byUrgency(a: StatusName, b: StatusName): number {
  return STATUS_NAMES.indexOf(a) - STATUS_NAMES.indexOf(b)
}
