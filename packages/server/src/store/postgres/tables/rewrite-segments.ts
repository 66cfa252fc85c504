// Rewrites stored messages of which some were purged or trimmed, with the text of their attempts, for PostgreSQL.

import { purgeAttempts, attemptTextRows as sharedRows } from '../../deletions/purged-attempts.ts'
import type { PurgedContent, SegmentToTrim } from '../../deletions/purged-content.ts'
import type { Ask } from '../session/database.ts'
import { Columns, plainColumns, statement } from '../session/row-parameters.ts'
import { sqlOf } from './sql.ts'

export interface SegmentToRewrite extends Omit<SegmentToTrim, 'absent'> {
  seq: string
  absent: number[] | null
}

export interface RewrittenSegment extends PurgedContent {
  seq: string
  violations: string | null
  routes: string
}

const REWRITE_SEGMENTS = statement({
  parameters: {
    segments: new Columns<RewrittenSegment>({
      seq: ['bigint', ({ seq }) => seq],
      keys: ['bytea', ({ keys }) => keys],
      body: ['bytea', ({ body }) => body],
      violations: ['text', ({ violations }) => violations],
      routes: ['text', ({ routes }) => routes],
      is_empty: ['boolean', ({ isEmpty }) => isEmpty],
    }),
    first: 'value',
    last: 'value',
  },
  text: ({ segments, first, last }) => `
    UPDATE segments s SET keys = u.keys, body = u.body, violations = u.violations, routes = u.routes,
      ip = CASE WHEN u.is_empty THEN NULL ELSE s.ip END, trace = CASE WHEN u.is_empty THEN NULL ELSE s.trace END
    FROM ${segments.as('u')} WHERE s.seq = u.seq AND s.seq BETWEEN ${first} AND ${last}`,
})

const REWRITE_DOCS = statement({
  parameters: { docs: plainColumns({ id: 'bigint', doc: 'text' }), first: 'value' },
  text: ({ docs, first }) => `UPDATE attempts a SET doc = u.doc FROM ${docs.as('u')} WHERE a.id = u.id AND a.id >= ${first}`,
})

/** The segments are locked, and in the order of their row ids. The old row versions stay in the server's files until it vacuums them. */
export async function rewriteSegments(ask: Ask, segments: readonly RewrittenSegment[]): Promise<void> {
  const [first, last] = [segments[0]?.seq ?? null, segments.at(-1)?.seq ?? null]
  await ask(REWRITE_SEGMENTS, REWRITE_SEGMENTS.values({ segments, first, last }))
  const attempts = sharedRows(sqlOf(ask), async (docs) => {
    const least = docs.reduce((id, doc) => (doc.id < id ? doc.id : id), docs[0]?.id ?? '0')
    await ask(REWRITE_DOCS, REWRITE_DOCS.values({ docs, first: least }))
  })
  await purgeAttempts(
    attempts,
    segments.map(({ seq, routes, indexes }) => ({ segment: seq, routes, indexes })),
  )
}
