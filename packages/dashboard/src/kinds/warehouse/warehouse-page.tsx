// The page of a warehouse: its loads, its tables, and the outcome of a test.

import { Alert, List, Stack } from '@mantine/core'
import { lazy } from 'react'
import { SettingsTab } from '../../destination/form/settings-tab.tsx'
import { DestinationFrame } from '../../destination/frame.tsx'
import type { Sent } from '../../destination/test-panel.tsx'
import { useMayEdit } from '../../session/session.tsx'
import { capitalized } from '../../text/format.ts'
import type { Warehouse } from './form/warehouse-draft.ts'
import { WAREHOUSE_FORM } from './form/warehouse-form.tsx'
import { LoadHistory, LoadNumbers, UpkeepSection } from './loads.tsx'
import { WAREHOUSE_SUMMARY } from './summary.tsx'

const TablesTab = lazy(() => import('./tables-tab.tsx'))

export default function WarehousePage({ destination }: { destination: Warehouse }) {
  const mayEdit = useMayEdit(destination)
  const { id } = destination
  return (
    <DestinationFrame
      destination={destination}
      kind={WAREHOUSE_SUMMARY}
      healthNumbers={(health) => <LoadNumbers destination={destination} health={health} />}
      healthDetails={() => (
        <>
          <LoadHistory id={id} />
          <UpkeepSection destination={destination} />
        </>
      )}
      test={{
        about: 'Connects to the warehouse, and creates and drops a table named _switchyard_test.',
        outcome: (sent) => <Outcome sent={sent} />,
      }}
      tabs={{ tables: <TablesTab id={id} /> }}
      settings={<SettingsTab destination={destination} formOf={() => WAREHOUSE_FORM} mayEdit={mayEdit} />}
    />
  )
}

interface Step {
  step: string
  ok: boolean
}

function Outcome({ sent: { success, attempts } }: { sent: Sent }) {
  const [attempt] = attempts
  return (
    <Alert
      color={success ? 'teal' : 'red'}
      variant="light"
      title={success ? 'Test passed: tables can be written.' : 'Test failed.'}
      role="status"
    >
      <Stack gap="xs">
        {attempt?.error}
        <List size="sm" listStyleType="none" aria-label="Steps">
          {stepsOf(attempt?.responseStart ?? '').map(({ step, ok }) => (
            <List.Item key={step}>
              {ok ? '✓' : '✗'} {capitalized(step)}
              {ok ? '' : ': failed'}
            </List.Item>
          ))}
        </List>
      </Stack>
    </Alert>
  )
}

/** The service records the steps as the start of the response, which may be cut. */
function stepsOf(text: string): Step[] {
  try {
    return (JSON.parse(text) as { steps?: Step[] }).steps ?? []
  } catch {
    return []
  }
}
