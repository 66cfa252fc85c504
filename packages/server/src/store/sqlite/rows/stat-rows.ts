// The rows of counts over time in the file. Those that add to them do so one after the other, in the writing thread.

import type { DatabaseSync } from 'node:sqlite'
import { HOUR_MS, MINUTE_MS, type StatRows } from '../../history/stats.ts'

const DROPPED_PER_STEP = 500

export function statRows(database: DatabaseSync): StatRows {
  const get = database.prepare('SELECT doc FROM stats WHERE kind = ? AND subject = ? AND step = ? AND at = ?')
  const put = database.prepare('INSERT OR REPLACE INTO stats (kind, subject, step, at, doc) VALUES (?, ?, ?, ?, ?)')
  return {
    stored: (keys) =>
      keys.flatMap((key) => {
        const row = get.get(key.kind, key.subject, key.step, key.at) as { doc: string } | undefined
        return row === undefined ? [] : [{ ...key, ...row }]
      }),
    put(rows) {
      for (const { kind, subject, step, at, doc } of rows) put.run(kind, subject, step, at, doc)
    },
  }
}

/** Some of those from before; how many. */
export function dropStats(database: DatabaseSync, minutesBeforeMs: number, hoursBeforeMs: number): number {
  const drop = database.prepare(`
    DELETE FROM stats WHERE (kind, subject, step, at) IN
      (SELECT kind, subject, step, at FROM stats WHERE step = ? AND at < ? LIMIT ${DROPPED_PER_STEP})`)
  return Number(drop.run(MINUTE_MS, minutesBeforeMs).changes) + Number(drop.run(HOUR_MS, hoursBeforeMs).changes)
}
