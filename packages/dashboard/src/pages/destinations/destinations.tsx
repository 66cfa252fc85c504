// All destinations: how each one does, who needs somebody first, and a way to add one. Filter by name, URL and state, in the address.

import { Alert, Anchor, Button, Group, Paper, Select, Stack, Table, Text, TextInput } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { useApi, useList } from '../../api/queries.ts'
import { PlusIcon } from '../../components/icons.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { useSession } from '../../session.tsx'
import { exactCount } from '../../text/format.ts'
import { useSearchState } from '../../url-state.ts'
import { byUrgency, holdOf, STATUS_NAMES, type Standing as StandingWord, statusOf } from './destination-status.ts'
import type { Destination } from './draft.ts'
import { BacklogView, BreakerView, Latency, StatusBadge, Success } from './status-view.tsx'
import type { Standing } from './use-backlog-forecast.ts'

const SHOWN_AT_FIRST = 50

interface Row {
  destination: Destination
  standing: Standing
  word: StandingWord
  seenAtMs: number
}

export default function DestinationsPage() {
  const { isAdmin } = useSession()
  const list = useList('GET /api/destinations', { query: { limit: 1_000 }, everyMs: 15_000 })
  const health = useApi('GET /api/destinations/health', { everyMs: 5_000 })
  const [params, change] = useSearchState()
  const [shown, setShown] = useState(SHOWN_AT_FIRST)
  const { hasNextPage, isFetchingNextPage, fetchNextPage, rows: destinations } = list
  // The filter looks through all of them, and they are as few as a configuration holds.
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])

  const text = params.get('q') ?? ''
  const state = params.get('state') ?? ''
  const add = isAdmin && (
    <Button component={Link} href="/destinations/new" leftSection={<PlusIcon size={16} />}>
      Add a destination
    </Button>
  )

  const problem = list.problem ?? (health.data === undefined ? health.error : null)
  const isPending = list.isPending || (health.data === undefined && problem === null)
  const standings = new Map(health.data?.data.map(({ destinationId, ...standing }) => [destinationId, standing]))
  const rows = destinations.flatMap((destination): Row[] => {
    const standing = standings.get(destination.id) ?? NOTHING_SEEN
    return [{ destination, standing, word: statusOf(destination, standing, health.dataUpdatedAt), seenAtMs: health.dataUpdatedAt }]
  })
  const found = rows
    .filter(({ destination, word }) => matches(destination, text) && (state === '' || word.name === state))
    .sort((a, b) => byUrgency(a.word.name, b.word.name))
  const isNarrow = useMediaQuery('(max-width: 62em)', undefined, { getInitialValueInEffect: false })

  return (
    <Page title="Destinations" about="Webhooks that messages are sent to. Those that need somebody come first." actions={add}>
      {problem !== null ? (
        <ErrorAlert problem={problem} onRetry={() => void Promise.all([list.refetch(), health.refetch()])} />
      ) : isPending ? (
        <Loading lines={6} label="Loading destinations" />
      ) : rows.length === 0 ? (
        <Empty title="No destination yet" action={add || <Text size="sm">Somebody with an admin token can add one.</Text>}>
          A destination is a webhook: a URL of yours that every message is posted to, signed, and retried until it is taken.
        </Empty>
      ) : (
        <Stack>
          <Group gap="sm" align="flex-end">
            <TextInput
              label="Name or URL"
              placeholder="Any"
              value={text}
              onChange={(event) => change({ q: event.currentTarget.value }, { replace: true })}
              style={{ flex: '1 1 200px' }}
              maw={360}
            />
            <Select
              label="State"
              placeholder="Any"
              clearable
              data={[...STATUS_NAMES]}
              value={state === '' ? null : state}
              onChange={(value) => change({ state: value })}
              w={160}
              clearButtonProps={{ 'aria-label': 'Any state' }}
            />
          </Group>
          {health.error !== null && (
            <Alert color="orange">How they do could not be asked just now: what you see is older. {health.error.message}</Alert>
          )}
          <Text size="sm" c="dimmed" role="status">
            {found.length === rows.length
              ? `${exactCount(rows.length)} ${rows.length === 1 ? 'destination' : 'destinations'}`
              : `${exactCount(found.length)} of ${exactCount(rows.length)} destinations`}
          </Text>
          {found.length === 0 ? (
            <Empty
              title="None matches"
              action={
                <Button variant="default" onClick={() => change({ q: null, state: null })}>
                  Show all
                </Button>
              }
            >
              No destination has this name, URL and state.
            </Empty>
          ) : isNarrow ? (
            <Cards rows={found.slice(0, shown)} />
          ) : (
            <Rows rows={found.slice(0, shown)} />
          )}
          {found.length > shown && (
            <Group justify="center">
              <Button variant="default" onClick={() => setShown(shown + 200)}>
                Show more of {exactCount(found.length)}
              </Button>
            </Group>
          )}
        </Stack>
      )}
    </Page>
  )
}

/** Of one that was made since the last asking. */
const NOTHING_SEEN: Standing = {
  breaker: 'closed',
  openSince: null,
  inFlight: 0,
  success: null,
  latencyMs: null,
  pending: 0,
  oldestPendingAt: null,
  nextAttemptAt: null,
}

function matches({ name, urls, id }: Destination, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return wanted === '' || [name, id, ...urls].some((each) => each.toLowerCase().includes(wanted))
}

function NameLink({ destination: { id, name, urls } }: { destination: Destination }) {
  return (
    <Stack gap={0} miw={0}>
      <Anchor component={Link} href={`/destinations/${id}`} fw={600} style={{ overflowWrap: 'anywhere' }}>
        {name}
      </Anchor>
      <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }} lineClamp={2}>
        {urls[0]}
        {urls.length > 1 && ` and ${urls.length - 1} more`}
      </Text>
    </Stack>
  )
}

function Rows({ rows }: { rows: readonly Row[] }) {
  return (
    <Table verticalSpacing="sm" highlightOnHover>
      <Table.Caption style={{ captionSide: 'top', textAlign: 'start', margin: 0 }}>
        Success and latency are of the last attempts, up to 512 for each URL.
      </Table.Caption>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Destination</Table.Th>
          <Table.Th>State</Table.Th>
          <Table.Th>Success</Table.Th>
          <Table.Th>Latency</Table.Th>
          <Table.Th>Backlog</Table.Th>
          <Table.Th>Breaker</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ destination, standing, word, seenAtMs }) => (
          <Table.Tr key={destination.id}>
            <Table.Td maw={320}>
              <NameLink destination={destination} />
            </Table.Td>
            <Table.Td>
              <StatusBadge standing={word} />
            </Table.Td>
            <Table.Td style={{ whiteSpace: 'nowrap' }}>
              <Success success={standing.success} />
            </Table.Td>
            <Table.Td>
              <Latency latencyMs={standing.latencyMs} />
            </Table.Td>
            <Table.Td>
              <BacklogView destination={destination} standing={standing} seenAtMs={seenAtMs} />
            </Table.Td>
            <Table.Td>
              <BreakerView standing={standing} isHeld={holdOf(destination) !== null} />
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
      {rows.map(({ destination, standing, word, seenAtMs }) => (
        <Paper key={destination.id} component="li" withBorder p="sm">
          <Stack gap={6}>
            <Group justify="space-between" align="flex-start" wrap="nowrap">
              <NameLink destination={destination} />
              <StatusBadge standing={word} />
            </Group>
            {word.name !== 'healthy' && <Text size="sm">{word.says}</Text>}
            <Group gap="lg" style={{ rowGap: 4 }}>
              <Text size="sm" component="div">
                <Text span size="xs" c="dimmed">
                  success
                </Text>{' '}
                <Success success={standing.success} />
              </Text>
              {standing.latencyMs !== null && <Latency latencyMs={standing.latencyMs} />}
            </Group>
            <BacklogView destination={destination} standing={standing} seenAtMs={seenAtMs} />
            {standing.breaker !== 'closed' && (
              <Text size="sm" component="div">
                Breaker <BreakerView standing={standing} isHeld={holdOf(destination) !== null} />
              </Text>
            )}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}
