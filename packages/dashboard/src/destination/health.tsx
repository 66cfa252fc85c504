// The health of one destination: a sentence about the problem if there is one, the numbers, the ledger, each URL, and charts.

import { Alert, Group, Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { type Answer, useApi } from '../api/queries.ts'
import { Loading } from '../components/page.tsx'
import { AlertLink, Countdown, Expiry, RowButton, SectionTitle, SmallNote, Time, ViewLink } from '../components/styled.tsx'
import { deliveriesAddress, type ReplayBody } from '../delivery/filters.ts'
import { WhatDiffers } from '../delivery/what-differs.tsx'
import { useSession } from '../session/session.tsx'
import { capitalized, count, duration, exactCount, share } from '../text/format.ts'
import { reasonSentence } from '../text/reasons.ts'
import { forecastText } from './backlog-forecast.ts'
import { holdOf, type Status, statusOf } from './destination-status.ts'
import type { Destination } from './kind.ts'
import { BAD, useForecast } from './status-view.tsx'

const ReplayDialog = lazy(() => import('../pages/replays/replay-dialog.tsx').then(({ ReplayDialog }) => ({ default: ReplayDialog })))
const DestinationChart = lazy(() => import('./chart.tsx'))

export type Health = Answer<'GET /api/destinations/{id}/health'>

interface HealthViewProps {
  destination: Destination
  health: Health
  seenAtMs: number
  /** What to do about a failure. */
  advice: (reason: string) => string
  /** What the kind shows below the ledger. */
  details: ReactNode
  /** What the kind shows instead of the numbers about requests. Then the charts are without the latency of requests. */
  numbers: ReactNode
}

export function HealthView({ destination, health, seenAtMs, advice, details, numbers }: HealthViewProps) {
  const status = statusOf(destination, health, seenAtMs)
  const hasProblem = status.name === 'failing' || status.name === 'degraded' || status.name === 'behind'
  return (
    <Stack gap="lg">
      {status.name !== 'healthy' && (
        <Alert color={status.color} variant="light" title={<StatusSummary status={status} health={health} />} role="status">
          {hasProblem ? (
            <LastFailure id={destination.id} oldestPendingAt={health.oldestPendingAt} advice={advice} />
          ) : status.name === 'idle' ? (
            'Send a test to check that it accepts messages.'
          ) : null}
        </Alert>
      )}
      {numbers ?? <Numbers destination={destination} health={health} seenAtMs={seenAtMs} />}
      <Ledger destination={destination} health={health} />
      {details}
      <Suspense fallback={<Loading lines={5} label="Loading charts" />}>
        <DestinationChart id={destination.id} hasLatency={numbers == null} />
      </Suspense>
    </Stack>
  )
}

function StatusSummary({ status: { name, summary }, health: { breaker, nextAttemptAt } }: { status: Status; health: Health }) {
  if (name !== 'failing' || breaker !== 'open' || nextAttemptAt === null) return summary
  return (
    <span>
      {summary} The next attempt is <Countdown at={nextAttemptAt} />.
    </span>
  )
}

export function Card({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="sm">
      <Title order={2} size="xs" c="dimmed" fw={500}>
        {title}
      </Title>
      {children}
    </Paper>
  )
}

export function Value({ children }: { children: ReactNode }) {
  return (
    <Text size="xl" fw={650} lh={1.3}>
      {children}
    </Text>
  )
}

export function CardNote({ children, isBad = false }: { children: ReactNode; isBad?: boolean }) {
  return (
    <Text size="xs" component="div" c={isBad ? BAD : 'dimmed'}>
      {children}
    </Text>
  )
}

/** When the first pending delivery expires; nothing if none does. */
export function ExpiryNote({ destination, health }: { destination: Pick<Destination, 'retryWindowMs'>; health: Health }) {
  if (health.nextExpiryAt === null) return null
  return (
    <CardNote>
      <Expiry at={health.nextExpiryAt} prefix="the first one " size="xs" /> (retry window {duration(destination.retryWindowMs)}). Expired
      deliveries can be replayed.
    </CardNote>
  )
}

function Numbers({ destination, health, seenAtMs }: { destination: Destination; health: Health; seenAtMs: number }) {
  const forecast = useForecast(destination, health, seenAtMs)
  const hold = holdOf(destination)
  const { success, latencyMs, pending, oldestPendingAt, breaker, openSince, nextAttemptAt, inFlight } = health
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
      <Card title="Success rate">
        <Value>{success === null ? '–' : share(success)}</Value>
        <CardNote>{success === null ? 'no attempts since the service started' : 'of recent attempts (up to 512 per URL)'}</CardNote>
      </Card>
      <Card title="Latency (p95)">
        <Value>{latencyMs === null ? '–' : duration(latencyMs.p95)}</Value>
        {latencyMs === null ? (
          <CardNote>{success === null ? 'no attempts since the service started' : 'no recent attempt was answered'}</CardNote>
        ) : (
          <CardNote>
            p50 {duration(latencyMs.p50)} · p99 {duration(latencyMs.p99)}
          </CardNote>
        )}
      </Card>
      <Card title="Backlog">
        <Value>{count(pending)} pending</Value>
        {forecast.kind !== 'empty' && (
          <CardNote isBad={forecast.kind === 'stuck' || forecast.kind === 'growing'}>{forecastText(forecast)}</CardNote>
        )}
        {oldestPendingAt !== null && (
          <CardNote>
            oldest: <Time at={oldestPendingAt} relative size="xs" />
          </CardNote>
        )}
        <ExpiryNote destination={destination} health={health} />
      </Card>
      <Card title="Circuit breaker">
        <Value>{breaker === 'closed' ? 'closed' : breaker === 'open' ? 'open' : 'probing'}</Value>
        {breaker === 'closed' ? (
          <CardNote>
            {exactCount(inFlight)} of {exactCount(destination.maxInFlight)} requests in flight
            {hold !== null && `; nothing new is sent while ${hold}`}
          </CardNote>
        ) : (
          <CardNote>
            {openSince !== null && (
              <>
                opened <Time at={openSince} relative size="xs" />;{' '}
              </>
            )}
            {hold !== null ? (
              `no probes while ${hold}`
            ) : breaker === 'probing' ? (
              'a probe is in flight'
            ) : nextAttemptAt === null ? (
              'the next message is sent as a probe'
            ) : (
              <>
                next probe <Countdown at={nextAttemptAt} size="xs" />
              </>
            )}
          </CardNote>
        )}
        {breaker === 'closed' && hold === null && pending > 0 && inFlight === 0 && nextAttemptAt !== null && (
          <CardNote>
            next attempt <Countdown at={nextAttemptAt} size="xs" />
          </CardNote>
        )}
      </Card>
    </SimpleGrid>
  )
}

/**
 * The last failed attempt. Of the oldest pending deliveries, the one with the most attempts is chosen; if none was attempted, a failed or an
 * expired delivery.
 */
function LastFailure({ id, oldestPendingAt, advice }: { id: string; oldestPendingAt: string | null; advice: HealthViewProps['advice'] }) {
  const to = oldestPendingAt === null ? undefined : new Date(Date.parse(oldestPendingAt) + 2_000).toISOString()
  const pending = useApi('GET /api/deliveries', {
    query: { destinationId: id, state: 'pending', limit: 50, ...(to === undefined ? {} : { to }) },
    everyMs: 10_000,
  })
  const maxAttempts = Math.max(0, ...(pending.data?.data ?? []).map(({ attemptCount }) => attemptCount))
  const tried = maxAttempts === 0 ? undefined : pending.data?.data.find(({ attemptCount }) => attemptCount === maxAttempts)
  const failed = useApi('GET /api/deliveries', {
    query: { destinationId: id, state: 'failed', limit: 1 },
    everyMs: 10_000,
    enabled: pending.data !== undefined,
  })
  // If a receiver has been down for longer than the retry window, attempted deliveries have expired and the others were not attempted.
  const expired = useApi('GET /api/deliveries', {
    query: { destinationId: id, state: 'expired', limit: 1 },
    everyMs: 10_000,
    enabled: failed.data !== undefined && failed.data.data.length === 0 && tried === undefined,
  })
  const chosen = tried ?? failed.data?.data[0] ?? expired.data?.data[0]
  const detail = useApi('GET /api/deliveries/{id}', { params: { id: chosen?.id ?? '' }, everyMs: 10_000, enabled: chosen !== undefined })
  const attempt = detail.data?.attempts.findLast(({ reason }) => reason !== null)
  return (
    <Stack gap={4}>
      {attempt?.reason != null && (
        <Text size="sm">
          Recent failure, <Time at={attempt.startedAt} relative />: {attempt.error ?? reasonSentence(attempt.reason)}{' '}
          {advice(attempt.reason)}
        </Text>
      )}
      <Group gap="md">
        {chosen !== undefined && <AlertLink to={`/deliveries/${encodeURIComponent(chosen.id)}`}>View this delivery</AlertLink>}
        <AlertLink to={deliveriesAddress({ destinationId: id, state: 'pending' })}>View all pending</AlertLink>
        <AlertLink to={deliveriesAddress({ destinationId: id, state: 'failed' })}>View all failed</AlertLink>
      </Group>
      {(failed.data?.data.length ?? 0) > 0 && <WhatDiffers destinationId={id} state="failed" />}
    </Stack>
  )
}

const LEDGER = ['delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

function Ledger({ destination: { id, name }, health: { ledger } }: { destination: Destination; health: Health }) {
  const { mayEdit } = useSession()
  const [replay, setReplay] = useState<ReplayBody | null>(null)
  const lost = ledger.failed + ledger.expired
  return (
    <Stack gap="xs">
      <Group justify="space-between" gap="xs">
        <SectionTitle>Ledger</SectionTitle>
        {mayEdit && lost > 0 && (
          <RowButton onClick={() => setReplay({ destinationId: id, states: ['failed', 'expired'] })}>
            Replay {exactCount(lost)} {[...(ledger.failed > 0 ? ['failed'] : []), ...(ledger.expired > 0 ? ['expired'] : [])].join(' and ')}
          </RowButton>
        )}
      </Group>
      {replay !== null && (
        <Suspense fallback={null}>
          <ReplayDialog body={replay} onClose={() => setReplay(null)} nameOf={() => name} />
        </Suspense>
      )}
      <Group gap="xl" style={{ rowGap: 8 }} component="dl" m={0}>
        <LedgerEntry name="Owed">{exactCount(ledger.owed)}</LedgerEntry>
        {LEDGER.map((state) => (
          <LedgerEntry key={state} name={capitalized(state)}>
            {ledger[state] === 0 ? (
              '0'
            ) : (
              <ViewLink to={deliveriesAddress({ destinationId: id, state })}>{exactCount(ledger[state])}</ViewLink>
            )}
          </LedgerEntry>
        ))}
      </Group>
    </Stack>
  )
}

function LedgerEntry({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <SmallNote component="dt">{name}</SmallNote>
      <Text component="dd" size="sm" m={0}>
        {children}
      </Text>
    </div>
  )
}
