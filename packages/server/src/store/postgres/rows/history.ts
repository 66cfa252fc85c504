// Reads the history from the database. Each query of the port runs in one read-only transaction.

import { writeAudit } from '../../history/audit-log.ts'
import { historyReads } from '../../history/history.ts'
import type { SegmentLookups } from '../../history/segment-rows.ts'
import type { HistoryStore } from '../../store.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { type Ask, withIndexScansOnly } from '../session/database.ts'
import { rowAndIndex } from '../tables/ids.ts'
import { sqlOf } from '../tables/sql.ts'
import { deliveryRows } from './delivery-rows.ts'
import { messageRows } from './message-rows.ts'

export function createHistory(context: StoreContext): HistoryStore {
  const { database, idMap, ids, nowMs } = context
  const reads = historyReads<string>((work) =>
    withIndexScansOnly(database, (ask) => {
      const lookups = segmentLookups(ask, context)
      return work({ messages: messageRows(ask, lookups, idMap), deliveries: deliveryRows(ask, lookups, idMap), audit: sqlOf(ask) })
    }),
  )
  return { ...reads, noteAudit: async (entry) => void (await writeAudit(sqlOf(database.ask), ids, entry, nowMs())) }
}

export function segmentLookups(ask: Ask, { idMap, seed }: Pick<StoreContext, 'idMap' | 'seed'>): SegmentLookups<string> {
  return { parseId: rowAndIndex, seed, destinationIds: (nums) => idMap.idsOf(ask, 'destinations', nums) }
}
