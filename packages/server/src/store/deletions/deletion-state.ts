// The state of a deletion request, from the progress of its purge and of its delete messages.

import type { DeletionState, RowId } from '../store.ts'
import type { DeletionRow, DeletionRows, TargetProgress } from './deletion-rows.ts'

export type StateCounts = Record<DeletionState, number>

/** Counts the targets of a request by state. A user of a source without destinations is one target, which is finished after the purge. */
export async function countTargets<Id extends RowId>(
  rows: DeletionRows<Id>,
  { num, sources, isPurged }: DeletionRow<Id>,
  users: number,
): Promise<StateCounts> {
  const counts: StateCounts = { pending: 0, running: 0, finished: 0, failed: 0 }
  const withDestinations = new Set<Id>()
  for (const { source, count, ...progress } of await rows.progress(num)) {
    withDestinations.add(source)
    counts[targetState(progress, isPurged)] += count
  }
  counts[targetState(null, isPurged)] += ((JSON.parse(sources) as Id[]).length - withDestinations.size) * users
  return counts
}

/** `progress` is null if the source has no destinations, so that only the purge counts. */
export function targetState(progress: TargetProgress | null, isPurged: boolean): DeletionState {
  if (progress === null || progress.delivered > 0 || progress.final === 'delivered') return isPurged ? 'finished' : 'running'
  if (progress.failed > 0 || progress.final !== null) return 'failed'
  return progress.attempts > 0 ? 'running' : 'pending'
}

export function stateOf(counts: StateCounts, isPurged: boolean): DeletionState {
  if (counts.running > 0 || !isPurged) return 'running'
  if (counts.pending > 0) return counts.finished + counts.failed > 0 ? 'running' : 'pending'
  return counts.failed > 0 ? 'failed' : 'finished'
}
