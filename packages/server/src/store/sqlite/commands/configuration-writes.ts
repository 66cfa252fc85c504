// The writing thread's side of the configuration and of the values stored beside it. Secrets are already encrypted: this thread has no key.

import { configurationTables } from '../../configuration/configuration-tables.ts'
import type { WriterContext } from '../writing/writer-context.ts'

export function configurationWrites({ rows }: WriterContext) {
  return {
    ...configurationTables(rows),
    suppress(sourceIds: readonly string[], userIds: readonly string[], atMs: number): void {
      const insert = 'INSERT OR IGNORE INTO suppressions (source, user_id, since) SELECT num, ?, ? FROM sources WHERE id = ?'
      for (const sourceId of sourceIds) for (const userId of userIds) rows.run(insert, [userId, atMs, sourceId])
    },
    unsuppress(sourceIds: readonly string[], userId: string): void {
      const remove = 'DELETE FROM suppressions WHERE user_id = ? AND source = (SELECT num FROM sources WHERE id = ?)'
      for (const sourceId of sourceIds) rows.run(remove, [userId, sourceId])
    },
  }
}
