// The filters. Each is in the URL as soon as it is chosen, or typed and confirmed; the service applies them.

import { SimpleGrid } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type Ref, useState } from 'react'
import type { LiveQuery } from '../../api/live.ts'
import type { Names } from '../../api/use-names.ts'
import { ClearFilters, clearFilters, nameOptions, ParamSelect, TextFilter } from '../../components/inputs.tsx'
import { SmallButton } from '../../components/styled.tsx'
import { changeSearch } from '../../url/url-state.ts'
import { FILTERS, KINDS, TYPES } from './filters.ts'

const KIND_OPTIONS = Object.entries(KINDS).map(([value, label]) => ({ value, label }))

export function FilterBar({ query, names, first }: { query: LiveQuery; names: Names; first: Ref<HTMLInputElement> }) {
  const isNarrow = useMediaQuery('(max-width: 47.99em)', false, { getInitialValueInEffect: false }) ?? false
  const [isOpen, setOpen] = useState(false)
  const chosen = Object.keys(query).length
  const { sourceId = '', destinationId = '', event = '', userId = '', messageId } = query
  return (
    <div role="search" aria-label="Filter events">
      {isNarrow && (
        // On a phone the filters are hidden at first, to leave room for the rows.
        <SmallButton mb={isOpen ? 'xs' : 0} mr="xs" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide filters' : chosen === 0 ? 'Filter' : `Filters (${chosen})`}
        </SmallButton>
      )}
      <SimpleGrid display={isNarrow && !isOpen ? 'none' : 'grid'} cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs" verticalSpacing="xs">
        <TextFilter
          maxLength={200}
          label="Event"
          placeholder="Exact event name"
          value={event}
          input={first}
          onChange={(value) => changeSearch({ event: value })}
        />
        <TextFilter
          maxLength={200}
          label="User"
          placeholder="Full userId"
          value={userId}
          onChange={(value) => changeSearch({ userId: value })}
        />
        <ParamSelect param="what" label="Show" options={KIND_OPTIONS} all="Everything" />
        <ParamSelect param="type" label="Type" options={TYPES} />
        <ParamSelect param="sourceId" label="Source" options={nameOptions(names.sources, sourceId)} />
        <ParamSelect param="destinationId" label="Destination" options={nameOptions(names.destinations, destinationId)} />
        {messageId !== undefined && (
          <TextFilter
            maxLength={200}
            label="messageId"
            placeholder="Full messageId"
            value={messageId}
            onChange={(value) => changeSearch({ messageId: value })}
          />
        )}
      </SimpleGrid>
      {chosen > 0 && <ClearFilters mt={isNarrow && !isOpen ? 0 : 'xs'} onClick={() => clearFilters(FILTERS)} />}
    </div>
  )
}
