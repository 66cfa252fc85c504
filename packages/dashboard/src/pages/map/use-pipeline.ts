// The requests behind the map: a handful, however many sources and destinations there are.

import { useMemo, useRef } from 'react'
import { type QueryState, useApi } from '../../api/queries.ts'
import { useNow } from '../../components/styled.tsx'
import { type Filter, filtered, grouped, type Pipeline, pipelineOf } from './pipeline.ts'

const ALL = { limit: 1_000 }
/** The rates are those of the last minutes: long enough to be steady, short enough to be now. */
const MINUTES = 10
const MINUTE_MS = 60_000

export interface PipelineState {
  pipeline: Pipeline | undefined
  /** Everything, unfiltered and not summed up, for the choices of filters. */
  whole: Pipeline | undefined
  problem: QueryState['error']
  retry: () => void
}

export function usePipeline(filter: Filter, most: number): PipelineState {
  const nowMs = useNow(10_000)
  const sources = useApi('GET /api/sources', { query: ALL, everyMs: 60_000 })
  const plans = useApi('GET /api/plans', { query: ALL, everyMs: 60_000 })
  const destinations = useApi('GET /api/destinations/summary', { everyMs: 30_000 })
  const health = useApi('GET /api/destinations/health', { everyMs: 10_000 })
  const totals = useApi('GET /api/stats/totals', { everyMs: 10_000 })
  const query = { from: new Date((Math.floor(nowMs / MINUTE_MS) - MINUTES) * MINUTE_MS).toISOString(), step: '1m' } as const
  const sourceStats = useApi('GET /api/stats/sources', { query, everyMs: 10_000, keep: true })
  const destinationStats = useApi('GET /api/stats/destinations', { query, everyMs: 10_000, keep: true })
  const queries: readonly QueryState[] = [sources, plans, destinations, health, totals, sourceStats, destinationStats]

  const whole = useMemo(
    () =>
      sources.data && plans.data && destinations.data && health.data && totals.data && sourceStats.data && destinationStats.data
        ? pipelineOf({
            nowMs: health.dataUpdatedAt,
            minutes: MINUTES,
            sources: sources.data.data.filter(({ builtIn }) => !builtIn),
            plans: plans.data.data,
            destinations: destinations.data.data,
            health: health.data.data,
            totals: totals.data.data,
            sourceStats: sourceStats.data.data,
            destinationStats: destinationStats.data.data,
          })
        : undefined,
    [sources.data, plans.data, destinations.data, health.data, health.dataUpdatedAt, totals.data, sourceStats.data, destinationStats.data],
  )
  const { source, destination, text } = filter
  const key = JSON.stringify([filter, most])
  const before = useRef<{ key: string; ids: ReadonlySet<string> }>({ key, ids: new Set() })
  const pipeline = useMemo(() => {
    if (whole === undefined) return undefined
    const shown = grouped(filtered(whole, { source, destination, text }), most, before.current.key === key ? before.current.ids : new Set())
    before.current = { key, ids: new Set(shown.nodes.map(({ id }) => id)) }
    return shown
  }, [whole, source, destination, text, most, key])
  return {
    pipeline,
    whole,
    problem: queries.find(({ data, error }) => data === undefined && error !== null)?.error ?? null,
    retry: () => {
      for (const each of queries) if (each.error !== null) void each.refetch()
    },
  }
}
