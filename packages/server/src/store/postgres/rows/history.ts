// Reads the history from the database. Each query of the port runs in one read-only transaction.

import { writeAudit } from '../../history/audit-log.ts'
import { historyReads } from '../../history/history.ts'
import type { HistoryStore } from '../../store.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { withIndexScansOnly } from '../session/database.ts'
import { sqlOf } from '../tables/sql.ts'
import { deliveryRows } from './delivery-rows.ts'
import { messageRows } from './message-rows.ts'

export function createHistory({ database, idMap, ids, nowMs, seed: openSeed }: StoreContext): HistoryStore {
  const reads = historyReads<string>(async (work) => {
    const seed = await openSeed()
    return withIndexScansOnly(database, (ask) =>
      work({ messages: messageRows(ask, idMap, seed), deliveries: deliveryRows(ask, idMap, seed), audit: sqlOf(ask) }),
    )
  })
  return { ...reads, noteAudit: async (entry) => void (await writeAudit(sqlOf(database.ask), ids, entry, nowMs())) }
}
