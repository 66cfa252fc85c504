// The first page: what needs attention, the traffic in numbers and charts, and the ledger. Everything is refreshed while the page is
// visible; the period and whether charts or a table are shown are in the URL.

import { Alert, Button, Group, List, Paper, Stack, Text, ThemeIcon, Title } from '@mantine/core'
import { lazy, type ReactNode, Suspense } from 'react'
import { PeriodChoice, usePeriod } from '../../components/charts/period-choice.tsx'
import { span, totalsOf } from '../../components/charts/periods.ts'
import { CheckIcon } from '../../components/icons.tsx'
import { ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { LinkButton, SectionTitle, Time, ViewLink } from '../../components/styled.tsx'
import { useSearchState } from '../../url/url-state.ts'
import { Attention } from './attention-list.tsx'
import { ledgerSum } from './ledger.ts'
import { LedgerSection } from './ledger-section.tsx'
import { Tiles } from './tiles.tsx'
import { useOverview } from './use-overview.ts'

// Loaded separately, so that findings and numbers are shown before the chart library is loaded.
const Charts = lazy(() => import('./charts.tsx'))
const PipelineSummary = lazy(() => import('../map/pipeline-summary.tsx'))

export default function OverviewPage() {
  const [params] = useSearchState()
  const period = usePeriod()
  const { nowMs, dataSince, destinations, totals, ledger, series, earlier, isOld, attention, stale, retry } = useOverview(period)

  const hasAccepted = totals.data?.data.some(({ accepted }) => accepted > 0)
  const hasDestination = destinations.data && destinations.data.data.length > 0
  const isNew = hasAccepted === false || hasDestination === false
  const isEmpty = hasAccepted === false && ledger.data?.data.every(({ owed }) => owed === 0) === true

  const ledgerProblem = ledger.error ?? destinations.error

  return (
    <Page
      title="Overview"
      about="What needs attention, traffic, and the ledger of all deliveries."
      {...(isEmpty ? {} : { actions: <PeriodChoice /> })}
    >
      {stale?.error && (
        <Alert color="orange" title="This page is out of date" role="alert">
          {stale.error.message} Last update: <Time at={new Date(stale.dataUpdatedAt).toISOString()} relative />.{' '}
          <Button size="compact-xs" variant="light" color="orange" onClick={retry}>
            Try again
          </Button>
        </Alert>
      )}
      {isNew && <FirstRun hasAccepted={hasAccepted === true} hasDestination={hasDestination === true} />}
      <Attention {...attention} retry={retry} isNew={isNew} isAll={params.get('findings') === 'all'} />
      {!isEmpty && (
        <>
          <Section title="Map" actions={<ViewLink to="/map">Open the map</ViewLink>}>
            <Suspense fallback={<Loading lines={8} label="Loading map" />}>
              <PipelineSummary />
            </Suspense>
          </Section>
          {series.data ? (
            <Tiles
              now={totalsOf(series.data.data)}
              before={earlier === undefined ? null : totalsOf(earlier.data)}
              period={period}
              from={span(period, nowMs).from}
              dataSince={dataSince}
              isOld={isOld}
            />
          ) : series.error ? (
            <Section title="Traffic">
              <ErrorAlert problem={series.error} onRetry={retry} />
            </Section>
          ) : (
            <Loading lines={3} label="Loading numbers" />
          )}
          {series.data ? (
            <Suspense fallback={<Loading lines={8} label="Loading charts" />}>
              <Charts
                points={series.data.data}
                pendingNow={period.fixed === undefined && ledger.data ? ledgerSum(ledger.data.data).pending : undefined}
                step={series.data.step}
                period={period}
                nowMs={nowMs}
                isOld={series.isPlaceholderData}
                isTable={params.get('as') === 'table'}
              />
            </Suspense>
          ) : (
            !series.error && <Loading lines={8} label="Loading charts" />
          )}
          {ledger.data && destinations.data ? (
            <LedgerSection entries={ledger.data.data} destinations={destinations.data.data} isAll={params.get('ledger') === 'all'} />
          ) : ledgerProblem ? (
            <Section title="Ledger">
              <ErrorAlert problem={ledgerProblem} onRetry={retry} />
            </Section>
          ) : (
            <Loading lines={5} label="Loading ledger" />
          )}
        </>
      )}
    </Page>
  )
}

/** A titled section, also for an error, so that it is clear what could not be loaded. */
function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Stack component="section" gap="xs">
      <Group justify="space-between">
        <SectionTitle>{title}</SectionTitle>
        {actions}
      </Group>
      {children}
    </Stack>
  )
}

export function FirstRun({ hasAccepted, hasDestination }: { hasAccepted: boolean; hasDestination: boolean }) {
  const steps = [
    { isDone: hasAccepted, text: 'Send a message', more: 'with curl, Node.js or a browser; the snippets contain your write key' },
    { isDone: hasDestination, text: 'Add a destination', more: 'a webhook that receives every message' },
  ]
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby="first-run">
      <Stack gap="md" align="flex-start">
        <Stack gap={4}>
          <Title order={2} size="h3" id="first-run">
            {hasAccepted
              ? 'Messages arrive, but there is no destination'
              : hasDestination
                ? 'Waiting for the first message'
                : 'Set up this installation'}
          </Title>
          <Text c="dimmed">
            {hasAccepted
              ? 'Messages are stored. A new destination receives the messages that are accepted after it was added.'
              : 'This installation has not accepted a message yet.'}
          </Text>
        </Stack>
        <List spacing="xs" listStyleType="none" center>
          {steps.map(({ isDone, text, more }, at) => (
            <List.Item
              key={text}
              icon={
                <ThemeIcon size={26} radius="xl" variant={isDone ? 'filled' : 'light'} color={isDone ? 'teal' : 'blue'}>
                  {isDone ? <CheckIcon size={15} /> : at + 1}
                </ThemeIcon>
              }
            >
              <Text span fw={600}>
                {text}
              </Text>{' '}
              <Text span c="dimmed">
                {isDone ? '(done)' : `– ${more}`}
              </Text>
            </List.Item>
          ))}
        </List>
        <Group>
          <LinkButton to="/start" variant="filled">
            {hasAccepted || hasDestination ? 'Continue' : 'Get started'}
          </LinkButton>
        </Group>
      </Stack>
    </Paper>
  )
}
