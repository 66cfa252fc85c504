// The list of accepted messages, newest first, with a search, filters, columns and saved views. Each row links to the timeline of the message.

import { Box, Group } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useList, usePersistentProblem } from '../../api/queries.ts'
import { type Names, useNames } from '../../api/use-names.ts'
import { Empty, ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { Note, RowButton, SecondaryButton } from '../../components/styled.tsx'
import { exactCount, plural, preciseTime } from '../../text/format.ts'
import { changeSearch, useSearchState } from '../../url/url-state.ts'
import { columnsOf, columnsText, rememberColumns, rememberedColumns } from './columns.ts'
import { FILTERS, Filters, TYPES } from './filters.tsx'
import { pathsIn } from './message-row.ts'
import { periodOf } from './period.ts'
import { Rows } from './rows.tsx'
import { useSavedViews, viewQuery } from './saved-views.ts'
import { ColumnsMenu, ViewsMenu } from './view-menus.tsx'

const PAGE_ROWS = 50
const REFRESH_MS = 5_000
/** A search reads on by itself until it has a page of messages, or has read this many pages. */
const MAX_SEARCHED_PAGES = 10
const VIEW_PARAMS = [...FILTERS, 'columns']

export default function Messages() {
  const [params] = useSearchState()
  // Only these parameters start a new search.
  const search = FILTERS.map((name) => `${name}=${encodeURIComponent(params.get(name) ?? '')}`).join('&')
  const names = useNames()
  return (
    <Page
      title="Messages"
      about="Find a message by its user, event, properties or time, and see its timeline and deliveries."
      actions={<Views params={params} />}
    >
      <Filters params={params} sources={names.sources} />
      <Results key={search} params={params} names={names} />
    </Page>
  )
}

function Results({ params, names }: { params: URLSearchParams; names: Names }) {
  // Relative periods count back from when the search was started: otherwise every render would be another query.
  const [searchedMs] = useState(() => Date.now())
  const [isFirstPage, setFirstPage] = useState(true)
  const type = TYPES.find((each) => each === params.get('type'))
  const query = useList('GET /api/messages', {
    query: {
      limit: PAGE_ROWS,
      search: params.get('search')?.slice(0, 200) || undefined,
      property: params.get('property') || undefined,
      messageId: params.get('messageId') ?? undefined,
      userId: params.get('userId') ?? undefined,
      sourceId: params.get('sourceId') ?? undefined,
      type,
      event: params.get('event') ?? undefined,
      ...periodOf(params, searchedMs),
    },
    ...(isFirstPage ? { everyMs: REFRESH_MS } : {}),
  })
  const { rows, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = query
  // Reset with every search, because the component has the search as its key.
  const problem = usePersistentProblem({ data: query.data, error: query.problem })
  const more = (): void => {
    setFirstPage(false)
    void fetchNextPage()
  }
  const pages = query.data?.pages ?? []
  // A page reads a limited number of messages, few of which may match.
  const isSearching = hasNextPage && problem === null && rows.length < PAGE_ROWS && pages.length < MAX_SEARCHED_PAGES
  useEffect(() => {
    if (isSearching && !isFetchingNextPage && !isPending) more()
  }, [isSearching, isFetchingNextPage, isPending, pages.length])
  const columns = shownColumns(params)
  const searchedBackTo = pages.at(-1)?.searchedBackTo ?? null
  if (problem !== null && rows.length === 0) return <ErrorAlert problem={problem} onRetry={() => void refetch()} />
  if (isPending || (rows.length === 0 && isSearching)) return <Loading lines={8} label="Searching messages" />
  const older = hasNextPage && (
    <Group justify="center" mt="md">
      <SecondaryButton onClick={more} loading={isFetchingNextPage}>
        {searchedBackTo === null ? 'Load older messages' : 'Search older messages'}
      </SecondaryButton>
    </Group>
  )
  if (rows.length === 0) {
    if (searchedBackTo === null) return <NoMessages params={params} />
    return (
      <Box>
        <Empty title="No messages found yet">
          Messages back to {preciseTime(searchedBackTo)} were searched. Older messages are searched when you ask for it.
        </Empty>
        {older}
      </Box>
    )
  }
  return (
    <Box>
      {problem !== null && <ErrorAlert problem={problem} onRetry={() => void refetch()} />}
      <Group justify="space-between" mb="xs" gap="xs">
        <Note role="status">
          {hasNextPage && searchedBackTo === null ? `Newest ${exactCount(rows.length)} messages` : plural(rows.length, 'message')}
          {searchedBackTo !== null && ` · searched back to ${preciseTime(searchedBackTo)}`}
          {isFirstPage ? ' · updated every 5 s' : ' · not updated automatically'}
        </Note>
        <Group gap="xs">
          <ColumnsMenu columns={columns} paths={pathsIn(rows.map(({ message }) => message))} onChange={changeColumns} />
          <RowButton onClick={() => void refetch()} loading={query.isRefetching && !isFirstPage}>
            Refresh
          </RowButton>
        </Group>
      </Group>
      <Rows rows={rows} columns={columns} names={names} onEnd={hasNextPage && !isFetchingNextPage ? more : undefined} />
      {older}
    </Box>
  )
}

/** The columns of the address, otherwise those that the viewer chose last. */
function shownColumns(params: URLSearchParams): readonly string[] {
  return columnsOf(params.get('columns') ?? rememberedColumns())
}

function changeColumns(columns: readonly string[]): void {
  const text = columnsText(columns)
  rememberColumns(text)
  changeSearch({ columns: text }, { replace: true })
}

function Views({ params }: { params: URLSearchParams }) {
  const { views, save, remove } = useSavedViews()
  const shown = new URLSearchParams(params)
  shown.set('columns', columnsText(shownColumns(params)) ?? '')
  return <ViewsMenu views={views} query={viewQuery(shown, VIEW_PARAMS)} onSave={save} onRemove={remove} />
}

function NoMessages({ params }: { params: URLSearchParams }) {
  const messageId = params.get('messageId')
  if (messageId !== null) {
    return (
      <Empty
        title="No message with this messageId"
        link={{ to: `/messages/${encodeURIComponent(messageId)}`, label: 'Show possible reasons' }}
      >
        It was never received, was rejected or dropped, is older than the retention period, or does not match another filter.
      </Empty>
    )
  }
  if (FILTERS.some((name) => params.has(name))) {
    return (
      <Empty title="No messages match the filters">
        Ids and events in their own fields must match in full; the search finds parts of them. Remove a filter or choose a longer period.
        Messages are deleted after the retention period (SWITCHYARD_RETENTION_DAYS).
      </Empty>
    )
  }
  return (
    <Empty title="No messages yet" link={{ to: '/start', label: 'Send a message' }}>
      Messages appear here as soon as they are accepted. If you have sent one already, check the rejected calls on the page of the source.
    </Empty>
  )
}
