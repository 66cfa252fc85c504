// Alerts: what the service noticed, who is told, by which rules, and what is muted. The tab is in the page's address.

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
      about="What the service noticed. Each incident is also sent as a message of the source system, to the destinations that you choose."
    >
      <Tabs value={tab} onChange={(value) => change({ tab: value === 'incidents' ? null : value, state: null })} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="incidents">Incidents</Tabs.Tab>
          <Tabs.Tab value="receivers">Where they go</Tabs.Tab>
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
