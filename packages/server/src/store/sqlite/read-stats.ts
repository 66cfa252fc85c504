// Counts over time, as they are asked for: added up to the step that is wanted.

import { addCounts, type StatCounts } from '../../stat-counts.ts'
import type { StatPoint, StatQuery } from '../store.ts'
import type { Rows } from './rows.ts'
import { HOUR_MS, MINUTE_MS } from './write-stats.ts'

export class StatsReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  series({ kind, subject, fromMs, toMs, stepMs }: StatQuery): StatPoint[] {
    const rows = this.#rows.all(
      'SELECT at, doc FROM stats WHERE kind = ? AND subject = ? AND step = ? AND at >= ? AND at < ? ORDER BY at',
      kind,
      subject,
      stepMs % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS,
      fromMs,
      toMs,
    ) as { at: number; doc: string }[]
    const points: StatPoint[] = []
    for (const { at, doc } of rows) {
      const atMs = Math.floor(at / stepMs) * stepMs
      const counts = JSON.parse(doc) as StatCounts
      const last = points.at(-1)
      if (last?.atMs === atMs) addCounts(last.counts, counts)
      else points.push({ atMs, counts })
    }
    return points
  }
}
