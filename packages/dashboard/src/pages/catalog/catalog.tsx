// Add a destination: a webhook, or one of the integrations of the catalogue. The search and the filter are in the page's address.

import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { useDeferredValue, useEffect, useMemo } from 'react'
import { Link } from 'wouter'
import { useList } from '../../api/queries.ts'
import { DestinationIcon, SearchIcon } from '../../components/icons.tsx'
import { IntegrationTile, Tile } from '../../components/integration-tile.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { useSession } from '../../session.tsx'
import { exactCount } from '../../text/format.ts'
import { shortName } from '../../text/integration-tile.ts'
import { useSearchState } from '../../url-state.ts'
import classes from './catalog.module.css'
import { AUTH_NAMES, type Auth, abilitiesText, aboutText, type CatalogEntry, found, problemText } from './catalog-search.ts'
import { InstallCatalog } from './install.tsx'

export default function CatalogPage() {
  const { isAdmin } = useSession()
  const list = useList('GET /api/catalog', { query: { limit: 1_000 } })
  const { hasNextPage, isFetchingNextPage, fetchNextPage, rows: entries, problem } = list
  // The search covers the whole catalogue.
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  const back = (
    <Button component={Link} href="/destinations" variant="default">
      {isAdmin ? 'Cancel' : 'View destinations'}
    </Button>
  )
  return (
    <Page title="Add a destination" about="Send events to your own URL, or to one of your tools." actions={back}>
      {problem !== null ? (
        <ErrorAlert problem={problem} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading lines={8} label="Loading the catalogue" />
      ) : entries.length === 0 ? (
        <Stack>
          <ul className={classes.grid} aria-label="Destinations">
            <li>
              <WebhookCard />
            </li>
          </ul>
          <InstallCatalog isAdmin={isAdmin} onInstalled={() => void list.refetch()} />
        </Stack>
      ) : (
        <Catalog entries={entries} />
      )}
    </Page>
  )
}

function Catalog({ entries }: { entries: readonly CatalogEntry[] }) {
  const [params, change] = useSearchState()
  const text = params.get('q') ?? ''
  const auth = params.get('auth') ?? ''
  const wanted = useDeferredValue(text)
  const shown = useMemo(() => found(entries, wanted, auth), [entries, wanted, auth])
  const cards = useMemo(() => shown.map((entry) => <IntegrationCard key={entry.slug} entry={entry} />), [shown])
  const auths = useMemo(() => (Object.keys(AUTH_NAMES) as Auth[]).filter((each) => entries.some((entry) => entry.auth === each)), [entries])
  const isWebhook = auth === '' && 'webhook'.startsWith(wanted.trim().toLowerCase())
  return (
    <Stack>
      <Group gap="sm" align="flex-end">
        <TextInput
          label="Search"
          placeholder="Slack, Amplitude, Kafka …"
          leftSection={<SearchIcon size={16} />}
          value={text}
          onChange={(event) => change({ q: event.currentTarget.value }, { replace: true })}
          style={{ flex: '1 1 220px' }}
          maw={420}
          data-autofocus
        />
        <Select
          label="Authentication"
          placeholder="Any"
          clearable
          data={auths.map((value) => ({ value, label: AUTH_NAMES[value] }))}
          value={auth === '' ? null : auth}
          onChange={(value) => change({ auth: value }, { replace: true })}
          w={230}
          openOnFocus={false}
          clearButtonProps={{ 'aria-label': 'Any authentication' }}
        />
      </Group>
      <Text size="sm" c="dimmed" role="status">
        {shown.length === entries.length
          ? `${exactCount(entries.length)} integrations`
          : `${exactCount(shown.length)} of ${exactCount(entries.length)} integrations`}
      </Text>
      {shown.length === 0 && !isWebhook ? (
        <Empty
          title="No matching integration"
          action={
            <Button variant="default" onClick={() => change({ q: null, auth: null }, { replace: true })}>
              Show all
            </Button>
          }
        >
          A webhook can send to any HTTP API: you choose its method, path, headers and body.
        </Empty>
      ) : (
        <ul className={classes.grid} aria-label="Destinations">
          {isWebhook && (
            <li>
              <WebhookCard />
            </li>
          )}
          {cards}
        </ul>
      )}
    </Stack>
  )
}

function WebhookCard() {
  return (
    <Link href="/destinations/new" className={classes.card}>
      <Tile color="var(--mantine-color-blue-8)">
        <DestinationIcon size={22} />
      </Tile>
      <span className={classes.text}>
        <Text span fw={600}>
          Webhook
        </Text>
        <Text span size="sm">
          Sends requests to your own URL, in any shape.
        </Text>
        <Text span size="xs" c="dimmed">
          needs a URL · signed · batches
        </Text>
      </span>
    </Link>
  )
}

function IntegrationCard({ entry }: { entry: CatalogEntry }) {
  const { slug, name, available, auth } = entry
  const about = problemText(entry) ?? aboutText(entry)
  const inside = (
    <>
      <IntegrationTile slug={slug} name={name} />
      <span className={classes.text}>
        <Text span fw={600} style={{ overflowWrap: 'anywhere' }}>
          {shortName(name)}
        </Text>
        <Text span size="sm" className={classes.about} title={about}>
          {about}
        </Text>
        <Text span size="xs" c="dimmed">
          {available ? `${AUTH_NAMES[auth]} · ${abilitiesText(entry)}` : abilitiesText(entry)}
        </Text>
      </span>
    </>
  )
  return (
    <li>
      {available ? (
        <Link href={`/catalog/${encodeURIComponent(slug)}`} className={classes.card}>
          {inside}
        </Link>
      ) : (
        <div className={classes.card}>{inside}</div>
      )}
    </li>
  )
}
