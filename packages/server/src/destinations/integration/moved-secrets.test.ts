// For every integration of the catalogue: no setting that is not secret can lead its secrets to another server.

import assert from 'node:assert/strict'
import test from 'node:test'
import { type CatalogIntegration, readCatalog, readIntegration } from '@switchyard/integrations/catalog'
import { sampleSettings } from '../../../../integrations/src/fixtures/sample-settings.ts'
import type { Destination } from '../../store/port/model.ts'
import { integrationOf, subscriptionOf } from '../fixtures/integration.ts'
import { INTEGRATION } from './integration.ts'
import { secretNames } from './secrets.ts'

/** What somebody would try, so that a URL such as `https://${value}.tool.example` leads elsewhere. */
const HOSTILE = ['https://evil.example', 'evil.example/', 'evil.example#', 'x@evil.example', 'evil.example?', 'evil.example\\', 'evil:80/']

function moved(before: Destination, given: object, definition: CatalogIntegration): string[] {
  const about = { definition, isFromElsewhere: false }
  return INTEGRATION.movedSecrets(given, INTEGRATION.completed(given, before, definition), before, about)
}

test('a hostile value in any free-text setting is refused unless all secrets are given again', async (t) => {
  let count = 0
  for (const { slug } of await readCatalog()) {
    const definition = (await readIntegration(slug)) as CatalogIntegration
    const settings = sampleSettings(definition)
    const { integration = null } = INTEGRATION.completed({ settings }, undefined, definition)
    const before = integrationOf({ integration, settings })
    const secrets = secretNames(before)
    if (secrets.length === 0) continue
    const needed = secrets.map((name) => `settings.${name}`)
    for (const [name, field] of Object.entries(definition.settings.properties)) {
      if (secrets.includes(name) || field.type !== 'string' || field.oneOf !== undefined || field.writeOnly === true) continue
      count += 1
      for (const value of HOSTILE)
        assert.deepEqual(moved(before, { settings: { [name]: value } }, definition), needed, `${slug} ${name} ${value}`)
      assert.deepEqual(moved(before, { settings: { ...settings, [name]: 'https://evil.example' } }, definition), [], `${slug} ${name}`)
    }
    assert.deepEqual(moved(before, { settings }, definition), [], slug)
  }
  assert.ok(count > 100, String(count))
  t.diagnostic(`${count} settings`)
})

test('a changed address needs the secrets again, even if its value is plain; choices, other settings and removed ones do not', async () => {
  const definition = (await readIntegration('actions-salesforce-marketing-cloud')) as CatalogIntegration
  const settings = { subdomain: 'mine', client_id: 'c', client_secret: 'SECRET', account_id: '1' }
  const { integration = null } = INTEGRATION.completed({ settings }, undefined, definition)
  const before = integrationOf({ integration, settings })
  assert.deepEqual(moved(before, { settings: { subdomain: 'other' } }, definition), ['settings.client_secret'])
  assert.deepEqual(moved(before, { settings: { subdomain: 'other', client_secret: 'again' } }, definition), [])
  assert.deepEqual(moved(before, { settings: { account_id: '2', subdomain: 'mine' } }, definition), [])
  assert.deepEqual(moved(before, { settings: { account_id: null } }, definition), [])
})

test('an integration that sends to a URL in its mapping needs the secrets again if the server of that URL changes, or if the URL is read from the message', async () => {
  const definition = (await readIntegration('actions-webhook')) as CatalogIntegration
  const integration = { slug: 'actions-webhook', name: 'Webhook', shownSettings: [] }
  const subscription = (url: unknown) => subscriptionOf('send', { mapping: { url: url as string, headers: { a: 'b' } } })
  const before = integrationOf({ integration, settings: { sharedSecret: 'SECRET' }, subscriptions: [subscription('https://a.example/x')] })
  const movedBy = (url: unknown) =>
    INTEGRATION.movedSecrets({}, { subscriptions: [subscription(url)] }, before, { definition, isFromElsewhere: false })
  assert.deepEqual(movedBy('https://a.example/y'), [])
  assert.deepEqual(movedBy('https://evil.example/x'), ['settings.sharedSecret'])
  assert.deepEqual(movedBy({ '@path': '$.properties.url' }), ['settings.sharedSecret'])
})
