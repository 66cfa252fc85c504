// The writing thread's side of statistics, the audit log and retention.

import { dropAudit } from '../../history/audit-log.ts'
import { addStats } from '../../history/stats.ts'
import type { StatRow } from '../../store.ts'
import { dropStats, statRows } from '../rows/stat-rows.ts'
import type { PinnedSegments } from '../writing/retention.ts'
import type { WriterContext } from '../writing/writer-context.ts'
import type { WriterCommand } from './protocol.ts'

/** Each method returns how many rows were dropped. */
export function bookWrites({ rows }: WriterContext) {
  return {
    dropStats: (minutesBeforeMs: number, hoursBeforeMs: number) => dropStats(rows, minutesBeforeMs, hoursBeforeMs),
    dropAudit: (beforeMs: number) => dropAudit(rows, beforeMs),
  }
}

export function bookCommands({ rows, retention }: WriterContext) {
  const stats = statRows(rows)
  return {
    addStats: { run: ({ rows: added }: { rows: readonly StatRow[] }) => addStats(stats, added), lazy: true },
    /** Does nothing itself: the group writer writes the audit entry that every command may carry. */
    note: { run: () => {} },
    /** Returns the row id before which rows are dropped. */
    retentionBegin: { run: ({ beforeMs }: { beforeMs: number }) => retention.begin(beforeMs), outside: 'after' },
    retentionPin: { run: (segments: PinnedSegments) => retention.pin(segments), outside: 'after' },
    /** False when all older rows have been dropped. */
    retentionStep: { run: () => retention.step() },
  } satisfies Record<string, WriterCommand>
}
