// Records the outcomes of replays, inside the transaction that settles them: the state of each replay, and the counts of
// its job. Only replays are handled here, so other deliveries cost nothing.
// Each adapter has its own version: PostgreSQL appends the counts so that nodes do not wait for each other, and a row port would be larger than this file.

import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import type { RecordRow } from '../../encoding/settlement.ts'
import type { Rows } from '../schema/rows.ts'

const FIRST = 'UPDATE replays SET state = ? WHERE origin = ? AND idx = ? AND state IS NULL'
const COUNT =
  'UPDATE replay_jobs SET delivered = delivered + ?, failed = failed + ?, expired = expired + ?, cancelled = cancelled + ? WHERE num = ?'

export function recordOutcome(rows: Rows, destination: number, record: RecordRow<number>): void {
  const { origin, attempt, delivered, failed, expired, cancelled, doc } = record
  const { r, f } = JSON.parse(doc) as AttemptDoc
  let attempted = 0
  for (const [state, , indexes] of f) {
    for (const index of indexes) {
      if (rows.run(FIRST, [state, origin, index]) === 1) attempted++
      else rows.run('UPDATE replays SET state = ? WHERE origin = ? AND idx = ?', [state, origin, index])
    }
  }
  // Only the first attempt sets the state `retrying`.
  if (attempt === 1) {
    const tried = new Set(r.flatMap(([, , , , , , indexes]) => indexes))
    for (const index of tried) attempted += rows.run(FIRST, ['retrying', origin, index])
  }
  const job = rows.all<{ job: number | null }>('SELECT job FROM replays WHERE origin = ? LIMIT 1', [origin])[0]?.job ?? null
  if (job === null) return
  if (attempted > 0)
    rows.run('UPDATE replay_parts SET waiting = waiting - ? WHERE job = ? AND destination = ?', [attempted, job, destination])
  if (f.length > 0) rows.run(COUNT, [delivered, failed, expired, cancelled, job])
}
