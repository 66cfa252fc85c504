// The dashboard's forms fit every integration of the catalogue: settings and mappings go through the form unchanged, and the presets can be
// described in a sentence. Without a browser.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CatalogIntegration, readCatalog, readIntegration } from '@switchyard/integrations/catalog'
import { mappingDraftOf, mappingOf } from '../../packages/dashboard/src/kinds/integration/mapping-draft.ts'
import {
  settingFields,
  settingsDraftOf,
  settingsOf,
  settingsProblems,
} from '../../packages/dashboard/src/kinds/integration/settings-draft.ts'
import { subscribeSentence } from '../../packages/dashboard/src/text/subscribe-sentence.ts'
import { sampleSettings } from '../../packages/integrations/src/fixtures/sample-settings.ts'

const catalog = await Promise.all((await readCatalog()).map(async ({ slug }) => (await readIntegration(slug)) as CatalogIntegration))

test('settings that an integration accepts go through its form, with all that are required', () => {
  for (const integration of catalog) {
    const { slug, settings } = integration
    const accepted = sampleSettings(integration)
    const draft = settingsDraftOf(settings, accepted)
    const secrets = Object.fromEntries(
      settingFields(settings, draft.values)
        .filter(({ schema }) => schema.writeOnly === true)
        .flatMap(({ key }) => {
          const value = key.split('.').reduce<unknown>((inner, part) => (inner as Record<string, unknown> | undefined)?.[part], accepted)
          return typeof value === 'string' ? [[key, value]] : []
        }),
    )
    const filled = { ...draft, secrets }
    assert.deepEqual([...settingsProblems(settings, filled, [])], [], slug)
    const written = settingsOf(settings, filled)
    for (const name of settings.required) assert.deepEqual(written[name], accepted[name], `${slug}: ${name}`)
  }
})

test('presets and defaults of every action go through the mapping editor unchanged', () => {
  let mappings = 0
  for (const { slug, actions, presets } of catalog) {
    const fieldsOf = (action: string) => actions.find((each) => each.slug === action)?.fields.properties ?? {}
    const defaults = actions.map(({ slug: action, fields }) => ({
      action,
      mapping: Object.fromEntries(
        Object.entries(fields.properties).flatMap(([key, field]) => (field.default === undefined ? [] : [[key, field.default]])),
      ),
    }))
    for (const { action, mapping } of [...presets, ...defaults]) {
      assert.deepEqual(mappingOf(mappingDraftOf(mapping, fieldsOf(action))), mapping, `${slug}: ${action}`)
      mappings++
    }
  }
  assert.ok(mappings > 1_000, `${mappings} mappings`)
})

test('nearly every preset is described in a sentence', (t) => {
  const expressions = new Set(catalog.flatMap(({ presets }) => presets.map(({ subscribe }) => subscribe)))
  const unsaid = [...expressions].filter((expression) => subscribeSentence(expression) === null)
  t.diagnostic(`${expressions.size - unsaid.length} of ${expressions.size} expressions have a sentence; not: ${unsaid.join(' | ')}`)
  assert.ok(unsaid.length < expressions.size / 20, unsaid.join('\n'))
})
