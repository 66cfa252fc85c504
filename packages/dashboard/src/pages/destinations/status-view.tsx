// Small pieces that the list and the page of a destination share: its standing as a badge, latency, success and backlog in words.

import { Badge, Group, Stack, Text } from '@mantine/core'
import { Countdown, useNow } from '../../components/countdown.tsx'
import { count, duration, share } from '../../text/format.ts'
import { forecastText } from './backlog-forecast.ts'
import type { Standing as StandingWord } from './destination-status.ts'
import type { Destination } from './draft.ts'
import { type Standing, useForecast } from './use-backlog-forecast.ts'

/** Of small text that says that something is not well: dark enough on white, light enough on dark. */
export const BAD = 'light-dark(var(--mantine-color-red-9), var(--mantine-color-red-4))'

export function StatusBadge({ standing, size = 'sm' }: { standing: StandingWord; size?: string }) {
  return (
    <Badge color={standing.color} variant="light" size={size} tt="none" style={{ flexShrink: 0, minWidth: 'max-content' }}>
      {standing.name}
    </Badge>
  )
}

export function Success({ success }: { success: number | null }) {
  return success === null ? (
    <Text span size="sm" c="dimmed">
      no attempts yet
    </Text>
  ) : (
    <Text span size="sm">
      {share(success)}
    </Text>
  )
}

export function Latency({ latencyMs }: { latencyMs: Standing['latencyMs'] }) {
  if (latencyMs === null)
    return (
      <Text span size="sm" c="dimmed">
        –
      </Text>
    )
  return (
    <Group gap={10} style={{ rowGap: 0 }}>
      {(['p50', 'p95', 'p99'] as const).map((name) => (
        <Text key={name} span size="sm" style={{ whiteSpace: 'nowrap' }}>
          <Text span size="xs" c="dimmed">
            {name}
          </Text>{' '}
          {duration(latencyMs[name])}
        </Text>
      ))}
    </Group>
  )
}

/** How much waits, since when, and when it will be gone. */
export function BacklogView({ destination, standing, seenAtMs }: { destination: Destination; standing: Standing; seenAtMs: number }) {
  const forecast = useForecast(destination, standing, seenAtMs)
  const nowMs = useNow(5_000)
  const { pending, oldestPendingAt } = standing
  if (pending === 0)
    return (
      <Text size="sm" c="dimmed">
        nothing waits
      </Text>
    )
  const isWorse = forecast.kind === 'stuck' || forecast.kind === 'growing'
  return (
    <Stack gap={0}>
      <Text size="sm">
        {count(pending)} pending
        {oldestPendingAt !== null && `, oldest ${duration(Math.max(0, nowMs - Date.parse(oldestPendingAt)))}`}
      </Text>
      <Text size="xs" c={isWorse ? BAD : 'dimmed'}>
        {forecastText(forecast)}
      </Text>
    </Stack>
  )
}

const BREAKER_WORDS = { closed: 'closed', open: 'open', probing: 'probing now' } as const

export function BreakerView({ standing, isHeld }: { standing: Standing; isHeld: boolean }) {
  const { breaker, nextAttemptAt } = standing
  return (
    <Text size="sm" component="span">
      {BREAKER_WORDS[breaker]}
      {breaker === 'open' && !isHeld && nextAttemptAt !== null && (
        <>
          , probe <Countdown at={nextAttemptAt} />
        </>
      )}
    </Text>
  )
}
