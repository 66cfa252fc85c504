// The writing thread's commands about statistics, the audit log and retention.

import { addStats } from '../../history/stats.ts'
import type { StatRow } from '../../store.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import { dropAudit } from './audit-rows.ts'
import type { PinnedSegments } from './retention.ts'
import { dropStats, statRows } from './stat-rows.ts'

export function bookCommands({ rows, retention }: WriterContext) {
  const stats = statRows(rows)
  return {
    addStats: { run: ({ rows: added }: { rows: readonly StatRow[] }) => addStats(stats, added), lazy: true },
    /** Returns how many rows were dropped. */
    dropStats: {
      run: ({ minutesBeforeMs, hoursBeforeMs }: { minutesBeforeMs: number; hoursBeforeMs: number }) =>
        dropStats(rows, minutesBeforeMs, hoursBeforeMs),
    },
    /** Does nothing itself: the group writer writes the audit entry that every command may carry. */
    note: { run: () => {} },
    /** Returns how many entries were dropped. */
    dropAudit: { run: ({ beforeMs }: { beforeMs: number }) => dropAudit(rows, beforeMs) },
    /** Returns the row id before which rows are dropped. */
    retentionBegin: { run: ({ beforeMs }: { beforeMs: number }) => retention.begin(beforeMs), outside: 'after' },
    retentionPin: { run: (segments: PinnedSegments) => retention.pin(segments), outside: 'after' },
    /** False when all older rows have been dropped. */
    retentionStep: { run: () => retention.step() },
  } satisfies Record<string, WriterCommand>
}
