// The list of events. Only the visible rows are rendered. One tab stop: the arrow keys select a row, Enter opens it.

import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, memo, useEffect, useRef, useState } from 'react'
import type { Names } from '../../api/use-names.ts'
import { useIsNarrow } from '../../components/responsive-table.tsx'
import { duration } from '../../text/format.ts'
import { outcomeOf, subjectOf, typeOf, userOf } from './entry.ts'
import { type Entry, type LiveItem, timeOf } from './feed.ts'
import classes from './live.module.css'

/** In pixels. The margin is the height of the headings. */
const ROW = { height: 34, margin: 36 }
const CARD = { height: 56, margin: 0 }
const PAGE_ROWS = 10

/** Shared by all rows, because creating a formatter is slow. */
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
})

export interface LiveListProps {
  rows: readonly Entry[]
  isPaused: boolean
  names: Names
  onOpen: (item: LiveItem) => void
  /** Called when somebody scrolls or selects a row: the rows must not move then. */
  onRead: (by: 'scroll' | 'row') => void
  /** Called when the list is scrolled back to the top. */
  onTop: () => void
}

export function LiveList({ rows, isPaused, names, onOpen, onRead, onTop }: LiveListProps) {
  const isNarrow = useIsNarrow()
  const { height, margin } = isNarrow ? CARD : ROW
  const box = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState<number | null>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 5,
    scrollMargin: margin,
    scrollPaddingStart: margin,
  })
  useEffect(() => virtual.measure(), [height])
  // When it is resumed, it scrolls back to the top.
  useEffect(() => {
    if (isPaused) return
    setActive(null)
    if (box.current !== null) box.current.scrollTop = 0
  }, [isPaused])

  const at = active === null ? -1 : rows.findIndex(({ seq }) => seq === active)
  const select = ({ seq }: Entry): void => {
    onRead('row')
    setActive(seq)
  }
  const press = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const to = indexAfter(event.key, at, rows.length)
    const [next, row] = [rows[to], rows[at]]
    if (next !== undefined) {
      select(next)
      virtual.scrollToIndex(to)
    } else if ((event.key === 'Enter' || event.key === ' ') && row !== undefined) onOpen(row.item)
    else return
    event.preventDefault()
  }
  const drawn = virtual.getVirtualItems()
  return (
    <div
      ref={box}
      className={classes['box']}
      role="grid"
      aria-label="Events, newest first"
      aria-rowcount={rows.length + 1}
      aria-readonly="true"
      aria-activedescendant={drawn.some(({ index }) => index === at) ? `live-${active}` : undefined}
      tabIndex={0}
      onKeyDown={press}
      onScroll={({ currentTarget: { scrollTop } }) => (scrollTop > height ? onRead('scroll') : scrollTop === 0 && onTop())}
    >
      <Headings isNarrow={isNarrow} />
      <div role="rowgroup" className={classes['list']} style={{ height: virtual.getTotalSize() }}>
        {drawn.map(({ index, start }) => {
          const entry = rows[index]
          if (entry === undefined) return null
          const { seq, item } = entry
          return (
            <div
              key={seq}
              id={`live-${seq}`}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={seq === active}
              data-active={seq === active ? true : undefined}
              className={classes['row']}
              style={{ transform: `translateY(${start - margin}px)` }}
              onClick={() => {
                select(entry)
                onOpen(item)
              }}
            >
              {isNarrow ? <Lines item={item} names={names} /> : <Cells item={item} names={names} />}
            </div>
          )
        })}
      </div>
    </div>
  )
}

/** The row that a key leads to; -1 for other keys. */
function indexAfter(key: string, at: number, count: number): number {
  const steps = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + PAGE_ROWS, PageUp: at - PAGE_ROWS, Home: 0, End: count } as const
  return key in steps ? Math.max(0, Math.min(count - 1, steps[key as keyof typeof steps])) : -1
}

const HEADINGS = {
  narrow: ['Time, type and event', 'Outcome', 'Source, destination and user', 'Details'],
  wide: ['Time', 'Source', 'Type', 'Event', 'User', 'Destination', 'Outcome'],
}

function Headings({ isNarrow }: { isNarrow: boolean }) {
  return (
    <div role="rowgroup" className={classes['headings']}>
      <div role="row" aria-rowindex={1} className={classes['head']}>
        {HEADINGS[isNarrow ? 'narrow' : 'wide'].map((name) => (
          <div key={name} role="columnheader">
            {name}
          </div>
        ))}
      </div>
    </div>
  )
}

interface CellsProps {
  item: LiveItem
  names: Names
}

const Cells = memo(function Cells({ item, names }: CellsProps) {
  const { source, destination } = endpointNamesOf(item, names)
  const { more } = outcomeOf(item)
  return (
    <>
      <Cell className={classes['time']}>
        <Clock at={new Date(timeOf(item)).toISOString()} />
      </Cell>
      <Cell>{source}</Cell>
      <Cell>{typeOf(item)}</Cell>
      <Cell>{about(item)}</Cell>
      <Cell>{userOf(item)}</Cell>
      <Cell>{destination === '' ? '' : `→ ${destination}`}</Cell>
      <Cell title={more}>
        <OutcomeWord item={item} />
        <span className={classes['faint']}>{more}</span>
      </Cell>
    </>
  )
})

const Lines = memo(function Lines({ item, names }: CellsProps) {
  const { source, destination } = endpointNamesOf(item, names)
  const { more } = outcomeOf(item)
  return (
    <>
      <div role="presentation" className={classes['line']}>
        <Cell>
          <span className={`${classes['time']} ${classes['faint']}`}>
            <Clock at={new Date(timeOf(item)).toISOString()} />
          </span>{' '}
          {about(item) === '' ? typeOf(item) : about(item)}
        </Cell>
        <Cell>
          <OutcomeWord item={item} />
        </Cell>
      </div>
      <div role="presentation" className={`${classes['line']} ${classes['faint']}`}>
        <Cell>
          {[destination === '' ? source : `${source} → ${destination}`.trim(), userOf(item)].filter((each) => each !== '').join(' · ')}
        </Cell>
        <Cell>{more}</Cell>
      </div>
    </>
  )
})

function Cell({ className = '', title, children }: { className?: string | undefined; title?: string; children: React.ReactNode }) {
  return (
    <div
      role="gridcell"
      className={`${classes['cell']} ${className}`}
      title={title ?? (typeof children === 'string' ? children : undefined)}
    >
      {children}
    </div>
  )
}

export function OutcomeWord({ item }: { item: LiveItem }) {
  const { word, tone } = outcomeOf(item)
  return <span className={`${classes['outcome']} ${classes[tone]}`}>{word}</span>
}

function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at.replace('T', ' ').replace('Z', ' UTC')}>
      {CLOCK.format(new Date(at))}
    </time>
  )
}

function about(item: LiveItem): string {
  return item.kind === 'gap' ? `${subjectOf(item)} for ${duration(item.toMs - item.fromMs)}` : subjectOf(item)
}

function endpointNamesOf(item: LiveItem, { sources, destinations }: Names): { source: string; destination: string } {
  const sourceId = item.kind === 'gap' ? null : item.sourceId
  return {
    source: sourceId === null ? '' : (sources.get(sourceId) ?? sourceId),
    destination: item.kind === 'attempt' ? (destinations.get(item.destinationId) ?? item.destinationId) : '',
  }
}
