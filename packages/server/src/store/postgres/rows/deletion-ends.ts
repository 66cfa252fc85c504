// What becomes of deletion requests that have ended: their end is written down, so that no list has to count attempts for
// it, and after the retention time users stand in them by pseudonym, one request per step. A delete message that failed
// and is owed again opens its request again: see replay-owing.ts.

import { pseudonymOf } from '../../deletions/pseudonyms.ts'
import { int8s, texts } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { readText, writeText } from '../session/texts.ts'
import { countEnds } from './read-deletions.ts'

/** Looks at the first request after `after`; answers with its number, or null when there was none. */
export async function endStep(ask: Ask, after: string, beforeMs: number, key: string): Promise<string | null> {
  // One that another node looks at now is left to it.
  const { rows } = await ask<{ num: string; created_at: number; ended: string | null; is_purged: boolean; user_ids: string }>(
    `SELECT num, created_at, ended, purge_cursor >= purge_end AS is_purged, user_ids FROM deletions
     WHERE NOT pseudonyms AND num > $1 AND (ended IS NULL OR created_at < $2) ORDER BY num LIMIT 1 FOR UPDATE SKIP LOCKED`,
    [after, beforeMs],
  )
  const row = rows[0]
  if (row === undefined) return null
  const ended = row.ended ?? (row.is_purged ? await end(ask, row.num) : null)
  if (ended !== null && row.created_at < beforeMs) await pseudonymize(ask, row.num, JSON.parse(row.user_ids) as string[], key)
  return row.num
}

async function end(ask: Ask, num: string): Promise<string | null> {
  const { open, failed } = await countEnds(ask, num)
  if (open > 0) return null
  const ended = failed > 0 ? 'failed' : 'finished'
  await ask('UPDATE deletions SET ended = $2 WHERE num = $1', [num, ended])
  return ended
}

/** What the rows were before is in the server's files until it vacuums them, as with everything that is deleted there. */
async function pseudonymize(ask: Ask, num: string, userIds: readonly string[], key: string): Promise<void> {
  const pseudonyms = new Map(userIds.map((userId) => [userId, pseudonymOf(userId, key)]))
  await ask('UPDATE deletions SET user_ids = $2, pseudonyms = true WHERE num = $1', [num, JSON.stringify([...pseudonyms.values()])])
  // Taken out and put back: a user may be called what another is from now on, and a row would stand in the other's way.
  const { rows } = await ask<{ user_id: string; source: string; destination: string; origin: string; final: string | null }>(
    'DELETE FROM deletion_targets WHERE deletion = $1 RETURNING user_id, source, destination, origin, final',
    [num],
  )
  if (rows.length === 0) return
  await ask(
    `INSERT INTO deletion_targets (deletion, user_id, source, destination, origin, final)
     SELECT $1::bigint, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])`,
    [
      num,
      texts(rows.map(({ user_id }) => writeText(pseudonyms.get(readText(user_id)) ?? readText(user_id)))),
      int8s(rows.map(({ source }) => source)),
      int8s(rows.map(({ destination }) => destination)),
      int8s(rows.map(({ origin }) => origin)),
      texts(rows.map(({ final }) => final)),
    ],
  )
}
