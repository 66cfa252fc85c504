// What was accepted, what became of it and who changed what: the port's questions, each answered from rows of one snapshot.

import type { AuditEntry, AuditFilter } from '../port/audit.ts'
import type {
  CauseFilter,
  DeliveryDetail,
  DeliveryFilter,
  DeliveryRow,
  FailureCauses,
  HistoryStore,
  MessageFilter,
  MessageTrail,
  StoredMessage,
} from '../port/history.ts'
import type { RowId } from '../port/model.ts'
import type { Page, PageRequest } from '../port/pages.ts'
import { listAudit } from './audit-log.ts'
import type { AuditRows } from './audit-rows.ts'
import { failureCauses } from './causes.ts'
import { listDeliveries } from './deliveries.ts'
import { readDelivery } from './delivery-detail.ts'
import type { DeliveryRows } from './delivery-rows.ts'
import type { MessageRows } from './message-rows.ts'
import { listMessages, messageTrails, readMessage } from './messages.ts'

export interface HistoryRows<Id extends RowId> {
  messages: MessageRows<Id>
  deliveries: DeliveryRows<Id>
  audit: AuditRows<Id>
}

/** Gives a piece of work the rows of one snapshot. */
export type InSnapshot<Id extends RowId> = <T>(work: (rows: HistoryRows<Id>) => Promise<T>) => Promise<T>

export class History<Id extends RowId> implements Omit<HistoryStore, 'noteAudit'> {
  readonly #inSnapshot: InSnapshot<Id>

  constructor(inSnapshot: InSnapshot<Id>) {
    this.#inSnapshot = inSnapshot
  }

  messages(filter: MessageFilter, page: PageRequest): Promise<Page<StoredMessage>> {
    return this.#inSnapshot((rows) => listMessages(rows.messages, filter, page))
  }

  message(id: string): Promise<StoredMessage | undefined> {
    return this.#inSnapshot((rows) => readMessage(rows.messages, id))
  }

  trails(id: string): Promise<MessageTrail[]> {
    return this.#inSnapshot((rows) => messageTrails(rows.messages, id))
  }

  deliveries(filter: DeliveryFilter, page: PageRequest): Promise<Page<DeliveryRow>> {
    return this.#inSnapshot((rows) => listDeliveries(rows.deliveries, filter, page))
  }

  delivery(id: string): Promise<DeliveryDetail | undefined> {
    return this.#inSnapshot((rows) => readDelivery(rows.deliveries, id))
  }

  failureCauses(filter: CauseFilter): Promise<FailureCauses> {
    return this.#inSnapshot((rows) => failureCauses(rows.deliveries, filter))
  }

  audit(filter: AuditFilter, page: PageRequest): Promise<Page<AuditEntry>> {
    return this.#inSnapshot((rows) => listAudit(rows.audit, filter, page))
  }
}
