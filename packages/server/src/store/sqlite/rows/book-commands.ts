// The writing thread's commands about the books: statistics, the audit log, and what is dropped because it is old.

import { addStats } from '../../history/stats.ts'
import type { StatRow } from '../../store.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterParts } from '../threads/writer-parts.ts'
import { dropAudit } from './audit-rows.ts'
import { dropStats, statRows } from './stat-rows.ts'

export function bookCommands({ rows, retention }: WriterParts) {
  const stats = statRows(rows)
  return {
    addStats: { run: ({ rows: added }: { rows: readonly StatRow[] }) => addStats(stats, added), lazy: true },
    /** How many rows went. */
    dropStats: {
      run: ({ minutesBeforeMs, hoursBeforeMs }: { minutesBeforeMs: number; hoursBeforeMs: number }) =>
        dropStats(rows, minutesBeforeMs, hoursBeforeMs),
    },
    /** Writes the audit note that it carries. */
    note: { run: () => {} },
    /** How many entries went. */
    dropAudit: { run: ({ beforeMs }: { beforeMs: number }) => dropAudit(rows, beforeMs) },
    /** Answers with the row id before which rows go. */
    retentionBegin: { run: ({ beforeMs }: { beforeMs: number }) => retention.begin(beforeMs), outside: 'after' },
    retentionPin: { run: ({ segments }: { segments: Float64Array }) => retention.pin(segments), outside: 'after' },
    /** False when everything older has gone. */
    retentionStep: { run: () => retention.step() },
  } satisfies Record<string, WriterCommand>
}
