// The list of replay jobs with their progress, newest first.

import { Card, Group, Stack } from '@mantine/core'
import { useList } from '../../api/queries.ts'
import { useDestinationNames } from '../../api/use-names.ts'
import { ParamSegments } from '../../components/inputs.tsx'
import { Empty, ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { LinkButton, LongNote, SecondaryButton, Tag, Time, ViewLink } from '../../components/styled.tsx'
import { plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { ArchiveReplay } from './archive-dialog.tsx'
import { JobBar } from './job-bar.tsx'
import { type Job, jobStateColor, outcomeSentence, rateText, selectionText } from './progress.ts'

const STATES = ['running', 'paused', 'finished', 'cancelled'] as const

export default function ReplaysPage() {
  const [params] = useSearchState()
  const state = STATES.find((each) => each === params.get('state'))
  const list = useList('GET /api/replays', { query: { state, limit: 50 }, everyMs: 3_000 })
  const { nameOf } = useDestinationNames()
  return (
    <Page
      title="Replays"
      about="Jobs that send past deliveries again. They continue after a restart."
      actions={
        <>
          <ArchiveReplay />
          <LinkButton to="/deliveries?state=failed" variant="light">
            View failed deliveries
          </LinkButton>
        </>
      }
    >
      <ParamSegments
        param="state"
        fallback="all"
        options={['all', ...STATES]}
        aria-label="Job state"
        size="xs"
        style={{ alignSelf: 'flex-start', maxWidth: '100%' }}
      />
      {list.problem !== null && <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />}
      {list.isPending && <Loading lines={4} />}
      {list.isSuccess && list.rows.length === 0 && (
        <Empty
          title={state === undefined ? 'No replays yet' : `No ${state} replays`}
          link={{ to: '/deliveries?state=failed', label: 'View failed deliveries', isLight: true }}
        >
          Once a receiver works again, replay the deliveries that failed in the meantime: one, a selection, or all with the same cause.
        </Empty>
      )}
      <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
        {list.rows.map((job) => (
          <li key={job.id}>
            <JobCard job={job} nameOf={nameOf} />
          </li>
        ))}
      </Stack>
      {list.hasNextPage && (
        <SecondaryButton onClick={() => void list.fetchNextPage()} loading={list.isFetchingNextPage} style={{ alignSelf: 'center' }}>
          Show older jobs
        </SecondaryButton>
      )}
    </Page>
  )
}

function JobCard({ job, nameOf }: { job: Job; nameOf: (id: string) => string }) {
  return (
    <Card withBorder padding="sm">
      <Stack gap={8}>
        <Group justify="space-between" gap="xs">
          <Group gap="xs" miw={0}>
            <Tag color={jobStateColor(job)}>{job.state}</Tag>
            <ViewLink to={`/replays/${encodeURIComponent(job.id)}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
              {plural(job.total, 'delivery')}
              {job.destinationId !== null && ` to ${nameOf(job.destinationId)}`}
            </ViewLink>
          </Group>
          <Time at={job.createdAt} relative />
        </Group>
        <JobBar job={job} />
        <LongNote>
          {outcomeSentence(job)} · {selectionText(job)} · {rateText(job.ratePerSecond)}
          {job.createdBy !== null && ` · by ${job.createdBy.name}`}
        </LongNote>
      </Stack>
    </Card>
  )
}
