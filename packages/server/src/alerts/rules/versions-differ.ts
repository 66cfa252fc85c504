// Versions Differ: the nodes run different versions of the service, as during an upgrade.

import { MINUTE_MS, minutesSetting, rule } from './rule.ts'

export interface NodeVersions {
  nowMs: number
  /** The versions that run, sorted. One if there is a single process. */
  versions: readonly string[]
  /** Since when more than one version runs, as far as this node knows. */
  differSinceMs: number | null
}

export const versionsDiffer = rule({
  id: 'versions_differ',
  event: 'Versions Differ',
  subject: 'service',
  severity: () => 'notice',
  notifies: false,
  description: 'The nodes run different versions of the service. Only with PostgreSQL.',
  sentences: ['Open when the nodes have run different versions for {openAfterMinutes} minutes. Close when all run the same.'],
  settings: { openAfterMinutes: minutesSetting(0, 'Open an incident when this has lasted for this many minutes.') },
  judge({ nowMs, versions, differSinceMs }: NodeVersions, { openAfterMinutes }) {
    const sinceMs = differSinceMs ?? nowMs
    const isOpen = nowMs - sinceMs >= openAfterMinutes * MINUTE_MS
    return { verdict: versions.length < 2 ? 'close' : isOpen ? 'open' : 'keep', sinceMs, details: { versions: versions.join(', ') } }
  },
  opened: (_name, { versions }) => `The nodes run different versions: ${String(versions)}. Complete the upgrade.`,
  closed: (_name, { versions }) => `All nodes run the same version: ${String(versions)}.`,
  link: () => '/settings/nodes',
})
