// What becomes of deletion requests that have ended: their end is written down, so that no list has to count attempts for
// it, and after the retention time users stand in them by pseudonym, one request per step. A delete message that failed
// and is owed again opens its request again.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { pseudonymOf } from '../../deletions/pseudonyms.ts'

export class DeletionEnds {
  readonly #database: DatabaseSync
  readonly #next: StatementSync
  readonly #count: StatementSync
  readonly #move: StatementSync
  readonly #reopen: StatementSync

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#next = database.prepare(`
      SELECT num, created_at AS createdAtMs, ended FROM deletions
      WHERE pseudonyms = 0 AND num > ? AND (ended IS NULL OR created_at < ?) ORDER BY num LIMIT 1`)
    this.#count = database.prepare(`
      SELECT ifnull(sum(final IS NULL AND ended = 0), 0) AS open, ifnull(sum(ifnull(final, 'delivered') <> 'delivered' OR failed > 0), 0) AS failed
      FROM (SELECT t.final, ifnull(sum(a.delivered + a.failed + a.expired + a.cancelled), 0) AS ended,
                   ifnull(sum(a.failed + a.expired + a.cancelled), 0) AS failed
            FROM deletion_targets t LEFT JOIN attempts a ON a.origin = t.origin
            WHERE t.deletion = ? GROUP BY t.user_id, t.source, t.destination)`)
    this.#move = database.prepare(`
      UPDATE deletion_targets SET origin = ?1, final = NULL
      WHERE origin IN (SELECT ?2 UNION SELECT origin FROM replays WHERE segment = ?3 AND idx = 0 AND destination = ?4)
        AND ifnull(final, 'failed') <> 'delivered'
        AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.origin = deletion_targets.origin AND a.delivered > 0)`)
    this.#reopen = database.prepare(
      'UPDATE deletions SET ended = NULL WHERE num = (SELECT deletion FROM deletion_targets WHERE origin = ?)',
    )
  }

  /** Looks at the first request after `after`; answers with its number, or null when there was none. */
  step(after: number, beforeMs: number, key: string): number | null {
    const row = this.#next.get(after, beforeMs) as { num: number; createdAtMs: number; ended: string | null } | undefined
    if (row === undefined) return null
    const { num, createdAtMs } = row
    const ended = row.ended ?? this.#end(num)
    if (ended !== null && createdAtMs < beforeMs) this.#pseudonymize(num, key)
    return num
  }

  /** The target of a delete message follows its newest replay, whichever delivery that repeats, unless it was delivered before. */
  replayed(from: number, to: number, segment: number, index: number, destination: number): void {
    // A delete message is alone in its segment.
    if (index === 0 && this.#move.run(to, from, segment, destination).changes > 0) this.#reopen.run(to)
  }

  #end(num: number): string | null {
    const { purged } = this.#database.prepare('SELECT purge_cursor >= purge_end AS purged FROM deletions WHERE num = ?').get(num) as {
      purged: number
    }
    if (purged === 0) return null
    const { open, failed } = this.#count.get(num) as { open: number; failed: number }
    if (open > 0) return null
    const ended = failed > 0 ? 'failed' : 'finished'
    this.#database.prepare('UPDATE deletions SET ended = ? WHERE num = ?').run(ended, num)
    return ended
  }

  #pseudonymize(num: number, key: string): void {
    const database = this.#database
    const row = database.prepare('SELECT user_ids FROM deletions WHERE num = ?').get(num) as { user_ids: string }
    const userIds = JSON.parse(row.user_ids) as string[]
    const pseudonyms = userIds.map((userId) => pseudonymOf(userId, key))
    const rename = database.prepare('UPDATE deletion_targets SET user_id = ? WHERE deletion = ? AND user_id = ?')
    // What was there is overwritten, as with a purge: an id that is only left unused can be read from the file.
    database.exec('PRAGMA secure_delete = ON')
    try {
      database.prepare('UPDATE deletions SET user_ids = ?, pseudonyms = 1 WHERE num = ?').run(JSON.stringify(pseudonyms), num)
      for (const [at, userId] of userIds.entries()) rename.run(pseudonyms[at] as string, num, userId)
    } finally {
      database.exec('PRAGMA secure_delete = FAST')
    }
  }
}
