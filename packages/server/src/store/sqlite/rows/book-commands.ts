// The writing thread's commands about the books: statistics, the audit log, and what is dropped because it is old.

import { addStats } from '../../history/stats.ts'
import type { StatRow } from '../../store.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterParts } from '../threads/writer-parts.ts'
import { dropStats, statRows } from './stat-rows.ts'

export function bookCommands({ database, audit, retention }: WriterParts) {
  const stats = statRows(database)
  return {
    addStats: { run: ({ rows }: { rows: readonly StatRow[] }) => addStats(stats, rows), lazy: true },
    /** How many rows went. */
    dropStats: {
      run: ({ minutesBeforeMs, hoursBeforeMs }: { minutesBeforeMs: number; hoursBeforeMs: number }) =>
        dropStats(database, minutesBeforeMs, hoursBeforeMs),
    },
    /** Writes the audit note that it carries. */
    note: { run: () => {} },
    /** How many entries went. */
    dropAudit: { run: ({ beforeMs }: { beforeMs: number }) => audit.drop(beforeMs) },
    /** Answers with the row id before which rows go. */
    retentionBegin: { run: ({ beforeMs }: { beforeMs: number }) => retention.begin(beforeMs), outside: 'after' },
    retentionPin: { run: ({ segments }: { segments: Float64Array }) => retention.pin(segments), outside: 'after' },
    /** False when everything older has gone. */
    retentionStep: { run: () => retention.step() },
  } satisfies Record<string, WriterCommand>
}
