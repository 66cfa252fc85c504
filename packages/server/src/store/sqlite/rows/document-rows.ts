// Documents in SQLite. Only one process uses a file, so its updates run one after another: each reads with the reading thread and writes with one command.

import type { JsonObject } from '@switchyard/protocol'
import { createSerialQueue } from '../../../timing/serial-queue.ts'
import { checkKeys, type DocumentQuery, type DocumentStore, endOfPrefix, type StoredDocument } from '../../port/documents.ts'
import type { GroupCommit } from '../threads/group-commit.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { ReaderClient } from '../threads/reader-client.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import type { Rows } from './rows.ts'

interface DocumentRow {
  key: string
  atMs: number
  doc: string
}

interface Put {
  kind: string
  /** The doc is null if the document is deleted. */
  documents: readonly { key: string; atMs: number; doc: string | null }[]
}

interface Drop {
  kind: string
  prefix: string
  beforeMs: number
}

const DROPPED_PER_STEP = 500

export function documentReads(rows: Rows) {
  const select = 'SELECT key, at AS atMs, doc FROM documents WHERE kind = ?'
  return {
    stored: (kind: string, keys: readonly string[]) => keys.flatMap((key) => rows.all<DocumentRow>(`${select} AND key = ?`, kind, key)),
    page({ kind, prefix = '', order, after, limit }: DocumentQuery & { kind: string }): DocumentRow[] {
      const within = `${select} AND key >= ? AND key < ?`
      const range = [kind, prefix, endOfPrefix(prefix)]
      if (order === 'key') return rows.all(`${within} AND key > ? ORDER BY key LIMIT ?`, ...range, after?.key ?? '', limit)
      if (after === undefined) return rows.all(`${within} ORDER BY at DESC, key DESC LIMIT ?`, ...range, limit)
      return rows.all(`${within} AND (at, key) < (?, ?) ORDER BY at DESC, key DESC LIMIT ?`, ...range, after.atMs, after.key, limit)
    },
  }
}

export function documentCommands({ rows }: WriterContext) {
  return {
    putDocuments: {
      run({ kind, documents }: Put): void {
        for (const { key, atMs, doc } of documents) {
          if (doc === null) rows.run('DELETE FROM documents WHERE kind = ? AND key = ?', kind, key)
          else rows.run('INSERT OR REPLACE INTO documents (kind, key, at, doc) VALUES (?, ?, ?, ?)', kind, key, atMs, doc)
        }
      },
    },
    dropDocuments: {
      run: ({ kind, prefix, beforeMs }: Drop): number =>
        rows.run(
          `DELETE FROM documents WHERE (kind, key) IN
             (SELECT kind, key FROM documents WHERE kind = ? AND key >= ? AND key < ? AND at < ? LIMIT ${DROPPED_PER_STEP})`,
          kind,
          prefix,
          endOfPrefix(prefix),
          beforeMs,
        ),
    },
  } satisfies Record<string, WriterCommand>
}

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
