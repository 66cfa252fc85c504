// The page of one destination, whatever its kind: name, status, actions, and the tabs Health, Test and Settings with those of the kind between them.

import { Alert, Group, Tabs, Text } from '@mantine/core'
import { type ReactNode, Suspense } from 'react'
import { useApi } from '../api/queries.ts'
import { Copyable } from '../components/copyable.tsx'
import { Loaded, Loading, Page } from '../components/page.tsx'
import { useIsNarrow } from '../components/responsive-table.tsx'
import { Note } from '../components/styled.tsx'
import { IncidentsAbout } from '../incidents/incidents-about.tsx'
import { SHARED } from '../session/needs-role.tsx'
import { useMayEdit, useSession } from '../session/session.tsx'
import { capitalized } from '../text/format.ts'
import { useSearchState } from '../url/url-state.ts'
import { DestinationActions } from './actions.tsx'
import { statusOf } from './destination-status.ts'
import { type Health, HealthView } from './health.tsx'
import type { Destination, KindSummary } from './kind.ts'
import { OrderKeys } from './order-keys.tsx'
import { StatusBadge } from './status-view.tsx'
import { TestPanel, type TestView } from './test-panel.tsx'

interface FrameProps<Of extends Destination> {
  destination: Of
  kind: KindSummary<Of>
  /** What the kind shows above the tabs. */
  notice?: (health: Health) => ReactNode
  /** What the kind shows in the tab Health. */
  healthDetails?: (health: Health) => ReactNode
  /** What the kind shows there instead of the numbers about requests. */
  healthNumbers?: (health: Health) => ReactNode
  test: TestView
  /** The tabs of the kind, by their names in the address. */
  tabs: Readonly<Record<string, ReactNode>>
  settings: ReactNode
}

export function DestinationFrame<Of extends Destination>(props: FrameProps<Of>) {
  const { destination, kind, notice, healthDetails, healthNumbers, test, tabs, settings } = props
  const { id, name } = destination
  const { role } = useSession()
  const mayEdit = useMayEdit(destination)
  const [params, change] = useSearchState()
  const names = ['health', 'test', ...Object.keys(tabs), 'settings']
  const tab = names.find((each) => each === params.get('tab')) ?? 'health'
  const health = useApi('GET /api/destinations/{id}/health', { params: { id }, everyMs: 5_000, enabled: destination.shared !== true })
  const status = health.data === undefined ? null : statusOf(destination, health.data, health.dataUpdatedAt)
  const isShared = destination.shared === true
  const readOnly = <Note>{isShared ? SHARED : `Read-only: your role is ${role}`}</Note>
  // On a phone, what is wrong stands above what can be done.
  const isNarrow = useIsNarrow()
  const actions = mayEdit ? <DestinationActions destination={destination} /> : readOnly
  return (
    <Page title={name} actions={isNarrow ? undefined : actions}>
      <Group gap="sm">
        {kind.Icon !== null && (
          <>
            <kind.Icon destination={destination} size={28} />
            <Text size="sm">{kind.target(destination)}</Text>
          </>
        )}
        {status !== null && <StatusBadge status={status} size="lg" />}
        <Copyable text={id} label="the id" />
      </Group>
      {params.get('created') === 'yes' && (
        <CreatedAlert destination={destination} tab={tab} onClose={() => change({ created: null }, { replace: true })} />
      )}
      {health.data !== undefined && notice?.(health.data)}
      <IncidentsAbout kind="destination" id={id} />
      {isNarrow && <Group gap="xs">{actions}</Group>}
      <Tabs
        value={tab}
        onChange={(value) => change({ tab: value === 'health' ? null : value, range: null, type: null })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {names.map((value) => (
            <Tabs.Tab key={value} value={value} px={{ base: 6, xs: 'md' }}>
              {capitalized(value)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="health">
          {isShared && <Note>Its health and counts are not shown, because they include deliveries of other sources.</Note>}
          {!isShared && destination.order != null && <OrderKeys destination={destination} mayEdit={mayEdit} />}
          {!isShared && (
            <Loaded query={health} lines={6}>
              {(data) => (
                <HealthView
                  destination={destination}
                  health={data}
                  seenAtMs={health.dataUpdatedAt}
                  advice={kind.advice}
                  details={healthDetails?.(data)}
                  numbers={healthNumbers?.(data)}
                />
              )}
            </Loaded>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="test" keepMounted>
          <TestPanel destination={destination} mayEdit={mayEdit} {...test} />
        </Tabs.Panel>
        {Object.entries(tabs).map(([value, panel]) => (
          <Tabs.Panel key={value} value={value}>
            <Suspense fallback={<Loading lines={6} />}>{panel}</Suspense>
          </Tabs.Panel>
        ))}
        {/* Stays mounted so that unsaved input survives a change of tabs. */}
        <Tabs.Panel value="settings" keepMounted>
          {settings}
        </Tabs.Panel>
      </Tabs>
    </Page>
  )
}

function CreatedAlert({ destination, tab, onClose }: { destination: Destination; tab: string; onClose: () => void }) {
  return (
    <Alert
      color="teal"
      variant="light"
      title="Destination created"
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
      role="status"
    >
      {tab === 'test' ? 'Send a test to check that it works.' : 'Its health is shown here.'}
      {destination.sourceIds.length === 0 && ' No source sends to it yet. Choose one in the settings.'}
    </Alert>
  )
}
