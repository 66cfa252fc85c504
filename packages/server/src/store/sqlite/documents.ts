// Documents in SQLite. Only one process uses a file, so its updates run one after another: each reads with the reading thread and writes with one command.

import { createSerialQueue } from '../../timing/serial-queue.ts'
import { documentStore } from '../history/documents.ts'
import type { DocumentStore } from '../port/documents.ts'
import type { GroupCommit } from './threads/group-commit.ts'
import type { ReaderClient } from './threads/reader-client.ts'

export function createDocuments(writer: GroupCommit, reader: ReaderClient): DocumentStore {
  const inTurn = createSerialQueue()
  const rows = { ...reader.methods('documents', 'stored', 'page'), ...writer.methods('documents', 'write', 'drop') }
  return documentStore(rows, (_, work) => inTurn(() => work(rows)))
}
