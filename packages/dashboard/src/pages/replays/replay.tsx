// The page of one replay job: progress, outcomes, selection, and how to pause, resume, cancel it or change its rate.

import { Alert, Button, Card, Code, Group, List, NumberInput, Spoiler, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { type Answer, useApi, useChange } from '../../api/queries.ts'
import { useDestinationNames } from '../../api/use-names.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { PauseIcon, PlayIcon } from '../../components/icons.tsx'
import { Empty, Facts, Loaded, Page } from '../../components/page.tsx'
import { DangerButton, Note, SecondaryButton, SectionTitle, SmallNote, Tag, Time, ViewLink } from '../../components/styled.tsx'
import { deliveriesAddress } from '../../delivery/filters.ts'
import { useSession } from '../../session/session.tsx'
import { duration, exactCount, plural } from '../../text/format.ts'
import { usePathPart } from '../../url/url-state.ts'
import { JobBar } from './job-bar.tsx'
import { canStillChange, donePercent, hasEnded, JOB_STATE_COLORS, rateText, remainingMs, SKIP_REASONS } from './progress.ts'

type Job = Answer<'GET /api/replays/{id}'>

const MAX_RATE = 100_000

export default function ReplayPage() {
  const id = usePathPart(1)
  // Polled often while it runs. A paused job is polled too, because somebody else may resume it.
  const query = useApi('GET /api/replays/{id}', {
    params: { id },
    everyMs: (job) => (job === undefined || !canStillChange(job) ? (job?.state === 'paused' ? 5_000 : undefined) : 2_000),
  })
  if (query.error?.code === 'replay_not_found' && query.data === undefined)
    return (
      <Page title="Replay">
        <Empty title="Replay job not found" action={<ViewLink to="/replays">All replay jobs</ViewLink>}>
          The id may be incomplete, or the job belongs to another installation.
        </Empty>
      </Page>
    )
  return (
    <Page title="Replay" about={<Copyable text={id} label="the job's id" />} actions={query.data && <Actions job={query.data} />}>
      <Loaded query={query}>{(job) => <JobDetails job={job} />}</Loaded>
    </Page>
  )
}

function Actions({ job }: { job: Job }) {
  const { isAdmin } = useSession()
  const change = useChange('PATCH /api/replays/{id}', 'GET /api/replays/{id}', 'GET /api/replays')
  const [isAsking, setAsking] = useState(false)
  if (hasEnded(job)) return null
  const params = { id: job.id }
  const left = job.total - job.done
  return (
    <>
      {!isAdmin && <SmallNote>Read-only: your token has the viewer role</SmallNote>}
      {job.state === 'running' ? (
        <SecondaryButton
          leftSection={<PauseIcon size={15} />}
          disabled={!isAdmin}
          loading={change.isPending}
          onClick={() => change.mutate({ params, body: { state: 'paused' } })}
        >
          Pause
        </SecondaryButton>
      ) : (
        <Button
          leftSection={<PlayIcon size={15} />}
          disabled={!isAdmin}
          loading={change.isPending}
          onClick={() => change.mutate({ params, body: { state: 'running' } })}
        >
          Resume
        </Button>
      )}
      <DangerButton disabled={!isAdmin} onClick={() => setAsking(true)}>
        Cancel
      </DangerButton>
      <ConfirmDialog
        opened={isAsking}
        onClose={() => setAsking(false)}
        title="Cancel this replay?"
        verb="Cancel replay"
        onConfirm={() => change.mutateAsync({ params, body: { state: 'cancelled' } })}
      >
        {plural(left, 'remaining delivery')} will not be replayed. The {exactCount(job.replayed)} already queued are still sent. A cancelled
        job cannot be resumed, but you can create another job for the rest.
      </ConfirmDialog>
      {change.error && (
        <Alert color="red" role="alert" p="xs">
          {change.error.message}
        </Alert>
      )}
    </>
  )
}

function JobDetails({ job }: { job: Job }) {
  const { nameOf } = useDestinationNames()
  const left = remainingMs(job)
  const lostCount = job.outcomes.failed + job.outcomes.expired
  return (
    <>
      <Card withBorder>
        <Stack gap="sm">
          <Group justify="space-between" gap="xs">
            <Group gap="xs">
              <Tag color={JOB_STATE_COLORS[job.state]}>{job.state}</Tag>
              <Text fw={600} aria-live="polite">
                {donePercent(job)}% done: {exactCount(job.done)} of {exactCount(job.total)} queued or skipped
                {job.outcomes.pending > 0 && `, ${exactCount(job.outcomes.pending)} pending`}
              </Text>
            </Group>
            {left !== null && left > 0 && <Note>about {duration(Math.max(1_000, left))} left at this rate</Note>}
          </Group>
          <JobBar job={job} withLegend />
          <Note>{statusText(job)}</Note>
          {lostCount > 0 && (
            <ViewLink
              to={deliveriesAddress({
                destinationId: job.destinationId ?? undefined,
                state: job.outcomes.failed > 0 ? 'failed' : 'expired',
                from: job.createdAt,
              })}
            >
              View deliveries that {job.outcomes.failed > 0 ? 'failed' : 'expired'} since the job started
            </ViewLink>
          )}
        </Stack>
      </Card>
      {job.skipped > 0 && (
        <Stack gap="xs" component="section">
          <SectionTitle>Skipped: {exactCount(job.skipped)}</SectionTitle>
          <List size="sm" spacing={4}>
            {Object.entries(job.skippedReasons).map(([reason, count]) => (
              <List.Item key={reason}>
                {exactCount(count ?? 0)}: {SKIP_REASONS[reason as keyof typeof SKIP_REASONS] ?? reason}
              </List.Item>
            ))}
          </List>
        </Stack>
      )}
      <Stack gap="sm" component="section">
        <SectionTitle>Selection</SectionTitle>
        <Facts
          facts={[
            [
              'Destination',
              job.destinationId === null ? (
                job.states === null ? null : (
                  'all'
                )
              ) : (
                <ViewLink key="to" to={`/destinations/${encodeURIComponent(job.destinationId)}`}>
                  {nameOf(job.destinationId)}
                </ViewLink>
              ),
            ],
            ['States', job.states?.join(', ')],
            ['Reason', job.reason === null ? null : <Code key="reason">{job.reason}</Code>],
            ['From', job.from === null ? null : <Time key="from" at={job.from} />],
            ['To', job.to === null ? null : <Time key="to" at={job.to} />],
            ['Deliveries', job.deliveryIds === null ? null : `${exactCount(job.deliveryIds.length)} by id`],
            ['Started', <Time key="started" at={job.createdAt} />],
            ['Started by', job.createdBy?.name],
            ['Ended', job.finishedAt === null ? null : <Time key="ended" at={job.finishedAt} />],
          ]}
        />
        {job.deliveryIds !== null && (
          <Spoiler maxHeight={96} showLabel="Show all" hideLabel="Show fewer">
            <Group gap="xs">
              {job.deliveryIds.map((id) => (
                <ViewLink key={id} to={`/deliveries/${encodeURIComponent(id)}`} ff="monospace" size="xs">
                  {id}
                </ViewLink>
              ))}
            </Group>
          </Spoiler>
        )}
      </Stack>
      <Rate key={String(job.ratePerSecond)} job={job} />
    </>
  )
}

function statusText({ state, outcomes, total, done }: Job): string {
  if (total === 0) return 'No deliveries matched.'
  if (state === 'paused')
    return `No more deliveries are queued until you resume the job. ${outcomes.pending > 0 ? 'Deliveries queued earlier are still sent.' : ''}`
  if (state === 'cancelled') return `${exactCount(total - done)} were not replayed.`
  if (state === 'running') return 'Deliveries are queued a few at a time. New messages are sent first.'
  return outcomes.pending > 0
    ? `All deliveries were queued; ${exactCount(outcomes.pending)} still pending.`
    : 'All deliveries were queued, and none is pending.'
}

function Rate({ job }: { job: Job }) {
  const { isAdmin } = useSession()
  const change = useChange('PATCH /api/replays/{id}', 'GET /api/replays/{id}', 'GET /api/replays')
  const [rate, setRate] = useState<number | string>(job.ratePerSecond ?? '')
  const asked = rate === '' ? null : Number(rate)
  const isRateValid = asked === null || (Number.isInteger(asked) && asked >= 1 && asked <= MAX_RATE)
  return (
    <Stack gap="xs" component="section">
      <SectionTitle>Rate</SectionTitle>
      {hasEnded(job) ? (
        <Text size="sm">{capitalized(rateText(job.ratePerSecond))}</Text>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            change.mutate({ params: { id: job.id }, body: { ratePerSecond: asked } })
          }}
        >
          <Group align="flex-end" gap="xs">
            <NumberInput
              label="Maximum deliveries per second"
              description="Leave empty for no rate limit."
              value={rate}
              onChange={setRate}
              min={1}
              max={MAX_RATE}
              allowDecimal={false}
              w={320}
              maw="100%"
              disabled={!isAdmin}
              error={isRateValid ? (change.error?.message ?? null) : `Must be from 1 to ${exactCount(MAX_RATE)}.`}
            />
            <SecondaryButton type="submit" disabled={!isAdmin || !isRateValid || asked === job.ratePerSecond} loading={change.isPending}>
              Save
            </SecondaryButton>
          </Group>
        </form>
      )}
    </Stack>
  )
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
