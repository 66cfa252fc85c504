// The catalogue has the default mappings of the definitions, except for those that can only fail.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CatalogIntegration, readCatalog, readIntegration } from './catalog.ts'
import { loadDefinition } from './definitions.ts'

const json = (value: unknown): string => JSON.stringify(value)

test('only the corrected mappings differ from those of the definitions, in fields and in presets', async () => {
  const differing = new Set<string>()
  for (const { slug } of await readCatalog()) {
    const { directory, actions, presets } = (await readIntegration(slug)) as CatalogIntegration
    const definition = loadDefinition(directory)
    for (const action of actions)
      for (const [name, field] of Object.entries(action.fields.properties)) {
        const own = definition.actions[action.slug]?.fields[name]
        // A default that is not among the choices is left out.
        if (field.default !== undefined && json(field.default) !== json(own?.default)) differing.add(`${slug}: field ${name}`)
      }
    const own = (definition.presets ?? []).filter(({ partnerAction }) => Object.hasOwn(definition.actions, partnerAction))
    for (const [at, { mapping }] of presets.entries())
      for (const [name, value] of Object.entries(mapping))
        if (json(value) !== json(own[at]?.mapping?.[name])) differing.add(`${slug}: preset ${name}`)
  }
  const consents = ['email_marketing_consent', 'metafield', 'sms_marketing_consent']
  assert.deepEqual(
    [...differing].sort(),
    [
      ...consents.flatMap((name) => [`actions-angler-ai: field ${name}`, `actions-angler-ai: preset ${name}`]),
      'actions-angler-ai: preset eventName',
      'actions-attentive: preset eventType',
      'actions-slack: field username',
    ].sort(),
  )
})

test('Slack does not post in the name of Segment', async () => {
  const slack = (await readIntegration('actions-slack')) as CatalogIntegration
  const { username, icon_url: icon } = slack.actions[0]?.fields.properties ?? {}
  assert.deepEqual([username?.default, icon?.default], ['Switchyard', undefined])
})

test('a list that is made for a field with one object becomes an object', async () => {
  const angler = (await readIntegration('actions-angler-ai')) as CatalogIntegration
  assert.deepEqual(angler.presets.find(({ action }) => action === 'saveUser')?.mapping['email_marketing_consent'], {
    state: { '@path': '$.traits.email_marketing_consent.state' },
    opt_in_level: { '@path': '$.traits.email_marketing_consent.opt_in_level' },
    consent_updated_at: { '@path': '$.traits.email_marketing_consent.consent_updated_at' },
  })
})
