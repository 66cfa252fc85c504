// Creates the body with which the dashboard creates an integration: the form with its defaults, and what a user types into it. Uses the code of
// the form itself, so that a default that it forgets is missing here too.

import assert from 'node:assert/strict'
import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import type { Definition } from '../../../packages/dashboard/src/kinds/integration/definition.ts'
import { createBodyOf, integrationProblems, newIntegration } from '../../../packages/dashboard/src/kinds/integration/integration-draft.ts'
import { mappingDraftOf } from '../../../packages/dashboard/src/kinds/integration/mapping-draft.ts'
import { type SettingsDraft, settingFields } from '../../../packages/dashboard/src/kinds/integration/settings-draft.ts'
import {
  actionDraft,
  actionOf,
  presetDraft,
  type SubscriptionDraft,
  subscriptionOf,
  subscriptionProblems,
} from '../../../packages/dashboard/src/kinds/integration/subscription-draft.ts'

/** What a user chooses and types. Without an action: all automatic presets. */
export interface Typed {
  /** By the key of the field: `apiKey`, or `oauth.accessToken`. The rest keeps its default. */
  settings: Readonly<Record<string, unknown>>
  action?: string
  subscribe?: string
  mapping?: Readonly<Record<string, unknown>>
}

/** Fails if the form would not accept it. Without the sources, which the test adds. */
export function fillInForm(integration: CatalogIntegration, typed: Typed): Record<string, unknown> {
  const definition = integration as unknown as Definition
  const schema = { slug: definition.slug, schema: definition.settings, storedSecrets: [] }
  const empty = newIntegration(schema)
  const draft = { ...empty, name: definition.name, settings: filledIn(definition, empty.settings, typed.settings) }
  const subscriptions = subscriptionsOf(definition, typed)
  const problems = {
    ...Object.fromEntries(integrationProblems(schema, draft)),
    ...Object.fromEntries(subscriptionProblems(definition, subscriptions)),
  }
  assert.deepEqual(problems, {}, `${integration.slug}: the form refuses it`)
  const { sourceIds: _, ...body } = createBodyOf(schema, draft)
  return { ...body, subscriptions: subscriptions.map(subscriptionOf) }
}

function filledIn({ settings }: Definition, draft: SettingsDraft, given: Typed['settings']): SettingsDraft {
  const fields = settingFields(settings, { ...draft.values, ...given })
  const isSecret = (key: string): boolean => {
    const field = fields.find((each) => each.key === key)
    assert.ok(field, `the form has no field ${key}`)
    return field.schema.writeOnly === true
  }
  const entries = Object.entries(given)
  const secrets = entries.filter(([key]) => isSecret(key)) as [string, string][]
  return {
    values: { ...draft.values, ...Object.fromEntries(entries.filter(([key]) => !isSecret(key))) },
    secrets: { ...draft.secrets, ...Object.fromEntries(secrets) },
  }
}

function subscriptionsOf(definition: Definition, { action: slug, subscribe, mapping = {} }: Typed): SubscriptionDraft[] {
  if (slug === undefined) {
    const presets = definition.presets.filter(({ type }) => type === 'automatic')
    return presets.map((preset, at) => presetDraft(definition, preset, `preset ${at}`))
  }
  const action = actionOf(definition, slug)
  assert.ok(action, `${definition.slug} has no action ${slug}`)
  const draft = actionDraft(action, 'first')
  const changed = mappingDraftOf(mapping, action.fields.properties)
  return [{ ...draft, subscribe: subscribe ?? draft.subscribe, mapping: { ...draft.mapping, ...changed } }]
}
