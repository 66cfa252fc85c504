// Counts over time, added to what is there, inside the group's transaction. Every count is added twice, to its minute and to
// its hour: minutes are dropped soon and hours late, and neither has to be made from the other.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { addCounts, type StatCounts } from '../../port/stat-counts.ts'
import type { StatRow } from '../../store.ts'

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000

const ROWS_PER_STEP = 500

export class StatsWriter {
  readonly #get: StatementSync
  readonly #put: StatementSync
  readonly #drop: StatementSync

  constructor(database: DatabaseSync) {
    this.#get = database.prepare('SELECT doc FROM stats WHERE kind = ? AND subject = ? AND step = ? AND at = ?')
    this.#put = database.prepare('INSERT OR REPLACE INTO stats (kind, subject, step, at, doc) VALUES (?, ?, ?, ?, ?)')
    this.#drop = database.prepare(`
      DELETE FROM stats WHERE (kind, subject, step, at) IN
        (SELECT kind, subject, step, at FROM stats WHERE step = ? AND at < ? LIMIT ${ROWS_PER_STEP})`)
  }

  add(rows: readonly StatRow[]): void {
    for (const { kind, subject, atMs, counts } of rows) {
      for (const step of [MINUTE_MS, HOUR_MS]) {
        const at = Math.floor(atMs / step) * step
        const before = this.#get.get(kind, subject, step, at) as { doc: string } | undefined
        const merged: StatCounts = before === undefined ? {} : (JSON.parse(before.doc) as StatCounts)
        addCounts(merged, counts)
        this.#put.run(kind, subject, step, at, JSON.stringify(merged))
      }
    }
  }

  /** Some of those from before; how many. */
  drop(minutesBeforeMs: number, hoursBeforeMs: number): number {
    return Number(this.#drop.run(MINUTE_MS, minutesBeforeMs).changes) + Number(this.#drop.run(HOUR_MS, hoursBeforeMs).changes)
  }
}
