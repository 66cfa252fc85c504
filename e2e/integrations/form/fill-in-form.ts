// Creates the body with which the dashboard creates an integration: the form with its defaults, and what a user types into it. Uses the code of
// the form itself, so that a default that it forgets is missing here too.

import assert from 'node:assert/strict'
import type { CatalogIntegration, CatalogPreset } from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import type { Action, Definition } from '../../../packages/dashboard/src/kinds/integration/definition.ts'
import { createBodyOf, integrationProblems, newIntegration } from '../../../packages/dashboard/src/kinds/integration/integration-draft.ts'
import { mappingDraftOf } from '../../../packages/dashboard/src/kinds/integration/mapping-draft.ts'
import { isJson, type SettingsDraft, settingFields } from '../../../packages/dashboard/src/kinds/integration/settings-draft.ts'
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

/** A subscription that a user adds: a preset or an action, and what is typed. */
export interface TypedSubscription {
  preset: CatalogPreset | null
  action: string
  name: string
  subscribe: string
  /** In addition to the values of the preset or the defaults of the action. */
  mapping: JsonObject
}

/** Fails if the form would reject the values. The result has no sources: the test adds them. */
export function fillInForm(integration: CatalogIntegration, typed: Typed): Record<string, unknown> {
  const definition = integration as unknown as Definition
  return filledInBody(definition, typed.settings, subscriptionsOf(definition, typed))
}

/** The same with any subscriptions. Settings that the form does not show are left out. */
export function fillInSubscriptions(
  integration: CatalogIntegration,
  settings: JsonObject,
  subscriptions: readonly TypedSubscription[],
): Record<string, unknown> {
  const definition = integration as unknown as Definition
  const { oauth, ...plain } = settings as { oauth?: JsonObject }
  const ofOAuth = Object.entries(oauth ?? {}).map(([key, value]) => [`oauth.${key}`, value])
  const given = { ...plain, ...Object.fromEntries(ofOAuth) } as Typed['settings']
  const shown = new Map(settingFields(definition.settings, given).map(({ key, schema }) => [key, schema]))
  const typed = Object.entries(given).flatMap(([key, value]) => {
    const schema = shown.get(key)
    return schema === undefined ? [] : [[key, isJson(schema) && typeof value === 'object' ? JSON.stringify(value) : value]]
  })
  const drafts = subscriptions.map(({ preset, action, name, subscribe, mapping }, at) => {
    const found = actionOf(definition, action) as Action
    const draft = preset === null ? actionDraft(found, `${at}`) : presetDraft(definition, preset, `${at}`)
    return { ...draft, name, subscribe, mapping: { ...draft.mapping, ...mappingDraftOf(mapping, found.fields.properties) } }
  })
  return filledInBody(definition, Object.fromEntries(typed) as Typed['settings'], drafts)
}

function filledInBody(
  definition: Definition,
  given: Typed['settings'],
  subscriptions: readonly SubscriptionDraft[],
): Record<string, unknown> {
  const schema = { slug: definition.slug, schema: definition.settings, storedSecrets: [] }
  const empty = newIntegration(schema)
  const draft = { ...empty, name: definition.name, settings: filledIn(definition, empty.settings, given) }
  const problems = {
    ...Object.fromEntries(integrationProblems(schema, draft)),
    ...Object.fromEntries(subscriptionProblems(definition, subscriptions)),
  }
  assert.deepEqual(problems, {}, `${definition.slug}: the form refuses it`)
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
