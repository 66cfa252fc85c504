// The page of one replay job: progress, outcomes, selection, and how to pause, resume, cancel it or change its rate.

import { Alert, Button, Card, Code, Group, List, NumberInput, Spoiler, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { type Answer, useApi, useChange } from '../../api/queries.ts'
import { useDestinationNames } from '../../api/use-names.ts'
import { ConfirmButton } from '../../components/confirm-dialog.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { PauseIcon, PlayIcon } from '../../components/icons.tsx'
import { Form } from '../../components/inputs.tsx'
import { Empty, Facts, Loaded, Page } from '../../components/page.tsx'
import { DangerButton, Note, SecondaryButton, SectionTitle, SmallNote, Tag, Time, ViewLink } from '../../components/styled.tsx'
import { deliveriesAddress } from '../../delivery/filters.ts'
import { EDITOR_ONLY } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'
import { capitalized, duration, exactCount, plural } from '../../text/format.ts'
import { usePathPart } from '../../url/url-state.ts'
import { JobBar } from './job-bar.tsx'
import {
  canStillChange,
  hasEnded,
  isRate,
  jobStateColor,
  MAX_RATE,
  outcomeSentence,
  rateText,
  remainingMs,
  SKIP_REASONS,
} from './progress.ts'

type Job = Answer<'GET /api/replays/{id}'>

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
  const { mayEdit } = useSession()
  const change = useChange('PATCH /api/replays/{id}', 'GET /api/replays/{id}', 'GET /api/replays')
  if (hasEnded(job)) return null
  const params = { id: job.id }
  const left = job.total - job.done
  return (
    <>
      {!mayEdit && <SmallNote>{EDITOR_ONLY}</SmallNote>}
      {job.state === 'running' ? (
        <SecondaryButton
          leftSection={<PauseIcon size={15} />}
          disabled={!mayEdit}
          loading={change.isPending}
          onClick={() => change.mutate({ params, body: { state: 'paused' } })}
        >
          Pause
        </SecondaryButton>
      ) : (
        <Button
          leftSection={<PlayIcon size={15} />}
          disabled={!mayEdit}
          loading={change.isPending}
          onClick={() => change.mutate({ params, body: { state: 'running' } })}
        >
          Resume
        </Button>
      )}
      <ConfirmButton
        button={(open) => (
          <DangerButton disabled={!mayEdit} onClick={open}>
            Cancel
          </DangerButton>
        )}
        title="Cancel this replay?"
        verb="Cancel replay"
        onConfirm={() => change.mutateAsync({ params, body: { state: 'cancelled' } })}
      >
        {plural(left, 'remaining delivery')} will not be replayed. The {exactCount(job.replayed)} already queued are still sent. A cancelled
        job cannot be resumed, but you can create another job for the rest.
      </ConfirmButton>
      {change.error && (
        <Alert color="red" role="alert" p="xs">
          {change.error.message}
        </Alert>
      )}
    </>
  )
}

function JobDetails({ job }: { job: Job }) {
  return (
    <>
      {job.problem !== null && (
        <Alert color="red" title="The archive cannot be read" role="alert">
          {job.problem.message}
        </Alert>
      )}
      <Progress job={job} />
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
      <Selection job={job} />
      <Rate key={String(job.ratePerSecond)} job={job} />
    </>
  )
}

function Progress({ job }: { job: Job }) {
  const { state, outcomes, destinationId, createdAt } = job
  const left = remainingMs(job)
  const lost = outcomes.failed > 0 ? 'failed' : outcomes.expired > 0 ? 'expired' : null
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Group justify="space-between" gap="xs">
          <Group gap="xs">
            <Tag color={jobStateColor(job)}>{state}</Tag>
            <Text fw={600} aria-live="polite">
              {outcomeSentence(job)}
            </Text>
          </Group>
          {left !== null && left > 0 && <Note>about {duration(Math.max(1_000, left))} left at this rate</Note>}
        </Group>
        <JobBar job={job} withLegend />
        <Note>{statusText(job)}</Note>
        {lost !== null && (
          <ViewLink to={deliveriesAddress({ destinationId: destinationId ?? undefined, state: lost, from: createdAt })}>
            View deliveries that {lost} since the job started
          </ViewLink>
        )}
      </Stack>
    </Card>
  )
}

function Selection({ job }: { job: Job }) {
  const { destinationId, states, reason, from, to, deliveryIds, createdAt, createdBy, finishedAt, archive, reachedAt } = job
  const { nameOf } = useDestinationNames()
  return (
    <Stack gap="sm" component="section">
      <SectionTitle>Selection</SectionTitle>
      <Facts
        facts={[
          [
            'Destination',
            destinationId === null ? (
              states && 'all'
            ) : (
              <ViewLink to={`/destinations/${encodeURIComponent(destinationId)}`}>{nameOf(destinationId)}</ViewLink>
            ),
          ],
          [
            'Archive of',
            archive && (
              <ViewLink to={`/destinations/${encodeURIComponent(archive.destinationId)}`}>{nameOf(archive.destinationId)}</ViewLink>
            ),
          ],
          ['Received from', archive && <Time at={archive.after} />],
          ['Received before', archive && <Time at={archive.before} />],
          ['Source', archive?.sourceId && <Code>{archive.sourceId}</Code>],
          ['Event', archive?.event],
          ['User', archive?.userId],
          ['Reached', reachedAt && <Time at={reachedAt} />],
          ['States', states?.join(', ')],
          ['Reason', reason === null ? null : <Code>{reason}</Code>],
          ['From', from === null ? null : <Time at={from} />],
          ['To', to === null ? null : <Time at={to} />],
          ['Deliveries', deliveryIds === null ? null : `${exactCount(deliveryIds.length)} by id`],
          ['Started', <Time at={createdAt} />],
          ['Started by', createdBy?.name],
          ['Ended', finishedAt === null ? null : <Time at={finishedAt} />],
        ]}
      />
      {deliveryIds !== null && (
        <Spoiler maxHeight={96} showLabel="Show all" hideLabel="Show fewer">
          <Group gap="xs">
            {deliveryIds.map((id) => (
              <ViewLink key={id} to={`/deliveries/${encodeURIComponent(id)}`} ff="monospace" size="xs">
                {id}
              </ViewLink>
            ))}
          </Group>
        </Spoiler>
      )}
    </Stack>
  )
}

function statusText(job: Job): string {
  const { state, outcomes, total, done } = job
  if (total === 0) return job.archive === null ? 'No deliveries matched.' : 'The archive has no messages of this time.'
  if (state === 'paused')
    return `No more deliveries are queued until you resume the job. ${outcomes.pending > 0 ? 'Deliveries queued earlier are still sent.' : ''}`
  if (state === 'cancelled') return `${exactCount(total - done)} were not replayed.`
  if (state === 'running') return 'Deliveries are queued a few at a time. New messages are sent first.'
  return outcomes.pending > 0
    ? `All deliveries were queued; ${exactCount(outcomes.pending)} still pending.`
    : 'All deliveries were queued, and none is pending.'
}

function Rate({ job }: { job: Job }) {
  const { mayEdit } = useSession()
  const change = useChange('PATCH /api/replays/{id}', 'GET /api/replays/{id}', 'GET /api/replays')
  const [rate, setRate] = useState<number | string>(job.ratePerSecond ?? '')
  const asked = rate === '' ? null : Number(rate)
  return (
    <Stack gap="xs" component="section">
      <SectionTitle>Rate</SectionTitle>
      {hasEnded(job) ? (
        <Text size="sm">{capitalized(rateText(job.ratePerSecond))}</Text>
      ) : (
        <Form onSubmit={() => change.mutate({ params: { id: job.id }, body: { ratePerSecond: asked } })}>
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
              disabled={!mayEdit}
              error={isRate(asked) ? (change.error?.message ?? null) : `Must be from 1 to ${exactCount(MAX_RATE)}.`}
            />
            <SecondaryButton type="submit" disabled={!mayEdit || !isRate(asked) || asked === job.ratePerSecond} loading={change.isPending}>
              Save
            </SecondaryButton>
          </Group>
        </Form>
      )}
    </Stack>
  )
}
