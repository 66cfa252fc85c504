// Counts over time. Nodes add to the same minute at once: each locks the rows it adds to, in one order for all, and adds to what
// it finds under the lock.

import { addStats, HOUR_MS, MINUTE_MS, type StatKey, type StatRows, type StoredStat } from '../../history/stats.ts'
import type { StatRow } from '../../store.ts'
import { MARKER } from '../messages/owing.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import type { Ask } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { readText, writeText } from '../session/texts.ts'

const DROPPED_PER_STEP = 1_000

/** What is added in one transaction, and the name under which that is known to have been done. */
interface Batch {
  name: string
  rows: readonly StatRow[]
}

export class Stats {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async add(rows: readonly StatRow[]): Promise<void> {
    for (const batch of this.#unsure) await this.#write(batch)
    if (rows.length === 0) return
    const batch = { name: this.#parts.ids.next(), rows }
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
    await this.#parts.database.transaction(async (ask) => {
      // Waits for itself, where an earlier try is still about to be committed.
      const { count } = await ask(`INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, ${MARKER}, 0, '{}') ON CONFLICT DO NOTHING`, [
        batch.name,
      ])
      if (count > 0) await addStats(statRows(ask), batch.rows)
    })
    this.#unsure.delete(batch)
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

function statRows(ask: Ask): StatRows {
  const columns = (keys: readonly StatKey[]) => [
    keys.map(({ kind }) => kind),
    keys.map(({ subject }) => writeText(subject)),
    keys.map(({ step }) => step),
    keys.map(({ at }) => at),
  ]
  return {
    /** Rows that are not there are made first, so that all of them can be locked. */
    async stored(keys) {
      await ask(
        `INSERT INTO stats (kind, subject, step, at, doc)
         SELECT kind, subject, step, at, '{}' FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[]) AS k(kind, subject, step, at)
         ORDER BY kind COLLATE "C", subject COLLATE "C", step, at
         ON CONFLICT DO NOTHING`,
        columns(keys),
      )
      const { rows } = await ask<StoredStat>(
        `SELECT s.kind, s.subject, s.step, s.at, s.doc FROM stats s
         JOIN unnest($1::text[], $2::text[], $3::integer[], $4::bigint[]) AS k(kind, subject, step, at) USING (kind, subject, step, at)
         ORDER BY s.kind COLLATE "C", s.subject COLLATE "C", s.step, s.at FOR UPDATE OF s`,
        columns(keys),
      )
      return rows.map((row) => Object.assign(row, { subject: readText(row.subject) }))
    },
    put: (rows) =>
      ask(
        `UPDATE stats s SET doc = k.doc
         FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::text[]) AS k(kind, subject, step, at, doc)
         WHERE (s.kind, s.subject, s.step, s.at) = (k.kind, k.subject, k.step, k.at)`,
        [...columns(rows), rows.map(({ doc }) => doc)],
      ),
  }
}
