// Messages and attempts as they happen. If there are too many, the service sends a sample and the number of events that it left out. The page
// renders at most five times a second and keeps the last 500 events (feed.ts), so that a flood does not freeze it. It disconnects while the
// tab is hidden.

import { Alert, Button, Group, Kbd, Stack, Text } from '@mantine/core'
import { useDocumentVisibility } from '@mantine/hooks'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { type LiveQuery, type LiveState, useLive } from '../../api/live.ts'
import { type Names, useNames } from '../../api/use-names.ts'
import { PauseIcon, PlayIcon } from '../../components/icons.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { LinkButton, SmallButton, SmallNote, useNow } from '../../components/styled.tsx'
import { exactCount } from '../../text/format.ts'
import { changeSearch, useSearchState } from '../../url/url-state.ts'
import { Details } from './details.tsx'
import { rate } from './entry.ts'
import { Feed, type LiveItem, MAX_ENTRIES, type Rates } from './feed.ts'
import { FilterBar } from './filter-bar.tsx'
import { filtersOf, isFiltered } from './filters.ts'
import { LiveList } from './list.tsx'
import classes from './live.module.css'

export default function LivePage() {
  const [params] = useSearchState()
  const query = filtersOf(params)
  const names = useNames()
  const first = useRef<HTMLInputElement>(null)
  return (
    <Page
      title="Live"
      about={
        <>
          Messages and delivery attempts as they happen, newest first.{' '}
          <Text span size="sm" visibleFrom="sm">
            Press <Kbd size="xs">p</Kbd> to pause, <Kbd size="xs">/</Kbd> to filter, <Kbd size="xs">↑</Kbd> <Kbd size="xs">↓</Kbd> to select
            a row.
          </Text>
        </>
      }
    >
      <FilterBar query={query} names={names} first={first} />
      {/* The key: with other filters the list starts empty. */}
      <Stream
        key={JSON.stringify(query)}
        query={query}
        names={names}
        onFilter={() => first.current?.focus()}
        opened={params.get('message')}
      />
    </Page>
  )
}

/** Why the list is paused. */
type PauseReason = 'button' | 'scroll' | 'row' | null

function Stream({ query, names, onFilter, opened }: { query: LiveQuery; names: Names; onFilter: () => void; opened: string | null }) {
  const [feed] = useState(() => new Feed())
  const { rows, rates, isPaused, newCount } = useSyncExternalStore(feed.subscribe, feed.view)
  const isVisible = useDocumentVisibility() === 'visible'
  const [round, setRound] = useState(0)
  const state = useLive({ query, onEvents: (events) => feed.add(events), isOn: isVisible, round })
  useGaps(feed, state)
  const pausedBy = useRef<PauseReason>(null)
  const [chosen, setChosen] = useState<LiveItem | null>(null)
  const item = chosen !== null && (opened === null || messageIdOf(chosen) === opened) ? chosen : null
  const isOpen = opened !== null || item !== null

  const pause = (reason: PauseReason): void => {
    pausedBy.current ??= reason
    feed.pause()
  }
  const resume = (): void => {
    pausedBy.current = null
    feed.resume()
  }
  const toggle = (): void => (isPaused ? resume() : pause('button'))
  const open = (event: LiveItem): void => {
    setChosen(event)
    if (messageIdOf(event) !== opened) changeSearch({ message: messageIdOf(event) })
  }
  const close = (): void => {
    setChosen(null)
    if (opened !== null) changeSearch({ message: null })
  }
  useKeys({ p: toggle, '/': onFilter }, !isOpen)

  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="sm" align="flex-end">
        <RateLine rates={rates} />
        <Group gap="xs">
          <Button
            variant={isPaused ? 'filled' : 'default'}
            size="xs"
            leftSection={isPaused ? <PlayIcon size={14} /> : <PauseIcon size={14} />}
            onClick={toggle}
            aria-keyshortcuts="p"
          >
            {isPaused ? 'Resume' : 'Pause'}
          </Button>
          <SmallButton onClick={() => feed.clear()} disabled={rows.length === 0}>
            Clear
          </SmallButton>
        </Group>
      </Group>
      <Connection state={state} isPaused={isPaused} newCount={newCount} onRetry={() => setRound((last) => last + 1)} />
      {rates.notShown > 0 && (
        <SmallNote>
          Showing a sample: {exactCount(rate(rates.shown))} of about {exactCount(rate(rates.shown + rates.notShown))} events per second. The
          rates above count all of them, and all are stored and delivered. Add a filter to see more of the events that you are looking for.
        </SmallNote>
      )}
      {rows.length === 0 ? (
        state.is !== 'waiting' && <NoEvents isFiltered={isFiltered(query)} isPaused={isPaused} />
      ) : (
        <LiveList
          rows={rows}
          isPaused={isPaused}
          names={names}
          onOpen={open}
          onRead={pause}
          onTop={() => {
            if (pausedBy.current === 'scroll') resume()
          }}
        />
      )}
      {rows.length >= MAX_ENTRIES && (
        <SmallNote>Showing the last {exactCount(MAX_ENTRIES)} events. Older events are on the pages Messages and Deliveries.</SmallNote>
      )}
      <Details messageId={opened} item={item} names={names} onClose={close} />
    </Stack>
  )
}

function messageIdOf(item: LiveItem): string | null {
  return item.kind === 'accepted' || item.kind === 'attempt' ? item.messageId : null
}

/** Adds a row to the list for each time in which the page was not connected. */
function useGaps(feed: Feed, { is }: LiveState): void {
  const lost = useRef<{ wasOpen: boolean; atMs: number | null }>({ wasOpen: false, atMs: null })
  useEffect(() => {
    const { wasOpen, atMs } = lost.current
    if (is !== 'open') {
      if (wasOpen && atMs === null) lost.current.atMs = Date.now()
      return
    }
    if (atMs !== null) feed.gap(atMs, Date.now())
    lost.current = { wasOpen: true, atMs: null }
  }, [feed, is])
}

/** Keyboard shortcuts of single keys, which are ignored in input fields and dialogs. */
function useKeys(keys: Readonly<Record<string, () => void>>, isOn: boolean): void {
  const now = useRef(keys)
  now.current = keys
  useEffect(() => {
    if (!isOn) return undefined
    const press = (event: KeyboardEvent): void => {
      const { target, key, altKey, ctrlKey, metaKey, defaultPrevented } = event
      const isTyped = target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
      const run = Object.hasOwn(now.current, key) ? now.current[key] : undefined
      if (run === undefined || isTyped || altKey || ctrlKey || metaKey || defaultPrevented || document.querySelector('[aria-modal="true"]'))
        return
      event.preventDefault()
      run()
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  }, [isOn])
}

function RateLine({ rates: { accepted, attempts, failures, shown, notShown, isLowerBound } }: { rates: Rates }) {
  const statistics: [name: string, value: number, isLowerBound: boolean][] = [
    ['Accepted', accepted, isLowerBound],
    ['Attempts', attempts, isLowerBound],
    ['Failures', failures, isLowerBound],
    ['Shown', shown, false],
    ['Not shown', notShown, false],
  ]
  return (
    <dl className={classes['rates']} aria-label="Events per second, averaged over the last 5 seconds">
      {statistics.map(([name, value, isLowerBound]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {isLowerBound && '≥ '}
            {exactCount(rate(value))}/s
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface ConnectionProps {
  state: LiveState
  isPaused: boolean
  newCount: number
  onRetry: () => void
}

function Connection({ state, isPaused, newCount, onRetry }: ConnectionProps) {
  if (state.is === 'waiting') {
    return (
      <Alert
        color="red"
        variant="light"
        role="alert"
        title={state.problem.status >= 400 ? 'The service rejected the connection' : 'Connection lost'}
      >
        <Group gap="sm">
          <Text size="sm">
            {state.problem.message} <ReconnectTime atMs={state.untilMs} />
          </Text>
          <Button size="compact-sm" variant="light" color="red" onClick={onRetry}>
            Reconnect now
          </Button>
        </Group>
      </Alert>
    )
  }
  return (
    <Text size="sm" component="div">
      <span role="status">
        {state.is === 'open'
          ? isPaused
            ? 'Paused'
            : 'Connected'
          : state.is === 'connecting'
            ? 'Connecting …'
            : 'Disconnected while the tab is hidden'}
      </span>
      {isPaused && ` · ${exactCount(newCount)} new ${newCount === 1 ? 'event' : 'events'}`}
    </Text>
  )
}

function ReconnectTime({ atMs }: { atMs: number }) {
  const seconds = Math.ceil((atMs - useNow()) / 1_000)
  return <>{seconds <= 0 ? 'Reconnecting now.' : `Reconnecting in ${seconds} s.`}</>
}

function NoEvents({ isFiltered: hasFilters, isPaused }: { isFiltered: boolean; isPaused: boolean }) {
  if (isPaused) return <Empty title="No events">The list was cleared while paused. Resume to see new events.</Empty>
  if (hasFilters)
    return (
      <Empty title="No events match the filters yet">
        New events that match are shown here immediately. Earlier events are on the pages Messages and Deliveries.
      </Empty>
    )
  return (
    <Empty title="No events yet" action={<LinkButton to="/start">Send a message</LinkButton>}>
      Accepted messages, rejected calls and delivery attempts are shown here as they happen.
    </Empty>
  )
}
