// The tabs of a page. The tab is in the page's address; the first one is the default.

import { Tabs } from '@mantine/core'
import type { ReactNode } from 'react'
import { useSearchState } from '../url/url-state.ts'

interface PageTabsProps {
  /** `panel` is rendered while the tab is shown. */
  tabs: readonly { name: string; label: string; panel: ReactNode }[]
  /** Parameters in the address that belong to a tab, and are removed when another one is chosen. */
  clears?: readonly string[]
}

export function PageTabs({ tabs, clears = [] }: PageTabsProps) {
  const [params, change] = useSearchState()
  const [first] = tabs
  const shown = tabs.find(({ name }) => name === params.get('tab')) ?? first
  return (
    <Tabs
      value={shown?.name ?? null}
      onChange={(value) => change({ ...Object.fromEntries(clears.map((name) => [name, null])), tab: value === first?.name ? null : value })}
      keepMounted={false}
    >
      <Tabs.List>
        {tabs.map(({ name, label }) => (
          <Tabs.Tab key={name} value={name}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ name, panel }) => (
        <Tabs.Panel key={name} value={name} pt="md">
          {panel}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}
