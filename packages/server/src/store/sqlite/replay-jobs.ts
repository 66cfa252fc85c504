// The row port of replay jobs, on the main thread. Calls that only read go to the reading thread, so that counting a million failures does not
// block writers.

import type { ReplayJobRows } from '../replays/replay-rows.ts'
import { auditNote } from './commands/protocol.ts'
import { SQLITE_ROW_ORDER } from './schema/row-ids.ts'
import type { GroupCommit } from './threads/group-commit.ts'
import type { ReaderClient } from './threads/reader-client.ts'
import type { Reads } from './threads/reader-thread.ts'

export function replayJobRows(writer: GroupCommit, reader: ReaderClient, nowMs: () => number): ReplayJobRows<number> {
  const writes: Omit<ReplayJobRows<number>, keyof Reads['replays']> = {
    order: SQLITE_ROW_ORDER,
    bound: () => writer.run('replayBound', {}),
    insert: (row, audit) => writer.call('replays', 'insert', [row], auditNote(audit, row.job.createdAtMs)),
    change: (id, before, after, atMs, audit) => writer.call('replays', 'change', [id, before, after], auditNote(audit, atMs)),
    replay: (deliveryId, atMs, audit) => writer.call('replays', 'replay', [deliveryId, atMs], auditNote(audit, atMs)),
    step: (step) => writer.call('replays', 'step', [step, nowMs()]),
  }
  return reader.topic('replays', writes)
}
