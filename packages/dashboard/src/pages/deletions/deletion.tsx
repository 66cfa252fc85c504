// The page of one deletion request: its progress, and the state for each user, source and destination.

import { Alert, Group, Paper, Progress, Stack, Text } from '@mantine/core'
import { type Answer, useApi, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Empty, Facts, Loaded, Page } from '../../components/page.tsx'
import { LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Note, SectionTitle, SmallNote, Time, ViewLink } from '../../components/styled.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { usePathPart, useSearchState } from '../../url/url-state.ts'
import { DeletionStateBadge, StateAndUser, stateOf, useUser } from './filter-bar.tsx'
import { isInProgress, isUnfinished, WaitsFor } from './waits-for.tsx'

type Deletion = Answer<'GET /api/deletions/{id}'>
type Target = Deletion['targets'][number]

export default function DeletionPage() {
  const id = usePathPart(1)
  const deletion = useApi('GET /api/deletions/{id}', {
    params: { id },
    everyMs: (answer) => (isInProgress(answer?.state) ? 3_000 : undefined),
  })
  return (
    <Page
      title="Deletion request"
      about="Progress for each user, source and destination."
      back={{ to: '/deletions', label: 'All requests' }}
    >
      <Loaded query={deletion}>{(data) => <DeletionDetails deletion={data} />}</Loaded>
    </Page>
  )
}

function DeletionDetails({ deletion }: { deletion: Deletion }) {
  const names = useNames()
  const { targetCounts: counts } = deletion
  const total = counts.pending + counts.running + counts.finished + counts.failed
  const percent = (part: number): number => (total === 0 ? 0 : (part / total) * 100)
  return (
    <Stack gap="lg">
      <Paper withBorder p="md">
        <Stack>
          <Facts
            facts={[
              ['State', <DeletionStateBadge key="state" state={deletion.state} />],
              ...(isUnfinished(deletion.state) ? [['Waiting for', <WaitsFor key="waiting" {...deletion} />] as const] : []),
              ['Requested', <Time key="time" at={deletion.createdAt} />],
              ['Users', exactCount(deletion.userCount)],
              ['Messages deleted', exactCount(deletion.purged)],
              ['New messages', deletion.suppress ? 'dropped' : 'accepted'],
              ['Sources', deletion.sourceIds.map((id) => names.sources.get(id) ?? id).join(', ')],
              ['Id', <Copyable key="id" text={deletion.id} label="the request id" />],
            ]}
          />
          <Stack gap={4}>
            <Progress.Root size="lg" aria-label="Targets">
              <Progress.Section value={percent(counts.finished)} color="teal" aria-label="finished" />
              <Progress.Section value={percent(counts.failed)} color="red" aria-label="failed" />
              <Progress.Section value={percent(counts.running + counts.pending)} color="blue" aria-label="in progress" />
            </Progress.Root>
            <Text size="sm">
              {exactCount(counts.finished)} of {plural(total, 'target')} finished · {exactCount(counts.failed)} failed ·{' '}
              {exactCount(counts.running + counts.pending)} in progress
            </Text>
          </Stack>
        </Stack>
      </Paper>
      {counts.failed > 0 && (
        <Alert color="red" title={`${plural(counts.failed, 'target')} failed`}>
          The messages are deleted from Switchyard, but a destination did not accept the delete message. Open the delivery to see why, then
          replay it. The request is finished once the replay is delivered.
        </Alert>
      )}
      <Targets deletion={deletion} sources={names.sources} destinations={names.destinations} />
    </Stack>
  )
}

interface TargetsProps {
  deletion: Deletion
  sources: ReadonlyMap<string, string>
  destinations: ReadonlyMap<string, string>
}

function Targets({ deletion, sources, destinations }: TargetsProps) {
  const [params] = useSearchState()
  const state = stateOf(params.get('state'))
  const { userId } = useUser()
  const list = useList('GET /api/deletions/{id}/targets', {
    params: { id: deletion.id },
    query: { state, userId },
    ...(isInProgress(deletion.state) ? { everyMs: 3_000 } : {}),
  })
  return (
    <Stack>
      <Group justify="space-between">
        <SectionTitle>Targets</SectionTitle>
      </Group>
      <StateAndUser />
      <LoadedList
        list={list}
        empty={<Empty title="No matching targets">Enter the full user id. This also finds users that are shown as a pseudonym.</Empty>}
      >
        <ResponsiveTable<Target>
          label="Targets"
          rows={list.rows}
          keyOf={(row) => `${row.userId} ${row.sourceId} ${row.destinationId}`}
          columns={[
            { label: 'User', cell: (row) => row.userId },
            { label: 'State', cell: (row) => <DeletionStateBadge state={row.state} />, isShort: true },
            {
              label: 'Source',
              cell: ({ sourceId }) => (
                <ViewLink to={`/sources/${encodeURIComponent(sourceId)}`}>{sources.get(sourceId) ?? sourceId}</ViewLink>
              ),
            },
            {
              label: 'Destination',
              cell: ({ destinationId }) =>
                destinationId === null ? (
                  <Note span>none</Note>
                ) : (
                  <ViewLink to={`/destinations/${encodeURIComponent(destinationId)}`}>
                    {destinations.get(destinationId) ?? destinationId}
                  </ViewLink>
                ),
            },
            {
              label: 'Delivery',
              cell: ({ deliveryId, userId: of }) =>
                deliveryId === null ? (
                  '–'
                ) : (
                  <ViewLink to={`/deliveries/${encodeURIComponent(deliveryId)}`} aria-label={`View delivery for ${of}`}>
                    View delivery
                  </ViewLink>
                ),
            },
          ]}
        />
      </LoadedList>
      <SmallNote>
        After the request has ended and the retention period has passed, each user is shown as a pseudonym. You can still find users by
        their user id.
      </SmallNote>
    </Stack>
  )
}
