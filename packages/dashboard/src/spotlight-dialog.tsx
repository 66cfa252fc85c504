// What ⌘K opens: to a page, a source, a destination, or straight to a message by its id. Loaded when it is first opened (spotlights.tsx).

import '@mantine/spotlight/styles.css'
import { Spotlight, type SpotlightActionData, spotlight } from '@mantine/spotlight'
import { type KeyboardEvent, useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { useApi } from './api/queries.ts'
import { DestinationIcon, MessageIcon, SearchIcon, SourceIcon } from './components/icons.tsx'
import { NAVIGATION } from './routes.tsx'

/** What could be the id of a message or a delivery: no blanks, and longer than a word. */
const LOOKS_LIKE_ID = /^\S{8,}$/

/** `asked`: how often it was asked for. */
export default function SpotlightDialog({ asked }: { asked: number }) {
  const [, go] = useLocation()
  const [query, setQuery] = useState('')
  const [isOpen, setOpen] = useState(false)
  const { data: sources } = useApi('GET /api/sources', { query: { limit: 200 }, enabled: isOpen })
  const { data: destinations } = useApi('GET /api/destinations', { query: { limit: 200 }, enabled: isOpen })
  useEffect(() => spotlight.open(), [asked])
  const text = query.trim()
  const actions: SpotlightActionData[] = [
    ...NAVIGATION.map(({ path, label, Icon }) => ({ id: path, label, leftSection: <Icon />, onClick: () => go(path) })),
    { id: 'start', label: 'Get started', description: 'Send the first message, add a webhook', onClick: () => go('/start') },
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
    // Last: a name that is that long, too, is meant as a name.
    ...(LOOKS_LIKE_ID.test(text)
      ? [
          {
            id: 'message',
            label: `Where is ${text}?`,
            description: 'The story of this message',
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
      nothingFound="Nothing of that name. A message is found by its whole messageId."
      highlightQuery
      limit={12}
      scrollable
      searchProps={{
        leftSection: <SearchIcon />,
        placeholder: 'A page, a source, a destination, or a messageId',
        'aria-label': 'Search',
        onKeyDown: takeFirst,
      }}
    />
  )
}

/** Names may come after they were typed, when Spotlight has looked for one to choose in vain: Enter takes the first all the same. */
function takeFirst({ key, currentTarget }: KeyboardEvent<HTMLInputElement>): void {
  const dialog = currentTarget.closest('[role="dialog"]')
  if (key !== 'Enter' || currentTarget.value.trim() === '' || dialog?.querySelector('[data-selected]') !== null) return
  dialog.querySelector<HTMLElement>('[data-action]')?.click()
}
