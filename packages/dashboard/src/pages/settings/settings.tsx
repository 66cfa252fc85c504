// The settings of the installation, in tabs with their own addresses.

import { Tabs } from '@mantine/core'
import { type ComponentType, lazy, Suspense } from 'react'
import { useLocation } from 'wouter'
import { Empty, Loading, Page } from '../../components/page.tsx'
import { usePathPart } from '../../url/url-state.ts'

const TABS: readonly { name: string; label: string; about: string; View: ComponentType }[] = [
  { name: 'tokens', label: 'Tokens', about: 'Access to the control API and this dashboard.', View: lazy(() => import('./tokens.tsx')) },
  {
    name: 'oauth',
    label: 'OAuth applications',
    about: 'Applications that can get access tokens for sources, and their public keys.',
    View: lazy(() => import('./oauth-apps.tsx')),
  },
  { name: 'audit', label: 'Audit log', about: 'Who changed what, and when.', View: lazy(() => import('./audit.tsx')) },
  {
    name: 'configuration',
    label: 'Configuration',
    about: 'Sources, destinations and OAuth applications as one file, for version control or another installation.',
    View: lazy(() => import('./configuration.tsx')),
  },
  { name: 'nodes', label: 'Nodes', about: 'The processes of this installation.', View: lazy(() => import('./nodes.tsx')) },
  {
    name: 'about',
    label: 'About',
    about: 'Version, store, diagnostics and backups.',
    View: lazy(() => import('./about.tsx')),
  },
]

export default function SettingsPage() {
  const [, go] = useLocation()
  const part = usePathPart(1)
  const name = part === '' ? 'tokens' : part
  const tab = TABS.find((each) => each.name === name)
  return (
    <Page title="Settings" about={tab?.about}>
      <Tabs value={tab?.name ?? null} onChange={(value) => go(`/settings/${value ?? ''}`)} keepMounted={false}>
        <Tabs.List>
          {TABS.map((each) => (
            <Tabs.Tab key={each.name} value={each.name}>
              {each.label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {TABS.map(({ name: value, View }) => (
          <Tabs.Panel key={value} value={value} pt="md">
            <Suspense fallback={<Loading />}>
              <View />
            </Suspense>
          </Tabs.Panel>
        ))}
      </Tabs>
      {tab === undefined && <Empty title="Page not found">Choose one of the tabs.</Empty>}
    </Page>
  )
}
