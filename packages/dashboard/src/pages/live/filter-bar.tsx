// What is listened for. Each filter is in the address as soon as it is chosen, or typed and left; the service does the rest.

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
    <div role="search" aria-label="Filter the events">
      {isNarrow && (
        // On a phone the rows come first.
        <Button variant="default" size="xs" mb={isOpen ? 'xs' : 0} mr="xs" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide the filters' : chosen === 0 ? 'Filter' : `Filters (${chosen})`}
        </Button>
      )}
      <SimpleGrid display={isNarrow && !isOpen ? 'none' : 'grid'} cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs" verticalSpacing="xs">
        <Typed label="Event" name="event" placeholder="as it is written" value={event} input={first} />
        <Typed label="User" name="userId" placeholder="a userId, in whole" value={userId} />
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
        {messageId !== undefined && <Typed label="messageId" name="messageId" placeholder="in whole" value={messageId} />}
      </SimpleGrid>
      {chosen > 0 && (
        <Button
          variant="subtle"
          size="compact-sm"
          mt={isNarrow && !isOpen ? 0 : 'xs'}
          onClick={() => changeSearch(Object.fromEntries(FILTERS.map((name) => [name, null])))}
        >
          Clear the filters
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

/** Told when it is left or Enter is pressed: with each letter the stream would begin anew. */
function Typed({
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
  const tell = (): void => {
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
      onBlur={tell}
      onKeyDown={({ key }) => key === 'Enter' && tell()}
      {...(input === undefined ? {} : { ref: input })}
    />
  )
}
