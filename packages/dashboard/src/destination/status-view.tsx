// What the list of destinations and a destination's page share: status badge, success rate, latency, circuit breaker, and the backlog with its
// forecast, which combines the statistics with how the backlog changed since the page was opened.

import { Group, Stack, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { type Answer, useApi } from '../api/queries.ts'
import { Countdown, Note, SmallNote, Tag, useNow } from '../components/styled.tsx'
import { count, duration, share } from '../text/format.ts'
import { type Forecast, forecast, forecastText, rateOf } from './backlog-forecast.ts'
import type { Status } from './destination-status.ts'
import type { Destination } from './kind.ts'

/** The colour of small text about a problem: dark enough on white, light enough on a dark background. */
export const BAD = 'light-dark(var(--mantine-color-red-9), var(--mantine-color-red-4))'

export function StatusBadge({ status, size = 'sm' }: { status: Status; size?: string }) {
  return (
    <Tag color={status.color} size={size} style={{ flexShrink: 0, minWidth: 'max-content' }}>
      {status.name}
    </Tag>
  )
}

export function Success({ success }: { success: number | null }) {
  return success === null ? (
    <Note span>no attempts yet</Note>
  ) : (
    <Text span size="sm">
      {share(success)}
    </Text>
  )
}

export function Latency({ latencyMs }: { latencyMs: DestinationHealth['latencyMs'] }) {
  if (latencyMs === null) return <Note span>–</Note>
  return (
    <Group gap={8} style={{ rowGap: 0 }}>
      {(['p50', 'p95', 'p99'] as const).map((name) => (
        <Text key={name} span size="sm" style={{ whiteSpace: 'nowrap' }}>
          <SmallNote span>{name}</SmallNote> {duration(latencyMs[name])}
        </Text>
      ))}
    </Group>
  )
}

/** The number of pending deliveries, the age of the oldest, and the forecast. */
export function BacklogView({ destination, health, seenAtMs }: { destination: Destination; health: DestinationHealth; seenAtMs: number }) {
  const forecast = useForecast(destination, health, seenAtMs)
  const nowMs = useNow(5_000)
  const { pending, oldestPendingAt } = health
  if (pending === 0) return <Note>0 pending</Note>
  const isProblem = forecast.kind === 'stuck' || forecast.kind === 'growing'
  return (
    <Stack gap={0}>
      <Text size="sm" style={{ whiteSpace: 'nowrap' }}>
        {count(pending)} pending
        {oldestPendingAt !== null && `, oldest ${duration(Math.max(0, nowMs - Date.parse(oldestPendingAt)))}`}
      </Text>
      <Text size="xs" c={isProblem ? BAD : 'dimmed'}>
        {forecastText(forecast)}
      </Text>
    </Stack>
  )
}

const BREAKER_LABELS = { closed: 'closed', open: 'open', probing: 'probing' } as const

export function BreakerView({ health, isHeld }: { health: DestinationHealth; isHeld: boolean }) {
  const { breaker, nextAttemptAt } = health
  return (
    <Text size="sm" component="span">
      {BREAKER_LABELS[breaker]}
      {breaker === 'open' && !isHeld && nextAttemptAt !== null && (
        <>
          , next probe <Countdown at={nextAttemptAt} />
        </>
      )}
    </Text>
  )
}

export type HealthRow = Answer<'GET /api/destinations/health'>['data'][number]
export type DestinationHealth = Omit<HealthRow, 'destinationId'>

/** Samples of the backlog that are older than this are dropped. */
const SAMPLE_MAX_AGE_MS = 180_000

export function useForecast(
  { id, enabled, paused }: Destination,
  { breaker, pending, success }: DestinationHealth,
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
    rate: stats.data === undefined ? null : rateOf(stats.data.data, stats.dataUpdatedAt),
    earlier: first === undefined ? null : { pending: first.pending, agoMs: seenAtMs - first.atMs },
  })
}
