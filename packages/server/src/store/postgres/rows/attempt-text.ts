// The row port for removing text from stored attempts, for PostgreSQL.

import type { AttemptTextRows } from '../../deletions/purged-attempts.ts'
import { SKEW } from '../schema/ids.ts'
import { int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'

const REWRITE_DOCS = statement({
  parameters: { docs: plainColumns({ id: 'bigint', doc: 'text' }), first: 'value' },
  text: ({ docs, first }) => `UPDATE attempts a SET doc = u.doc FROM ${docs.as('u')} WHERE a.id = u.id AND a.id >= ${first}`,
})

export function attemptTextRows(ask: Ask): AttemptTextRows<string> {
  return {
    async replays(segments) {
      const { rows } = await ask<{ segment: string; origin: string }>(
        'SELECT DISTINCT segment, origin FROM replays WHERE segment = ANY($1::bigint[])',
        [int8s(segments)],
      )
      return rows
    },
    async attempts(origins) {
      const { rows } = await ask<{ id: string; origin: string; doc: string }>(
        // Attempts are later than their origins, so older partitions are not read. Locked, because another purge may be rewriting them.
        `SELECT id, origin, doc FROM attempts WHERE origin = ANY($1::bigint[]) AND id > $2::bigint - ${SKEW} ORDER BY id FOR UPDATE`,
        [int8s(origins), origins.reduce((first, origin) => (origin < first ? origin : first))],
      )
      return rows
    },
    async rewrite(docs) {
      await ask(
        REWRITE_DOCS,
        REWRITE_DOCS.values({ docs, first: docs.reduce((first, { id }) => (id < first ? id : first), docs[0]?.id ?? '0') }),
      )
    },
  }
}
