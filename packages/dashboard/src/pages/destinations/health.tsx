// How one destination does: in a sentence what is the matter, then the numbers behind it, each URL by itself, and the course of it.

import { Alert, Group, Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { lazy, type ReactNode, Suspense } from 'react'
import { type Answer, useApi } from '../../api/queries.ts'
import { Countdown } from '../../components/countdown.tsx'
import { ViewLink } from '../../components/link.tsx'
import { Loading } from '../../components/query-states.tsx'
import { ResponsiveTable } from '../../components/responsive-table.tsx'
import { Time } from '../../components/time.tsx'
import { count, dateTime, duration, exactCount, share } from '../../text/format.ts'
import { reasonAdvice, reasonSentence } from '../../text/reasons.ts'
import { deliveriesAddress } from '../deliveries/filters.ts'
import { forecastText } from './backlog-forecast.ts'
import { holdOf, statusOf } from './destination-status.ts'
import { type Destination, findLast } from './draft.ts'
import { BAD, Latency, Success } from './status-view.tsx'
import { useForecast } from './use-backlog-forecast.ts'

const DestinationChart = lazy(() => import('./chart.tsx'))

type Health = Answer<'GET /api/destinations/{id}/health'>

export function HealthView({ destination, health, seenAtMs }: { destination: Destination; health: Health; seenAtMs: number }) {
  const word = statusOf(destination, health, seenAtMs)
  const isIll = word.name === 'failing' || word.name === 'struggling' || word.name === 'behind'
  return (
    <Stack gap="lg">
      {word.name !== 'healthy' && (
        <Alert color={word.color} variant="light" title={word.says} role="status">
          {isIll ? (
            <LastFailure destination={destination} oldestPendingAt={health.oldestPendingAt} />
          ) : word.name === 'idle' ? (
            'Send a test to see whether it takes messages.'
          ) : null}
        </Alert>
      )}
      <Numbers destination={destination} health={health} seenAtMs={seenAtMs} />
      <Ledger destination={destination} health={health} />
      <Urls health={health} />
      <Suspense fallback={<Loading lines={5} label="Loading charts" />}>
        <DestinationChart id={destination.id} />
      </Suspense>
    </Stack>
  )
}

function Card({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="sm">
      <Title order={2} size="xs" c="dimmed" fw={500}>
        {title}
      </Title>
      {children}
    </Paper>
  )
}

function Big({ children }: { children: ReactNode }) {
  return (
    <Text size="xl" fw={650} lh={1.3}>
      {children}
    </Text>
  )
}

function Small({ children, isBad = false }: { children: ReactNode; isBad?: boolean }) {
  return (
    <Text size="xs" component="div" c={isBad ? BAD : 'dimmed'}>
      {children}
    </Text>
  )
}

function Numbers({ destination, health, seenAtMs }: { destination: Destination; health: Health; seenAtMs: number }) {
  const forecast = useForecast(destination, health, seenAtMs)
  const hold = holdOf(destination)
  const { success, latencyMs, pending, oldestPendingAt, breaker, openSince, nextAttemptAt, inFlight } = health
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
      <Card title="Success">
        <Big>{success === null ? '–' : share(success)}</Big>
        <Small>{success === null ? 'no attempts since the service started' : 'of the last attempts, up to 512 for each URL'}</Small>
      </Card>
      <Card title="Latency">
        <Big>{latencyMs === null ? '–' : duration(latencyMs.p95)}</Big>
        {latencyMs === null ? (
          <Small>no attempts since the service started</Small>
        ) : (
          <Small>
            p95. Half take {duration(latencyMs.p50)} or less (p50), one in a hundred {duration(latencyMs.p99)} or more (p99).
          </Small>
        )}
      </Card>
      <Card title="Backlog">
        <Big>{count(pending)}</Big>
        <Small isBad={forecast.kind === 'stuck' || forecast.kind === 'growing'}>{forecastText(forecast)}</Small>
        {oldestPendingAt !== null && (
          <Small>
            oldest from <Time at={oldestPendingAt} relative size="xs" />
          </Small>
        )}
        {forecast.kind === 'stuck' && forecast.safeUntilMs !== null && (
          <Small>
            {forecast.safeUntilMs > seenAtMs
              ? `Nothing expires before ${dateTime(new Date(forecast.safeUntilMs).toISOString())}: retries go on for ${duration(destination.retryWindowMs)}.`
              : `What was tried first more than ${duration(destination.retryWindowMs)} ago expires. It can be replayed.`}
          </Small>
        )}
      </Card>
      <Card title="Breaker">
        <Big>{breaker === 'closed' ? 'closed' : breaker === 'open' ? 'open' : 'probing'}</Big>
        {breaker === 'closed' ? (
          <Small>
            {hold === null ? 'Requests go out' : `Nothing new is sent while it is ${hold}`}: {exactCount(inFlight)} of at most{' '}
            {exactCount(destination.maxInFlight)} under way.
          </Small>
        ) : (
          <Small>
            {openSince !== null && (
              <>
                since <Time at={openSince} relative size="xs" />;{' '}
              </>
            )}
            {hold !== null ? (
              `no probe while it is ${hold}`
            ) : breaker === 'probing' ? (
              'one request is under way'
            ) : nextAttemptAt === null ? (
              'probed with the next message'
            ) : (
              <>
                next probe <Countdown at={nextAttemptAt} size="xs" />
              </>
            )}
          </Small>
        )}
        {breaker === 'closed' && hold === null && pending > 0 && inFlight === 0 && nextAttemptAt !== null && (
          <Small>
            next attempt <Countdown at={nextAttemptAt} size="xs" />
          </Small>
        )}
      </Card>
    </SimpleGrid>
  )
}

/** What the last attempt at the most tried of the oldest that wait came to, or at one that failed or expired: why, in words. */
function LastFailure({ destination: { id }, oldestPendingAt }: { destination: Destination; oldestPendingAt: string | null }) {
  const to = oldestPendingAt === null ? undefined : new Date(Date.parse(oldestPendingAt) + 2_000).toISOString()
  const pending = useApi('GET /api/deliveries', {
    query: { destinationId: id, state: 'pending', limit: 50, ...(to === undefined ? {} : { to }) },
    everyMs: 10_000,
  })
  const most = Math.max(0, ...(pending.data?.data ?? []).map(({ attemptCount }) => attemptCount))
  const tried = most === 0 ? undefined : pending.data?.data.find(({ attemptCount }) => attemptCount === most)
  const failed = useApi('GET /api/deliveries', {
    query: { destinationId: id, state: 'failed', limit: 1 },
    everyMs: 10_000,
    enabled: pending.data !== undefined && tried === undefined,
  })
  // Of a receiver that has been away for longer than its window, those that were tried have expired and the others have not been tried.
  const expired = useApi('GET /api/deliveries', {
    query: { destinationId: id, state: 'expired', limit: 1 },
    everyMs: 10_000,
    enabled: failed.data !== undefined && failed.data.data.length === 0 && tried === undefined,
  })
  const chosen = tried ?? failed.data?.data[0] ?? expired.data?.data[0]
  const detail = useApi('GET /api/deliveries/{id}', { params: { id: chosen?.id ?? '' }, everyMs: 10_000, enabled: chosen !== undefined })
  const attempt = findLast(detail.data?.attempts ?? [], ({ reason }) => reason !== null)
  return (
    <Stack gap={4}>
      {attempt?.reason != null && (
        <Text size="sm">
          One of its deliveries was tried <Time at={attempt.startedAt} relative />: {attempt.error ?? reasonSentence(attempt.reason)}{' '}
          {reasonAdvice(attempt.reason)}
        </Text>
      )}
      <Group gap="md">
        {chosen !== undefined && (
          <ViewLink c="inherit" underline="always" to={`/deliveries/${encodeURIComponent(chosen.id)}`}>
            See that delivery
          </ViewLink>
        )}
        <ViewLink c="inherit" underline="always" to={deliveriesAddress({ destinationId: id, state: 'pending' })}>
          All that wait
        </ViewLink>
        <ViewLink c="inherit" underline="always" to={deliveriesAddress({ destinationId: id, state: 'failed' })}>
          All that failed
        </ViewLink>
      </Group>
    </Stack>
  )
}

const LEDGER = ['delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

function Ledger({ destination: { id }, health: { ledger } }: { destination: Destination; health: Health }) {
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        Ledger
      </Title>
      <Group gap="xl" style={{ rowGap: 8 }} component="dl" m={0}>
        <LedgerEntry name="owed">{exactCount(ledger.owed)}</LedgerEntry>
        {LEDGER.map((state) => (
          <LedgerEntry key={state} name={state}>
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
      <Text component="dt" size="xs" c="dimmed">
        {name}
      </Text>
      <Text component="dd" size="sm" m={0}>
        {children}
      </Text>
    </div>
  )
}

function Urls({ health: { urls } }: { health: Health }) {
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {urls.length === 1 ? 'URL' : 'URLs'}
      </Title>
      <ResponsiveTable
        label="URLs, with success and latency"
        rows={urls}
        keyOf={({ url }) => url}
        columns={[
          { label: 'URL', cell: ({ url }) => url },
          { label: 'Success', cell: ({ success }) => <Success success={success} /> },
          { label: 'Latency', cell: ({ latencyMs }) => <Latency latencyMs={latencyMs} /> },
          { label: 'Under way', cell: ({ inFlight }) => exactCount(inFlight), isNumber: true },
        ]}
      />
    </Stack>
  )
}
