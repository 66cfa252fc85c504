// The row port for removing text from stored attempts, for PostgreSQL.

import { type AttemptTextRows, attemptTextRows as sharedRows } from '../../deletions/purged-attempts.ts'
import type { Ask } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import { sqlOf } from './sql.ts'

const REWRITE_DOCS = statement({
  parameters: { docs: plainColumns({ id: 'bigint', doc: 'text' }), first: 'value' },
  text: ({ docs, first }) => `UPDATE attempts a SET doc = u.doc FROM ${docs.as('u')} WHERE a.id = u.id AND a.id >= ${first}`,
})

export function attemptTextRows(ask: Ask): AttemptTextRows<string> {
  return sharedRows(sqlOf(ask), async (docs) => {
    const first = docs.reduce((least, { id }) => (id < least ? id : least), docs[0]?.id ?? '0')
    await ask(REWRITE_DOCS, REWRITE_DOCS.values({ docs, first }))
  })
}
