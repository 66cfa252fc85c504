// Counts over time. Nodes add to the same minute at once: each locks the rows it adds to, in one order for all, and adds to what
// it finds under the lock. Every count is added twice, to its minute and to its hour: minutes are dropped soon and hours late,
// and neither has to be made from the other.

import { seriesOf } from '../../history/stat-series.ts'
import { addCounts, type StatCounts } from '../../port/stat-counts.ts'
import type { StatPoint, StatQuery, StatRow } from '../../store.ts'
import { MARKER } from '../messages/owing.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import type { Parts } from '../session/parts.ts'
import { writeText } from '../session/texts.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DROPPED_PER_STEP = 1_000

/** A row of the table, and what is to be added to it. */
interface Addition {
  kind: string
  subject: string
  step: number
  at: number
  counts: StatCounts
}

/** What is added in one transaction, and the name under which that is known to have been done. */
interface Batch {
  name: string
  additions: Addition[]
}

export class Stats {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async add(rows: readonly StatRow[]): Promise<void> {
    for (const batch of this.#unsure) await this.#write(batch)
    const additions = additionsOf(rows)
    if (additions.length === 0) return
    const batch = { name: this.#parts.ids.next(), additions }
    try {
      await this.#write(batch)
    } catch (error) {
      // It may have been added all the same, and who is told that it was not brings it again: so it is kept here until that is known.
      if (!(error instanceof PostgresUnavailable && error.doubtful)) throw error
      this.#unsure.add(batch)
    }
  }
  readonly #unsure = new Set<Batch>()

  /** Once, however often it is called. */
  async #write(batch: Batch): Promise<void> {
    const { name, additions } = batch
    const keys = [
      additions.map(({ kind }) => kind),
      additions.map(({ subject }) => subject),
      additions.map(({ step }) => step),
      additions.map(({ at }) => at),
    ] as const
    await this.#parts.database.transaction(async (ask) => {
      // Waits for itself, where an earlier try is still about to be committed.
      const { count } = await ask(`INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, ${MARKER}, 0, '{}') ON CONFLICT DO NOTHING`, [
        name,
      ])
      if (count === 0) return
      await ask(
        `INSERT INTO stats (kind, subject, step, at, doc)
         SELECT kind, subject, step, at, '{}' FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[]) AS k(kind, subject, step, at)
         ORDER BY kind COLLATE "C", subject COLLATE "C", step, at
         ON CONFLICT DO NOTHING`,
        keys,
      )
      const { rows: found } = await ask<Omit<Addition, 'counts'> & { doc: string }>(
        `SELECT s.kind, s.subject, s.step, s.at, s.doc FROM stats s
         JOIN unnest($1::text[], $2::text[], $3::integer[], $4::bigint[]) AS k(kind, subject, step, at) USING (kind, subject, step, at)
         ORDER BY s.kind COLLATE "C", s.subject COLLATE "C", s.step, s.at FOR UPDATE OF s`,
        keys,
      )
      const docs = new Map(found.map((row) => [keyOf(row), row.doc]))
      const sums = additions.map((addition) => {
        const sum = JSON.parse(docs.get(keyOf(addition)) ?? '{}') as StatCounts
        addCounts(sum, addition.counts)
        return JSON.stringify(sum)
      })
      await ask(
        `UPDATE stats s SET doc = k.doc
         FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::text[]) AS k(kind, subject, step, at, doc)
         WHERE (s.kind, s.subject, s.step, s.at) = (k.kind, k.subject, k.step, k.at)`,
        [...keys, sums],
      )
    })
    this.#unsure.delete(batch)
  }

  async series({ kind, subject, fromMs, toMs, stepMs }: StatQuery): Promise<StatPoint[]> {
    const { rows } = await this.#parts.database.query<{ at: number; doc: string }>(
      'SELECT at, doc FROM stats WHERE kind = $1 AND subject = $2 AND step = $3 AND at >= $4 AND at < $5 ORDER BY at',
      [kind, writeText(subject), stepMs % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS, fromMs, toMs],
    )
    return seriesOf(rows, stepMs)
  }

  /** Some of those from before; how many. What another node is just dropping, or adding to, is not waited for. */
  async drop(minutesBeforeMs: number, hoursBeforeMs: number): Promise<number> {
    const of = (step: string, before: string): string =>
      `(SELECT kind, subject, step, at FROM stats WHERE step = ${step} AND at < ${before} LIMIT ${DROPPED_PER_STEP} FOR UPDATE SKIP LOCKED)`
    const { count } = await this.#parts.database.query(
      `WITH minutes AS ${of('$1', '$2')}, hours AS ${of('$3', '$4')}
       DELETE FROM stats WHERE (kind, subject, step, at) IN (TABLE minutes UNION ALL TABLE hours)`,
      [MINUTE_MS, Math.floor(minutesBeforeMs), HOUR_MS, Math.floor(hoursBeforeMs)],
    )
    return count
  }
}

/** One for each row of the table: two counts of one minute are one addition. */
function additionsOf(rows: readonly StatRow[]): Addition[] {
  const additions = new Map<string, Addition>()
  for (const { kind, subject, atMs, counts } of rows) {
    for (const step of [MINUTE_MS, HOUR_MS]) {
      const key = { kind, subject: writeText(subject), step, at: Math.floor(atMs / step) * step }
      const known = additions.get(keyOf(key))
      if (known === undefined) additions.set(keyOf(key), { ...key, counts: { ...counts } })
      else addCounts(known.counts, counts)
    }
  }
  return [...additions.values()]
}

function keyOf({ kind, subject, step, at }: Omit<Addition, 'counts'>): string {
  return JSON.stringify([kind, subject, step, at])
}
