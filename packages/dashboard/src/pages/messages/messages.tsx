// Messages as they were accepted, newest first: the way to find one, and from there to its story.

import { Badge, Box, Button, Card, Group, Text } from '@mantine/core'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { Answer } from '../../api/client.ts'
import { useList, useStandingProblem } from '../../api/queries.ts'
import { type Names, useNames } from '../../api/use-names.ts'
import { Page } from '../../components/page.tsx'
import { Empty, ErrorAlert, Loading } from '../../components/query-states.tsx'
import { exactCount, preciseTime } from '../../text/format.ts'
import { useSearchState } from '../../url-state.ts'
import { FILTERS, Filters, TYPES } from './filters.tsx'
import classes from './messages.module.css'
import { periodOf } from './period.ts'

type Row = Answer<'GET /api/messages'>['data'][number]

const PAGE_ROWS = 50
const REFRESH_MS = 5_000

export default function Messages() {
  const [params] = useSearchState()
  // What is being looked for; other parameters do not ask anew.
  const search = FILTERS.map((name) => `${name}=${encodeURIComponent(params.get(name) ?? '')}`).join('&')
  const names = useNames()
  return (
    <Page title="Messages" about="Where is my event? Find it by its messageId, its user or its time; every message tells its whole story.">
      <Filters params={params} sources={names.sources} />
      <Found key={search} params={params} names={names} />
    </Page>
  )
}

function Found({ params, names }: { params: URLSearchParams; names: Names }) {
  // A period that moves is counted from the moment it was asked for, or every look would be another question.
  const [askedMs] = useState(() => Date.now())
  const [isFirstPage, setFirstPage] = useState(true)
  const type = TYPES.find((each) => each === params.get('type'))
  const query = useList('GET /api/messages', {
    query: {
      limit: PAGE_ROWS,
      messageId: params.get('messageId') ?? undefined,
      userId: params.get('userId') ?? undefined,
      sourceId: params.get('sourceId') ?? undefined,
      type,
      ...periodOf(params, askedMs),
    },
    ...(isFirstPage ? { everyMs: REFRESH_MS } : {}),
  })
  const { rows, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = query
  // Begun anew with every search, by its key.
  const problem = useStandingProblem({ data: query.data, error: query.problem })
  const more = (): void => {
    setFirstPage(false)
    void fetchNextPage()
  }
  if (problem !== null && rows.length === 0) return <ErrorAlert problem={problem} onRetry={() => void refetch()} />
  if (isPending) return <Loading lines={8} label="Looking for messages" />
  if (rows.length === 0) return <Nothing params={params} />
  return (
    <Box>
      {problem !== null && <ErrorAlert problem={problem} onRetry={() => void refetch()} />}
      <Group justify="space-between" mb="xs" gap="xs">
        <Text size="sm" c="dimmed" role="status">
          {hasNextPage
            ? `The newest ${exactCount(rows.length)}`
            : rows.length === 1
              ? 'One message'
              : `${exactCount(rows.length)} messages`}
          {isFirstPage ? ', refreshed every 5 seconds' : ', as of when they were asked for'}
        </Text>
        <Button size="compact-sm" variant="default" onClick={() => void refetch()} loading={query.isRefetching && !isFirstPage}>
          Refresh
        </Button>
      </Group>
      <Rows rows={rows} names={names} onEnd={hasNextPage && !isFetchingNextPage ? more : undefined} />
      {hasNextPage && (
        <Group justify="center" mt="md">
          <Button variant="default" onClick={more} loading={isFetchingNextPage}>
            Show older ones
          </Button>
        </Group>
      )}
    </Box>
  )
}

/** Only what is in sight is drawn, so that a list of thousands stays quick. */
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
  // Older ones come by themselves once somebody scrolls for them, not while the first page fits.
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
        <span>Goes to</span>
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
        <Badge variant="light" color="gray" size="sm" tt="none">
          {type ?? 'deleted'}
        </Badge>
      </span>
      <span className={classes['title']} title={name}>
        {name}
      </span>
      <span>{userId ?? (anonymousId === null ? 'no user' : `anonymous ${anonymousId}`)}</span>
      <span>{names.sources.get(sourceId) ?? sourceId}</span>
      <span className={classes['where']}>{goesTo(row, names.destinations)}</span>
    </Link>
  )
}

/** Its event; of a page or screen its name. */
function nameOf({ type, event, message }: Row): string {
  if (type === null) return 'content deleted'
  const name = event ?? message?.['name']
  return typeof name === 'string' && name !== '' ? name : `(${type})`
}

function goesTo({ deliveries, skips }: Row, names: ReadonlyMap<string, string>): string {
  const ids = [...new Set(deliveries.map(({ destinationId }) => destinationId))]
  const not = skips.filter(({ destinationId }) => destinationId !== null).length
  if (ids.length === 0) return 'nowhere'
  const to = ids.length > 2 ? `${ids.length} destinations` : ids.map((id) => names.get(id) ?? `${id} (deleted)`).join(', ')
  return not === 0 ? to : `${to}, not to ${not}`
}

function Nothing({ params }: { params: URLSearchParams }) {
  const messageId = params.get('messageId')
  if (messageId !== null) {
    return (
      <Empty
        title="No message of this messageId is here"
        action={
          <Button component={Link} href={`/messages/${encodeURIComponent(messageId)}`}>
            What can have become of it?
          </Button>
        }
      >
        It never arrived, was rejected, was dropped, is older than messages are kept, or another filter leaves it out.
      </Empty>
    )
  }
  if (FILTERS.some((name) => params.has(name))) {
    return (
      <Empty title="Nothing matches">
        Messages are found by whole ids, not by parts of them. Leave out a filter, or take a longer period. Older ones than
        SWITCHYARD_RETENTION_DAYS are gone.
      </Empty>
    )
  }
  return (
    <Empty
      title="No messages yet"
      action={
        <Button component={Link} href="/start">
          Send the first one
        </Button>
      }
    >
      What your applications send appears here as soon as it was accepted. If you have sent something already, the source's rejected calls
      may tell why it is not here.
    </Empty>
  )
}
