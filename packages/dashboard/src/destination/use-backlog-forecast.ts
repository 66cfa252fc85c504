// The forecast of a destination's backlog, updated while the page is open. Combines the rate from the statistics, which are loaded only if
// deliveries are pending and can be sent, with how the backlog changed since the page was opened.

import { useEffect, useState } from 'react'
import { type Answer, useApi } from '../api/queries.ts'
import { type Forecast, forecast, rateOf } from './backlog-forecast.ts'
import type { Destination } from './kind.ts'

export type HealthRow = Answer<'GET /api/destinations/health'>['data'][number]
export type DestinationHealth = Omit<HealthRow, 'destinationId'>

/** Samples of the backlog that are older than this are dropped. */
const SAMPLE_MAX_AGE_MS = 180_000

export function useForecast(
  { id, enabled, paused, retryWindowMs }: Destination,
  { breaker, pending, success, oldestPendingAt }: DestinationHealth,
  seenAtMs: number,
): Forecast {
  const canDrain = enabled && !paused && pending > 0 && breaker === 'closed'
  const stats = useApi('GET /api/stats', { query: { destinationId: id, step: '1m' }, everyMs: 10_000, enabled: canDrain })
  const [samples, setSamples] = useState<readonly { atMs: number; pending: number }[]>([])
  useEffect(() => {
    setSamples((before) => [
      ...before.filter(({ atMs }) => seenAtMs - atMs <= SAMPLE_MAX_AGE_MS && atMs < seenAtMs),
      { atMs: seenAtMs, pending },
    ])
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
