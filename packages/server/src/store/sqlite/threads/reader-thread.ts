// The reading thread: answers the queries of the control API on a separate connection, so that a query about a million rows delays no commit. Each
// answer comes from one snapshot.

import { parentPort, workerData } from 'node:worker_threads'
import { releaseMemoryWhenIdle } from '../../../timing/idle-memory.ts'
import { createSerialQueue } from '../../../timing/serial-queue.ts'
import { DeletionReads } from '../../deletions/deletion-reads.ts'
import { booksOf } from '../../history/books.ts'
import { documentRows } from '../../history/documents.ts'
import { type HistoryReads, historyReads } from '../../history/history.ts'
import type { FoundKey } from '../../history/message-rows.ts'
import { orderReads } from '../../ordering/order-reads.ts'
import { orderReadRows } from '../../ordering/order-rows.ts'
import { quarantineReads } from '../../quarantine/common-quarantine-store.ts'
import { quarantineReadRows } from '../../quarantine/quarantine-rows.ts'
import { InvalidCursor, type MessageFilter, type PageRequest } from '../../store.ts'
import { bookRows } from '../rows/book-rows.ts'
import { deletionRows } from '../rows/deletion-rows.ts'
import { deliveryRows, messageRows, segmentLookups } from '../rows/history-rows.ts'
import { configurationReads } from '../rows/read-configuration.ts'
import { replayReads } from '../rows/read-replays.ts'
import { openReader } from '../schema/database.ts'
import { Rows } from '../schema/rows.ts'
import { pinnedSegments } from '../writing/retention.ts'

type Keys = readonly FoundKey<number>[]

/** The methods that can be called, by topic. A function that returns a promise awaits nothing but rows, which are read synchronously. */
function createReads(rows: Rows) {
  const history = (found: Keys = []): HistoryReads =>
    historyReads<number>((work) => work({ messages: messageRows(rows, found), deliveries: deliveryRows(rows), audit: rows }))
  return {
    configuration: configurationReads(rows),
    books: booksOf(bookRows(rows)),
    history: history(),
    /** Reads of the history by messageId. `found`: the segments in which the writing thread found it. */
    found: {
      messages: (found: Keys, filter: MessageFilter, page: PageRequest) => history(found).messages(filter, page),
      message: (found: Keys, id: string, sourceIds?: readonly string[]) => history(found).message(id, sourceIds),
      trails: (found: Keys, id: string, sourceIds?: readonly string[]) => history(found).trails(id, sourceIds),
    },
    deletions: new DeletionReads(deletionRows(rows)),
    retention: { pinned: (cutoff: number) => pinnedSegments(rows, cutoff) },
    replays: replayReads(rows),
    documents: documentRows(rows),
    order: orderReads<number>((work) => work({ deliveries: deliveryRows(rows), keys: orderReadRows(rows) })),
    quarantine: quarantineReads<number>((work) =>
      work(quarantineReadRows(rows, { ...segmentLookups(rows), source: (id) => rows.sources.num(id) })),
    ),
  }
}

export type Reads = ReturnType<typeof createReads>

export interface ReadRequest {
  id: number
  topic: keyof Reads
  name: string
  args: unknown[]
}

export type ReadResponse = { id: number; ok: true; value: unknown } | { id: number; ok: false; message: string; invalidCursor: boolean }

if (parentPort !== null) {
  const port = parentPort
  const database = openReader((workerData as { path: string }).path)
  const reads = createReads(new Rows(database))
  const inTurn = createSerialQueue()
  const respondTo = async ({ id, topic, name, args }: ReadRequest): Promise<void> => {
    let answer: ReadResponse
    try {
      database.exec('BEGIN')
      const asked = reads[topic] as unknown as Record<string, (...args: unknown[]) => unknown>
      answer = { id, ok: true, value: await asked[name]?.(...args) }
    } catch (error) {
      answer = { id, ok: false, message: (error as Error).message, invalidCursor: error instanceof InvalidCursor }
    }
    // There is no transaction if BEGIN failed, or if SQLite ended it because of a read error.
    if (database.isTransaction) database.exec('ROLLBACK')
    port.postMessage(answer)
  }
  port.on('message', (request: ReadRequest | 'close') => {
    void inTurn(async () => {
      if (request !== 'close') return respondTo(request)
      database.close()
      port.close()
    })
  })
  releaseMemoryWhenIdle()
}
