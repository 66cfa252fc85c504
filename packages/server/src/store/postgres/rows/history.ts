// Reads the history from the database. Each query of the port runs in one read-only transaction.

import { historyReads } from '../../history/history.ts'
import type { HistoryStore } from '../../store.ts'
import { withIndexScansOnly } from '../session/database.ts'
import type { StoreContext } from '../session/store-context.ts'
import { auditRows, writeAudit } from './audit-rows.ts'
import { deliveryRows } from './delivery-rows.ts'
import { messageRows } from './message-rows.ts'

export function createHistory({ database, idMap, ids, nowMs, seed: openSeed }: StoreContext): HistoryStore {
  const reads = historyReads<string>(async (work) => {
    const seed = await openSeed()
    return withIndexScansOnly(database, (ask) =>
      work({ messages: messageRows(ask, idMap, seed), deliveries: deliveryRows(ask, idMap, seed), audit: auditRows(ask) }),
    )
  })
  return { ...reads, noteAudit: (entry) => writeAudit(database.ask, ids, entry, nowMs()) }
}
