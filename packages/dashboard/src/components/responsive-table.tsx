// Lists of rows, loaded page by page: a table where there is room, a card for each row on a phone. The first column becomes the heading of the card.

import { Box, Group, Paper, Stack, Table } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type ReactNode, useState } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { exactCount, plural } from '../text/format.ts'
import { ErrorAlert, Loading } from './page.tsx'
import { Note, SecondaryButton } from './styled.tsx'

export interface Column<Row> {
  label: string
  cell: (row: Row) => ReactNode
  /** Numbers are aligned to the right. */
  isNumber?: boolean
  /** Never wrapped: a state, a count, a word. */
  isShort?: boolean
  /** A column of buttons: its label is hidden in the table and left out on a card. */
  isActions?: boolean
}

interface ResponsiveTableProps<Row> {
  rows: readonly Row[]
  columns: readonly Column<Row>[]
  keyOf: (row: Row) => string
  label: string
}

/** Whether there is only room for cards. */
export function useIsNarrow(): boolean {
  return useMediaQuery('(max-width: 47.99em)', false, { getInitialValueInEffect: false }) ?? false
}

export function ResponsiveTable<Row>({ rows, columns, keyOf, label }: ResponsiveTableProps<Row>) {
  if (useIsNarrow()) return <Cards rows={rows} columns={columns} keyOf={keyOf} label={label} />
  return (
    <Table.ScrollContainer minWidth={0} type="native" tabIndex={0} role="region" aria-label={label}>
      <Table verticalSpacing="xs" highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ label: name, isNumber, isActions }) => (
              <Table.Th key={name} ta={isNumber || isActions ? 'right' : 'left'}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={keyOf(row)}>
              {columns.map(({ label: name, cell, isNumber, isShort, isActions }, at) => (
                <Table.Td
                  key={name}
                  ta={isNumber || isActions ? 'right' : 'left'}
                  style={{
                    verticalAlign: 'top',
                    ...(isNumber ? { fontVariantNumeric: 'tabular-nums' } : {}),
                    ...(isNumber || isShort || isActions
                      ? { whiteSpace: 'nowrap' }
                      : at === 0
                        ? { overflowWrap: 'anywhere', minWidth: 140 }
                        : { overflowWrap: 'break-word' }),
                  }}
                >
                  {cell(row)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

function Cards<Row>({ rows, columns, keyOf, label }: ResponsiveTableProps<Row>) {
  const [first, ...rest] = columns
  return (
    <Stack gap="sm" role="list" aria-label={label}>
      {rows.map((row) => (
        <Paper key={keyOf(row)} withBorder p="sm" role="listitem">
          <Stack gap={6}>
            <Box fw={600} style={{ overflowWrap: 'anywhere' }}>
              {first?.cell(row)}
            </Box>
            {rest.map(({ label: name, cell, isActions }) =>
              isActions ? (
                <Box key={name}>{cell(row)}</Box>
              ) : (
                <Group key={name} gap="sm" wrap="nowrap" align="flex-start">
                  <Note w={92} style={{ flexShrink: 0 }}>
                    {name}
                  </Note>
                  <Box fz="sm" miw={0} style={{ overflowWrap: 'anywhere' }}>
                    {cell(row)}
                  </Box>
                </Group>
              ),
            )}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}

interface Pages {
  hasNextPage: boolean
  isFetchingNextPage: boolean
  fetchNextPage: () => unknown
}

/** The button below a list that loads the next page; nothing if there is none. */
export function LoadMore({ list }: { list: Pages }) {
  if (!list.hasNextPage) return null
  return (
    <Group justify="center">
      <SecondaryButton loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        Load more
      </SecondaryButton>
    </Group>
  )
}

/** How many rows a filter has found. `word` is singular. */
export function FoundCount({ found, total, word }: { found: number; total: number; word: string }) {
  return <Note role="status">{found === total ? plural(total, word) : `${exactCount(found)} of ${plural(total, word)}`}</Note>
}

interface FirstRowsProps<Row> {
  rows: readonly Row[]
  /** How many are shown at first. */
  first?: number
  children: (shown: readonly Row[]) => ReactNode
}

/** The first rows of a list that is in memory, and a button that shows more of them. */
export function FirstRows<Row>({ rows, first = 50, children }: FirstRowsProps<Row>) {
  const [count, setCount] = useState(first)
  return (
    <>
      {children(rows.slice(0, count))}
      {rows.length > count && (
        <Group justify="center">
          <SecondaryButton onClick={() => setCount(count + 2 * first)}>Show more ({exactCount(rows.length)} in total)</SecondaryButton>
        </Group>
      )}
    </>
  )
}

export interface LoadedListProps {
  list: Pages & { rows: readonly unknown[]; problem: ApiProblem | null; isPending: boolean; refetch: () => unknown }
  /** Shown while there are no rows. */
  empty: ReactNode
  /** While it is loading. */
  lines?: number
  label?: string
  children: ReactNode
}

export function LoadedList({ list, empty, lines = 4, label = 'Loading', children }: LoadedListProps) {
  if (list.problem !== null && list.rows.length === 0) return <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
  if (list.isPending) return <Loading lines={lines} label={label} />
  if (list.rows.length === 0) return empty
  return (
    <>
      {children}
      <LoadMore list={list} />
    </>
  )
}

interface LoadedTableProps<Row> extends Omit<LoadedListProps, 'children'>, Omit<ResponsiveTableProps<Row>, 'rows' | 'keyOf'> {
  list: LoadedListProps['list'] & { rows: readonly Row[] }
  label: string
}

/** A loaded list of things with ids, as a table. */
export function LoadedTable<Row extends { id: string }>({ list, columns, label, ...props }: LoadedTableProps<Row>) {
  return (
    <LoadedList list={list} label={`Loading ${label.toLowerCase()}`} {...props}>
      <ResponsiveTable rows={list.rows} columns={columns} keyOf={({ id }) => id} label={label} />
    </LoadedList>
  )
}
