// How far an installation has come, told by what is in it, so that the way can be left and come back to: nothing is remembered but what there
// is. And which refused calls are news. Pure.

import type { LiveRejected } from '../../api/live.ts'
import type { RejectionRow } from '../../components/rejected-calls.tsx'

export const STEPS = ['send', 'webhook', 'arrive'] as const
export type Step = (typeof STEPS)[number]

export interface Progress {
  /** Messages, by all sources. */
  accepted: number
  destinations: number
  delivered: number
}

export function doneSteps({ accepted, destinations, delivered }: Progress): Readonly<Record<Step, boolean>> {
  return { send: accepted > 0, webhook: destinations > 0, arrive: delivered > 0 }
}

/** Where to go on; the last one when all is done. */
export function nextStep(done: Readonly<Record<Step, boolean>>): Step {
  return STEPS.find((step) => !done[step]) ?? 'arrive'
}

const SAME_MS = 1_000

/** What was refused since then, the last first: as the store counts it, and what has been told since it was asked. */
export function newsOfRefusals(rows: readonly RejectionRow[], told: readonly LiveRejected[], sinceMs: number): RejectionRow[] {
  const found = new Map<string, RejectionRow>()
  const keyOf = ({ sourceId, code }: { sourceId: string | null; code: string }): string => JSON.stringify([sourceId, code])
  for (const row of rows) if (Date.parse(row.lastAt) >= sinceMs) found.set(keyOf(row), row)
  for (const event of told) {
    const key = keyOf(event)
    const counted = rows.find((row) => keyOf(row) === key)
    const known = found.get(key)
    // What the store has counted by now is in its number. Both look at the clock, one after the other.
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

/** How to get a receiver on this machine connected to a source. */
export function listenCommand(origin: string, source: { id: string; name: string } | undefined): string {
  // The default of the command is the source with this name.
  const which = source === undefined || source.name === 'default' ? '' : ` --source ${source.id}`
  return `npx switchyard listen --connect --url ${origin}${which}`
}
