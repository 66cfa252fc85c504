// The list of incidents: the open ones first, then the closed ones, newest first.

import { Stack } from '@mantine/core'
import { useList } from '../../api/queries.ts'
import { ParamSelect } from '../../components/inputs.tsx'
import { Empty } from '../../components/page.tsx'
import { LoadedTable } from '../../components/responsive-table.tsx'
import { Tag, Time, ViewLink } from '../../components/styled.tsx'
import { useSearchState } from '../../url/url-state.ts'
import { type Incident, lasted } from './incident-text.ts'

const STATES = ['open', 'closed'] as const

export function IncidentState({ incident: { state, muted } }: { incident: Pick<Incident, 'state' | 'muted'> }) {
  return (
    <Tag color={state === 'open' ? (muted ? 'gray' : 'red') : 'teal'} miw="max-content">
      {muted ? `${state}, muted` : state}
    </Tag>
  )
}

export function Incidents() {
  const [params] = useSearchState()
  const state = STATES.find((each) => each === params.get('state'))
  const list = useList('GET /api/incidents', { query: { limit: 50, state }, everyMs: 5_000, keep: true })
  return (
    <Stack>
      <ParamSelect param="state" label="State" options={STATES} maw={180} />
      <LoadedTable<Incident>
        list={list}
        lines={5}
        empty={
          <Empty title={state === undefined ? 'No incidents' : `No ${state} incidents`}>
            When a destination fails, a source falls silent, or something else needs your attention, it is listed here. Closed incidents are
            kept for 90 days.
          </Empty>
        }
        label="Incidents"
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
    </Stack>
  )
}
