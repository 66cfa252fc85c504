// The event catalogue: the events of all sources with their counts. The search, the filters and the order are in the page's address.

import { Group, Stack } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import type { Answer } from '../../api/client.ts'
import { useApi, useList } from '../../api/queries.ts'
import { useNames } from '../../api/use-names.ts'
import { SearchIcon } from '../../components/icons.tsx'
import { nameOptions, ParamInput, ParamSelect } from '../../components/inputs.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { type Column, LoadedList, ResponsiveTable } from '../../components/responsive-table.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { NameLink, Note, SmallTag, Time, ViewLink } from '../../components/styled.tsx'
import { count, exactCount, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { eventTitle, plannedText } from './event-text.ts'

type EventRow = Answer<'GET /api/events'>['data'][number]

const TYPES = ['track', 'identify', 'page', 'screen', 'group', 'alias'] as const
const FILTERS = ['q', 'sourceId', 'type'] as const
const ORDERS = [
  { value: 'count', label: 'Most frequent first' },
  { value: 'lastSeen', label: 'Last seen first' },
]
const TYPING_MS = 200

export default function EventsPage() {
  const [params] = useSearchState()
  const { sources } = useNames()
  const text = params.get('q') ?? ''
  const [q] = useDebouncedValue(text.trim(), TYPING_MS)
  const sourceId = params.get('sourceId') ?? ''
  const isByTime = params.get('order') === 'lastSeen'
  const list = useList('GET /api/events', {
    query: {
      limit: 50,
      q,
      sourceId,
      type: TYPES.find((type) => type === params.get('type')),
      order: isByTime ? 'lastSeen' : 'count',
    },
    everyMs: 15_000,
    keep: true,
  })
  const plans = useApi('GET /api/plans', { query: { limit: 1_000 } })
  const planned = (row: EventRow): string => plannedText(row, plans.data?.data)
  const isFiltered = FILTERS.some((name) => params.has(name))
  const isEmpty = !isFiltered && list.data !== undefined && list.rows.length === 0
  return (
    <Page
      title="Events"
      about="The event catalogue: which events each source sends, how often, and with which properties. Filled from accepted messages."
    >
      {isEmpty ? (
        <Empty title="No events yet" link={{ to: '/start', label: 'Send a message' }}>
          Events appear here a few seconds after the first message is accepted. There is nothing to set up.
        </Empty>
      ) : (
        <Stack>
          <Group gap="sm" align="flex-end" role="search" aria-label="Search events">
            <ParamInput
              param="q"
              label="Event"
              placeholder="Part of a name or type"
              leftSection={<SearchIcon size={15} />}
              style={{ flex: '1 1 220px' }}
              maw={420}
            />
            <ParamSelect param="sourceId" label="Source" options={nameOptions(sources)} grow={130} maw={240} />
            <ParamSelect param="type" label="Type" options={TYPES} grow={100} maw={140} />
            <ParamSelect param="order" label="Order" options={ORDERS} all={null} fallback="count" grow={150} maw={200} />
          </Group>
          <LoadedList
            list={list}
            lines={6}
            label="Loading events"
            empty={
              <Empty title="No events match the filters" filters={FILTERS}>
                The search finds text in the names of track events and in types. Events that were not seen for 90 days are not listed.
              </Empty>
            }
          >
            <Note role="status">
              {list.hasNextPage ? `The first ${exactCount(list.rows.length)} events` : plural(list.rows.length, 'event')}
            </Note>
            <ResponsiveTable
              rows={list.rows}
              columns={[...COLUMNS, { label: 'Plan', isShort: true, cell: planned }]}
              keyOf={({ id }) => id}
              label="Events of the event catalogue"
            />
          </LoadedList>
        </Stack>
      )}
    </Page>
  )
}

const COLUMNS: readonly Column<EventRow>[] = [
  {
    label: 'Event',
    cell: (row) => <NameLink to={`/events/${encodeURIComponent(row.id)}`}>{eventTitle(row)}</NameLink>,
  },
  {
    label: 'Type',
    isShort: true,
    cell: ({ type }) => <SmallTag color="gray">{type ?? 'several'}</SmallTag>,
  },
  {
    label: 'Source',
    cell: ({ sourceId, sourceName }) => <ViewLink to={`/sources/${encodeURIComponent(sourceId)}`}>{sourceName}</ViewLink>,
  },
  {
    label: 'Last 24 hours',
    isShort: true,
    cell: ({ hours, lastDay }) => (
      <Group gap="sm" wrap="nowrap">
        <Sparkline values={hours} width={96} height={22} />
        <span title={exactCount(lastDay)}>{count(lastDay)}</span>
      </Group>
    ),
  },
  { label: 'Last 7 days', isNumber: true, cell: ({ lastWeek }) => <span title={exactCount(lastWeek)}>{count(lastWeek)}</span> },
  { label: 'Last seen', isShort: true, cell: ({ lastSeen }) => <Time at={lastSeen} relative /> },
]
