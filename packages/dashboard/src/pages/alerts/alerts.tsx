// Alerts: the incidents, the destinations that receive alerts, the rules, and the mutes. The tab is in the page's address.

import { useApi } from '../../api/queries.ts'
import { Page, PageTabs, Section } from '../../components/page.tsx'
import { AlertReceivers } from './alert-receivers.tsx'
import { Incidents } from './incidents.tsx'
import { Mutes } from './mutes.tsx'
import { Rules } from './rules.tsx'

export default function AlertsPage() {
  const alerts = useApi('GET /api/alerts', { everyMs: 10_000 })
  const hasReceivers = alerts.data === undefined || alerts.data.destinationIds.length > 0
  return (
    <Page
      title="Alerts"
      about="Problems that the service noticed. An alert about each incident is sent to the destinations of the source system."
    >
      <PageTabs
        clears={['state']}
        tabs={[
          {
            name: 'incidents',
            label: 'Incidents',
            panel: (
              <>
                <Incidents />
                {!hasReceivers && (
                  <Section title="Where should alerts go?">
                    <AlertReceivers />
                  </Section>
                )}
              </>
            ),
          },
          { name: 'receivers', label: 'Receivers', panel: <AlertReceivers /> },
          { name: 'rules', label: 'Rules', panel: <Rules /> },
          { name: 'mutes', label: 'Mutes', panel: <Mutes /> },
        ]}
      />
    </Page>
  )
}
