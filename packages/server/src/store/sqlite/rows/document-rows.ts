// The rows of documents in SQLite: what the reading thread reads, and the commands of the writing thread.

import { type DocumentQuery, endOfPrefix } from '../../port/documents.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import type { Rows } from './rows.ts'

export interface DocumentRow {
  key: string
  atMs: number
  doc: string
}

export interface Put {
  kind: string
  /** The doc is null if the document is deleted. */
  documents: readonly { key: string; atMs: number; doc: string | null }[]
}

export interface Drop {
  kind: string
  prefix: string
  beforeMs: number
}

export const DROPPED_PER_STEP = 500

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
