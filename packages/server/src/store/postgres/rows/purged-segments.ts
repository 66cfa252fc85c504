// Segments without the messages of some users, as they are written. Who they are, and which segments, is told by purging.ts.

import type { PurgedContent } from '../../deletions/purged-content.ts'
import { bools, byteas, int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'

/** As it is without them. */
export interface PurgedSegment extends PurgedContent {
  seq: string
}

/** What the rows were before is in the server's files until it vacuums them. */
export async function writePurgedSegments(ask: Ask, segments: readonly PurgedSegment[], range: readonly [string, string]): Promise<void> {
  await ask(
    `UPDATE segments s SET keys = u.keys, body = u.body, ip = CASE WHEN u.is_empty THEN NULL ELSE s.ip END,
       trace = CASE WHEN u.is_empty THEN NULL ELSE s.trace END
     FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::boolean[]) AS u (seq, keys, body, is_empty)
     WHERE s.seq = u.seq AND s.seq BETWEEN $5 AND $6`,
    [
      int8s(segments.map(({ seq }) => seq)),
      byteas(segments.map(({ keys }) => keys)),
      byteas(segments.map(({ body }) => body)),
      bools(segments.map(({ isEmpty }) => isEmpty)),
      ...range,
    ],
  )
}
