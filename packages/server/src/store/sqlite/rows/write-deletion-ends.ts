// A delete message that failed and is owed again opens its deletion request again. How requests end is in ../../deletions/deletion-ends.ts.

import type { DatabaseSync, StatementSync } from 'node:sqlite'

export class DeletionEnds {
  readonly #move: StatementSync
  readonly #reopen: StatementSync

  constructor(database: DatabaseSync) {
    this.#move = database.prepare(`
      UPDATE deletion_targets SET origin = ?1, final = NULL
      WHERE origin IN (SELECT ?2 UNION SELECT origin FROM replays WHERE segment = ?3 AND idx = 0 AND destination = ?4)
        AND ifnull(final, 'failed') <> 'delivered'
        AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.origin = deletion_targets.origin AND a.delivered > 0)`)
    this.#reopen = database.prepare(
      'UPDATE deletions SET ended = NULL WHERE num = (SELECT deletion FROM deletion_targets WHERE origin = ?)',
    )
  }

  /** The target of a delete message follows its newest replay, whichever delivery that repeats, unless it was delivered before. */
  replayed(from: number, to: number, segment: number, index: number, destination: number): void {
    // A delete message is alone in its segment.
    if (index === 0 && this.#move.run(to, from, segment, destination).changes > 0) this.#reopen.run(to)
  }
}
