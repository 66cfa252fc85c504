// Documents in PostgreSQL. Updates of one kind take a lock that all nodes share, because a key that is not stored yet has no row to lock.

import type { JsonObject } from '@switchyard/protocol'
import { checkKeys, type DocumentStore, endOfPrefix, type StoredDocument } from '../../port/documents.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Database } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'

interface DocumentRow {
  key: string
  atMs: number
  doc: string
}

const DROPPED_PER_STEP = 1_000
const SELECT = 'SELECT key, at AS "atMs", doc FROM documents WHERE kind = $1'

const PUT = statement({
  parameters: { kind: 'value', documents: plainColumns({ key: 'text', at: 'bigint', doc: 'text' }) },
  text: ({ kind, documents }) => `
    INSERT INTO documents (kind, key, at, doc) SELECT ${kind}, d.key, d.at, d.doc FROM ${documents.as('d')}
    ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at, doc = excluded.doc`,
})

export function createDocuments(database: Database): DocumentStore {
  return {
    async get(kind, key) {
      const { rows } = await database.query<DocumentRow>(`${SELECT} AND key = $2`, [kind, key])
      return rows.map(parsed)[0]
    },
    async list(kind, { prefix = '', order, after, limit }) {
      const within = `${SELECT} AND key >= $2 AND key < $3`
      const values = [kind, prefix, endOfPrefix(prefix), limit]
      const { rows } =
        order === 'key'
          ? await database.query<DocumentRow>(`${within} AND key > $5 ORDER BY key LIMIT $4`, [...values, after?.key ?? ''])
          : after === undefined
            ? await database.query<DocumentRow>(`${within} ORDER BY at DESC, key DESC LIMIT $4`, values)
            : await database.query<DocumentRow>(`${within} AND (at, key) < ($5, $6) ORDER BY at DESC, key DESC LIMIT $4`, [
                ...values,
                after.atMs,
                after.key,
              ])
      return rows.map(parsed)
    },
    async update(kind, keys, change) {
      await database.transaction(async (ask) => {
        await ask(`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.documents} + (hashtext($1)::bigint & 65535))`, [kind])
        const { rows } = await ask<DocumentRow>(`${SELECT} AND key = ANY ($2::text[])`, [kind, keys])
        const changes = [...change(new Map(rows.map((row) => [row.key, parsed(row)])))]
        checkKeys(changes.map(([key]) => key))
        const documents = changes.flatMap(([key, to]) =>
          to === null ? [] : [{ key, at: Math.floor(to.atMs), doc: JSON.stringify(to.doc) }],
        )
        const deleted = changes.flatMap(([key, to]) => (to === null ? [key] : []))
        if (documents.length > 0) await ask(PUT, PUT.values({ kind, documents }))
        if (deleted.length > 0) await ask('DELETE FROM documents WHERE kind = $1 AND key = ANY ($2::text[])', [kind, deleted])
      })
    },
    async drop(kind, { prefix = '', beforeMs = Number.MAX_SAFE_INTEGER }) {
      for (let dropped = 0; ; ) {
        const { count } = await database.query(
          `DELETE FROM documents WHERE (kind, key) IN (
             SELECT kind, key FROM documents WHERE kind = $1 AND key >= $2 AND key < $3 AND at < $4 LIMIT ${DROPPED_PER_STEP} FOR UPDATE SKIP LOCKED)`,
          [kind, prefix, endOfPrefix(prefix), Math.floor(beforeMs)],
        )
        dropped += count
        if (count < DROPPED_PER_STEP) return dropped
      }
    },
  }
}

function parsed({ doc, ...row }: DocumentRow): StoredDocument {
  return { ...row, doc: JSON.parse(doc) as JsonObject }
}
