// Everything that control can ask of the rows, by topic. What answers with a promise awaits nothing but rows, which are there at once.

import { DeletionReads } from '../../deletions/deletion-reads.ts'
import { listAudit } from '../../history/audit-log.ts'
import type { AuditFilter, PageRequest } from '../../store.ts'
import { auditRows } from '../rows/audit-rows.ts'
import { deletionRows } from '../rows/deletion-rows.ts'
import { BooksReads } from '../rows/read-books.ts'
import { ConfigurationReads } from '../rows/read-configuration.ts'
import { DeliveryReads } from '../rows/read-deliveries.ts'
import { MessageReads } from '../rows/read-messages.ts'
import { ReplayReads } from '../rows/read-replays.ts'
import { StatsReads } from '../rows/read-stats.ts'
import type { Rows } from '../rows/rows.ts'

export function createReads(rows: Rows) {
  return {
    configuration: new ConfigurationReads(rows),
    books: new BooksReads(rows),
    messages: new MessageReads(rows),
    deliveries: new DeliveryReads(rows),
    deletions: new DeletionReads(deletionRows(rows)),
    audit: { list: (filter: AuditFilter, page: PageRequest) => listAudit(auditRows(rows.database), filter, page) },
    stats: new StatsReads(rows),
    replays: new ReplayReads(rows),
  }
}

export type Reads = ReturnType<typeof createReads>
