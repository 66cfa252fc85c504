// Whose new messages are dropped, as it is asked for: by source, then by user as texts.ts writes them. Users whose ids begin
// alike for PREFIX characters come in the order of their digests: the index of the order holds no more of them.

import { cursorOf } from '../../history/paging.ts'
import { InvalidCursor, type Page, type PageRequest, type Suppression, type SuppressionFilter } from '../../store.ts'
import { isRowId, OLDEST } from '../schema/ids.ts'
import type { Database } from '../session/database.ts'
import { readText, writeText } from '../session/texts.ts'

/** As the index has it. */
const PREFIX = 'left(p.user_id, 200)'

export async function listSuppressions(
  database: Database,
  { userId, sourceId }: SuppressionFilter,
  { limit, cursor }: PageRequest,
): Promise<Page<Suppression>> {
  const [source, user] = cursorOf('u', cursor, [OLDEST, ''])
  if (!isRowId(source)) throw new InvalidCursor()
  const conditions = [`(p.source, ${PREFIX}, p.user_digest) >= ($2::bigint, left($3::text, 200), digest_of($3))`]
  const values: (string | number)[] = [limit + 1, source, writeText(user)]
  if (sourceId !== undefined) conditions.push(`s.id = $${values.push(writeText(sourceId))}`)
  // One user is looked up source by source: there is no index by user, and there are few sources. OFFSET keeps it so.
  const from =
    userId === undefined
      ? 'sources s JOIN suppressions p ON p.source = s.num'
      : `sources s CROSS JOIN LATERAL (
             SELECT * FROM suppressions WHERE source = s.num AND user_digest = digest_of($${values.push(writeText(userId))}) OFFSET 0) p`
  const { rows } = await database.query<{ source: string; source_id: string; user_id: string; since: number }>(
    `SELECT p.source, s.id AS source_id, p.user_id, p.since FROM ${from}
       WHERE ${conditions.join(' AND ')} ORDER BY p.source, ${PREFIX}, p.user_digest LIMIT $1`,
    values,
  )
  const next = rows[limit]
  const data = rows.slice(0, limit).map((row) => ({ userId: readText(row.user_id), sourceId: row.source_id, since: row.since }))
  return { data, next: next ? JSON.stringify(['u', next.source, readText(next.user_id)]) : null }
}
