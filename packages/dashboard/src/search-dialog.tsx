// The search dialog: goes to a page, a source, a destination, or a message by its id. Loaded when it is first opened (search.tsx).

import '@mantine/spotlight/styles.css'
import { Spotlight, type SpotlightActionData, spotlight } from '@mantine/spotlight'
import { type KeyboardEvent, useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { useApi } from './api/queries.ts'
import { DestinationIcon, MessageIcon, SearchIcon, SourceIcon } from './components/icons.tsx'
import { NAVIGATION } from './routes.tsx'

/** Text that may be the id of a message or a delivery: no white space, and at least 8 characters. */
const LOOKS_LIKE_ID = /^\S{8,}$/

/** `openCount`: how often it was opened. The dialog opens whenever this changes. */
export default function SearchDialog({ openCount }: { openCount: number }) {
  const [, go] = useLocation()
  const [query, setQuery] = useState('')
  const [isOpen, setOpen] = useState(false)
  const { data: sources } = useApi('GET /api/sources', { query: { limit: 200 }, enabled: isOpen })
  const { data: destinations } = useApi('GET /api/destinations', { query: { limit: 200 }, enabled: isOpen })
  useEffect(() => spotlight.open(), [openCount])
  const text = query.trim()
  const actions: SpotlightActionData[] = [
    ...NAVIGATION.map(({ path, label, Icon }) => ({ id: path, label, leftSection: <Icon />, onClick: () => go(path) })),
    { id: 'start', label: 'Get started', description: 'Send a first message and add a destination', onClick: () => go('/start') },
    ...(sources?.data ?? []).map(({ id, name }) => ({
      id,
      label: name,
      description: `Source ${id}`,
      leftSection: <SourceIcon />,
      keywords: id,
      onClick: () => go(`/sources/${id}`),
    })),
    ...(destinations?.data ?? []).map(({ id, name }) => ({
      id,
      label: name,
      description: `Destination ${id}`,
      leftSection: <DestinationIcon />,
      keywords: id,
      onClick: () => go(`/destinations/${id}`),
    })),
    // Last, so that a source or destination with a long name that matches comes first.
    ...(LOOKS_LIKE_ID.test(text)
      ? [
          {
            id: 'message',
            label: `Find message ${text}`,
            description: 'Shows its timeline and deliveries',
            leftSection: <MessageIcon />,
            keywords: text,
            onClick: () => go(`/messages/${encodeURIComponent(text)}`),
          },
        ]
      : []),
  ]
  return (
    <Spotlight
      actions={actions}
      query={query}
      onQueryChange={setQuery}
      onSpotlightOpen={() => setOpen(true)}
      shortcut={null}
      nothingFound="No results. To find a message, enter its full messageId."
      highlightQuery
      limit={12}
      scrollable
      searchProps={{
        leftSection: <SearchIcon />,
        placeholder: 'Search pages, sources, destinations, or enter a messageId',
        'aria-label': 'Search',
        onKeyDown: chooseFirst,
      }}
    />
  )
}

/** Names may be loaded after they were typed, and then Spotlight has selected none of them. Enter chooses the first one anyway. */
function chooseFirst({ key, currentTarget }: KeyboardEvent<HTMLInputElement>): void {
  const dialog = currentTarget.closest('[role="dialog"]')
  if (key !== 'Enter' || currentTarget.value.trim() === '' || dialog?.querySelector('[data-selected]') !== null) return
  dialog.querySelector<HTMLElement>('[data-action]')?.click()
}
