// The filters. Each is in the URL as soon as it is chosen, or typed and confirmed; the service applies them.

import { Button, NativeSelect, SimpleGrid, TextInput } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type Ref, useEffect, useState } from 'react'
import type { LiveQuery } from '../../api/live.ts'
import type { Names } from '../../api/use-names.ts'
import { changeSearch } from '../../url-state.ts'
import { FILTERS, KINDS, TYPES } from './filters.ts'

export function FilterBar({ query, names, first }: { query: LiveQuery; names: Names; first: Ref<HTMLInputElement> }) {
  const isNarrow = useMediaQuery('(max-width: 47.99em)', false, { getInitialValueInEffect: false }) ?? false
  const [isOpen, setOpen] = useState(false)
  const chosen = Object.keys(query).length
  const { what = '', sourceId = '', destinationId = '', type = '', event = '', userId = '', messageId } = query
  return (
    <div role="search" aria-label="Filter events">
      {isNarrow && (
        // On a phone the filters are hidden at first, to leave room for the rows.
        <Button variant="default" size="xs" mb={isOpen ? 'xs' : 0} mr="xs" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide filters' : chosen === 0 ? 'Filter' : `Filters (${chosen})`}
        </Button>
      )}
      <SimpleGrid display={isNarrow && !isOpen ? 'none' : 'grid'} cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs" verticalSpacing="xs">
        <TextFilter label="Event" name="event" placeholder="Exact event name" value={event} input={first} />
        <TextFilter label="User" name="userId" placeholder="Full userId" value={userId} />
        <NativeSelect
          label="Show"
          value={what}
          onChange={({ currentTarget: { value } }) => changeSearch({ what: value })}
          data={[{ value: '', label: 'Everything' }, ...Object.entries(KINDS).map(([value, label]) => ({ value, label }))]}
        />
        <NativeSelect
          label="Type"
          value={type}
          onChange={({ currentTarget: { value } }) => changeSearch({ type: value })}
          data={[{ value: '', label: 'All' }, ...TYPES]}
        />
        <NativeSelect
          label="Source"
          value={sourceId}
          onChange={({ currentTarget: { value } }) => changeSearch({ sourceId: value })}
          data={options(names.sources, sourceId)}
        />
        <NativeSelect
          label="Destination"
          value={destinationId}
          onChange={({ currentTarget: { value } }) => changeSearch({ destinationId: value })}
          data={options(names.destinations, destinationId)}
        />
        {messageId !== undefined && <TextFilter label="messageId" name="messageId" placeholder="Full messageId" value={messageId} />}
      </SimpleGrid>
      {chosen > 0 && (
        <Button
          variant="subtle"
          size="compact-sm"
          mt={isNarrow && !isOpen ? 0 : 'xs'}
          onClick={() => changeSearch(Object.fromEntries(FILTERS.map((name) => [name, null])))}
        >
          Clear filters
        </Button>
      )}
    </div>
  )
}

function options(names: ReadonlyMap<string, string>, chosen: string): { value: string; label: string }[] {
  return [
    { value: '', label: 'All' },
    ...[...names].map(([value, label]) => ({ value, label })),
    ...(chosen === '' || names.has(chosen) ? [] : [{ value: chosen, label: chosen }]),
  ]
}

/** Applied when it loses focus or Enter is pressed: the stream reconnects with every change. */
function TextFilter({
  label,
  name,
  value,
  placeholder,
  input,
}: {
  label: string
  name: string
  value: string
  placeholder: string
  input?: Ref<HTMLInputElement>
}) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const apply = (): void => {
    if (text.trim() !== value) changeSearch({ [name]: text.trim() })
  }
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={text}
      maxLength={200}
      autoComplete="off"
      spellCheck={false}
      onChange={({ currentTarget }) => setText(currentTarget.value)}
      onBlur={apply}
      onKeyDown={({ key }) => key === 'Enter' && apply()}
      {...(input === undefined ? {} : { ref: input })}
    />
  )
}
