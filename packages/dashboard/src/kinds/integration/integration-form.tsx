// The form for the settings of an integration, made from its definition.

import type { EditForm } from '../../destination/form/field-state.ts'
import {
  type Integration,
  type IntegrationDraft,
  type IntegrationSchema,
  integrationDraftOf,
  integrationFieldOf,
  integrationProblems,
  patchBodyOf,
} from './integration-draft.ts'
import { SettingsFields } from './settings-fields.tsx'

export function integrationForm(of: IntegrationSchema): EditForm<Integration, IntegrationDraft> {
  return {
    draftOf: (saved) => integrationDraftOf(of, saved),
    patchOf: (saved, draft) => patchBodyOf(of, saved, draft),
    editedElsewhere: ['subscriptions'],
    problemsOf: (draft) => integrationProblems(of, draft),
    fieldOf: integrationFieldOf,
    settings: ({ draft, state }) => (
      <SettingsFields
        schema={of.schema}
        draft={draft.settings}
        onChange={(settings, ...fields) => state.set({ settings }, ...fields)}
        stored={of.storedSecrets}
        problem={state.problem}
        isReadOnly={state.isReadOnly}
      />
    ),
    sections: [],
    descriptions: {
      batchSize: '1 to 1,000 messages at a time, for actions that send batches.',
      timeout: '100 ms to 30 s for an attempt, including all requests of the integration.',
    },
  }
}
