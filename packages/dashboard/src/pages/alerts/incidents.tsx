// The list of incidents: the open ones first, then the closed ones, newest first.

import { Badge, NativeSelect, Stack } from '@mantine/core'
import { useList } from '../../api/queries.ts'
import { ViewLink } from '../../components/link.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { LoadMore, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Time } from '../../components/time.tsx'
import { useSearchState } from '../../url-state.ts'
import { type Incident, lasted } from './incident-text.ts'

const STATES = ['open', 'closed'] as const

export function IncidentState({ incident: { state, muted } }: { incident: Pick<Incident, 'state' | 'muted'> }) {
  return (
    <Badge color={state === 'open' ? (muted ? 'gray' : 'red') : 'teal'} variant="light" tt="none" miw="max-content">
      {muted ? `${state}, muted` : state}
    </Badge>
  )
}

export function Incidents() {
  const [params, change] = useSearchState()
  const state = STATES.find((each) => each === params.get('state'))
  const list = useList('GET /api/incidents', { query: { limit: 50, state }, everyMs: 5_000, keep: true })
  return (
    <Stack>
      <NativeSelect
        label="State"
        value={state ?? ''}
        onChange={({ currentTarget }) => change({ state: currentTarget.value })}
        data={[{ value: '', label: 'All' }, ...STATES]}
        maw={180}
      />
      {list.problem !== null && list.rows.length === 0 ? (
        <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading lines={5} label="Loading incidents" />
      ) : list.rows.length === 0 ? (
        <Empty title={state === undefined ? 'No incidents' : `No ${state} incidents`}>
          When a destination fails, a source falls silent, or something else needs your attention, it is listed here. Closed incidents are
          kept for 90 days.
        </Empty>
      ) : (
        <>
          <ResponsiveTable<Incident>
            label="Incidents"
            rows={list.rows}
            keyOf={({ id }) => id}
            columns={[
              {
                label: 'Incident',
                cell: ({ id, event, subject }) => (
                  <ViewLink to={`/alerts/${encodeURIComponent(id)}`}>
                    {event}: {subject.name}
                  </ViewLink>
                ),
              },
              { label: 'State', cell: (incident) => <IncidentState incident={incident} />, isShort: true },
              { label: 'What', cell: ({ message, closedMessage }) => closedMessage ?? message },
              { label: 'Began', cell: ({ since }) => <Time at={since} relative />, isShort: true },
              { label: 'Duration', cell: (incident) => lasted(incident, Date.now()), isShort: true },
            ]}
          />
          <LoadMore list={list} />
        </>
      )}
    </Stack>
  )
}
