// The list of destinations with their health, the most urgent first. The filters by name, URL and status are in the page's address.

import { Alert, Group, Paper, Stack, Table, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import type { ApiProblem } from '../../api/client.ts'
import { useApi, useWholeList } from '../../api/queries.ts'
import { PlusIcon } from '../../components/icons.tsx'
import { ParamInput } from '../../components/inputs.tsx'
import { Empty, ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { ParamCombobox } from '../../components/param-combobox.tsx'
import { FirstRows, FoundCount } from '../../components/responsive-table.tsx'
import { LinkButton, NameLink, SmallNote } from '../../components/styled.tsx'
import { byUrgency, holdOf, STATUS_NAMES, type Status, type StatusName, statusOf } from '../../destination/destination-status.ts'
import type { Destination } from '../../destination/kind.ts'
import { BacklogView, BreakerView, type DestinationHealth, Latency, StatusBadge, Success } from '../../destination/status-view.tsx'
import { kindOf } from '../../kinds/kinds.tsx'
import { useSession } from '../../session/session.tsx'
import { useSearchState } from '../../url/url-state.ts'

interface Row {
  destination: Destination
  health: DestinationHealth
  status: Status
  seenAtMs: number
}

export default function DestinationsPage() {
  const { mayEdit } = useSession()
  const list = useWholeList('GET /api/destinations', { query: { limit: 1_000 }, everyMs: 15_000 })
  const health = useApi('GET /api/destinations/health', { everyMs: 5_000 })
  const add = mayEdit && (
    <LinkButton to="/catalog" variant="filled" leftSection={<PlusIcon size={16} />}>
      Add a destination
    </LinkButton>
  )
  const problem = list.problem ?? (health.data === undefined ? health.error : null)
  const healthById = new Map(health.data?.data.map(({ destinationId, ...rest }) => [destinationId, rest]))
  const rows = list.rows.map((destination): Row => {
    const own = healthById.get(destination.id) ?? NO_HEALTH_YET
    return { destination, health: own, status: statusOf(destination, own, health.dataUpdatedAt), seenAtMs: health.dataUpdatedAt }
  })
  return (
    <Page title="Destinations" about="Webhooks and integrations that messages are sent to. Sorted by urgency." actions={add}>
      {problem !== null ? (
        <ErrorAlert problem={problem} onRetry={() => void Promise.all([list.refetch(), health.refetch()])} />
      ) : list.isPending || health.data === undefined ? (
        <Loading lines={6} label="Loading destinations" />
      ) : rows.length === 0 ? (
        <Empty title="No destinations yet" action={add || <Text size="sm">An editor or admin can add one.</Text>}>
          A destination is a webhook or one of your tools, such as Slack or Amplitude. Switchyard sends messages to it and retries failed
          requests.
        </Empty>
      ) : (
        <Found rows={rows} healthProblem={health.error} />
      )}
    </Page>
  )
}

function Found({ rows, healthProblem }: { rows: readonly Row[]; healthProblem: ApiProblem | null }) {
  const [params] = useSearchState()
  const isNarrow = useMediaQuery('(max-width: 62em)', undefined, { getInitialValueInEffect: false })
  const text = params.get('q') ?? ''
  const state = params.get('state') ?? ''
  const found = rows
    .filter(({ destination, status }) => matches(destination, text) && (state === '' || status.name === state))
    .sort((a, b) => byUrgency(a.status.name, b.status.name))
  return (
    <Stack>
      <Group gap="sm" align="flex-end">
        <ParamInput param="q" label="Name, URL or integration" placeholder="Any" style={{ flex: '1 1 200px' }} maw={360} />
        <ParamCombobox param="state" label="Status" options={STATUS_NAMES} w={160} clearButtonProps={{ 'aria-label': 'Any status' }} />
      </Group>
      {healthProblem !== null && (
        <Alert color="orange">Could not refresh the health of destinations; showing older data. {healthProblem.message}</Alert>
      )}
      <FoundCount found={found.length} total={rows.length} word="destination" />
      {found.length === 0 ? (
        <Empty title="No matching destinations" filters={['q', 'state']}>
          No destination has this name or URL and this status.
        </Empty>
      ) : (
        <FirstRows rows={found}>{(shown) => (isNarrow ? <Cards rows={shown} /> : <Rows rows={shown} />)}</FirstRows>
      )}
    </Stack>
  )
}

/** For a destination that was created after the health was loaded. */
const NO_HEALTH_YET: DestinationHealth = {
  breaker: 'closed',
  openSince: null,
  failure: null,
  mostFrequentFailure: null,
  inFlight: 0,
  success: null,
  latencyMs: null,
  pending: 0,
  oldestPendingAt: null,
  nextAttemptAt: null,
  nextExpiryAt: null,
  failingTables: [],
  held: null,
}

/** What the badge says is enough. */
const QUIET: ReadonlySet<StatusName> = new Set(['healthy', 'idle'])

function matches(destination: Destination, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  const { name, id } = destination
  const texts = [name, id, ...kindOf(destination).targets(destination)]
  return wanted === '' || texts.some((each) => each.toLowerCase().includes(wanted))
}

function DestinationName({ destination }: { destination: Destination }) {
  const { id, name } = destination
  const { Icon, target, targets } = kindOf(destination)
  const text = (
    <Stack gap={0} miw={0}>
      <NameLink to={`/destinations/${id}`}>{name}</NameLink>
      <SmallNote truncate title={targets(destination).join('\n')}>
        {target(destination)}
      </SmallNote>
    </Stack>
  )
  if (Icon === null) return text
  return (
    <Group gap="sm" wrap="nowrap" miw={0}>
      <Icon destination={destination} size={32} />
      {text}
    </Group>
  )
}

function Rows({ rows }: { rows: readonly Row[] }) {
  return (
    <Table verticalSpacing="sm" highlightOnHover>
      <Table.Caption style={{ captionSide: 'top', textAlign: 'start', margin: 0 }}>
        Success rate and latency of recent attempts (up to 512 per URL).
      </Table.Caption>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Destination</Table.Th>
          <Table.Th>Status</Table.Th>
          <Table.Th style={{ whiteSpace: 'nowrap' }}>Success rate</Table.Th>
          <Table.Th>Latency</Table.Th>
          <Table.Th>Backlog</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ destination, health, status, seenAtMs }) => (
          <Table.Tr key={destination.id}>
            <Table.Td maw={220}>
              <DestinationName destination={destination} />
            </Table.Td>
            <Table.Td miw={240} maw={320}>
              <StatusBadge status={status} />
              {!QUIET.has(status.name) && <SmallNote style={{ overflowWrap: 'anywhere' }}>{status.summary}</SmallNote>}
            </Table.Td>
            <Table.Td style={{ whiteSpace: 'nowrap' }}>
              <Success success={health.success} />
            </Table.Td>
            <Table.Td>
              <Latency latencyMs={health.latencyMs} />
            </Table.Td>
            <Table.Td>
              <BacklogView destination={destination} health={health} seenAtMs={seenAtMs} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}

function Cards({ rows }: { rows: readonly Row[] }) {
  return (
    <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
      {rows.map(({ destination, health, status, seenAtMs }) => (
        <Paper key={destination.id} component="li" withBorder p="sm">
          <Stack gap={6}>
            <Group justify="space-between" align="flex-start" wrap="nowrap">
              <DestinationName destination={destination} />
              <StatusBadge status={status} />
            </Group>
            {!QUIET.has(status.name) && <Text size="sm">{status.summary}</Text>}
            <Group gap="lg" style={{ rowGap: 4 }}>
              <Text size="sm" component="div">
                <SmallNote span>success rate</SmallNote> <Success success={health.success} />
              </Text>
              {health.latencyMs !== null && <Latency latencyMs={health.latencyMs} />}
            </Group>
            <BacklogView destination={destination} health={health} seenAtMs={seenAtMs} />
            {health.breaker !== 'closed' && (
              <Text size="sm" component="div">
                Circuit breaker: <BreakerView health={health} isHeld={holdOf(destination) !== null} />
              </Text>
            )}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}
