// The tables of a warehouse: rows, columns with their types, and what did not fit.

import { Accordion, Group, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { Answer } from '../../api/client.ts'
import { useApi } from '../../api/queries.ts'
import { SearchIcon } from '../../components/icons.tsx'
import { ParamInput } from '../../components/inputs.tsx'
import { Empty, Loaded } from '../../components/page.tsx'
import { FirstRows, FoundCount, ResponsiveTable } from '../../components/responsive-table.tsx'
import { LongText, Note, SmallTag, Time } from '../../components/styled.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'
import { unfitOf } from './loads.tsx'

type LoadedTable = Answer<'GET /api/destinations/{id}/tables'>['data'][number]
type Column = LoadedTable['columns'][number]

export default function TablesTab({ id }: { id: string }) {
  const tables = useApi('GET /api/destinations/{id}/tables', { params: { id }, everyMs: 10_000 })
  return (
    <Loaded query={tables} lines={6}>
      {({ data }) =>
        data.length === 0 ? <Empty title="No tables yet">They are created by the first load.</Empty> : <List tables={data} />
      }
    </Loaded>
  )
}

function List({ tables }: { tables: readonly LoadedTable[] }) {
  const [params] = useSearchState()
  const wanted = (params.get('q') ?? '').trim().toLowerCase()
  const [open, setOpen] = useState<string[]>([])
  const found = tables.filter(
    ({ schema, table, columns }) =>
      `${schema}.${table}`.includes(wanted) ||
      (wanted !== '' && columns.some(({ name, path }) => `${name} ${path}`.toLowerCase().includes(wanted))),
  )
  return (
    <Stack gap="sm">
      <Group align="flex-end" gap="sm">
        <ParamInput
          param="q"
          label="Search"
          placeholder="A table or a column"
          leftSection={<SearchIcon size={16} />}
          style={{ flex: '1 1 220px' }}
          maw={420}
        />
        <FoundCount found={found.length} total={tables.length} word="table" />
      </Group>
      {found.length === 0 && <Empty title="No matching table" filters={['q']} />}
      <FirstRows rows={found}>
        {(shown) => (
          <Accordion variant="separated" chevronPosition="left" order={3} multiple value={open} onChange={setOpen}>
            {shown.map((table) => (
              <Item key={keyOf(table)} table={table} isOpen={open.includes(keyOf(table))} />
            ))}
          </Accordion>
        )}
      </FirstRows>
    </Stack>
  )
}

/** Part of the id of an element, so it has no space. */
function keyOf({ sourceId, table }: LoadedTable): string {
  return `${sourceId}.${table}`
}

function Item({ table, isOpen }: { table: LoadedTable; isOpen: boolean }) {
  const unfit = unfitOf(table)
  return (
    <Accordion.Item value={keyOf(table)}>
      <Accordion.Control>
        <Group gap="sm" style={{ rowGap: 0 }}>
          <Text span fw={600} size="sm" style={{ overflowWrap: 'anywhere' }}>
            {table.schema}.{table.table}
          </Text>
          <Note span>
            {plural(table.rows, 'row')}
            {table.columns.length > 0 && `, ${plural(table.columns.length, 'column')}`}
          </Note>
          {unfit > 0 && <SmallTag color="orange">{plural(unfit, 'value')} did not fit</SmallTag>}
        </Group>
      </Accordion.Control>
      <Accordion.Panel>{isOpen && <Details table={table} />}</Accordion.Panel>
    </Accordion.Item>
  )
}

function Details({ table: { schema, table, columns, unfit, lastLoadAt } }: { table: LoadedTable }) {
  return (
    <Stack gap="sm">
      <Note>
        Last load: <Time at={lastLoadAt} />. Rows that were deleted later are not subtracted from the number of rows.
      </Note>
      {columns.length === 0 ? (
        <Note>Whole messages as JSON: the archive of the lake, which always has the same columns.</Note>
      ) : (
        <FirstRows rows={columns} first={100}>
          {(shown) => (
            <ResponsiveTable
              label={`Columns of ${schema}.${table}`}
              rows={shown}
              keyOf={({ name }) => name}
              columns={[
                { label: 'Column', cell: ({ name }) => name },
                { label: 'Type', cell: ({ type }) => type, isShort: true },
                { label: 'In a message', cell: ({ path }) => path },
                { label: 'Since', cell: ({ since }) => (since === null ? 'always' : <Time at={since} />), isShort: true },
                { label: 'Did not fit', cell: Misfits },
              ]}
            />
          )}
        </FirstRows>
      )}
      {unfit.map(({ path, type, count }) => (
        <LongText key={`${path} ${type}`}>
          {path === '' ? 'Other paths' : path} has no column: {plural(count, `${type} value`)}, kept in _unfit.
        </LongText>
      ))}
    </Stack>
  )
}

function Misfits({ unfit: { count, types } }: Column) {
  if (count === 0) return <Note span>–</Note>
  return (
    <LongText c="var(--mantine-color-orange-text)">{types.map((each) => `${exactCount(each.count)} × ${each.type}`).join(', ')}</LongText>
  )
}
