// The reads of messages, deliveries and the audit log. Each call reads from one snapshot.

import type { Sql } from '../encoding/sql.ts'
import type { HistoryStore, RowId } from '../store.ts'
import { listAudit } from './audit-log.ts'
import { listDeliveries } from './deliveries.ts'
import { readDelivery } from './delivery-detail.ts'
import type { DeliveryRows } from './delivery-rows.ts'
import { failureCauses } from './failure-causes.ts'
import type { MessageRows } from './message-rows.ts'
import { listMessages, messageTrails, readMessage } from './messages.ts'

export interface HistoryRows<Id extends RowId> {
  messages: MessageRows<Id>
  deliveries: DeliveryRows<Id>
  audit: Sql<Id>
}

export type HistoryReads = Omit<HistoryStore, 'noteAudit'>

/** `inSnapshot` calls `work` with the rows of one snapshot. */
export function historyReads<Id extends RowId>(inSnapshot: <T>(work: (rows: HistoryRows<Id>) => Promise<T>) => Promise<T>): HistoryReads {
  return {
    messages: (filter, page) => inSnapshot((rows) => listMessages(rows.messages, filter, page)),
    message: (id, sourceIds) => inSnapshot((rows) => readMessage(rows.messages, id, sourceIds)),
    trails: (id, sourceIds) => inSnapshot((rows) => messageTrails(rows.messages, id, sourceIds)),
    deliveries: (filter, page) => inSnapshot((rows) => listDeliveries(rows.deliveries, filter, page)),
    delivery: (id, sourceIds) => inSnapshot((rows) => readDelivery(rows.deliveries, id, sourceIds)),
    failureCauses: (filter) => inSnapshot((rows) => failureCauses(rows.deliveries, filter)),
    audit: (filter, page) => inSnapshot((rows) => listAudit(rows.audit, filter, page)),
  }
}
