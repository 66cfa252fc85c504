// The filters. Each is in the URL as soon as it is chosen, or typed and confirmed; the service applies them.

import { SimpleGrid } from '@mantine/core'
import { type Ref, useState } from 'react'
import type { LiveQuery } from '../../api/live.ts'
import type { Names } from '../../api/use-names.ts'
import { ClearFilters, clearFilters, nameOptions, ParamSelect, TextFilter } from '../../components/inputs.tsx'
import { useIsNarrow } from '../../components/responsive-table.tsx'
import { SmallButton } from '../../components/styled.tsx'
import { FILTERS, KINDS, TYPES } from './filters.ts'

const KIND_OPTIONS = Object.entries(KINDS).map(([value, label]) => ({ value, label }))

export function FilterBar({ query, names, first }: { query: LiveQuery; names: Names; first: Ref<HTMLInputElement> }) {
  const isNarrow = useIsNarrow()
  const [isOpen, setOpen] = useState(false)
  const chosen = Object.keys(query).length
  const { sourceId, destinationId, messageId } = query
  return (
    <div role="search" aria-label="Filter events">
      {isNarrow && (
        // On a phone the filters are hidden at first, to leave room for the rows.
        <SmallButton mb={isOpen ? 'xs' : 0} mr="xs" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide filters' : chosen === 0 ? 'Filter' : `Filters (${chosen})`}
        </SmallButton>
      )}
      <SimpleGrid display={isNarrow && !isOpen ? 'none' : 'grid'} cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs" verticalSpacing="xs">
        <TextFilter param="event" maxLength={200} label="Event" placeholder="Exact event name" input={first} />
        <TextFilter param="userId" maxLength={200} label="User" placeholder="Full userId" />
        <ParamSelect param="what" label="Show" options={KIND_OPTIONS} all="Everything" />
        <ParamSelect param="type" label="Type" options={TYPES} />
        <ParamSelect param="sourceId" label="Source" options={nameOptions(names.sources, sourceId)} />
        <ParamSelect param="destinationId" label="Destination" options={nameOptions(names.destinations, destinationId)} />
        {messageId !== undefined && <TextFilter param="messageId" maxLength={200} label="messageId" placeholder="Full messageId" />}
      </SimpleGrid>
      {chosen > 0 && <ClearFilters mt={isNarrow && !isOpen ? 0 : 'xs'} onClick={() => clearFilters(FILTERS)} />}
    </div>
  )
}
