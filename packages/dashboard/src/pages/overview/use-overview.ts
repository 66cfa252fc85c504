// The queries of the overview and how often they are refreshed. Destinations are queried one by one only if the totals show failures, and
// never more than a few of them.

import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import type { Answer, Schemas } from '../../api/client.ts'
import { type QueryState, useApi, useStatsOf } from '../../api/queries.ts'
import { useNow } from '../../components/styled.tsx'
import { type AttentionInput, expiredIn, findAttention, followHeld, followNodes, hourAndBefore } from './attention.ts'
import { type Period, span } from './periods.ts'

const REFRESH_MS = 10_000
const HOUR = { lengthMs: 3_600_000, step: '5m' } as const
const DAY = { lengthMs: 24 * 3_600_000, step: '1h' } as const
const MAX_QUERIED = 20
/** The largest page that the API returns. */
const ALL = { limit: 1_000 }
const FORGET_NODE_MS = 30 * 60_000
/** A smaller difference from the service's clock is ignored: correcting it would change the query, and miss the cache, with every response. */
const WRONG_CLOCK_MS = 60_000

/** The current time of the service, correct to a minute. */
export function useServiceNow(nodes: readonly Schemas['Node'][] | undefined, answeredAtMs: number): number {
  const nowMs = useNow(5_000)
  const seenAt = nodes?.find(({ current }) => current)?.seenAt
  const aheadMs = seenAt === undefined ? 0 : Date.parse(seenAt) - answeredAtMs
  return nowMs + (Math.abs(aheadMs) < WRONG_CLOCK_MS ? 0 : aheadMs)
}

export function useOverview(period: Period) {
  const nodes = useApi('GET /api/nodes', { everyMs: REFRESH_MS })
  const nowMs = useServiceNow(nodes.data?.data, nodes.dataUpdatedAt)
  const destinations = useApi('GET /api/destinations', { query: ALL, everyMs: 30_000 })
  const sources = useApi('GET /api/sources', { query: ALL, everyMs: 60_000 })
  const totals = useApi('GET /api/stats/totals', { everyMs: REFRESH_MS })
  const ledger = useApi('GET /api/ledger', { query: {}, everyMs: REFRESH_MS })
  const health = useApi('GET /api/destinations/health', { everyMs: REFRESH_MS })
  const rejections = useApi('GET /api/rejections', { everyMs: 30_000 })
  const store = useStoreCheck()

  const { from, before } = span(period, nowMs)
  const series = useApi('GET /api/stats', { query: { from, step: period.step }, everyMs: period.everyMs, keep: true })
  const earlier = useApi('GET /api/stats', { query: { from: before, to: from, step: period.step }, keep: true })

  const hourFrom = span(HOUR, nowMs).before
  const hour = useApi('GET /api/stats', { query: { from: hourFrom, step: HOUR.step }, everyMs: 20_000, keep: true })
  const hourTotals = hour.data === undefined ? undefined : hourAndBefore(hour.data.data)
  const hasFailed = hourTotals !== undefined && hourTotals.now.failed + hourTotals.now.expired + hourTotals.now.retried > 0
  const existing = new Set(destinations.data?.data.map(({ id }) => id))
  const entries = ledger.data?.data.filter(({ destinationId }) => existing.has(destinationId)) ?? []
  const hourIds = hasFailed ? worst(entries, (row) => row.pending + row.failed + row.expired) : []
  const dayIds = worst(entries, (row) => row.expired)
  const hours = useSeries(hourIds, { from: hourFrom, step: HOUR.step })
  const days = useSeries(dayIds, { from: span(DAY, nowMs).from, step: DAY.step })

  const remembered = useRef<ReadonlyMap<string, Schemas['Node']>>(new Map())
  const followed = nodes.data === undefined ? undefined : followNodes(remembered.current, nodes.data.data, FORGET_NODE_MS)
  if (followed) remembered.current = followed.remembered

  const heldBefore = useRef<ReadonlyMap<string, number>>(new Map())
  if (destinations.data && health.data)
    heldBefore.current = followHeld(heldBefore.current, { destinations: destinations.data.data, health: health.data.data })

  const needed: QueryState[] = [nodes, destinations, sources, totals, ledger, health, rejections, hour, ...hours, ...days]
  const input: AttentionInput | undefined =
    nodes.data && destinations.data && sources.data && totals.data && ledger.data && health.data && rejections.data && hourTotals
      ? {
          nowMs,
          destinations: destinations.data.data,
          sources: sources.data.data,
          health: health.data.data,
          heldBefore: heldBefore.current,
          ledger: ledger.data.data,
          hour: hourTotals,
          hours: new Map(hours.flatMap(({ data }, at) => (data === undefined ? [] : [[hourIds[at] as string, hourAndBefore(data.data)]]))),
          expired: new Map(days.flatMap(({ data }, at) => (data === undefined ? [] : [[dayIds[at] as string, expiredIn(data.data)]]))),
          rejections: rejections.data.data,
          totals: totals.data.data,
          nodes: nodes.data.data,
          goneNodes: followed?.gone ?? [],
          store: store.data ?? null,
        }
      : undefined

  return {
    nowMs,
    destinations,
    totals,
    ledger,
    series,
    earlier,
    attention: {
      findings: input === undefined ? undefined : findAttention(input),
      isComplete: needed.every(({ data }) => data !== undefined),
      failed: needed.find(({ data, error }) => data === undefined && error !== null),
    },
    /** A query that answered before and fails now: the page shows old data. */
    stale: [nodes, ledger, health, series].find(({ data, error }) => data !== undefined && error !== null),
    retry: () => {
      for (const query of [...needed, series, earlier]) if (query.error !== null) void query.refetch()
    },
  }
}

function worst<Row extends { destinationId: string }>(rows: readonly Row[], weight: (row: Row) => number): string[] {
  return rows
    .filter((row) => weight(row) > 0)
    .sort((a, b) => weight(b) - weight(a))
    .slice(0, MAX_QUERIED)
    .map(({ destinationId }) => destinationId)
}

/** The counts per destination. Keeps the last response while the next time step is loading, so that findings do not flicker. */
function useSeries(ids: readonly string[], query: { from: string; step: Period['step'] }): QueryState<Answer<'GET /api/stats'>>[] {
  const last = useRef(new Map<string, Answer<'GET /api/stats'>>())
  const asked = useStatsOf('destinationId', ids, query, 30_000)
  return asked.map((state, at) => {
    const id = ids[at] as string
    if (state.data !== undefined) last.current.set(id, state.data)
    const { data = last.current.get(id), error, isPending, refetch } = state
    return { data, error, isPending, refetch }
  })
}

/** Whether the store accepts writes, from the readiness endpoint, which is not part of the control API. */
function useStoreCheck() {
  return useQuery({
    queryKey: ['GET /readyz'],
    queryFn: async ({ signal }) => {
      const response = await fetch('/readyz', { signal })
      if (response.status !== 503) return { isAvailable: true, message: '' }
      const { message = 'the store is unavailable.' } = (await response.json().catch(() => ({}))) as { message?: string }
      return { isAvailable: false, message }
    },
    refetchInterval: 30_000,
    retry: false,
  })
}
