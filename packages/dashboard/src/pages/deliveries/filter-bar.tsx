// The filters of the list. Each is in the URL as soon as it is chosen, or typed and confirmed.

import { Group, Select, SimpleGrid } from '@mantine/core'
import { useEffect, useState } from 'react'
import { ClearFilters, clearFilters, TextFilter } from '../../components/inputs.tsx'
import { type Filters, PERIODS, STATES } from '../../delivery/filters.ts'
import { isoTime, localTime } from '../../url/local-time.ts'
import { changeSearch } from '../../url/url-state.ts'

interface Option {
  value: string
  label: string
}

const TIMES: Option[] = [
  ...Object.entries(PERIODS).map(([value, { label }]) => ({ value, label })),
  { value: 'exact', label: 'Exact times' },
]

/** All names of the filters in the address. */
const NAMES = ['state', 'destination', 'destinationId', 'within', 'from', 'to', 'reason', 'user', 'userId', 'event', 'view']

export function FilterBar({ filters, destinations }: { filters: Filters; destinations: readonly Option[] }) {
  const { destinationId, state, reason, userId, event, within, from, to } = filters
  const hasExact = from !== undefined || to !== undefined
  const [isExact, setExact] = useState(hasExact)
  // Going back in the browser changes the URL without a choice here.
  useEffect(() => setExact(hasExact), [hasExact, within])
  const unknown =
    destinationId !== undefined && !destinations.some(({ value }) => value === destinationId)
      ? [{ value: destinationId, label: destinationId }]
      : []
  const isAny = [destinationId, state, reason, userId, event, within, from, to].some((value) => value !== undefined)
  return (
    <div role="search" aria-label="Filter deliveries">
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs" verticalSpacing="xs">
        <Select
          label="State"
          placeholder="Any"
          clearable
          data={[...STATES]}
          value={state ?? null}
          onChange={(value) => changeSearch({ state: value, view: null })}
          size="sm"
          comboboxProps={{ withinPortal: true }}
        />
        <Select
          label="Destination"
          placeholder="Any"
          clearable
          searchable
          data={[...destinations, ...unknown]}
          value={destinationId ?? null}
          onChange={(value) => changeSearch({ destination: value, destinationId: null })}
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
        <TextFilter label="Reason" placeholder="http_503" value={reason} onChange={(value) => changeSearch({ reason: value })} />
        <TextFilter
          label="User"
          placeholder="Full userId"
          value={userId}
          onChange={(value) => changeSearch({ user: value, userId: null })}
        />
        <TextFilter label="Event" placeholder="Exact event name" value={event} onChange={(value) => changeSearch({ event: value })} />
      </SimpleGrid>
      {isExact && (
        <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="xs" verticalSpacing="xs" mt="xs">
          <TextFilter
            label="From"
            type="datetime-local"
            value={localTime(from)}
            onChange={(value) => changeSearch({ within: null, from: isoTime(value) })}
          />
          <TextFilter
            label="To"
            type="datetime-local"
            value={localTime(to)}
            onChange={(value) => changeSearch({ within: null, to: isoTime(value) })}
          />
        </SimpleGrid>
      )}
      {isAny && (
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
