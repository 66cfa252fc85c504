// Every integration of the catalogue can be created over the control API, with settings and mappings made from its schemas.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CatalogIntegration, readCatalog, readIntegration } from '@switchyard/integrations/catalog'
import { sampleMapping, sampleSettings } from '../../../../integrations/src/fixtures/sample-settings.ts'
import { openCatalog } from '../../installation/integrations-catalog.ts'
import { startControl } from '../fixtures/start-control.ts'

test('a destination can be created for every integration that is available, and its secrets are not shown', async (t) => {
  const { call } = await startControl(t, { catalog: () => openCatalog('nowhere') })
  const integrations = await Promise.all((await readCatalog()).map(async ({ slug }) => (await readIntegration(slug)) as CatalogIntegration))
  const counts = { created: 0, subscriptions: 0, notAvailable: 0 }
  for (const integration of integrations) {
    const { slug, available, actions } = integration
    const settings = sampleSettings(integration)
    const request = { type: 'integration', integration: slug, name: slug, settings }
    const withPresets = await call('POST', '/api/destinations', request)
    if (!available) {
      assert.equal(withPresets.status, 400, slug)
      counts.notAvailable += 1
      continue
    }
    assert.equal(withPresets.status, 201, `${slug}: ${JSON.stringify(withPresets.body)}`)
    counts.created += 1

    const subscriptions = actions.map((action) => ({
      name: action.name,
      action: action.slug,
      subscribe: action.defaultSubscription ?? 'type = "track"',
      mapping: sampleMapping(action),
      enabled: true,
    }))
    const answer = await call('PATCH', `/api/destinations/${withPresets.body.id}`, { subscriptions, settings })
    assert.equal(answer.status, 200, `${slug}: ${JSON.stringify(answer.body)}`)
    counts.subscriptions += answer.body.subscriptions.length

    const shown = JSON.stringify(answer.body.settings)
    for (const secret of secretsOf(integration.settings, settings)) assert.ok(!shown.includes(secret), `${slug} shows ${secret}`)
  }
  assert.deepEqual(counts, { created: 208, subscriptions: counts.subscriptions, notAvailable: 6 })
  t.diagnostic(`${counts.created} destinations with ${counts.subscriptions} subscriptions`)
})

function secretsOf({ properties }: Pick<CatalogIntegration['settings'], 'properties'>, settings: Record<string, unknown>): string[] {
  return Object.entries(settings).flatMap(([key, value]) => {
    const field = properties[key]
    if (field?.properties !== undefined) return secretsOf({ properties: field.properties }, value as Record<string, unknown>)
    return field?.writeOnly === true && typeof value === 'string' && value !== '' ? [value] : []
  })
}
