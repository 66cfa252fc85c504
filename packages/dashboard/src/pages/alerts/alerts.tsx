// Alerts: the incidents, the destinations that receive alerts, the rules, and the mutes. The tab is in the page's address.

import { Tabs } from '@mantine/core'
import { useApi } from '../../api/queries.ts'
import { Page } from '../../components/page.tsx'
import { Section } from '../../components/section.tsx'
import { useSearchState } from '../../url-state.ts'
import { AlertReceivers } from './alert-receivers.tsx'
import { Incidents } from './incidents.tsx'
import { Mutes } from './mutes.tsx'
import { Rules } from './rules.tsx'

const TABS = ['incidents', 'receivers', 'rules', 'mutes'] as const

export default function AlertsPage() {
  const [params, change] = useSearchState()
  const tab = TABS.find((each) => each === params.get('tab')) ?? 'incidents'
  const alerts = useApi('GET /api/alerts', { everyMs: 10_000 })
  const hasReceivers = alerts.data === undefined || alerts.data.destinationIds.length > 0
  return (
    <Page
      title="Alerts"
      about="Problems that the service noticed. An alert about each incident is sent to the destinations of the source system."
    >
      <Tabs value={tab} onChange={(value) => change({ tab: value === 'incidents' ? null : value, state: null })} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="incidents">Incidents</Tabs.Tab>
          <Tabs.Tab value="receivers">Receivers</Tabs.Tab>
          <Tabs.Tab value="rules">Rules</Tabs.Tab>
          <Tabs.Tab value="mutes">Mutes</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="incidents" pt="md">
          {!hasReceivers && (
            <Section title="Where should alerts go?">
              <AlertReceivers />
            </Section>
          )}
          <Incidents />
        </Tabs.Panel>
        <Tabs.Panel value="receivers" pt="md">
          <AlertReceivers />
        </Tabs.Panel>
        <Tabs.Panel value="rules" pt="md">
          <Rules />
        </Tabs.Panel>
        <Tabs.Panel value="mutes" pt="md">
          <Mutes />
        </Tabs.Panel>
      </Tabs>
    </Page>
  )
}
