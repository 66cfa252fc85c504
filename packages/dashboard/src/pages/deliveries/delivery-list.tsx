// The list of deliveries, of any length: only visible rows are rendered, and only the pages near them are in memory (row-pages.ts). The
// window scrolls rather than a box in it, as usual on a phone.

import { Checkbox, Group, Skeleton, Text } from '@mantine/core'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, type MouseEvent, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react'
import { type ApiProblem, call, type Schemas } from '../../api/client.ts'
import { ticked } from '../../components/inputs.tsx'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { useIsNarrow } from '../../components/responsive-table.tsx'
import { Countdown, Note, SmallButton, SmallNote, StateBadge, Time, ViewLink } from '../../components/styled.tsx'
import type { ListQuery } from '../../delivery/filters.ts'
import { exactCount, plural } from '../../text/format.ts'
import { reasonSentence } from '../../text/reasons.ts'
import styles from './list.module.css'
import { RowPages } from './row-pages.ts'
import type { Selection } from './selection.ts'

export type Delivery = Schemas['Delivery']

const PAGE_ROWS = 500
const ROW_PX = 44
const CARD_PX = 92
/** How often the list is refreshed while its start is visible. */
const REFRESH_MS = 5_000

export interface DeliveryListProps {
  query: ListQuery
  nameOf: (destinationId: string) => string
  selection: Selection
  onSelect: (ids: readonly string[], isOn: boolean) => void
  empty: React.ReactNode
}

export function DeliveryList(props: DeliveryListProps) {
  const key = JSON.stringify(props.query)
  const [pages, setPages] = useState<RowPages<Delivery> | null>(null)
  useEffect(() => {
    const query = JSON.parse(key) as ListQuery
    const made = new RowPages<Delivery>({
      keep: 1,
      load: (cursor, signal) => call('GET /api/deliveries', { query: { ...query, limit: PAGE_ROWS, cursor: cursor ?? undefined }, signal }),
    })
    setPages(made)
    made.show(0, 30)
    return () => made.close()
  }, [key])
  return pages === null ? <Loading lines={8} /> : <Shown key={key} {...props} pages={pages} />
}

type ShownProps = DeliveryListProps & { pages: RowPages<Delivery> }

function Shown({ empty, ...list }: ShownProps) {
  const { pages, selection } = list
  useSyncExternalStore(pages.subscribe, pages.version)
  useRefresh(pages, selection.size === 0)
  if (pages.count === 0 && pages.problem === null && pages.isEnd) return <>{empty}</>
  if (pages.count === 0 && pages.problem !== null)
    return <ErrorAlert problem={pages.problem as ApiProblem} onRetry={() => pages.resume()} />
  if (pages.count === 0 && !pages.hasStarted) return <Loading lines={8} />
  return (
    <div className={styles.whole}>
      <Rows {...list} />
      <Group justify="center" py="md" mih={56}>
        <Footer pages={pages} />
      </Group>
    </div>
  )
}

/** New deliveries are added at the start, so the list is refreshed only there: rows must not move while somebody reads further down. */
function useRefresh(pages: RowPages<Delivery>, isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return undefined
    const timer = setInterval(() => {
      if (!document.hidden && pages.hasStarted && !pages.isLoading && pages.problem === null && window.scrollY < 200) void pages.refresh()
    }, REFRESH_MS)
    return () => clearInterval(timer)
  }, [pages, isOn])
}

function Rows({ pages, nameOf, selection, onSelect }: Omit<ShownProps, 'empty'>) {
  const isNarrow = useIsNarrow()
  const height = isNarrow ? CARD_PX : ROW_PX
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  // The position of the list on the page changes when the filters above it wrap.
  useLayoutEffect(() => {
    const at = box.current === null ? 0 : Math.round(box.current.getBoundingClientRect().top + window.scrollY)
    if (at !== top) setTop(at)
  })
  const rows = useWindowVirtualizer({ count: pages.count, estimateSize: () => height, overscan: 12, scrollMargin: top })
  useEffect(() => rows.measure(), [height])
  const drawn = rows.getVirtualItems()
  const [first, last] = [drawn[0]?.index ?? 0, drawn.at(-1)?.index ?? 30]
  useEffect(() => pages.show(first, last), [pages, first, last])
  const { select, step } = useSteps(pages, onSelect, (index) => rows.scrollToIndex(index))
  return (
    <div role="table" aria-label="Deliveries" aria-rowcount={pages.isEnd ? pages.count + 1 : -1}>
      <Head visible={pages.rowsBetween(first, last).map(({ id }) => id)} isNarrow={isNarrow} selection={selection} onSelect={onSelect} />
      <div ref={box} role="rowgroup" className={styles.list} style={{ height: rows.getTotalSize() }}>
        {drawn.map(({ index, start }) => {
          const row = pages.rowAt(index)
          return (
            <div
              key={index}
              role="row"
              aria-rowindex={index + 2}
              className={styles.row}
              style={{ transform: `translateY(${start - top}px)` }}
              data-selected={row !== undefined && selection.has(row.id) ? true : undefined}
            >
              {row === undefined ? (
                <div role="cell" style={{ gridColumn: '1 / -1', gridRow: '1 / -1' }}>
                  <Skeleton height={14} aria-label="Loading" />
                </div>
              ) : (
                <Cells row={row} index={index} nameOf={nameOf} isSelected={selection.has(row.id)} onSelect={select} onStep={step} />
              )}
            </div>
          )
        })}
      </div>
    </div>
  )
}

/** Selects single rows or ranges, and moves between rows with the arrow keys. */
function useSteps(pages: RowPages<Delivery>, onSelect: DeliveryListProps['onSelect'], scrollTo: (index: number) => void) {
  const anchor = useRef<number | null>(null)
  const select = (index: number, isOn: boolean, isRange: boolean): void => {
    const from = isRange && anchor.current !== null ? anchor.current : index
    anchor.current = index
    onSelect(
      pages.rowsBetween(Math.min(from, index), Math.max(from, index)).map(({ id }) => id),
      isOn,
    )
  }
  const step = (event: KeyboardEvent, index: number): void => {
    const to = event.key === 'ArrowDown' ? index + 1 : event.key === 'ArrowUp' ? index - 1 : null
    if (to === null || to < 0 || to >= pages.count) return
    event.preventDefault()
    if (event.shiftKey) {
      anchor.current ??= index
      select(to, true, true)
    }
    scrollTo(to)
    // The row may be rendered only after the scroll.
    requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(`select-${to}`)?.focus({ preventScroll: true })))
  }
  return { select, step }
}

interface HeadProps extends Pick<DeliveryListProps, 'selection' | 'onSelect'> {
  /** The ids of the visible deliveries. */
  visible: readonly string[]
  isNarrow: boolean
}

function Head({ visible, isNarrow, selection, onSelect }: HeadProps) {
  const isAll = visible.length > 0 && visible.every((id) => selection.has(id))
  return (
    <div role="rowgroup" style={{ display: 'contents' }}>
      <div role="row" className={styles.head} aria-rowindex={1}>
        <div role="columnheader">
          <Checkbox
            aria-label="Select visible deliveries"
            label={isNarrow ? 'Select visible deliveries' : undefined}
            indeterminate={!isAll && visible.some((id) => selection.has(id))}
            {...ticked(isAll, (isOn) => onSelect(visible, isOn))}
          />
        </div>
        <div role="columnheader">Message</div>
        <div role="columnheader">Destination</div>
        <div role="columnheader">State</div>
        <div role="columnheader">Reason</div>
        <div role="columnheader" className={styles.number}>
          Attempts
        </div>
        <div role="columnheader">Time</div>
      </div>
    </div>
  )
}

function Footer({ pages }: { pages: RowPages<Delivery> }) {
  if (pages.problem !== null) return <ErrorAlert problem={pages.problem as ApiProblem} onRetry={() => pages.resume()} />
  if (pages.isWaiting)
    return (
      <>
        <Note>No more matches found yet.</Note>
        <SmallButton onClick={() => pages.resume()}>Search older deliveries</SmallButton>
      </>
    )
  return (
    <Note role="status">
      {pages.isEnd ? plural(pages.count, 'delivery') : `${exactCount(pages.count)} deliveries loaded, scroll for more`}
    </Note>
  )
}

interface CellsProps {
  row: Delivery
  index: number
  nameOf: (id: string) => string
  isSelected: boolean
  onSelect: (index: number, isOn: boolean, isRange: boolean) => void
  onStep: (event: KeyboardEvent, index: number) => void
}

function Cells({ row, index, nameOf, isSelected, onSelect, onStep }: CellsProps) {
  const { id, destinationId, state, attemptCount, replay, replayedBy, nextAttemptAt, settledAt } = row
  // A pending delivery has no reason of its own: the one of its last attempt says why it is still pending.
  const reason = row.reason ?? row.lastReason
  const title = row.event ?? row.type ?? 'Deleted message'
  const user = row.userId ?? row.anonymousId
  const destination = nameOf(destinationId)
  return (
    <>
      <div role="cell" className={styles.box}>
        <Checkbox
          id={`select-${index}`}
          aria-label={`Select the delivery of ${title} to ${destination}`}
          checked={isSelected}
          onChange={(event) => onSelect(index, event.currentTarget.checked, (event.nativeEvent as unknown as MouseEvent).shiftKey)}
          onKeyDown={(event) => onStep(event, index)}
        />
      </div>
      <div role="cell" className={`${styles.cell} ${styles.message}`} title={user === null ? title : `${title} · ${user}`}>
        <ViewLink to={`/deliveries/${encodeURIComponent(id)}`} fw={500}>
          {title}
        </ViewLink>
        {user !== null && <Note span> · {user}</Note>}
      </div>
      <div role="cell" className={`${styles.cell} ${styles.destination}`} title={destination}>
        {destination}
      </div>
      <div role="cell" className={styles.state}>
        <StateBadge state={state} />
      </div>
      <div role="cell" className={`${styles.cell} ${styles.reason}`} title={reason === null ? undefined : reasonSentence(reason)}>
        {reason !== null && (
          <Text span size="sm" ff="monospace">
            {reason}
          </Text>
        )}
        {replay && <SmallNote span> replay</SmallNote>}
        {replayedBy !== null && (
          <>
            {' '}
            <ViewLink to={`/deliveries/${encodeURIComponent(replayedBy)}`} size="xs">
              replayed
            </ViewLink>
          </>
        )}
      </div>
      <div
        role="cell"
        className={`${styles.number} ${styles.attempts}`}
        aria-label={`${attemptCount} ${attemptCount === 1 ? 'attempt' : 'attempts'}`}
      >
        {exactCount(attemptCount)}
        <SmallNote span hiddenFrom="sm">
          {' '}
          {attemptCount === 1 ? 'attempt' : 'attempts'}
        </SmallNote>
      </div>
      <div role="cell" className={`${styles.cell} ${styles.time}`}>
        {state === 'pending' ? <Countdown at={nextAttemptAt} prefix="due " /> : <Time at={settledAt} precise />}
      </div>
    </>
  )
}
