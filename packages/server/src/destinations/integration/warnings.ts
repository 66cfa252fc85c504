// What whoever creates or changes an integration should know at once, because otherwise nothing would happen, or every message would fail.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import { isObject, type JsonObject } from '@switchyard/protocol'
import type { IntegrationDestination } from '../../model/configuration.ts'
import type { SettingsWarning } from '../port/kind.ts'

/** The mapping of an action has the values under this name that Segment creates in the tool when somebody saves the mapping. */
const HOOK = 'onMappingSave'
const MOST_ACTIONS = 8

export function integrationWarnings(
  { subscriptions }: Pick<IntegrationDestination, 'subscriptions'>,
  definition: CatalogIntegration | null,
): readonly SettingsWarning[] {
  const warnings: SettingsWarning[] = []
  if (definition !== null && definition.problem !== null)
    warnings.push({
      code: 'integration_problem',
      field: 'integration',
      message: `The integration does not work here. ${definition.problem}`,
    })
  if (!subscriptions.some(({ enabled }) => enabled))
    warnings.push({
      code: 'no_subscription',
      field: 'subscriptions',
      message:
        subscriptions.length > 0
          ? 'No subscription is enabled, so nothing is sent. Enable one of them.'
          : `The destination has no subscriptions, so nothing is sent. Add one for each action that should run.${actionsText(definition)}`,
    })
  for (const [at, { action, mapping, enabled }] of subscriptions.entries()) {
    const known = definition?.actions.find(({ slug }) => slug === action)
    if (!enabled || known?.fields.properties[HOOK] === undefined || hasOutputs(mapping)) continue
    warnings.push({
      code: 'hook_outputs_missing',
      field: `subscriptions[${at}].mapping.${HOOK}.outputs`,
      message: `The action ${action} uses values that Segment creates in the tool when a mapping is saved, and Switchyard does not create them: ${known.fields.properties[HOOK].title}. Create them in the tool, and put them into mapping.${HOOK}.outputs.`,
    })
  }
  return warnings
}

function actionsText(definition: CatalogIntegration | null): string {
  const slugs = definition?.actions.map(({ slug }) => slug) ?? []
  if (slugs.length === 0) return ''
  const more = slugs.length > MOST_ACTIONS ? ` and ${slugs.length - MOST_ACTIONS} more` : ''
  return ` Actions of the integration: ${slugs.slice(0, MOST_ACTIONS).join(', ')}${more}.`
}

function hasOutputs(mapping: Readonly<JsonObject>): boolean {
  const hook = mapping[HOOK]
  return isObject(hook) && isObject(hook['outputs']) && Object.keys(hook['outputs']).length > 0
}
