// The list of accepted messages, newest first, with filters. Each row links to the timeline of the message.

import { Box, Card, Group } from '@mantine/core'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../../api/client.ts'
import { useList, usePersistentProblem } from '../../api/queries.ts'
import { type Names, useNames } from '../../api/use-names.ts'
import { Empty, ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { Note, RowButton, SecondaryButton, SmallTag } from '../../components/styled.tsx'
import { exactCount, preciseTime } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { FILTERS, Filters, TYPES } from './filters.tsx'
import classes from './messages.module.css'
import { periodOf } from './period.ts'

type Row = Answer<'GET /api/messages'>['data'][number]

const PAGE_ROWS = 50
const REFRESH_MS = 5_000

export default function Messages() {
  const [params] = useSearchState()
  // Only these parameters start a new search.
  const search = FILTERS.map((name) => `${name}=${encodeURIComponent(params.get(name) ?? '')}`).join('&')
  const names = useNames()
  return (
    <Page title="Messages" about="Find a message by its messageId, user or time, and see its timeline and deliveries.">
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
  if (problem !== null && rows.length === 0) return <ErrorAlert problem={problem} onRetry={() => void refetch()} />
  if (isPending) return <Loading lines={8} label="Searching messages" />
  if (rows.length === 0) return <NoMessages params={params} />
  return (
    <Box>
      {problem !== null && <ErrorAlert problem={problem} onRetry={() => void refetch()} />}
      <Group justify="space-between" mb="xs" gap="xs">
        <Note role="status">
          {hasNextPage
            ? `Newest ${exactCount(rows.length)} messages`
            : rows.length === 1
              ? '1 message'
              : `${exactCount(rows.length)} messages`}
          {isFirstPage ? ' · updated every 5 s' : ' · not updated automatically'}
        </Note>
        <RowButton onClick={() => void refetch()} loading={query.isRefetching && !isFirstPage}>
          Refresh
        </RowButton>
      </Group>
      <Rows rows={rows} names={names} onEnd={hasNextPage && !isFetchingNextPage ? more : undefined} />
      {hasNextPage && (
        <Group justify="center" mt="md">
          <SecondaryButton onClick={more} loading={isFetchingNextPage}>
            Load older messages
          </SecondaryButton>
        </Group>
      )}
    </Box>
  )
}

/** Only visible rows are rendered, so that a list of thousands stays fast. */
function Rows({ rows, names, onEnd }: { rows: readonly Row[]; names: Names; onEnd: (() => void) | undefined }) {
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => setTop((box.current?.getBoundingClientRect().top ?? 0) + window.scrollY), [])
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => 42,
    overscan: 12,
    scrollMargin: top,
    getItemKey: (at) => (rows[at] as Row).id,
  })
  const items = virtual.getVirtualItems()
  const lastShown = items.at(-1)?.index ?? 0
  // Older messages are loaded automatically when the viewer scrolls to the end, but not if the first page fits.
  useEffect(() => {
    if (onEnd !== undefined && lastShown >= rows.length - 1 && window.scrollY > 0) onEnd()
  }, [lastShown, rows.length])
  return (
    <Card withBorder padding={0} ref={box}>
      <div className={`${classes['row']} ${classes['head']}`} aria-hidden="true">
        <span>Received</span>
        <span>Type</span>
        <span>Event</span>
        <span>User</span>
        <span>Source</span>
        <span>Destinations</span>
      </div>
      <Box role="list" aria-label="Messages, newest first" pos="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, key, start }) => (
          <Box
            key={key}
            ref={virtual.measureElement}
            data-index={index}
            role="listitem"
            aria-posinset={index + 1}
            aria-setsize={onEnd === undefined ? rows.length : -1}
            pos="absolute"
            top={0}
            left={0}
            right={0}
            style={{ transform: `translateY(${start - virtual.options.scrollMargin}px)` }}
          >
            <MessageRow row={rows[index] as Row} names={names} />
          </Box>
        ))}
      </Box>
    </Card>
  )
}

function MessageRow({ row, names }: { row: Row; names: Names }) {
  const { id, type, userId, anonymousId, sourceId, receivedAt } = row
  const name = nameOf(row)
  return (
    <Link href={`/messages/${encodeURIComponent(id)}`} className={classes['row']}>
      <time dateTime={receivedAt} title={new Date(receivedAt).toISOString().replace('T', ' ').replace('Z', ' UTC')}>
        {preciseTime(receivedAt)}
      </time>
      <span className={classes['type']}>
        <SmallTag color="gray">{type ?? 'deleted'}</SmallTag>
      </span>
      <span className={classes['title']} title={name}>
        {name}
      </span>
      <span>{userId ?? (anonymousId === null ? 'no user' : `anonymous ${anonymousId}`)}</span>
      <span>{names.sources.get(sourceId) ?? sourceId}</span>
      <span className={classes['where']}>{destinationsOf(row, names.destinations)}</span>
    </Link>
  )
}

/** The event, or the name of a page or screen. */
function nameOf({ type, event, message }: Row): string {
  if (type === null) return 'Content deleted'
  const name = event ?? message?.['name']
  return typeof name === 'string' && name !== '' ? name : type
}

function destinationsOf({ deliveries, skips }: Row, names: ReadonlyMap<string, string>): string {
  const ids = [...new Set(deliveries.map(({ destinationId }) => destinationId))]
  const not = skips.filter(({ destinationId }) => destinationId !== null).length
  if (ids.length === 0) return 'none'
  const to = ids.length > 2 ? `${ids.length} destinations` : ids.map((id) => names.get(id) ?? `${id} (deleted)`).join(', ')
  return not === 0 ? to : `${to}, ${not} skipped`
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
        Ids must match in full. Remove a filter or choose a longer period. Messages are deleted after the retention period
        (SWITCHYARD_RETENTION_DAYS).
      </Empty>
    )
  }
  return (
    <Empty title="No messages yet" link={{ to: '/start', label: 'Send a message' }}>
      Messages appear here as soon as they are accepted. If you have sent one already, check the rejected calls on the page of the source.
    </Empty>
  )
}
