// Add a destination: a webhook, or one of the integrations of the catalogue, which may have to be installed first. The search and the filter are in
// the page's address.

import { Group, Stack, Text } from '@mantine/core'
import { useDeferredValue, useEffect, useMemo, useRef } from 'react'
import { Link } from 'wouter'
import { useApi, useChange, useWholeList } from '../../api/queries.ts'
import { SearchIcon } from '../../components/icons.tsx'
import { ParamInput } from '../../components/inputs.tsx'
import { InstallPackage } from '../../components/install-package.tsx'
import { IntegrationTile, Tile } from '../../components/integration-tile.tsx'
import { Empty, ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { ParamCombobox } from '../../components/param-combobox.tsx'
import { LinkButton, Note, SmallNote } from '../../components/styled.tsx'
import type { AddCard } from '../../destination/kind.ts'
import { KINDS } from '../../kinds/kinds.tsx'
import { useCommand, useSession } from '../../session/session.tsx'
import { useSearchState } from '../../url/url-state.ts'
import classes from './catalog.module.css'
import {
  AUTH_NAMES,
  type Auth,
  abilitiesText,
  aboutText,
  CATEGORY_NAMES,
  type CatalogEntry,
  type Category,
  countText,
  found,
  problemText,
} from './catalog-search.ts'

export default function CatalogPage() {
  const { isAdmin, mayEdit } = useSession()
  const list = useWholeList('GET /api/catalog', { query: { limit: 1_000 } })
  const { rows: entries, problem } = list
  const back = <LinkButton to="/destinations">{mayEdit ? 'Cancel' : 'View destinations'}</LinkButton>
  return (
    <Page title="Add a destination" about="Send events to your own URL, or to one of your tools." actions={back}>
      {problem !== null ? (
        <ErrorAlert problem={problem} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading lines={8} label="Loading the catalogue" />
      ) : entries.length === 0 ? (
        <Stack>
          <ul className={classes.grid} aria-label="Destinations">
            {CARDS.map((card) => (
              <KindCard key={card.to} {...card} />
            ))}
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
  const [params] = useSearchState()
  const text = params.get('q') ?? ''
  const auth = params.get('auth') ?? ''
  const category = params.get('category') ?? ''
  const wanted = useDeferredValue(text)
  const shown = useMemo(() => found(entries, { text: wanted, auth, category }), [entries, wanted, auth, category])
  const cards = useMemo(() => shown.map((entry) => <IntegrationCard key={entry.slug} entry={entry} />), [shown])
  const auths = useMemo(() => (Object.keys(AUTH_NAMES) as Auth[]).filter((each) => entries.some((entry) => entry.auth === each)), [entries])
  const categories = useMemo(
    () => (Object.keys(CATEGORY_NAMES) as Category[]).filter((each) => entries.some((entry) => entry.category === each)),
    [entries],
  )
  const kinds =
    auth === '' && category === '' ? CARDS.filter(({ title }) => title.toLowerCase().startsWith(wanted.trim().toLowerCase())) : []
  return (
    <Stack>
      <Group gap="sm" align="flex-end">
        <ParamInput
          param="q"
          label="Search"
          placeholder="A tool, or a purpose such as e-mail"
          leftSection={<SearchIcon size={16} />}
          style={{ flex: '1 1 220px' }}
          maw={420}
          data-autofocus
        />
        <ParamCombobox
          param="category"
          label="Category"
          options={categories.map((value) => ({ value, label: CATEGORY_NAMES[value] }))}
          isReplacing
          w={250}
          openOnFocus={false}
          clearButtonProps={{ 'aria-label': 'Any category' }}
        />
        <ParamCombobox
          param="auth"
          label="Authentication"
          options={auths.map((value) => ({ value, label: AUTH_NAMES[value] }))}
          isReplacing
          w={230}
          openOnFocus={false}
          clearButtonProps={{ 'aria-label': 'Any authentication' }}
        />
      </Group>
      <Note role="status">{countText(entries, shown.length)}</Note>
      {shown.length === 0 && kinds.length === 0 ? (
        <Empty title="No matching integration" filters={['q', 'category', 'auth']}>
          A webhook can send to any HTTP API: you choose its method, path, headers and body.
        </Empty>
      ) : (
        <ul className={classes.grid} aria-label="Destinations">
          {kinds.map((card) => (
            <KindCard key={card.to} {...card} />
          ))}
          {cards}
        </ul>
      )}
    </Stack>
  )
}

/** The kinds that are added by a form of their own. */
const CARDS = Object.values(KINDS).flatMap(({ card }) => (card === null ? [] : [card]))

function KindCard({ to, title, about, details, Icon }: AddCard) {
  return (
    <li>
      <Link href={to} className={classes.card}>
        <Tile color="var(--mantine-color-blue-8)">
          <Icon size={22} />
        </Tile>
        <span className={classes.text}>
          <Text span fw={600}>
            {title}
          </Text>
          <Text span size="sm">
            {about}
          </Text>
          <SmallNote span>{details}</SmallNote>
        </span>
      </Link>
    </li>
  )
}

function IntegrationCard({ entry }: { entry: CatalogEntry }) {
  const { slug, title, available, auth, category } = entry
  const about = problemText(entry) ?? aboutText(entry)
  const inside = (
    <>
      <IntegrationTile slug={slug} title={title} />
      <span className={classes.text}>
        <Text span fw={600} style={{ overflowWrap: 'anywhere' }}>
          {title}
        </Text>
        <Text span size="sm" className={classes.about} title={about}>
          {about}
        </Text>
        <SmallNote span>{[CATEGORY_NAMES[category], ...(available ? [AUTH_NAMES[auth]] : []), abilitiesText(entry)].join(' · ')}</SmallNote>
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

export function InstallCatalog({ isAdmin, onInstalled }: { isAdmin: boolean; onInstalled: () => void }) {
  const program = useCommand()
  const installation = useApi('GET /api/catalog/install', { everyMs: (answer) => (answer?.state === 'installing' ? 1_000 : 10_000) })
  const install = useChange('POST /api/catalog/install', 'GET /api/catalog/install')
  const { state = 'missing', done = 0, total = 0, error = null } = installation.data ?? {}
  const installed = useRef(onInstalled)
  installed.current = onInstalled
  useEffect(() => {
    if (state === 'installed') installed.current()
  }, [state])
  return (
    <InstallPackage
      title="The integrations are not installed"
      action="Install the integrations"
      isAdmin={isAdmin}
      adminsOnly="Installing them requires the admin role."
      command={`${program} catalog install`}
      progress={{ state, done, total, error }}
      install={install}
    >
      170 integrations, such as Slack, Amplitude and Kafka, are in a separate package of about 100 MB. The service downloads it from the npm
      registry once, without a restart. Webhooks work without it.
    </InstallPackage>
  )
}
