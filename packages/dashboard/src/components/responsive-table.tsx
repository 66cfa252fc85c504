// A list of things with the same fields: a table where there is room, a card for each on a phone. The first field is the heading of a card.

import { Box, Button, Group, Paper, Stack, Table, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import type { ReactNode } from 'react'

export interface Column<Row> {
  label: string
  cell: (row: Row) => ReactNode
  /** Numbers stand to the right. */
  isNumber?: boolean
  /** Never broken into lines: a state, a count, a word. */
  isShort?: boolean
  /** Buttons have no label on a card, and none that is seen over a table. */
  isActions?: boolean
}

export function ResponsiveTable<Row>({
  rows,
  columns,
  keyOf,
  label,
}: {
  rows: readonly Row[]
  columns: readonly Column<Row>[]
  keyOf: (row: Row) => string
  label: string
}) {
  const isWide = useMediaQuery('(min-width: 48em)', true, { getInitialValueInEffect: false })
  if (!isWide) return <Cards rows={rows} columns={columns} keyOf={keyOf} label={label} />
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
                    ...(isNumber || isShort || isActions
                      ? { whiteSpace: 'nowrap' }
                      : { overflowWrap: at === 0 ? 'anywhere' : 'break-word' }),
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

function Cards<Row>({
  rows,
  columns,
  keyOf,
  label,
}: {
  rows: readonly Row[]
  columns: readonly Column<Row>[]
  keyOf: (row: Row) => string
  label: string
}) {
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
                  <Text size="sm" c="dimmed" w={92} style={{ flexShrink: 0 }}>
                    {name}
                  </Text>
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

/** Below a list that has more. */
export function LoadMore({ list }: { list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown } }) {
  if (!list.hasNextPage) return null
  return (
    <Group justify="center">
      <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        Show more
      </Button>
    </Group>
  )
}
