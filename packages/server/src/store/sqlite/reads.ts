// Everything that control can ask of the rows, by topic.

import { AuditReads } from './read-audit.ts'
import { BooksReads } from './read-books.ts'
import { ConfigurationReads } from './read-configuration.ts'
import { DeletionReads } from './read-deletions.ts'
import { DeliveryReads } from './read-deliveries.ts'
import { MessageReads } from './read-messages.ts'
import { ReplayReads } from './read-replays.ts'
import { StatsReads } from './read-stats.ts'
import type { Rows } from './rows.ts'

export function createReads(rows: Rows) {
  return {
    configuration: new ConfigurationReads(rows),
    books: new BooksReads(rows),
    messages: new MessageReads(rows),
    deliveries: new DeliveryReads(rows),
    deletions: new DeletionReads(rows),
    audit: new AuditReads(rows),
    stats: new StatsReads(rows),
    replays: new ReplayReads(rows),
  }
}

export type Reads = ReturnType<typeof createReads>
