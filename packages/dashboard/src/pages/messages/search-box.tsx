// The search of messages: a part of an id or a name, or a property such as plan=pro, with suggestions. Suggestions come from the event catalogue and
// from one page of messages that match, so each costs the service no more than a search.

import { Autocomplete } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'
import { useApi } from '../../api/queries.ts'
import { SearchIcon } from '../../components/icons.tsx'
import { changeSearch, useSearchState } from '../../url/url-state.ts'
import { type Suggestion, searchOf, suggestionsFor } from './suggestions.ts'

const TYPING_MS = 250
const MATCHING = 20
const GROUPS: readonly [Suggestion['kind'], string][] = [
  ['event', 'Events'],
  ['user', 'Users'],
  ['property', 'Properties'],
]

export function SearchBox() {
  const [params] = useSearchState()
  const applied = params.get('search') ?? params.get('property') ?? ''
  const [text, setText] = useState(applied)
  useEffect(() => setText(applied), [applied])
  const [wanted] = useDebouncedValue(text.trim(), TYPING_MS)
  const isTyping = wanted !== '' && wanted !== applied
  const { search } = searchOf(wanted)
  const events = useApi('GET /api/events', {
    query: { q: wanted.slice(0, 200), type: 'track', limit: MATCHING },
    enabled: isTyping && search !== null,
    keep: true,
  })
  const matching = useApi('GET /api/messages', {
    query: { search: wanted.slice(0, 200), limit: MATCHING },
    enabled: isTyping && search !== null,
    keep: true,
  })
  const newest = useApi('GET /api/messages', { query: { limit: MATCHING }, enabled: isTyping, keep: true })
  const suggestions = isTyping
    ? suggestionsFor(wanted, {
        events: (events.data?.data ?? []).flatMap(({ event }) => event ?? []),
        matching: matching.data?.data ?? [],
        others: newest.data?.data ?? [],
      })
    : []
  // The value of an option has its kind, because an event and a user may have the same name.
  const chosen = useRef(false)
  const apply = (value: string): void => changeSearch(searchOf(value))
  const choose = (option: string): void => {
    chosen.current = true
    const at = option.indexOf(':')
    const [kind, value] = [option.slice(0, at), option.slice(at + 1)]
    if (kind === 'property') {
      // A path is completed with a value next.
      setText(value.includes('=') ? value : `${value}=`)
      if (value.includes('=')) changeSearch({ search: null, property: value })
      return
    }
    setText('')
    changeSearch({ search: null, property: null, [kind === 'event' ? 'event' : 'userId']: value })
  }
  return (
    <Autocomplete
      label="Search"
      placeholder="Part of a user, event or messageId, or a property: plan=pro"
      leftSection={<SearchIcon size={15} />}
      value={text}
      onChange={(value) => {
        if (chosen.current) chosen.current = false
        else setText(value)
      }}
      onOptionSubmit={choose}
      onKeyDown={({ key, currentTarget }) => {
        // With an option marked, Enter chooses it.
        if (key === 'Enter' && currentTarget.getAttribute('aria-activedescendant') === null) apply(text)
      }}
      onBlur={() => {
        if (text.trim() !== applied && !text.endsWith('=')) apply(text)
      }}
      data={GROUPS.flatMap(([kind, group]) => {
        const items = suggestions.filter((each) => each.kind === kind).map(({ value }) => ({ value: `${kind}:${value}`, label: value }))
        return items.length === 0 ? [] : [{ group, items }]
      })}
      filter={({ options }) => options}
      maxLength={500}
      autoComplete="off"
      spellCheck={false}
      comboboxProps={{ withinPortal: true }}
    />
  )
}
