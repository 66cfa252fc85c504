// Removes the content of messages that are older than the retention time from segments that are kept only because other messages of theirs are
// in quarantine. Called by the node that drops old data, after the segments with pending deliveries were pinned.

import { type SegmentToTrim, trimSegment } from '../../deletions/purged-content.ts'
import { type Ask, transact } from '../session/database.ts'
import { rewriteSegments } from '../tables/rewrite-segments.ts'

const SEGMENTS_PER_STEP = 20

interface Row extends Omit<SegmentToTrim, 'absent'> {
  seq: string
  absent: number[] | null
}

export async function trimQuarantined(ask: Ask, cutoff: string, isClosed: () => boolean): Promise<void> {
  for (let from = '0'; !isClosed(); ) {
    const { rows } = await ask<{ segment: string }>(
      `SELECT DISTINCT q.segment FROM quarantine q JOIN segments g ON g.seq = q.segment
       WHERE q.segment > $1 AND q.segment < $2 AND g.routes::jsonb -> 't' IS NULL
         AND NOT EXISTS (SELECT 1 FROM pinned WHERE pinned.segment = q.segment)
       ORDER BY q.segment LIMIT ${SEGMENTS_PER_STEP}`,
      [from, cutoff],
    )
    const last = rows.at(-1)
    if (last === undefined) return
    const segments = rows.map(({ segment }) => segment)
    await transact(ask, () => trim(ask, segments))
    from = last.segment
  }
}

/**
 * The lock on a segment orders this with transactions that release or replay one of its messages. A message that was replayed since the segments were
 * pinned is pending, so its segment is left for the next time.
 */
async function trim(ask: Ask, segments: readonly string[]): Promise<void> {
  const { rows } = await ask<Row>(
    'SELECT seq, absent, violations, routes, keys, body FROM segments WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE',
    [segments],
  )
  const { rows: held } = await ask<{ segment: string; idx: number }>(
    'SELECT segment, idx FROM quarantine WHERE segment = ANY($1::bigint[])',
    [segments],
  )
  const { rows: replayed } = await ask<{ segment: string }>(
    `SELECT DISTINCT segment FROM replays WHERE segment = ANY($1::bigint[]) AND (state IS NULL OR state = 'retrying')`,
    [segments],
  )
  const trimmed = rows.flatMap((row) => {
    if (replayed.some(({ segment }) => segment === row.seq)) return []
    const indexes = held.filter(({ segment }) => segment === row.seq).map(({ idx }) => idx)
    const left = trimSegment({ ...row, absent: row.absent ?? [] }, indexes)
    return left === undefined ? [] : [{ ...left, seq: row.seq, isEmpty: false }]
  })
  if (trimmed.length === 0) return
  // With the text of attempts: afterwards no deletion would find it, because the hashes of the users are gone.
  await rewriteSegments(ask, trimmed)
}
