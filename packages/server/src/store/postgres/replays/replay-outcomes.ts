// Records the outcomes of replays, inside the transaction that settles them: writes the state of each replay, and appends the counts of
// its job. Nothing here waits for another node: only the node that holds a shipment changes the row of its replay, and only the steps of
// a job change the job's rows; they add up the appended counts.
// Each adapter has its own version: SQLite has one writer and adds up at once, and a row port would be larger than this file.

import type { AttemptDoc } from '../../encoding/attempt-doc.ts'
import type { RecordRow } from '../../encoding/settlement.ts'
import type { Ask } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'

const STATES = plainColumns({ origin: 'bigint', idx: 'integer', state: 'text' })

/** Ignores records that are not of replays. Uses one statement for all states. A message appears once per attempt: as ended or as retried. */
export async function writeOutcomes(ask: Ask, destination: string, records: readonly RecordRow<string>[]): Promise<void> {
  const states = new Map<string, { origin: string; idx: number; state: string }>()
  for (const { origin, attempt, doc, replay } of records) {
    if (!replay) continue
    const { r, f } = JSON.parse(doc) as AttemptDoc
    // At later attempts it is already marked as retrying.
    if (attempt === 1) {
      for (const [, , , , , , indexes] of r) for (const idx of indexes) states.set(`${origin}-${idx}`, { origin, idx, state: 'retrying' })
    }
    for (const [state, , indexes] of f) for (const idx of indexes) states.set(`${origin}-${idx}`, { origin, idx, state })
  }
  if (states.size === 0) return
  const rows = [...states.values()]
  const origins = rows.map(({ origin }) => origin).sort()
  await ask(OUTCOMES, OUTCOMES.values({ states: rows, first: origins[0] as string, last: origins.at(-1) as string, destination }))
}

const count = (state: string): string => `count(*) FILTER (WHERE became = '${state}')`

// Not a named statement, so that it is planned for the current number of rows: a plan from when a day was empty would read the whole day.
const OUTCOMES = statement({
  parameters: { states: STATES, first: 'value', last: 'value', destination: 'value' },
  text: ({ states, first, last, destination }) => `
  WITH was AS (
    SELECT r.origin, r.idx, r.job, r.state, n.state AS became
    FROM ${states.as('n')} JOIN replays r ON r.origin = n.origin AND r.idx = n.idx AND r.origin >= ${first} AND r.origin <= ${last}
  ), changed AS (
    UPDATE replays r SET state = was.became FROM was
    WHERE r.origin = was.origin AND r.idx = was.idx AND r.origin >= ${first} AND r.origin <= ${last} AND (was.became <> 'retrying' OR was.state IS NULL)
  )
  INSERT INTO replay_outcomes (job, destination, attempted, delivered, failed, expired, cancelled)
  SELECT job, ${destination}::bigint, count(*) FILTER (WHERE state IS NULL), ${['delivered', 'failed', 'expired', 'cancelled'].map(count).join(', ')}
  FROM was WHERE job IS NOT NULL AND (state IS NULL OR became <> 'retrying') GROUP BY job`,
})

/** Adds up the appended outcomes. The caller must hold the lock on the job's row. */
export async function foldOutcomes(ask: Ask, job: string): Promise<void> {
  await ask(FOLD, [job])
}

const FOLD = `
  WITH gone AS (DELETE FROM replay_outcomes WHERE job = $1 RETURNING *),
  parts AS (
    UPDATE replay_parts p SET waiting = p.waiting - s.attempted
    FROM (SELECT destination, sum(attempted) AS attempted FROM gone GROUP BY destination) s
    WHERE p.job = $1 AND p.destination = s.destination AND s.attempted > 0
  )
  UPDATE replay_jobs j SET delivered = j.delivered + s.delivered, failed = j.failed + s.failed, expired = j.expired + s.expired,
    cancelled = j.cancelled + s.cancelled
  FROM (SELECT sum(delivered) AS delivered, sum(failed) AS failed, sum(expired) AS expired, sum(cancelled) AS cancelled FROM gone) s
  WHERE j.num = $1 AND s.delivered + s.failed + s.expired + s.cancelled > 0`
