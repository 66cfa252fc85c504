// What needs attention: the incidents that are not closed, each with its cause, its numbers and what can be done. Says that nothing needs attention
// only after the service has said so, and while no destination has problems: an incident begins some time after its cause, or is not opened at all.

import { Alert, Button, Group, Paper, Stack, Text, ThemeIcon } from '@mantine/core'
import type { ApiProblem } from '../../api/client.ts'
import { CheckIcon } from '../../components/icons.tsx'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { NameLink, Note, SectionTitle, ViewLink } from '../../components/styled.tsx'
import { IncidentCounts } from '../../incidents/incident-counts.tsx'
import { IncidentItem } from '../../incidents/incident-item.tsx'
import { groupedBySubject, type Incident, isAbout, mostUrgentFirst, repeatsCause } from '../../incidents/incident-text.ts'
import { changeSearch } from '../../url/url-state.ts'
import type { Troubled } from './troubled.ts'

const SHOWN = 6

interface AttentionProps {
  incidents: readonly Incident[] | undefined
  problem: ApiProblem | null
  /** Null until the check has answered. */
  store: { isAvailable: boolean; message: string } | null
  troubled: readonly Troubled[] | undefined
  retry: () => void
  isNew: boolean
  isAll: boolean
}

export function Attention({ incidents, problem, store, troubled, retry, isNew, isAll }: AttentionProps) {
  const sorted = incidents === undefined ? undefined : groupedBySubject(mostUrgentFirst(incidents))
  const shown = isAll ? sorted : sorted?.slice(0, SHOWN)
  const hidden = (sorted?.length ?? 0) - (shown?.length ?? 0)
  const isDown = store?.isAvailable === false
  const isQuiet = sorted?.length === 0 && !isDown
  const isHealthy = isQuiet && troubled?.length === 0
  // Destinations with an incident are in the list of incidents.
  const unlisted = sorted && troubled?.filter(({ id }) => !sorted.some((incident) => isAbout(incident, 'destination', id)))
  // A new installation shows the first steps instead.
  if (isHealthy && isNew) return null
  return (
    <Stack component="section" gap="xs" aria-labelledby="attention">
      <Group gap="xs">
        <SectionTitle id="attention">Needs attention</SectionTitle>
        {sorted !== undefined && <IncidentCounts incidents={sorted} />}
      </Group>
      {isDown && (
        <Alert color="red" title="The store is unavailable" role="alert">
          The service rejects every message: {store.message}
        </Alert>
      )}
      {problem !== null && sorted === undefined && <ErrorAlert problem={problem} onRetry={retry} />}
      {isHealthy && (
        <Paper withBorder p="md" role="status">
          <Group gap="sm" wrap="nowrap">
            <ThemeIcon color="teal" variant="light" radius="xl">
              <CheckIcon size={16} />
            </ThemeIcon>
            <div>
              <Text fw={600}>Nothing needs attention</Text>
              <Note>
                No destination fails, no delivery waits for more than 5 minutes, nothing is in quarantine, and the ledger balances.
              </Note>
            </div>
          </Group>
        </Paper>
      )}
      {shown !== undefined && shown.length > 0 && (
        <Paper withBorder component="ul" p={0} m={0} style={{ listStyle: 'none', overflow: 'hidden' }}>
          {shown.map((incident, at) => (
            <IncidentItem key={incident.id} incident={incident} isFirst={at === 0} hidesCause={repeatsCause(incident, shown[at - 1])} />
          ))}
        </Paper>
      )}
      {unlisted !== undefined && unlisted.length > 0 && <Unlisted destinations={unlisted} hasIncidents={sorted?.length !== 0} />}
      {hidden > 0 && (
        <Button variant="subtle" size="xs" style={{ alignSelf: 'flex-start' }} onClick={() => changeSearch({ findings: 'all' })}>
          Show {hidden} more
        </Button>
      )}
      {isAll && (sorted?.length ?? 0) > SHOWN && (
        <Button variant="subtle" size="xs" style={{ alignSelf: 'flex-start' }} onClick={() => changeSearch({ findings: null })}>
          Show fewer
        </Button>
      )}
      {(sorted === undefined || (isQuiet && troubled === undefined && !isNew)) && problem === null && (
        <Loading lines={2} label="Checking what needs attention" />
      )}
    </Stack>
  )
}

/** Destinations that have problems, but no incident. */
function Unlisted({ destinations, hasIncidents }: { destinations: readonly Troubled[]; hasIncidents: boolean }) {
  const { length } = destinations
  const which = hasIncidents
    ? length === 1
      ? 'Another destination'
      : `${length} other destinations`
    : length === 1
      ? 'A destination'
      : `${length} destinations`
  return (
    <Paper withBorder p="md" role="status">
      <Text fw={600}>
        {which} {length === 1 ? 'has' : 'have'} problems
      </Text>
      <Note>There is no incident, because too few attempts failed, the problem has just begun, or the rule is turned off.</Note>
      <Stack component="ul" gap={4} mt="xs" mb={0} pl="md">
        {destinations.slice(0, SHOWN).map(({ id, name, cause }) => (
          <li key={id}>
            <NameLink to={`/destinations/${id}`} size="sm">
              {name}
            </NameLink>{' '}
            <Text span size="sm">
              {cause}
            </Text>
          </li>
        ))}
      </Stack>
      {length > SHOWN && (
        <Note mt={4}>
          <ViewLink to="/destinations">View all destinations</ViewLink>
        </Note>
      )}
    </Paper>
  )
}
