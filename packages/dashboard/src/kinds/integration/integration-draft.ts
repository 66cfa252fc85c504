// An integration's settings while they are edited: those that every destination has, and those that its definition describes. Pure.

import { TIMEOUT_MS } from '../../api/rules.ts'
import * as common from '../../destination/form/draft.ts'
import type { DestinationOf } from '../../destination/kind.ts'
import type { ObjectSchema } from './definition.ts'
import { type SettingsDraft, settingsChanges, settingsDraftOf, settingsOf, settingsProblems } from './settings-draft.ts'

export type Integration = DestinationOf<'integration'>

export interface IntegrationDraft extends common.Draft {
  settings: SettingsDraft
}

/** What the form of an integration is made from. */
export interface IntegrationSchema {
  slug: string
  schema: ObjectSchema
  /** The secrets that are stored, by key. */
  storedSecrets: readonly string[]
}

export function newIntegration({ schema }: IntegrationSchema): IntegrationDraft {
  return { ...common.newDraft(TIMEOUT_MS.integration.default), settings: settingsDraftOf(schema, null) }
}

export function integrationDraftOf({ schema }: IntegrationSchema, saved: Integration): IntegrationDraft {
  return { ...common.draftOf(saved), settings: settingsDraftOf(schema, saved.settings) }
}

export function integrationProblems({ schema, storedSecrets }: IntegrationSchema, draft: IntegrationDraft): common.Problems {
  return common.problemsOf(draft, [...settingsProblems(schema, draft.settings, storedSecrets)], TIMEOUT_MS.integration)
}

/** The body that creates the destination, without its subscriptions. The draft must have no problems. */
export function createBodyOf({ slug, schema }: IntegrationSchema, draft: IntegrationDraft): common.NewDestination {
  return { type: 'integration', integration: slug, ...common.newSettingsOf(draft), settings: settingsOf(schema, draft.settings) }
}

/** The fields that differ from the saved ones; null if none do. The draft must have no problems. */
export function patchBodyOf(form: IntegrationSchema, saved: Integration, draft: IntegrationDraft): common.DestinationChange | null {
  const base = integrationDraftOf(form, saved)
  const settings = settingsChanges(form.schema, base.settings, draft.settings)
  return common.changeOf({
    ...common.changedFields(common.settingsOf(base), common.settingsOf(draft)),
    ...(settings === null ? {} : { settings }),
  })
}

/** The form field at which to show an error of the API; null if no field shows it. */
export function integrationFieldOf(field: string): string | null {
  return field.startsWith('settings.') ? field : common.formFieldOf(field)
}
