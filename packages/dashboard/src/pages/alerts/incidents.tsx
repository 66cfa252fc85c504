// The list of incidents: those that are not closed with what can be done about each, and the closed ones, newest first.

import { Group, Paper, Stack } from '@mantine/core'
import { useList } from '../../api/queries.ts'
import { ParamSelect } from '../../components/inputs.tsx'
import { Empty, Loaded } from '../../components/page.tsx'
import { LoadedTable } from '../../components/responsive-table.tsx'
import { SectionTitle, Tag, Time, ViewLink } from '../../components/styled.tsx'
import { IncidentCounts } from '../../incidents/incident-counts.tsx'
import { IncidentItem, incidentPath } from '../../incidents/incident-item.tsx'
import { groupedBySubject, type Incident, lasted, mostUrgentFirst, repeatsCause } from '../../incidents/incident-text.ts'
import { useActiveIncidents } from '../../incidents/use-incidents.ts'
import { useSearchState } from '../../url/url-state.ts'

const STATES = ['active', 'closed'] as const

export function IncidentState({ incident: { state, muted } }: { incident: Pick<Incident, 'state' | 'muted'> }) {
  return (
    <Tag color={state === 'closed' ? 'teal' : muted || state === 'starting' ? 'gray' : 'red'} miw="max-content">
      {muted ? `${state}, muted` : state}
    </Tag>
  )
}

export function Incidents() {
  const [params] = useSearchState()
  const state = STATES.find((each) => each === params.get('state'))
  return (
    <Stack>
      <ParamSelect param="state" label="State" options={STATES} maw={180} />
      {state !== 'closed' && <ActiveIncidents />}
      {state !== 'active' && <ClosedIncidents />}
    </Stack>
  )
}

function ActiveIncidents() {
  const incidents = useActiveIncidents(5_000)
  return (
    <Loaded query={incidents} lines={4}>
      {({ data }) =>
        data.length === 0 ? (
          <Empty title="No incidents">
            When a destination fails, a source falls silent, or something else needs your attention, it is listed here.
          </Empty>
        ) : (
          <Stack gap="xs" component="section">
            <Group gap="xs">
              <SectionTitle>Now</SectionTitle>
              <IncidentCounts incidents={data} />
            </Group>
            <Paper withBorder component="ul" p={0} m={0} style={{ listStyle: 'none', overflow: 'hidden' }} aria-label="Incidents">
              {groupedBySubject(mostUrgentFirst(data)).map((incident, at, all) => (
                <IncidentItem key={incident.id} incident={incident} isFirst={at === 0} hidesCause={repeatsCause(incident, all[at - 1])} />
              ))}
            </Paper>
          </Stack>
        )
      }
    </Loaded>
  )
}

function ClosedIncidents() {
  const list = useList('GET /api/incidents', { query: { limit: 50, state: 'closed' }, everyMs: 10_000, keep: true })
  return (
    <Stack gap="xs" component="section">
      <SectionTitle>Closed</SectionTitle>
      <LoadedTable<Incident>
        list={list}
        lines={5}
        empty={<Empty title="No closed incidents">Closed incidents are kept for 90 days.</Empty>}
        label="Closed incidents"
        columns={[
          {
            label: 'Incident',
            cell: (incident) => (
              <ViewLink to={incidentPath(incident)}>
                {incident.event}: {incident.subject.name}
              </ViewLink>
            ),
          },
          { label: 'What', cell: ({ message, closedMessage }) => closedMessage ?? message },
          { label: 'Began', cell: ({ since }) => <Time at={since} relative="with clock" /> },
          { label: 'Duration', cell: (incident) => lasted(incident, Date.now()), isShort: true },
        ]}
      />
    </Stack>
  )
}
