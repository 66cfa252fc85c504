// The rows of the list of messages. Only visible rows are rendered, so that a list of thousands stays fast.

import { Box, Card } from '@mantine/core'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { Names } from '../../api/use-names.ts'
import { SmallTag } from '../../components/styled.tsx'
import { preciseTime } from '../../text/format.ts'
import { type ColumnName, isKnown, labelOf, templateOf } from './columns.ts'
import { nameOf, outcomesOf, type Row, valueAt } from './message-row.ts'
import classes from './messages.module.css'
import { OutcomeDots } from './outcome-dots.tsx'

interface RowsProps {
  rows: readonly Row[]
  columns: readonly string[]
  names: Names
  onEnd: (() => void) | undefined
}

export function Rows({ rows, columns, names, onEnd }: RowsProps) {
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
    <Card withBorder padding={0} ref={box} style={{ '--columns': templateOf(columns) }}>
      <div className={`${classes['row']} ${classes['head']}`} aria-hidden="true">
        {columns.map((column) => (
          <span key={column} title={column}>
            {labelOf(column)}
          </span>
        ))}
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
            <MessageRow row={rows[index] as Row} columns={columns} names={names} />
          </Box>
        ))}
      </Box>
    </Card>
  )
}

function MessageRow({ row, columns, names }: { row: Row; columns: readonly string[]; names: Names }) {
  return (
    <Link href={`/messages/${encodeURIComponent(row.id)}`} className={classes['row']}>
      {columns.map((column) =>
        isKnown(column) ? CELLS[column](row, names) : <Value key={column} path={column} value={valueAt(row.message, column)} />,
      )}
    </Link>
  )
}

function Value({ path, value }: { path: string; value: string }) {
  return (
    <span title={`${path}: ${value}`}>
      <span className={classes['label']}>{labelOf(path)}: </span>
      {value === '' ? '–' : value}
    </span>
  )
}

const CELLS: Readonly<Record<ColumnName, (row: Row, names: Names) => ReactNode>> = {
  received: ({ receivedAt }) => (
    <time key="received" dateTime={receivedAt} title={new Date(receivedAt).toISOString().replace('T', ' ').replace('Z', ' UTC')}>
      {preciseTime(receivedAt)}
    </time>
  ),
  type: ({ type }) => (
    <span key="type" className={classes['type']}>
      <SmallTag color="gray">{type ?? 'deleted'}</SmallTag>
    </span>
  ),
  event: (row) => (
    <span key="event" className={classes['title']} title={nameOf(row)}>
      {nameOf(row)}
    </span>
  ),
  user: ({ userId, anonymousId }) => (
    <span key="user" title={userId ?? anonymousId ?? ''}>
      {userId ?? (anonymousId === null ? 'no user' : `anonymous ${anonymousId}`)}
    </span>
  ),
  source: ({ sourceId }, names) => <span key="source">{names.sources.get(sourceId) ?? sourceId}</span>,
  messageId: ({ messageId }) => (
    <span key="messageId" title={messageId ?? ''}>
      {messageId ?? '–'}
    </span>
  ),
  outcome: (row, names) => (
    <span key="outcome" className={classes['where']}>
      <OutcomeDots
        outcomes={outcomesOf(row, names.destinations)}
        skipped={row.skips.filter(({ destinationId }) => destinationId !== null).length}
      />
    </span>
  ),
}
