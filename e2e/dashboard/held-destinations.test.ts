// A destination that does not fit the installed version of its integration, and a form for an integration without presets, in the dashboard: in both
// widths and themes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readIntegration } from '../../packages/integrations/src/catalog.ts'
import { buildDashboard } from '../../scripts/build-dashboard.ts'
import { startInProcess } from '../system/in-process.ts'
import { TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { wire } from '../system/wiring.ts'
import { LOOKS, startBrowser } from './browser.ts'

test('a held destination is shown with the reason, and an integration without presets says that nothing is sent yet', async () => {
  assert.ok(buildDashboard(), 'the dashboard could not be built')
  const slack = await readIntegration('actions-slack')
  const hubspot = await readIntegration('actions-hubspot-cloud')
  assert.ok(slack !== null && hubspot !== null)
  let actions = slack.actions
  const catalog = {
    readCatalog: async () => [slack, hubspot],
    readIntegration: async (slug: string) => (slug === slack.slug ? { ...slack, actions } : slug === hubspot.slug ? hubspot : null),
  }
  await using service = await startInProcess({ catalog: async () => catalog })
  const mapping = { url: 'https://hooks.slack.com/services/x', text: 'x' }
  const subscriptions = [{ name: 'Post', action: 'postToChannel', subscribe: 'type = "track"', mapping, enabled: true }]
  const { destinationId } = await wire(service, { type: 'integration', integration: slack.slug, name: 'Slack', subscriptions })
  actions = []
  await service.restart()
  const health = (): Promise<{ held: string | null }> => service.api(`/destinations/${destinationId}/health`)
  await eventually(health, ({ held }) => held !== null)

  await using browser = await startBrowser()
  await using tab = await browser.open({ url: service.url, token: TOKEN })
  const views: [path: string, text: RegExp][] = [
    ['/', /are held, because it does not fit the installed version of its integration/],
    [`/destinations/${destinationId}`, /Does not fit the installed version of its integration/],
    ['/catalog/actions-hubspot-cloud', /This integration suggests no subscriptions of its own/],
  ]
  for (const [path, text] of views) {
    await tab.visit(path)
    for (const [width, theme] of LOOKS) {
      await tab.look(width, theme)
      await tab.page.getByText(text).first().waitFor()
      assert.deepEqual(await tab.overflowing(), [], `${path} ${width} ${theme}`)
    }
    assert.deepEqual(await tab.accessibility(), [], path)
  }
  tab.check()
})
