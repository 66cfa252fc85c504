// The queries of the overview and how often they are refreshed.

import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { type Period, span } from '../../components/charts/periods.ts'
import { useNow } from '../../components/styled.tsx'
import { useActiveIncidents } from '../../incidents/use-incidents.ts'
import { useSession } from '../../session/session.tsx'
import { troubledOf } from './troubled.ts'

const REFRESH_MS = 10_000
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
  const { dataSince } = useSession()
  const nodes = useApi('GET /api/nodes', { everyMs: REFRESH_MS })
  const nowMs = useServiceNow(nodes.data?.data, nodes.dataUpdatedAt)
  const destinations = useApi('GET /api/destinations/summary', { everyMs: 30_000 })
  const health = useApi('GET /api/destinations/health', { everyMs: REFRESH_MS })
  const totals = useApi('GET /api/stats/totals', { everyMs: REFRESH_MS })
  const ledger = useApi('GET /api/ledger', { query: {}, everyMs: REFRESH_MS })
  const incidents = useActiveIncidents()
  const store = useStoreCheck()

  const { before, ...within } = span(period, nowMs)
  const { from } = within
  // Only if there was data in the whole period before.
  const isCompared = dataSince !== null && dataSince <= before
  const series = useApi('GET /api/stats', { query: { ...within, step: period.step }, everyMs: period.everyMs, keep: true })
  const earlier = useApi('GET /api/stats', { query: { from: before, to: from, step: period.step }, keep: true, enabled: isCompared })
  const all = [nodes, destinations, health, totals, ledger, incidents, series, earlier]

  return {
    nowMs,
    dataSince,
    destinations,
    totals,
    ledger,
    series,
    earlier: isCompared ? earlier.data : undefined,
    isOld: series.isPlaceholderData || (isCompared && earlier.isPlaceholderData),
    attention: {
      incidents: incidents.data?.data,
      problem: incidents.error,
      store: store.data ?? null,
      // Without the list, the incidents are all that is known.
      troubled:
        health.data === undefined && health.error !== null
          ? []
          : troubledOf(destinations.data?.data, health.data?.data, health.dataUpdatedAt),
    },
    /** A query that answered before and fails now: the page shows old data. */
    stale: [nodes, ledger, incidents, series].find(({ data, error }) => data !== undefined && error !== null),
    retry: () => {
      for (const query of all) if (query.error !== null) void query.refetch()
    },
  }
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
