// The settings of the installation, in tabs with their own addresses.

import { Tabs } from '@mantine/core'
import { type ComponentType, lazy, Suspense } from 'react'
import { useLocation } from 'wouter'
import { Empty, Loading, Page } from '../../components/page.tsx'
import { SETTINGS_TABS } from '../../settings-tabs.ts'
import { usePathPart } from '../../url/url-state.ts'

const VIEWS: Readonly<Record<(typeof SETTINGS_TABS)[number]['name'], ComponentType>> = {
  tokens: lazy(() => import('./tokens.tsx')),
  people: lazy(() => import('./people.tsx')),
  oauth: lazy(() => import('./oauth-apps.tsx')),
  audit: lazy(() => import('./audit.tsx')),
  configuration: lazy(() => import('./configuration.tsx')),
  nodes: lazy(() => import('./nodes.tsx')),
  about: lazy(() => import('./about.tsx')),
}
const TABS = SETTINGS_TABS.map(({ name, label, about }) => ({ name, label, about, View: VIEWS[name] }))

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
