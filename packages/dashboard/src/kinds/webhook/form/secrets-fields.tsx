// The list of named secrets in the form. Stored values are not known here; an empty value keeps them.

import { Stack } from '@mantine/core'
import { FIELDS } from '../../../api/rules.ts'
import { Note } from '../../../components/styled.tsx'
import type { FieldsProps } from '../../../destination/form/field-state.ts'
import { KEEP } from './auth-fields.tsx'
import { NamedRows } from './named-rows.tsx'
import { isMoved, type WebhookDraft } from './webhook-draft.ts'

export function SecretsFields({ draft, state }: FieldsProps<WebhookDraft>) {
  return (
    <Stack gap="sm" role="group" aria-label="Secrets">
      <Note>
        Keys and tokens for the path, the headers and the body of the request, which read them as {'{{secrets.name}}'}. Write-only: they are
        not shown again.
      </Note>
      <NamedRows
        {...state}
        entries={draft.secrets}
        noun="secret"
        onChange={(secrets, ...fields) => state.set({ secrets }, ...fields)}
        max={FIELDS.secrets.max}
        added={{ name: '', value: '', isStored: false }}
        nameExample="apiKey"
        valueExample={({ isStored }) => (isStored && !isMoved(draft) ? KEEP : '')}
        isNameFixed={({ isStored }) => isStored}
      />
    </Stack>
  )
}

export function secretsNote({ secrets }: WebhookDraft): string {
  return secrets.length === 0 ? 'none' : `${secrets.length} set`
}
