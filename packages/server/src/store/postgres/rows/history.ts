// The history, from the database. Each question is answered in one read-only transaction.

import { historyReads } from '../../history/history.ts'
import type { HistoryStore } from '../../store.ts'
import { byIndexes } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { auditRows, writeAudit } from './audit-rows.ts'
import { deliveryRows } from './delivery-rows.ts'
import { messageRows } from './message-rows.ts'

export function createHistory({ database, names, ids, nowMs, seed: openSeed }: Parts): HistoryStore {
  const reads = historyReads<string>(async (work) => {
    const seed = await openSeed()
    return byIndexes(database, (ask) =>
      work({ messages: messageRows(ask, names, seed), deliveries: deliveryRows(ask, names, seed), audit: auditRows(ask) }),
    )
  })
  return { ...reads, noteAudit: (entry) => writeAudit(database.ask, ids, entry, nowMs()) }
}
