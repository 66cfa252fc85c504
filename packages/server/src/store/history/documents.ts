// Documents, for both adapters: their rows, and the store above them. An adapter writes documents in its own way, and makes the updates of
// one kind one at a time.

import type { JsonObject } from '@switchyard/protocol'
import type { Sql } from '../encoding/sql.ts'
import { checkKeys, type DocumentQuery, type DocumentStore, endOfPrefix, type StoredDocument } from '../port/documents.ts'

export interface DocumentRow {
  key: string
  atMs: number
  doc: string
}

const DROPPED_PER_STEP = 1_000
const SELECT = 'SELECT key, at AS "atMs", doc FROM documents WHERE kind = ?'

export function documentRows(sql: Sql) {
  return {
    stored: async (kind: string, keys: readonly string[]): Promise<DocumentRow[]> =>
      sql.all(`${SELECT} AND ${sql.among('key', 'text')}`, [kind, sql.list(keys)]),
    async page(kind: string, { prefix = '', prefixes, order, after, limit }: DocumentQuery): Promise<DocumentRow[]> {
      const ofOne = prefixes === undefined ? '' : ` AND (${prefixes.map(() => 'key >= ? AND key < ?').join(' OR ') || '1 = 0'})`
      const within = `${SELECT} AND key >= ? AND key < ?${ofOne}`
      const range = [kind, prefix, endOfPrefix(prefix), ...(prefixes ?? []).flatMap((each) => [each, endOfPrefix(each)])]
      if (order === 'key') return sql.all(`${within} AND key > ? ORDER BY key LIMIT ?`, [...range, after?.key ?? '', limit])
      if (after === undefined) return sql.all(`${within} ORDER BY at DESC, key DESC LIMIT ?`, [...range, limit])
      return sql.all(`${within} AND (at, key) < (?, ?) ORDER BY at DESC, key DESC LIMIT ?`, [...range, after.atMs, after.key, limit])
    },
    delete: async (kind: string, keys: readonly string[]): Promise<number> =>
      sql.run(`DELETE FROM documents WHERE kind = ? AND ${sql.among('key', 'text')}`, [kind, sql.list(keys)]),
    /** Drops some of the documents, and returns how many. */
    drop: async (kind: string, prefix: string, beforeMs: number): Promise<number> => {
      const some = `SELECT kind, key FROM documents WHERE kind = ? AND key >= ? AND key < ? AND at < ? LIMIT ${DROPPED_PER_STEP} ${sql.lock('FOR UPDATE SKIP LOCKED')}`
      return sql.run(`DELETE FROM documents WHERE (kind, key) IN (${some})`, [kind, prefix, endOfPrefix(prefix), beforeMs])
    },
  }
}

/** The rows of documents, which may be in another thread. */
export interface DocumentRows extends Omit<ReturnType<typeof documentRows>, 'delete'> {
  /** Writes these documents, and deletes those with these keys. */
  write(kind: string, documents: readonly DocumentRow[], deleted: readonly string[]): Promise<void>
}

/** `updating` runs `work` while no other update of the same kind runs, on any node. */
export function documentStore(
  rows: Omit<DocumentRows, 'write'>,
  updating: (kind: string, work: (rows: Pick<DocumentRows, 'stored' | 'write'>) => Promise<void>) => Promise<void>,
): DocumentStore {
  return {
    get: async (kind, key) => (await rows.stored(kind, [key])).map(parsed)[0],
    list: async (kind, query) => (await rows.page(kind, query)).map(parsed),
    update: (kind, keys, change) =>
      updating(kind, async ({ stored, write }) => {
        const before = await stored(kind, keys)
        const changes = [...change(new Map(before.map((row) => [row.key, parsed(row)])))]
        if (changes.length === 0) return
        checkKeys(changes.map(([key]) => key))
        const documents = changes.flatMap(([key, to]) =>
          to === null ? [] : [{ key, atMs: Math.floor(to.atMs), doc: JSON.stringify(to.doc) }],
        )
        const deleted = changes.flatMap(([key, to]) => (to === null ? [key] : []))
        await write(kind, documents, deleted)
      }),
    async drop(kind, { prefix = '', beforeMs = Number.MAX_SAFE_INTEGER }) {
      for (let dropped = 0; ; ) {
        const step = await rows.drop(kind, prefix, Math.floor(beforeMs))
        dropped += step
        if (step < DROPPED_PER_STEP) return dropped
      }
    },
  }
}

function parsed({ doc, ...row }: DocumentRow): StoredDocument {
  return { ...row, doc: JSON.parse(doc) as JsonObject }
}
