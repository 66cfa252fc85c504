// The filters of the list of messages: a search, and exact filters. They are in the URL; text is applied when Enter is pressed or the field loses focus.

import { Button, Grid, Group, NativeSelect, TextInput } from '@mantine/core'
import { clearFilters, entered, nameOptions, ParamSelect, TextFilter } from '../../components/inputs.tsx'
import { SecondaryButton } from '../../components/styled.tsx'
import { isoTime, localTime } from '../../url/local-time.ts'
import { changeSearch } from '../../url/url-state.ts'
import { PERIODS, periodChoice } from './period.ts'
import { SearchBox } from './search-box.tsx'

export const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete', 'dead_letter'] as const

export const FILTERS = ['search', 'property', 'messageId', 'userId', 'sourceId', 'type', 'event', 'period', 'from', 'to'] as const

export function Filters({ params, sources }: { params: URLSearchParams; sources: ReadonlyMap<string, string> }) {
  const choice = periodChoice(params)
  const isFiltered = FILTERS.some((name) => params.has(name))
  return (
    <form onSubmit={(event) => event.preventDefault()} role="search" aria-label="Search messages">
      <Grid gap="sm" align="flex-end">
        <Grid.Col span={12}>
          <SearchBox />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4 }}>
          <TextFilter param="messageId" label="messageId" placeholder="Full messageId" />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4 }}>
          <TextFilter param="userId" label="User" placeholder="Full userId" />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4 }}>
          <TextFilter param="event" label="Event" placeholder="Exact name of a track event" isTrimmed={false} />
        </Grid.Col>
        <Grid.Col span={{ base: 6, sm: 4, lg: 3 }}>
          <ParamSelect param="sourceId" label="Source" options={nameOptions(sources, params.get('sourceId') ?? '')} />
        </Grid.Col>
        <Grid.Col span={{ base: 6, sm: 4, lg: 3 }}>
          <ParamSelect param="type" label="Type" options={TYPES} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4, lg: 3 }}>
          <NativeSelect
            label="Received"
            value={choice}
            onChange={(event) => {
              const { value } = event.currentTarget
              changeSearch({ period: value === 'any' ? null : value, from: null, to: null })
            }}
            data={[
              { value: 'any', label: 'Any time' },
              ...PERIODS.map(({ value, label }) => ({ value, label })),
              { value: 'between', label: 'Between two times' },
            ]}
          />
        </Grid.Col>
        {choice === 'between' &&
          (['from', 'to'] as const).map((name) => (
            <Grid.Col key={name} span={{ base: 12, sm: 6, lg: 3 }}>
              <TextInput
                type="datetime-local"
                step={1}
                label={name === 'from' ? 'From (your time)' : 'To (your time)'}
                {...entered(localTime(params.get(name)), (next) =>
                  changeSearch({ [name]: isoTime(next), period: 'between' }, { replace: true }),
                )}
              />
            </Grid.Col>
          ))}
        <Grid.Col span={{ base: 12, lg: 'content' }}>
          <Group gap="xs">
            <Button type="submit">Search</Button>
            {isFiltered && <SecondaryButton onClick={() => clearFilters(FILTERS)}>Clear</SecondaryButton>}
          </Group>
        </Grid.Col>
      </Grid>
    </form>
  )
}
