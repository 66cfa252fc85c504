// The list of deliveries, a page of rows at a time. The cursor of a page is in the address, so a page is found again after a look at a delivery.

import { Checkbox, Group } from '@mantine/core'
import { type KeyboardEvent, type MouseEvent, useEffect, useRef } from 'react'
import type { Schemas } from '../../api/client.ts'
import { useApi, usePersistentProblem } from '../../api/queries.ts'
import { ticked } from '../../components/inputs.tsx'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { useIsNarrow } from '../../components/responsive-table.tsx'
import { Countdown, Note, SecondaryButton, SmallNote, StateBadge, Time, ViewLink } from '../../components/styled.tsx'
import type { ListQuery } from '../../delivery/filters.ts'
import { exactCount, plural } from '../../text/format.ts'
import { reasonSentence } from '../../text/reasons.ts'
import { changeSearch } from '../../url/url-state.ts'
import styles from './list.module.css'
import type { Selection } from './selection.ts'

export type Delivery = Schemas['Delivery']

export const PAGE_ROWS = 50
/** How often the first page is refreshed. */
const REFRESH_MS = 5_000
/** A page reads a limited number of deliveries, none of which may match. This many such pages in a row are skipped by themselves. */
const MAX_EMPTY_PAGES = 40

export interface DeliveryListProps {
  query: ListQuery
  /** Of the page that is shown; null for the first one. */
  cursor: string | null
  nameOf: (destinationId: string) => string
  selection: Selection
  onSelect: (ids: readonly string[], isOn: boolean) => void
  empty: React.ReactNode
}

export function DeliveryList({ query, cursor, nameOf, selection, onSelect, empty }: DeliveryListProps) {
  const asked = useApi('GET /api/deliveries', {
    query: { ...query, limit: PAGE_ROWS, cursor: cursor ?? undefined },
    keep: true,
    // Only the first page, because new deliveries are added at its start, and rows must not move while they are selected.
    ...(cursor === null && selection.size === 0 ? { everyMs: REFRESH_MS } : {}),
  })
  const { data, refetch, isPlaceholderData } = asked
  const problem = usePersistentProblem(asked, cursor ?? '')
  const rows = data?.data ?? []
  const next = data?.next ?? null
  // The cursor of the previous page, by that of a page. Not known of the page that the address began with.
  const previous = useRef(new Map<string, string | null>())
  const empties = useRef(0)
  const go = (to: string | null, isReplacing = false): void => {
    if (to !== null && !previous.current.has(to))
      previous.current.set(to, isReplacing ? (previous.current.get(cursor ?? '') ?? null) : cursor)
    changeSearch({ page: to }, { replace: isReplacing })
    if (!isReplacing) window.scrollTo(0, 0)
  }
  const isSkipped = data !== undefined && !isPlaceholderData && rows.length === 0 && next !== null && empties.current < MAX_EMPTY_PAGES
  useEffect(() => {
    if (rows.length > 0) empties.current = 0
    else if (isSkipped) {
      empties.current++
      go(next, true)
    }
  }, [isSkipped, next, rows.length])
  if (problem !== null && rows.length === 0) return <ErrorAlert problem={problem} onRetry={() => void refetch()} />
  if (data === undefined || isSkipped) return <Loading lines={8} />
  if (rows.length === 0 && next === null && cursor === null) return <>{empty}</>
  const before = cursor === null ? undefined : previous.current.get(cursor)
  return (
    <div aria-busy={isPlaceholderData}>
      {rows.length > 0 && <Rows rows={rows} nameOf={nameOf} selection={selection} onSelect={onSelect} />}
      <Group justify="space-between" py="md" gap="xs">
        <Note role="status">
          {rows.length === 0
            ? 'No more matches found yet.'
            : cursor === null && next === null
              ? plural(rows.length, 'delivery')
              : `${plural(rows.length, 'delivery')} on this page`}
        </Note>
        {(cursor !== null || next !== null) && (
          <Group gap="xs">
            <SecondaryButton disabled={cursor === null} onClick={() => go(null)}>
              First page
            </SecondaryButton>
            <SecondaryButton disabled={before === undefined} onClick={() => go(before ?? null)}>
              Previous
            </SecondaryButton>
            <SecondaryButton disabled={next === null} loading={isPlaceholderData} onClick={() => go(next)}>
              Next
            </SecondaryButton>
          </Group>
        )}
      </Group>
    </div>
  )
}

interface RowsProps extends Pick<DeliveryListProps, 'nameOf' | 'selection' | 'onSelect'> {
  rows: readonly Delivery[]
}

function Rows({ rows, nameOf, selection, onSelect }: RowsProps) {
  const isNarrow = useIsNarrow()
  const { select, step } = useSteps(rows, onSelect)
  const failureOf = useFailures(rows)
  return (
    <div role="table" aria-label="Deliveries" aria-rowcount={rows.length + 1}>
      <Head ids={rows.map(({ id }) => id)} isNarrow={isNarrow} selection={selection} onSelect={onSelect} />
      <div role="rowgroup">
        {rows.map((row, index) => (
          <div
            key={row.id}
            role="row"
            aria-rowindex={index + 2}
            className={styles.row}
            data-selected={selection.has(row.id) ? true : undefined}
          >
            <Cells
              row={row}
              index={index}
              nameOf={nameOf}
              failure={failureOf(row.destinationId)}
              isSelected={selection.has(row.id)}
              onSelect={select}
              onStep={step}
            />
          </div>
        ))}
      </div>
    </div>
  )
}

/** Requests the health of destinations only if a delivery is pending that was never attempted. */
function useFailures(rows: readonly Delivery[]) {
  const isAsked = rows.some(({ state, attemptCount }) => state === 'pending' && attemptCount === 0)
  const health = useApi('GET /api/destinations/health', { everyMs: 10_000, enabled: isAsked })
  return (id: string): string | null => health.data?.data.find(({ destinationId }) => destinationId === id)?.failure?.error ?? null
}

/** Selects single rows or ranges, and moves between rows with the arrow keys. */
function useSteps(rows: readonly Delivery[], onSelect: DeliveryListProps['onSelect']) {
  const anchor = useRef<number | null>(null)
  const select = (index: number, isOn: boolean, isRange: boolean): void => {
    const from = isRange && anchor.current !== null ? anchor.current : index
    anchor.current = index
    onSelect(
      rows.slice(Math.min(from, index), Math.max(from, index) + 1).map(({ id }) => id),
      isOn,
    )
  }
  const step = (event: KeyboardEvent, index: number): void => {
    const to = event.key === 'ArrowDown' ? index + 1 : event.key === 'ArrowUp' ? index - 1 : null
    if (to === null || to < 0 || to >= rows.length) return
    event.preventDefault()
    if (event.shiftKey) {
      anchor.current ??= index
      select(to, true, true)
    }
    document.getElementById(`select-${to}`)?.focus()
  }
  return { select, step }
}

interface HeadProps extends Pick<DeliveryListProps, 'selection' | 'onSelect'> {
  /** The ids of the deliveries on the page. */
  ids: readonly string[]
  isNarrow: boolean
}

function Head({ ids, isNarrow, selection, onSelect }: HeadProps) {
  const isAll = ids.length > 0 && ids.every((id) => selection.has(id))
  return (
    <div role="rowgroup" style={{ display: 'contents' }}>
      <div role="row" className={styles.head} aria-rowindex={1}>
        <div role="columnheader">
          <Checkbox
            aria-label="Select all on this page"
            label={isNarrow ? 'Select all on this page' : undefined}
            indeterminate={!isAll && ids.some((id) => selection.has(id))}
            {...ticked(isAll, (isOn) => onSelect(ids, isOn))}
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

interface CellsProps {
  row: Delivery
  index: number
  nameOf: (id: string) => string
  /** Why the latest attempt of its destination failed: the cause that is shown for a pending delivery that was never attempted. */
  failure: string | null
  isSelected: boolean
  onSelect: (index: number, isOn: boolean, isRange: boolean) => void
  onStep: (event: KeyboardEvent, index: number) => void
}

function Cells({ row, index, nameOf, failure, isSelected, onSelect, onStep }: CellsProps) {
  const { id, destinationId, state, attemptCount, replay, replayedBy, nextAttemptAt, settledAt } = row
  // A pending delivery has no reason of its own: the one of its last attempt says why it is still pending.
  const reason = row.reason ?? row.lastReason
  const cause = reason === null ? (state === 'pending' ? failure : null) : reasonSentence(reason)
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
      <div
        role="cell"
        className={`${styles.cell} ${styles.reason}`}
        title={cause === null ? undefined : reason === null ? cause : `${cause} (${reason})`}
      >
        {cause}
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
