// The rows, of which only those that are seen are drawn. One stop for the keyboard: arrows go through the rows, Enter opens one.

import { useMediaQuery } from '@mantine/hooks'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, memo, useEffect, useRef, useState } from 'react'
import type { Names } from '../../api/use-names.ts'
import { duration } from '../../text/format.ts'
import { outcomeOf, subjectOf, typeOf, userOf } from './entry.ts'
import type { Entry, Told } from './feed.ts'
import classes from './live.module.css'

const ROW_PX = 34
const CARD_PX = 56
const HEAD_PX = 36
const PAGE_ROWS = 10

/** One for all rows: making one for each is what takes the time. */
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
})

export interface LiveListProps {
  rows: readonly Entry[]
  isHeld: boolean
  names: Names
  onOpen: (told: Told) => void
  /** Somebody reads: rows must not move under the eyes. */
  onRead: (by: 'scroll' | 'row') => void
  /** Back at the top. */
  onTop: () => void
}

export function LiveList({ rows, isHeld, names, onOpen, onRead, onTop }: LiveListProps) {
  const isNarrow = useMediaQuery('(max-width: 47.99em)', false, { getInitialValueInEffect: false }) ?? false
  const height = isNarrow ? CARD_PX : ROW_PX
  const margin = isNarrow ? 0 : HEAD_PX
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
  // Let go, it begins at the top again.
  useEffect(() => {
    if (isHeld) return
    setActive(null)
    if (box.current !== null) box.current.scrollTop = 0
  }, [isHeld])

  const at = active === null ? -1 : rows.findIndex(({ seq }) => seq === active)
  const go = (to: number): void => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))]
    if (row === undefined) return
    onRead('row')
    setActive(row.seq)
    virtual.scrollToIndex(rows.indexOf(row))
  }
  const press = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + PAGE_ROWS, PageUp: at - PAGE_ROWS, Home: 0, End: rows.length - 1 }[
      event.key
    ]
    const row = rows[at]
    if (to !== undefined) go(to)
    else if ((event.key === 'Enter' || event.key === ' ') && row !== undefined) onOpen(row.told)
    else return
    event.preventDefault()
  }
  const drawn = virtual.getVirtualItems()
  return (
    <div
      ref={box}
      className={classes['box']}
      role="grid"
      aria-label="What happens, newest first"
      aria-rowcount={rows.length + 1}
      aria-readonly="true"
      aria-activedescendant={drawn.some(({ index }) => index === at) ? `live-${active}` : undefined}
      tabIndex={0}
      onKeyDown={press}
      onScroll={({ currentTarget: { scrollTop } }) => (scrollTop > height ? onRead('scroll') : scrollTop === 0 && onTop())}
    >
      <div role="rowgroup" className={classes['headings']}>
        <div role="row" aria-rowindex={1} className={classes['head']}>
          {(isNarrow
            ? ['Time, type and event', 'Outcome', 'Source, destination and user', 'Details']
            : ['Time', 'Source', 'Type', 'Event', 'User', 'Destination', 'Outcome']
          ).map((name) => (
            <div key={name} role="columnheader">
              {name}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" className={classes['list']} style={{ height: virtual.getTotalSize() }}>
        {drawn.map(({ index, start }) => {
          const entry = rows[index]
          if (entry === undefined) return null
          const { seq, told } = entry
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
                onRead('row')
                setActive(seq)
                onOpen(told)
              }}
            >
              {isNarrow ? <Lines told={told} names={names} /> : <Cells told={told} names={names} />}
            </div>
          )
        })}
      </div>
    </div>
  )
}

interface CellsProps {
  told: Told
  names: Names
}

const Cells = memo(function Cells({ told, names }: CellsProps) {
  const { source, destination } = placesOf(told, names)
  const { more } = outcomeOf(told)
  return (
    <>
      <Cell className={classes['time']}>
        <Clock at={told.at} />
      </Cell>
      <Cell>{source}</Cell>
      <Cell>{typeOf(told)}</Cell>
      <Cell>{about(told)}</Cell>
      <Cell>{userOf(told)}</Cell>
      <Cell>{destination === '' ? '' : `→ ${destination}`}</Cell>
      <Cell title={more}>
        <OutcomeWord told={told} />
        <span className={classes['faint']}>{more}</span>
      </Cell>
    </>
  )
})

const Lines = memo(function Lines({ told, names }: CellsProps) {
  const { source, destination } = placesOf(told, names)
  const { more } = outcomeOf(told)
  return (
    <>
      <div role="presentation" className={classes['line']}>
        <Cell>
          <span className={`${classes['time']} ${classes['faint']}`}>
            <Clock at={told.at} />
          </span>{' '}
          {about(told) === '' ? typeOf(told) : about(told)}
        </Cell>
        <Cell>
          <OutcomeWord told={told} />
        </Cell>
      </div>
      <div role="presentation" className={`${classes['line']} ${classes['faint']}`}>
        <Cell>
          {[destination === '' ? source : `${source} → ${destination}`.trim(), userOf(told)].filter((each) => each !== '').join(' · ')}
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

export function OutcomeWord({ told }: { told: Told }) {
  const { word, tone } = outcomeOf(told)
  return <span className={`${classes['outcome']} ${classes[tone]}`}>{word}</span>
}

function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at.replace('T', ' ').replace('Z', ' UTC')}>
      {CLOCK.format(new Date(at))}
    </time>
  )
}

function about(told: Told): string {
  return told.kind === 'gap' ? `${subjectOf(told)} for ${duration(told.toMs - told.fromMs)}` : subjectOf(told)
}

function placesOf(told: Told, { sources, destinations }: Names): { source: string; destination: string } {
  const sourceId = told.kind === 'gap' ? null : told.sourceId
  return {
    source: sourceId === null ? '' : (sources.get(sourceId) ?? sourceId),
    destination: told.kind === 'attempt' ? (destinations.get(told.destinationId) ?? told.destinationId) : '',
  }
}
