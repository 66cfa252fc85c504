// Tests the settings of a new warehouse, and shows what was tried and the tables that the newest messages would make.

import { Accordion, Alert, Button, Group, List, Paper, Stack, Table, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { type Answer, call } from '../../api/client.ts'
import { LongText, Note, SectionTitle, SmallTag, SmallTitle } from '../../components/styled.tsx'
import { capitalized, plural } from '../../text/format.ts'
import { createBodyOf, type WarehouseDraft } from './form/warehouse-draft.ts'

type Check = Answer<'POST /api/warehouse/check'>
type CheckedTable = Check['tables'][number]

interface CheckPanelProps {
  draft: WarehouseDraft
  /** Shows what is wrong with the form instead of running, and errors of the API at their fields. */
  attempt: (run: () => Promise<unknown>) => Promise<void>
}

export function CheckPanel({ draft, attempt }: CheckPanelProps) {
  const [{ about, check }, setCheck] = useState<{ about: string; check: Check | null }>({ about: '', check: null })
  const [isBusy, setBusy] = useState(false)
  const settings = JSON.stringify(draft)
  // Other settings have not been tested.
  useEffect(() => setCheck((before) => (before.about === settings ? before : { about: '', check: null })), [settings])
  const test = (): Promise<void> =>
    attempt(async () => {
      setBusy(true)
      setCheck({ about: settings, check: null })
      try {
        setCheck({ about: settings, check: await call('POST /api/warehouse/check', { body: createBodyOf(draft) }) })
      } finally {
        setBusy(false)
      }
    })
  return (
    <Paper withBorder p="md">
      <Stack>
        <SectionTitle>Test</SectionTitle>
        <Note>
          Connects, and creates and drops a table named _switchyard_test. Shows the tables that the newest messages of the sources would
          make. Nothing is loaded.
        </Note>
        <Group>
          <Button variant="default" onClick={() => void test()} loading={isBusy}>
            Test connection
          </Button>
          {isBusy && <Note role="status">Connecting …</Note>}
        </Group>
        {about === settings && check !== null && <Result check={check} />}
      </Stack>
    </Paper>
  )
}

function Result({ check: { problem, steps, version, messages, tables } }: { check: Check }) {
  return (
    <Stack>
      <Alert
        color={problem === null ? 'teal' : 'red'}
        variant="light"
        role="status"
        title={problem === null ? `Test passed: tables can be written${version === null ? '' : ` (${version})`}.` : 'Test failed'}
      >
        {problem !== null && <LongText>{problem.message}</LongText>}
        {steps.length > 0 && (
          <List size="sm" listStyleType="none" mt={problem === null ? 0 : 'xs'} aria-label="Steps">
            {steps.map(({ step, ok }) => (
              <List.Item key={step}>
                {ok ? '✓' : '✗'} {capitalized(step)}
                {ok ? '' : ': failed'}
              </List.Item>
            ))}
          </List>
        )}
      </Alert>
      {tables.length > 0 && <TablesPreview messages={messages} tables={tables} />}
    </Stack>
  )
}

function TablesPreview({ messages, tables }: { messages: number; tables: readonly CheckedTable[] }) {
  return (
    <Stack gap="xs">
      <SmallTitle>Tables that would be made</SmallTitle>
      <Note>
        {messages === 0
          ? 'No source with stored messages is chosen, so these are the tables of sample messages.'
          : `From the newest ${plural(messages, 'message')}. Later messages add columns and tables.`}
      </Note>
      <Accordion variant="separated" chevronPosition="left" order={4}>
        {tables.map((table) => (
          <Accordion.Item key={`${table.schema}.${table.table}`} value={`${table.schema}.${table.table}`}>
            <Accordion.Control>
              <Group gap="sm" style={{ rowGap: 0 }}>
                <Text span fw={600} size="sm" style={{ overflowWrap: 'anywhere' }}>
                  {table.schema}.{table.table}
                </Text>
                <Note span>
                  {plural(table.rows, 'row')}, {plural(table.columnCount, 'column')}
                </Note>
                {table.unfit > 0 && <SmallTag color="orange">{plural(table.unfit, 'value')} would not fit</SmallTag>}
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <Columns table={table} />
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
    </Stack>
  )
}

function Columns({ table: { schema, table, columns, columnCount } }: { table: CheckedTable }) {
  return (
    <>
      <Table.ScrollContainer
        minWidth={420}
        scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': `Columns of ${schema}.${table}`, role: 'region' } }}
      >
        <Table verticalSpacing={4}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Column</Table.Th>
              <Table.Th>Type</Table.Th>
              <Table.Th>Example</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {columns.map(({ name, type, example }) => (
              <Table.Tr key={name}>
                <Table.Td>{name}</Table.Td>
                <Table.Td>{type}</Table.Td>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>{example ?? '–'}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {columnCount > columns.length && <Note>And {plural(columnCount - columns.length, 'more column')}.</Note>}
    </>
  )
}
