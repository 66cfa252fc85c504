// Messages and attempts as they happen. The service samples what is too much and says how much it left out; the page draws at most five times
// a second and keeps the last few hundred (feed.ts), so that a flood does not freeze it. Not listened to while the tab is hidden.

import { Alert, Button, Group, Kbd, Stack, Text } from '@mantine/core'
import { useDocumentVisibility } from '@mantine/hooks'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Link } from 'wouter'
import { type LiveQuery, type LiveState, useLive } from '../../api/live.ts'
import { type Names, useNames } from '../../api/use-names.ts'
import { useNow } from '../../components/countdown.tsx'
import { PauseIcon, PlayIcon } from '../../components/icons.tsx'
import { Page } from '../../components/page.tsx'
import { Empty } from '../../components/query-states.tsx'
import { exactCount } from '../../text/format.ts'
import { changeSearch, useSearchState } from '../../url-state.ts'
import { Details } from './details.tsx'
import { rate } from './entry.ts'
import { Feed, MAX_ENTRIES, type Rates, type Told } from './feed.ts'
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
          Messages and attempts as they happen, newest first.{' '}
          <Text span size="sm" visibleFrom="sm">
            <Kbd size="xs">p</Kbd> pauses, <Kbd size="xs">/</Kbd> filters, arrows go through the rows.
          </Text>
        </>
      }
    >
      <FilterBar query={query} names={names} first={first} />
      {/* Another question is another list: nothing of the last one would fit it. */}
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

/** Why the list stands still. */
type Hold = 'asked' | 'scroll' | 'row' | null

function Stream({ query, names, onFilter, opened }: { query: LiveQuery; names: Names; onFilter: () => void; opened: string | null }) {
  const [feed] = useState(() => new Feed())
  const { rows, rates, isHeld, meanwhile } = useSyncExternalStore(feed.subscribe, feed.view)
  const isSeen = useDocumentVisibility() === 'visible'
  const [round, setRound] = useState(0)
  const state = useLive({ query, onEvents: (events) => feed.add(events), isOn: isSeen, round })
  useGaps(feed, state)
  const held = useRef<Hold>(null)
  const [chosen, setChosen] = useState<Told | null>(null)
  const told = chosen !== null && (opened === null || messageIdOf(chosen) === opened) ? chosen : null
  const isOpen = opened !== null || told !== null

  const hold = (why: Hold): void => {
    held.current ??= why
    feed.hold()
  }
  const resume = (): void => {
    held.current = null
    feed.resume()
  }
  const toggle = (): void => (isHeld ? resume() : hold('asked'))
  const open = (event: Told): void => {
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
            variant={isHeld ? 'filled' : 'default'}
            size="xs"
            leftSection={isHeld ? <PlayIcon size={14} /> : <PauseIcon size={14} />}
            onClick={toggle}
            aria-keyshortcuts="p"
          >
            {isHeld ? 'Resume' : 'Pause'}
          </Button>
          <Button variant="default" size="xs" onClick={() => feed.clear()} disabled={rows.length === 0}>
            Clear
          </Button>
        </Group>
      </Group>
      <Connection state={state} isHeld={isHeld} meanwhile={meanwhile} onRetry={() => setRound((last) => last + 1)} />
      {rates.leftOut > 0 && (
        <Text size="xs" c="dimmed">
          More happens than can be shown: of about {exactCount(rate(rates.shown + rates.leftOut))} events a second,{' '}
          {exactCount(rate(rates.shown))} are told here. The others are counted above, and stored and delivered all the same. A filter shows
          more of what you look for.
        </Text>
      )}
      {rows.length === 0 ? (
        state.is !== 'waiting' && <Nothing isFiltered={isFiltered(query)} isHeld={isHeld} />
      ) : (
        <LiveList
          rows={rows}
          isHeld={isHeld}
          names={names}
          onOpen={open}
          onRead={hold}
          onTop={() => {
            if (held.current === 'scroll') resume()
          }}
        />
      )}
      {rows.length >= MAX_ENTRIES && (
        <Text size="xs" c="dimmed">
          The last {exactCount(MAX_ENTRIES)} are kept here. All of them are under Messages and Deliveries.
        </Text>
      )}
      <Details messageId={opened} told={told} names={names} onClose={close} />
    </Stack>
  )
}

function messageIdOf(told: Told): string | null {
  return told.kind === 'accepted' || told.kind === 'attempt' ? told.messageId : null
}

/** Where nothing was heard for a while, the list says so. */
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

/** Letters that are not typed into something. */
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

function RateLine({ rates: { accepted, attempts, failures, shown, leftOut, isAtLeast } }: { rates: Rates }) {
  const told: [name: string, value: number, isBound: boolean][] = [
    ['Accepted', accepted, isAtLeast],
    ['Attempts', attempts, isAtLeast],
    ['Failures', failures, isAtLeast],
    ['Shown', shown, false],
    ['Left out', leftOut, false],
  ]
  return (
    <dl className={classes['rates']} aria-label="By the second, over the last five">
      {told.map(([name, value, isBound]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {isBound && '≥ '}
            {exactCount(rate(value))}/s
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Connection({ state, isHeld, meanwhile, onRetry }: { state: LiveState; isHeld: boolean; meanwhile: number; onRetry: () => void }) {
  if (state.is === 'waiting') {
    return (
      <Alert
        color="red"
        variant="light"
        role="alert"
        title={state.problem.status >= 400 ? 'The service refuses the stream' : 'The stream is broken'}
      >
        <Group gap="sm">
          <Text size="sm">
            {state.problem.message} <Again atMs={state.untilMs} />
          </Text>
          <Button size="compact-sm" variant="light" color="red" onClick={onRetry}>
            Try now
          </Button>
        </Group>
      </Alert>
    )
  }
  return (
    <Text size="sm" component="div">
      <span role="status">
        {state.is === 'open'
          ? isHeld
            ? 'Held still.'
            : 'Listening.'
          : state.is === 'connecting'
            ? 'Connecting …'
            : 'Not listening while the tab is hidden.'}
      </span>
      {isHeld && ` ${exactCount(meanwhile)} came meanwhile.`}
    </Text>
  )
}

function Again({ atMs }: { atMs: number }) {
  const seconds = Math.ceil((atMs - useNow()) / 1_000)
  return <>It is tried again {seconds <= 0 ? 'now' : `in ${seconds} s`}.</>
}

function Nothing({ isFiltered: hasFilters, isHeld }: { isFiltered: boolean; isHeld: boolean }) {
  if (isHeld) return <Empty title="Nothing is shown">The list was cleared while it is held still. Resume to see what comes.</Empty>
  if (hasFilters)
    return (
      <Empty title="Nothing that fits the filters yet">
        What comes and fits is shown here at once. What was before is under Messages and Deliveries.
      </Empty>
    )
  return (
    <Empty
      title="Nothing yet"
      action={
        <Button component={Link} href="/start" variant="default">
          How to send a message
        </Button>
      }
    >
      What is accepted, rejected and attempted from now on is shown here at once.
    </Empty>
  )
}
