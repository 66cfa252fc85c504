// Documents in SQLite. Only one process uses a file, so its updates run one after another: each reads with the reading thread and writes with one command.

import type { JsonObject } from '@switchyard/protocol'
import { createSerialQueue } from '../../timing/serial-queue.ts'
import { checkKeys, type DocumentStore, type StoredDocument } from '../port/documents.ts'
import { type DocumentRow, DROPPED_PER_STEP } from './rows/document-rows.ts'
import type { GroupCommit } from './threads/group-commit.ts'
import type { ReaderClient } from './threads/reader-client.ts'

export function createDocuments(writer: GroupCommit, reader: ReaderClient): DocumentStore {
  const inTurn = createSerialQueue()
  return {
    async get(kind, key) {
      return (await reader.ask('documents', 'stored', kind, [key])).map(parsed)[0]
    },
    async list(kind, query) {
      return (await reader.ask('documents', 'page', { ...query, kind })).map(parsed)
    },
    update: (kind, keys, change) =>
      inTurn(async () => {
        const stored = await reader.ask('documents', 'stored', kind, keys)
        const changes = change(new Map(stored.map((row) => [row.key, parsed(row)])))
        if (changes.size === 0) return
        checkKeys(changes.keys())
        const documents = [...changes].map(([key, to]) => ({
          key,
          atMs: Math.floor(to?.atMs ?? 0),
          doc: to === null ? null : JSON.stringify(to.doc),
        }))
        await writer.run('putDocuments', { kind, documents })
      }),
    async drop(kind, { prefix = '', beforeMs = Number.MAX_SAFE_INTEGER }) {
      for (let dropped = 0; ; ) {
        const step = await writer.run('dropDocuments', { kind, prefix, beforeMs: Math.floor(beforeMs) })
        dropped += step
        if (step < DROPPED_PER_STEP) return dropped
      }
    },
  }
}

function parsed({ doc, ...row }: DocumentRow): StoredDocument {
  return { ...row, doc: JSON.parse(doc) as JsonObject }
}
