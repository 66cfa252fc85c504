// Everything that control can ask of the rows, by topic. What answers with a promise awaits nothing but rows, which are there at once.

import { DeletionReads } from '../../deletions/deletion-reads.ts'
import { booksOf } from '../../history/books.ts'
import { type HistoryReads, historyReads } from '../../history/history.ts'
import type { FoundKey } from '../../history/message-rows.ts'
import type { MessageFilter, PageRequest } from '../../store.ts'
import { auditRows } from '../rows/audit-rows.ts'
import { bookRows } from '../rows/book-rows.ts'
import { deletionRows } from '../rows/deletion-rows.ts'
import { deliveryRows } from '../rows/delivery-rows.ts'
import { messageRows } from '../rows/message-rows.ts'
import { configurationReads } from '../rows/read-configuration.ts'
import { replayReads } from '../rows/read-replays.ts'
import { pinnedSegments } from '../rows/retention.ts'
import type { Rows } from '../rows/rows.ts'

type Keys = readonly FoundKey<number>[]

export function createReads(rows: Rows) {
  const history = (found: Keys = []): HistoryReads =>
    historyReads<number>((work) => work({ messages: messageRows(rows, found), deliveries: deliveryRows(rows), audit: auditRows(rows) }))
  return {
    configuration: configurationReads(rows),
    books: booksOf(bookRows(rows)),
    history: history(),
    /** Questions of history about a messageId, with where the writing thread found it. */
    found: {
      messages: (found: Keys, filter: MessageFilter, page: PageRequest) => history(found).messages(filter, page),
      message: (found: Keys, id: string) => history(found).message(id),
      trails: (found: Keys, id: string) => history(found).trails(id),
    },
    deletions: new DeletionReads(deletionRows(rows)),
    retention: { pinned: (line: number) => pinnedSegments(rows, line) },
    replays: replayReads(rows),
  }
}

export type Reads = ReturnType<typeof createReads>
