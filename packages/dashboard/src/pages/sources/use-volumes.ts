// How many messages each shown source sent in a period. The previous numbers stay until new ones are loaded.

import { useRef } from 'react'
import { type QueryState, useApi, useStatsOf } from '../../api/queries.ts'
import { barsOf, type Period, type Point, STEP_MS, span, type Totals, totalsOf } from '../../components/charts/periods.ts'
import { useServiceNow } from '../overview/use-overview.ts'

export interface Volume extends Totals {
  suppressed: number
  /** Accepted messages with a value that was ignored or is probably wrong, by code. */
  warnings: Readonly<Record<string, number>>
  /** Accepted and rejected messages over time, for a sparkline. */
  bars: { accepted: number; rejected: number }[]
}

export type VolumeState = QueryState<Volume>

export function volumeOf(points: readonly Point[], period: Period): Volume {
  return {
    ...totalsOf(points),
    suppressed: points.reduce((sum, { suppressed = 0 }) => sum + suppressed, 0),
    warnings: warningsOf(points),
    bars: barsOf(points, STEP_MS[period.step], period.barOf).map(({ accepted, rejected }) => ({ accepted, rejected })),
  }
}

function warningsOf(points: readonly Point[]): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const { warnings = {} } of points) for (const [code, count] of Object.entries(warnings)) sum[code] = (sum[code] ?? 0) + count
  return sum
}

export function useVolumes(ids: readonly string[], period: Period): ReadonlyMap<string, VolumeState> {
  const nodes = useApi('GET /api/nodes', { everyMs: 60_000 })
  const nowMs = useServiceNow(nodes.data?.data, nodes.dataUpdatedAt)
  const { before: _, ...within } = span(period, nowMs)
  const last = useRef(new Map<string, Volume>())
  const results = useStatsOf('sourceId', ids, { ...within, step: period.step }, period.everyMs)
  return new Map(
    results.map(({ data, ...state }, at) => {
      const id = ids[at] as string
      const key = `${period.id} ${id}`
      const volume = data === undefined ? last.current.get(key) : volumeOf(data.data, period)
      if (volume !== undefined) last.current.set(key, volume)
      return [id, { ...state, data: volume }]
    }),
  )
}
