// One replay job: what it was made for, how far it has come and what became of it, and stopping, going on and its pace.

import { Alert, Badge, Button, Card, Code, Group, List, NumberInput, Spoiler, Stack, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { type Answer, useApi, useChange } from '../../api/queries.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Facts } from '../../components/facts.tsx'
import { PauseIcon, PlayIcon } from '../../components/icons.tsx'
import { ViewLink } from '../../components/link.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/query-states.tsx'
import { Time } from '../../components/time.tsx'
import { useSession } from '../../session.tsx'
import { duration, exactCount } from '../../text/format.ts'
import { usePathPart } from '../../url-state.ts'
import { useDestinationNames } from '../deliveries/destination-names.ts'
import { deliveriesAddress } from '../deliveries/filters.ts'
import { JobBar } from './job-bar.tsx'
import { canStillChange, donePercent, hasEnded, JOB_STATE_COLORS, rateText, remainingMs, SKIP_REASONS } from './progress.ts'

type Job = Answer<'GET /api/replays/{id}'>

const MAX_RATE = 100_000

export default function ReplayPage() {
  const id = usePathPart(1)
  // While it runs as often as one may ask; a paused one may be led on by somebody else.
  const query = useApi('GET /api/replays/{id}', {
    params: { id },
    everyMs: (job) => (job === undefined || !canStillChange(job) ? (job?.state === 'paused' ? 5_000 : undefined) : 2_000),
  })
  if (query.error?.code === 'replay_not_found' && query.data === undefined)
    return (
      <Page title="Replay">
        <Empty title="There is no replay job of this id" action={<ViewLink to="/replays">All replay jobs</ViewLink>}>
          The id may not be whole, or the job was of another installation.
        </Empty>
      </Page>
    )
  return (
    <Page title="Replay" about={<Copyable text={id} label="the job's id" />} actions={query.data && <Actions job={query.data} />}>
      <Loaded query={query}>{(job) => <Shown job={job} />}</Loaded>
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
      {!isAdmin && (
        <Text size="xs" c="dimmed">
          Your token reads only.
        </Text>
      )}
      {job.state === 'running' ? (
        <Button
          variant="default"
          leftSection={<PauseIcon size={15} />}
          disabled={!isAdmin}
          loading={change.isPending}
          onClick={() => change.mutate({ params, body: { state: 'paused' } })}
        >
          Pause
        </Button>
      ) : (
        <Button
          leftSection={<PlayIcon size={15} />}
          disabled={!isAdmin}
          loading={change.isPending}
          onClick={() => change.mutate({ params, body: { state: 'running' } })}
        >
          Go on
        </Button>
      )}
      <Button variant="light" color="red" disabled={!isAdmin} onClick={() => setAsking(true)}>
        Cancel
      </Button>
      <ConfirmDialog
        opened={isAsking}
        onClose={() => setAsking(false)}
        title="Cancel this replay?"
        verb="Cancel the replay"
        onConfirm={() => change.mutateAsync({ params, body: { state: 'cancelled' } })}
      >
        <Text size="sm">
          {left === 1 ? 'One delivery that was not reached yet is' : `${exactCount(left)} deliveries that were not reached yet are`} not
          sent again. The {exactCount(job.replayed)} that were handed on already stay with their destinations. A cancelled job does not go
          on; another can be made of what is left.
        </Text>
      </ConfirmDialog>
      {change.error && (
        <Alert color="red" role="alert" p="xs">
          {change.error.message}
        </Alert>
      )}
    </>
  )
}

function Shown({ job }: { job: Job }) {
  const { nameOf } = useDestinationNames()
  const left = remainingMs(job)
  const lost = job.outcomes.failed + job.outcomes.expired
  return (
    <>
      <Card withBorder>
        <Stack gap="sm">
          <Group justify="space-between" gap="xs">
            <Group gap="xs">
              <Badge color={JOB_STATE_COLORS[job.state]} variant="light" tt="none">
                {job.state}
              </Badge>
              <Text fw={600} aria-live="polite">
                {exactCount(job.done)} of {exactCount(job.total)} ({donePercent(job)} %)
              </Text>
            </Group>
            {left !== null && left > 0 && (
              <Text size="sm" c="dimmed">
                at this rate about {duration(Math.max(1_000, left))} left
              </Text>
            )}
          </Group>
          <JobBar job={job} withLegend />
          <Text size="sm" c="dimmed">
            {statusText(job)}
          </Text>
          {lost > 0 && (
            <ViewLink
              to={deliveriesAddress({
                destinationId: job.destinationId ?? undefined,
                state: job.outcomes.failed > 0 ? 'failed' : 'expired',
                from: job.createdAt,
              })}
            >
              What {job.outcomes.failed > 0 ? 'failed' : 'expired'} since it began, by cause
            </ViewLink>
          )}
        </Stack>
      </Card>
      {job.skipped > 0 && (
        <Stack gap="xs" component="section">
          <Title order={2} size="h4">
            Skipped: {exactCount(job.skipped)}
          </Title>
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
        <Title order={2} size="h4">
          What is sent again
        </Title>
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
            ['Deliveries', job.deliveryIds === null ? null : `${exactCount(job.deliveryIds.length)} by their ids`],
            ['Begun', <Time key="begun" at={job.createdAt} />],
            ['By', job.createdBy?.name],
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
  if (total === 0) return 'There was nothing to send.'
  if (state === 'paused')
    return `Nothing more is handed on until it goes on. ${outcomes.pending > 0 ? 'What was handed on before is still delivered.' : ''}`
  if (state === 'cancelled') return `${exactCount(total - done)} were not reached.`
  if (state === 'running') return 'Deliveries are handed to their destinations step by step, behind new messages.'
  return outcomes.pending > 0
    ? 'All were handed on; the destinations have not taken all of them yet.'
    : 'All were handed on, and all have come to an end.'
}

function Rate({ job }: { job: Job }) {
  const { isAdmin } = useSession()
  const change = useChange('PATCH /api/replays/{id}', 'GET /api/replays/{id}', 'GET /api/replays')
  const [rate, setRate] = useState<number | string>(job.ratePerSecond ?? '')
  const asked = rate === '' ? null : Number(rate)
  const isRate = asked === null || (Number.isInteger(asked) && asked >= 1 && asked <= MAX_RATE)
  return (
    <Stack gap="xs" component="section">
      <Title order={2} size="h4">
        Rate
      </Title>
      {hasEnded(job) ? (
        <Text size="sm">It was sent {rateText(job.ratePerSecond)}.</Text>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            change.mutate({ params: { id: job.id }, body: { ratePerSecond: asked } })
          }}
        >
          <Group align="flex-end" gap="xs">
            <NumberInput
              label="Most deliveries a second"
              description="Empty: as fast as the destinations take them."
              value={rate}
              onChange={setRate}
              min={1}
              max={MAX_RATE}
              allowDecimal={false}
              w={320}
              maw="100%"
              disabled={!isAdmin}
              error={isRate ? (change.error?.message ?? null) : `From 1 to ${exactCount(MAX_RATE)}.`}
            />
            <Button
              type="submit"
              variant="default"
              disabled={!isAdmin || !isRate || asked === job.ratePerSecond}
              loading={change.isPending}
            >
              Change
            </Button>
          </Group>
        </form>
      )}
    </Stack>
  )
}
