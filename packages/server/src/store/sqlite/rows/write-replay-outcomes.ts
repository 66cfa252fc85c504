// What becomes of replays, inside the transaction that settles them: each replay's own state, and the counts of the job
// that made it. Only deliveries that are replays come here; all others pay nothing for it.
// Written for each adapter: PostgreSQL appends the counts, so that nobody waits, and a port of rows would be larger than this.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import type { RecordRow } from '../../encoding/settlement.ts'

export class ReplayOutcomes {
  readonly #jobOf: StatementSync
  readonly #first: StatementSync
  readonly #end: StatementSync
  readonly #count: StatementSync
  readonly #attempted: StatementSync

  constructor(database: DatabaseSync) {
    this.#jobOf = database.prepare('SELECT job FROM replays WHERE origin = ? LIMIT 1')
    this.#first = database.prepare('UPDATE replays SET state = ? WHERE origin = ? AND idx = ? AND state IS NULL')
    this.#end = database.prepare('UPDATE replays SET state = ? WHERE origin = ? AND idx = ?')
    this.#count = database.prepare(
      'UPDATE replay_jobs SET delivered = delivered + ?, failed = failed + ?, expired = expired + ?, cancelled = cancelled + ? WHERE num = ?',
    )
    this.#attempted = database.prepare('UPDATE replay_parts SET waiting = waiting - ? WHERE job = ? AND destination = ?')
  }

  record(destination: number, { origin, attempt, delivered, failed, expired, cancelled, doc }: RecordRow<number>): void {
    const { r, f } = JSON.parse(doc) as AttemptDoc
    let attempted = 0
    for (const [state, , indexes] of f) {
      for (const index of indexes) {
        if (this.#first.run(state, origin, index).changes === 1) attempted++
        else this.#end.run(state, origin, index)
      }
    }
    // Later attempts find it marked.
    if (attempt === 1) {
      const tried = new Set(r.flatMap(([, , , , , , indexes]) => indexes))
      for (const index of tried) attempted += Number(this.#first.run('retrying', origin, index).changes)
    }
    const { job } = (this.#jobOf.get(origin) ?? { job: null }) as { job: number | null }
    if (job === null) return
    if (attempted > 0) this.#attempted.run(attempted, job, destination)
    if (f.length > 0) this.#count.run(delivered, failed, expired, cancelled, job)
  }
}
