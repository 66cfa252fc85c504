// The forecast of a destination's backlog, kept up while somebody looks: the rate from the statistics, asked for only where something
// waits and may move, and how the backlog itself moved since the page was opened.

import { useEffect, useState } from 'react'
import { type Answer, useApi } from '../../api/queries.ts'
import { type Forecast, forecast, rateOf } from './backlog-forecast.ts'
import type { Destination } from './draft.ts'

export type HealthRow = Answer<'GET /api/destinations/health'>['data'][number]
export type Standing = Omit<HealthRow, 'destinationId'>

/** How far back what was seen still says something of the present. */
const SEEN_MS = 180_000

export function useForecast(
  { id, enabled, paused, retryWindowMs }: Destination,
  { breaker, pending, success, oldestPendingAt }: Standing,
  seenAtMs: number,
): Forecast {
  const moves = enabled && !paused && pending > 0 && breaker === 'closed'
  const stats = useApi('GET /api/stats', { query: { destinationId: id, step: '1m' }, everyMs: 10_000, enabled: moves })
  const [samples, setSamples] = useState<readonly { atMs: number; pending: number }[]>([])
  useEffect(() => {
    setSamples((before) => [...before.filter(({ atMs }) => seenAtMs - atMs <= SEEN_MS && atMs < seenAtMs), { atMs: seenAtMs, pending }])
  }, [seenAtMs, pending])
  const [first] = samples
  return forecast({
    enabled,
    paused,
    breaker,
    pending,
    success,
    oldestPendingAt,
    retryWindowMs,
    rate: stats.data === undefined ? null : rateOf(stats.data.data, stats.dataUpdatedAt),
    earlier: first === undefined ? null : { pending: first.pending, agoMs: seenAtMs - first.atMs },
  })
}
