// The filters of the list. Each is in the URL as soon as it is chosen, or typed and confirmed.

import { Group, Select, SimpleGrid } from '@mantine/core'
import { useEffect, useState } from 'react'
import { ClearFilters, clearFilters, nameOptions, TextFilter } from '../../components/inputs.tsx'
import { ParamCombobox } from '../../components/param-combobox.tsx'
import { type Filters, isNarrowed, PERIODS, STATES } from '../../delivery/filters.ts'
import { changeSearch } from '../../url/url-state.ts'

const TIMES = [...Object.entries(PERIODS).map(([value, { label }]) => ({ value, label })), { value: 'exact', label: 'Exact times' }]

/** All names of the filters in the address. */
const NAMES = ['state', 'destination', 'destinationId', 'within', 'from', 'to', 'reason', 'user', 'userId', 'event', 'view']

export function FilterBar({ filters, destinations }: { filters: Filters; destinations: ReadonlyMap<string, string> }) {
  const { destinationId, within, from, to } = filters
  const hasExact = from !== undefined || to !== undefined
  const [isExact, setExact] = useState(hasExact)
  // Going back in the browser changes the URL without a choice here.
  useEffect(() => setExact(hasExact), [hasExact, within])
  return (
    <div role="search" aria-label="Filter deliveries">
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs" verticalSpacing="xs">
        <ParamCombobox param="state" clears="view" label="State" options={STATES} />
        <ParamCombobox
          param="destination"
          alias="destinationId"
          label="Destination"
          options={nameOptions(destinations, destinationId)}
          searchable
        />
        <Select
          label="Time"
          placeholder="Any time"
          clearable
          data={TIMES}
          value={isExact ? 'exact' : (within ?? null)}
          onChange={(value) => {
            setExact(value === 'exact')
            changeSearch({ within: value === 'exact' ? null : value, ...(value === 'exact' ? {} : { from: null, to: null }) })
          }}
        />
        <TextFilter param="reason" label="Reason" placeholder="http_503" />
        <TextFilter param="user" alias="userId" label="User" placeholder="Full userId" />
        <TextFilter param="event" label="Event" placeholder="Exact event name" />
      </SimpleGrid>
      {isExact && (
        <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="xs" verticalSpacing="xs" mt="xs">
          <TextFilter param="from" clears="within" label="From" type="datetime-local" />
          <TextFilter param="to" clears="within" label="To" type="datetime-local" />
        </SimpleGrid>
      )}
      {isNarrowed(filters) && (
        <Group mt="xs">
          <ClearFilters
            onClick={() => {
              setExact(false)
              clearFilters(NAMES)
            }}
          />
        </Group>
      )}
    </div>
  )
}
