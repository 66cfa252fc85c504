// Components shared by the list of destinations and a destination's page: status badge, success rate, latency, backlog, circuit breaker.

import { Group, Stack, Text } from '@mantine/core'
import { Countdown, Note, SmallNote, Tag, useNow } from '../components/styled.tsx'
import { count, duration, share } from '../text/format.ts'
import { forecastText } from './backlog-forecast.ts'
import type { Status } from './destination-status.ts'
import type { Destination } from './kind.ts'
import { type DestinationHealth, useForecast } from './use-backlog-forecast.ts'

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

export function Latency({ latencyMs, wrap = 'wrap' }: { latencyMs: DestinationHealth['latencyMs']; wrap?: 'wrap' | 'nowrap' }) {
  if (latencyMs === null) return <Note span>–</Note>
  return (
    <Group gap={8} style={{ rowGap: 0 }} wrap={wrap}>
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
