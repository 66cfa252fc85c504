// Whether an integration still fits its definition, which an upgrade of the integrations package may have changed. Names only what makes runs fail for
// certain: the library ignores settings and fields that it does not know, and converts types. What has to be correct when settings are saved is in
// check-settings.ts and subscriptions.ts.

import type { CatalogIntegration } from '@switchyard/integrations/catalog'
import type { IntegrationDestination } from '../../model/configuration.ts'
import type { SettingsProblem } from '../port/kind.ts'
import { inside } from '../webhook/shaping/mapping.ts'
import { missingSetting } from './check-settings.ts'

type Fitted = Pick<IntegrationDestination, 'settings' | 'subscriptions' | 'integration'>

export function misfit({ settings, subscriptions, integration }: Fitted, definition: CatalogIntegration): SettingsProblem | null {
  const missing = missingSetting(settings, definition)
  if (missing !== null) return missing
  for (const [at, { action: slug, mapping, enabled }] of subscriptions.entries()) {
    if (!enabled) continue
    const place = `subscriptions[${at}]`
    const action = definition.actions.find((known) => known.slug === slug)
    if (action === undefined)
      return { field: `${place}.action`, problem: `is ${slug}, which the installed version of the integration does not have` }
    // Earlier versions did not check required fields when they were saved, so a field that is missing there need not be new.
    if (integration.fieldsChecked !== true) continue
    const field = action.fields.required.find((name) => !Object.hasOwn(mapping, name) || mapping[name] === null || mapping[name] === '')
    if (field !== undefined)
      return { field: inside(`${place}.mapping`, field), problem: 'is required by the installed version of the integration' }
  }
  return null
}
