// The search dialog: pages, sources, destinations, events, plans, incidents, messages, users, settings, documentation, and what can be done with a
// destination. search-items.ts decides what is found. Loaded when it is first opened (search.tsx).

import '@mantine/spotlight/styles.css'
import { useDebouncedValue } from '@mantine/hooks'
import { Spotlight, type SpotlightActionData, spotlight } from '@mantine/spotlight'
import { type ComponentType, type KeyboardEvent, lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { DOC_PAGES } from './api/doc-pages.ts'
import { useApi, useWholeList } from './api/queries.ts'
import * as icons from './components/icons.tsx'
import { NAVIGATION } from './routes.tsx'
import { foundItems, type Item, type ItemKind } from './search-items.ts'
import { useSession } from './session/session.tsx'
import { SETTINGS_TABS } from './settings-tabs.ts'
import { ago } from './text/format.ts'

const ReplayDialog = lazy(async () => ({ default: (await import('./pages/replays/replay-dialog.tsx')).ReplayDialog }))

const ICONS: Readonly<Record<Exclude<ItemKind, 'page'>, ComponentType>> = {
  action: icons.PlayIcon,
  source: icons.SourceIcon,
  destination: icons.DestinationIcon,
  event: icons.EventIcon,
  plan: icons.PlanIcon,
  incident: icons.AlertIcon,
  message: icons.MessageIcon,
  user: icons.SearchIcon,
  docs: icons.DocsIcon,
}

const PAGES = [
  ...NAVIGATION.map(({ path, label }) => ({ path, label: label as string })),
  { path: '/start', label: 'Get started', about: 'Send a first message and add a destination' },
  { path: '/catalog', label: 'Add a destination', about: 'A webhook, or one of the integrations' },
  ...SETTINGS_TABS.map(({ name, label, about }) => ({ path: `/settings/${name}`, label: `Settings: ${label}`, about })),
]
const PAGE_ICONS = new Map<string, ComponentType>(NAVIGATION.map(({ path, Icon }) => [path, Icon]))

/** `openCount`: how often it was opened. The dialog opens whenever this changes. */
export default function SearchDialog({ openCount }: { openCount: number }) {
  const [, go] = useLocation()
  const [query, setQuery] = useState('')
  const [isOpen, setOpen] = useState(false)
  const [replayed, setReplayed] = useState<{ id: string; name: string } | null>(null)
  const data = useSearchData(query, isOpen)
  useEffect(() => spotlight.open(), [openCount])
  const items = useMemo(() => foundItems(data, query), [data, query])
  const follow = ({ to, replayOf }: Item): void => {
    if (replayOf !== undefined) setReplayed(data.destinations.find(({ id }) => id === replayOf) ?? null)
    else if (to?.startsWith('/docs/')) window.open(to, '_blank', 'noopener')
    else if (to !== undefined) go(to)
  }
  const actions = items.map((item): SpotlightActionData => {
    const Icon = item.kind === 'page' ? (PAGE_ICONS.get(item.id) ?? icons.SettingsIcon) : ICONS[item.kind]
    return { id: item.id, label: item.label, description: item.description, leftSection: <Icon />, onClick: () => follow(item) }
  })
  return (
    <>
      <Spotlight
        actions={actions}
        // They are found and in order already.
        filter={(_query, found) => found}
        query={query}
        onQueryChange={setQuery}
        onSpotlightOpen={() => setOpen(true)}
        onSpotlightClose={() => setOpen(false)}
        shortcut={null}
        nothingFound="No results. To find a message, enter its full messageId."
        highlightQuery
        scrollable
        searchProps={{
          leftSection: <icons.SearchIcon />,
          placeholder: 'Search, or type what to do: pause …',
          'aria-label': 'Search pages, sources, destinations, events, messages, documentation and actions',
          onKeyDown: chooseFirst,
        }}
      />
      {replayed !== null && (
        <Suspense>
          <ReplayDialog
            body={{ destinationId: replayed.id, states: ['failed', 'expired'] }}
            onClose={() => setReplayed(null)}
            nameOf={() => replayed.name}
          />
        </Suspense>
      )}
    </>
  )
}

const NONE: readonly never[] = []

function useSearchData(query: string, isOpen: boolean) {
  const { mayEdit } = useSession()
  const [wanted] = useDebouncedValue(query.trim(), 150)
  const options = { query: { limit: 1_000 }, enabled: isOpen }
  const { rows: sources } = useWholeList('GET /api/sources', options)
  const destinations = useApi('GET /api/destinations/summary', { enabled: isOpen }).data?.data ?? NONE
  const { rows: plans } = useWholeList('GET /api/plans', options)
  const { data: incidents } = useApi('GET /api/incidents', { query: { state: 'active', limit: 20 }, enabled: isOpen })
  const { data: events } = useApi('GET /api/events', {
    query: { q: wanted, limit: 5 },
    enabled: isOpen && wanted.length >= 2,
    keep: true,
  })
  return useMemo(
    () => ({
      pages: PAGES,
      docs: DOC_PAGES,
      mayEdit,
      sources,
      destinations,
      plans,
      events: wanted.length < 2 ? [] : (events?.data ?? []),
      incidents: (incidents?.data ?? []).map(({ id, message, since }) => ({ id, message, since: ago(since) })),
    }),
    [mayEdit, sources, destinations, plans, events, incidents, wanted],
  )
}

/** Names may be loaded after they were typed, and then Spotlight has selected none of them. Enter chooses the first one anyway. */
function chooseFirst({ key, currentTarget }: KeyboardEvent<HTMLInputElement>): void {
  const dialog = currentTarget.closest('[role="dialog"]')
  if (key !== 'Enter' || currentTarget.value.trim() === '' || dialog?.querySelector('[data-selected]') !== null) return
  dialog.querySelector<HTMLElement>('[data-action]')?.click()
}
