// Counts over time, as they are stored and as they are asked for: added up to the step that is wanted.

import { addCounts, type StatCounts } from '../port/stat-counts.ts'
import type { StatPoint } from '../store.ts'

/** Rows in the order of their time. */
export function seriesOf(rows: readonly { at: number; doc: string }[], stepMs: number): StatPoint[] {
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
