// For every integration of the catalogue: no setting that is not secret can lead its secrets to another server.

import assert from 'node:assert/strict'
import test from 'node:test'
import { type CatalogIntegration, readCatalog, readIntegration } from '@switchyard/integrations/catalog'
import { sampleSettings } from '../../../../integrations/src/fixtures/sample-settings.ts'
import type { IntegrationDestination } from '../../model/configuration.ts'
import { integrationOf, subscriptionOf } from '../fixtures/integration.ts'
import { INTEGRATION } from './integration.ts'
import { secretNames } from './secrets.ts'

/** What somebody would try, so that a URL such as `https://${value}.tool.example` leads elsewhere. */
const HOSTILE = ['https://evil.example', 'evil.example/', 'evil.example#', 'x@evil.example', 'evil.example?', 'evil.example\\', 'evil:80/']

function moved(before: IntegrationDestination, given: object, definition: CatalogIntegration): string[] {
  const about = { definition, restoredOrigins: undefined }
  return INTEGRATION.movedSecrets(given, INTEGRATION.completed(given, before, definition), before, about)
}

test('a hostile value in any free-text setting is refused unless all secrets are given again', async (t) => {
  let count = 0
  for (const { slug } of await readCatalog()) {
    const definition = (await readIntegration(slug)) as CatalogIntegration
    const settings = sampleSettings(definition)
    const { integration = assert.fail() } = INTEGRATION.completed({ settings }, undefined, definition)
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
  const { integration = assert.fail() } = INTEGRATION.completed({ settings }, undefined, definition)
  const before = integrationOf({ integration, settings })
  assert.deepEqual(moved(before, { settings: { subdomain: 'other' } }, definition), ['settings.client_secret'])
  assert.deepEqual(moved(before, { settings: { subdomain: 'other', client_secret: 'again' } }, definition), [])
  assert.deepEqual(moved(before, { settings: { account_id: '2', subdomain: 'mine' } }, definition), [])
  assert.deepEqual(moved(before, { settings: { account_id: null } }, definition), [])
})

test('a changed address that is a secret itself needs the other secrets again', async (t) => {
  let count = 0
  for (const { slug } of await readCatalog()) {
    const definition = (await readIntegration(slug)) as CatalogIntegration
    const settings = sampleSettings(definition)
    const { integration = assert.fail() } = INTEGRATION.completed({ settings }, undefined, definition)
    const before = integrationOf({ integration, settings })
    for (const [name, field] of Object.entries(definition.settings.properties)) {
      if (field.writeOnly !== true || field.type !== 'string') continue
      const others = secretNames(before).filter((other) => other !== name)
      if (others.length === 0 || others.length === secretNames(before).length) continue
      count += 1
      const needed = others.map((other) => `settings.${other}`)
      assert.deepEqual(moved(before, { settings: { [name]: 'https://evil.example/x' } }, definition), needed, `${slug} ${name}`)
      assert.deepEqual(
        moved(before, { settings: { [name]: 'Ab1-_x' } }, definition),
        field.format === 'uri' ? needed : [],
        `${slug} ${name}`,
      )
    }
  }
  assert.ok(count > 10, String(count))
  t.diagnostic(`${count} settings`)

  const taguchi = (await readIntegration('actions-taguchi')) as CatalogIntegration
  const settings = { apiKey: 'SECRET', integrationURL: 'https://a.example', organizationId: '1' }
  const { integration = assert.fail() } = INTEGRATION.completed({ settings }, undefined, taguchi)
  const before = integrationOf({ integration, settings })
  assert.deepEqual(moved(before, { settings: { integrationURL: 'evil.example' } }, taguchi), ['settings.apiKey'])
  assert.deepEqual(moved(before, { settings: { integrationURL: 'https://b.example', apiKey: 'again' } }, taguchi), [])
  assert.deepEqual(moved(before, { settings: { apiKey: 'a/b+c.d:e' } }, taguchi), [])
})

test('a changed port needs the secrets again', async () => {
  const definition = (await readIntegration('actions-sftp')) as CatalogIntegration
  const settings = { ...sampleSettings(definition), sftp_port: 22 }
  const { integration = assert.fail() } = INTEGRATION.completed({ settings }, undefined, definition)
  const before = integrationOf({ integration, settings })
  assert.notDeepEqual(moved(before, { settings: { sftp_port: 23 } }, definition), [])
  assert.deepEqual(moved(before, { settings: { sftp_port: 22 } }, definition), [])
})

test('an integration that sends to a URL in its mapping needs the secrets again if the server of that URL changes, or if the URL is read from the message', async () => {
  const definition = (await readIntegration('actions-webhook')) as CatalogIntegration
  const integration = { slug: 'actions-webhook', name: 'Webhook', shownSettings: [] }
  const subscription = (url: unknown) => subscriptionOf('send', { mapping: { url: url as string, headers: { a: 'b' } } })
  const before = integrationOf({ integration, settings: { sharedSecret: 'SECRET' }, subscriptions: [subscription('https://a.example/x')] })
  const movedBy = (url: unknown) =>
    INTEGRATION.movedSecrets({}, { subscriptions: [subscription(url)] }, before, { definition, restoredOrigins: undefined })
  assert.deepEqual(movedBy('https://a.example/y'), [])
  assert.deepEqual(movedBy('https://evil.example/x'), ['settings.sharedSecret'])
  assert.deepEqual(movedBy({ '@path': '$.properties.url' }), ['settings.sharedSecret'])
})
