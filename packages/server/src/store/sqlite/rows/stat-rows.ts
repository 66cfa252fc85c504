// The row port of counts over time, for SQLite. Only the writing thread adds counts, so no locks are needed.

import { HOUR_MS, MINUTE_MS, type StatRows, type StoredStat } from '../../history/stats.ts'
import type { Rows } from '../schema/rows.ts'

const DROPPED_PER_STEP = 500

export function statRows(rows: Rows): StatRows {
  return {
    stored: (keys) =>
      keys.flatMap(({ kind, subject, step, at }) =>
        rows.all<StoredStat>('SELECT * FROM stats WHERE kind = ? AND subject = ? AND step = ? AND at = ?', [kind, subject, step, at]),
      ),
    put(stats) {
      for (const { kind, subject, step, at, doc } of stats)
        rows.run('INSERT OR REPLACE INTO stats (kind, subject, step, at, doc) VALUES (?, ?, ?, ?, ?)', [kind, subject, step, at, doc])
    },
  }
}

/** Drops some of the counts from before these times, and returns how many. */
export function dropStats(rows: Rows, minutesBeforeMs: number, hoursBeforeMs: number): number {
  const drop = `
    DELETE FROM stats WHERE (kind, subject, step, at) IN
      (SELECT kind, subject, step, at FROM stats WHERE step = ? AND at < ? LIMIT ${DROPPED_PER_STEP})`
  return rows.run(drop, [MINUTE_MS, minutesBeforeMs]) + rows.run(drop, [HOUR_MS, hoursBeforeMs])
}
