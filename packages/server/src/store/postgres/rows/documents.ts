// Documents in PostgreSQL. Updates of one kind take a lock that all nodes share, because a key that is not stored yet has no row to lock.

import { documentRows, documentStore } from '../../history/documents.ts'
import type { DocumentStore } from '../../port/documents.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Database } from '../session/database.ts'
import { PUT_DOCUMENTS } from '../tables/put-documents.ts'
import { sqlOf } from '../tables/sql.ts'

export function createDocuments(database: Database): DocumentStore {
  return documentStore(documentRows(sqlOf(database.ask)), (kind, work) =>
    database.transaction(async (ask) => {
      await ask(`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.documents} + (hashtext($1)::bigint & 65535))`, [kind])
      const rows = documentRows(sqlOf(ask))
      await work({
        stored: rows.stored,
        async write(_, documents, deleted) {
          if (documents.length > 0) await ask(PUT_DOCUMENTS, PUT_DOCUMENTS.values({ kind, documents }))
          if (deleted.length > 0) await rows.delete(kind, deleted)
        },
      })
    }),
  )
}
