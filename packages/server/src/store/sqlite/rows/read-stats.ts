// Counts over time, as they are asked for: added up to the step that is wanted.

import { seriesOf } from '../../history/stat-series.ts'
import type { StatPoint, StatQuery } from '../../store.ts'
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
    return seriesOf(rows, stepMs)
  }
}
