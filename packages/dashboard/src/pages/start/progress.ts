// Which steps of the first run are done, from the data of the installation: no other progress is stored. And which rejected calls are recent.
// Pure.

import type { LiveRejected } from '../../api/live.ts'
import type { RejectionRow } from '../../components/rejected-calls.tsx'

export const STEPS = ['send', 'webhook', 'arrive', 'alerts'] as const
export type Step = (typeof STEPS)[number]

export interface Progress {
  /** The messages of all sources. */
  accepted: number
  destinations: number
  delivered: number
  /** Destinations that receive alerts. */
  alertReceivers: number
}

export function doneSteps({ accepted, destinations, delivered, alertReceivers }: Progress): Readonly<Record<Step, boolean>> {
  return { send: accepted > 0, webhook: destinations > 0, arrive: delivered > 0, alerts: alertReceivers > 0 }
}

/** The first step that is not done; the last step if all are. */
export function nextStep(done: Readonly<Record<Step, boolean>>): Step {
  return STEPS.find((step) => !done[step]) ?? 'alerts'
}

const SAME_MS = 1_000

/** The rejections since a time, newest first: the stored counts plus live events that are not counted yet. */
export function recentRejections(rows: readonly RejectionRow[], live: readonly LiveRejected[], sinceMs: number): RejectionRow[] {
  const found = new Map<string, RejectionRow>()
  const keyOf = ({ sourceId, code }: { sourceId: string | null; code: string }): string => JSON.stringify([sourceId, code])
  for (const row of rows) if (Date.parse(row.lastAt) >= sinceMs) found.set(keyOf(row), row)
  for (const event of live) {
    const key = keyOf(event)
    const counted = rows.find((row) => keyOf(row) === key)
    const known = found.get(key)
    // Whether the stored count includes the event. The two times are taken one after the other, so they may differ slightly.
    const isCounted = counted !== undefined && Date.parse(counted.lastAt) + SAME_MS >= Date.parse(event.at)
    if (Date.parse(event.at) < sinceMs || isCounted) continue
    found.set(key, {
      sourceId: event.sourceId,
      code: event.code,
      count: (known?.count ?? counted?.count ?? 0) + event.messages,
      lastAt: event.at,
      lastSample: event.sample,
    })
  }
  return [...found.values()].sort((a, b) => b.lastAt.localeCompare(a.lastAt))
}

/** The command that starts the built-in receiver and attaches it to a source. */
export function listenCommand(command: string, source: { id: string; name: string } | undefined): string {
  // The command uses the source with this name by default.
  const which = source === undefined || source.name === 'default' ? '' : ` --source ${source.id}`
  return `${command} listen --connect${which}`
}
