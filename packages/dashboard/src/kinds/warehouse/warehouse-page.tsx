// The page of a warehouse: its tables, and the outcome of a test.

import { Alert, Button, Stack, Table, Text } from '@mantine/core'
import { useApi, useChange } from '../../api/queries.ts'
import { Empty, Loaded } from '../../components/page.tsx'
import { Note } from '../../components/styled.tsx'
import { SettingsTab } from '../../destination/form/settings-tab.tsx'
import { DestinationFrame } from '../../destination/frame.tsx'
import type { DestinationOf } from '../../destination/kind.ts'
import { type Sent, TestAttempts } from '../../destination/test-panel.tsx'
import { useMayEdit } from '../../session/session.tsx'
import { WAREHOUSE_FORM } from './form/warehouse-form.tsx'
import { WAREHOUSE_SUMMARY, WarehouseAttempt } from './summary.tsx'

type Warehouse = DestinationOf<'warehouse'>

export default function WarehousePage({ destination }: { destination: Warehouse }) {
  const mayEdit = useMayEdit(destination)
  return (
    <DestinationFrame
      destination={destination}
      kind={WAREHOUSE_SUMMARY}
      test={{
        about: 'Connects to the warehouse, and creates and drops a table named _switchyard_test.',
        outcome: (sent) => <Outcome sent={sent} />,
      }}
      tabs={{
        tables: (
          <Stack>
            <Place destination={destination} />
            <Tables destination={destination} />
          </Stack>
        ),
      }}
      settings={<SettingsTab destination={destination} formOf={() => WAREHOUSE_FORM} mayEdit={mayEdit} />}
    />
  )
}

function Outcome({ sent: { success, attempts } }: { sent: Sent }) {
  return (
    <Stack gap="lg">
      <Alert
        color={success ? 'teal' : 'red'}
        variant="light"
        title={success ? 'Test passed: tables can be written.' : 'Test failed.'}
        role="status"
      />
      <TestAttempts title="Steps" attempts={attempts} Attempt={WarehouseAttempt} />
    </Stack>
  )
}

function Tables({ destination: { id } }: { destination: Warehouse }) {
  const tables = useApi('GET /api/destinations/{id}/tables', { params: { id }, everyMs: 10_000 })
  return (
    <Loaded query={tables} lines={6}>
      {({ data }) =>
        data.length === 0 ? (
          <Empty title="No tables yet">They are created by the first load.</Empty>
        ) : (
          <Table.ScrollContainer minWidth={400}>
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Table</Table.Th>
                  <Table.Th>Columns</Table.Th>
                  <Table.Th>Rows</Table.Th>
                  <Table.Th>Last load</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {data.map(({ sourceId, schema, table, columns, rows, lastLoadAt }) => (
                  <Table.Tr key={`${sourceId} ${table}`}>
                    <Table.Td>
                      {schema}.{table}
                    </Table.Td>
                    <Table.Td>{columns.length}</Table.Td>
                    <Table.Td>{rows}</Table.Td>
                    <Table.Td>{lastLoadAt ?? 'never'}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        )
      }
    </Loaded>
  )
}

function Place({ destination }: { destination: Warehouse }) {
  const mayEdit = useMayEdit(destination)
  const load = useChange('POST /api/destinations/{id}/load', 'GET /api/destinations/{id}/tables')
  const { warehouse, load: settings } = destination
  return (
    <Stack gap="sm" align="flex-start">
      <Text size="sm">
        {warehouse.engine}: {warehouse.url}
      </Text>
      <Note>
        Loaded every {settings.everyMs / 1_000} s, or when {settings.maxRows} messages wait.
      </Note>
      {mayEdit && (
        <Button variant="default" onClick={() => load.mutate({ params: { id: destination.id } })} loading={load.isPending}>
          Load now
        </Button>
      )}
    </Stack>
  )
}
