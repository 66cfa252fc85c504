// The list of named secrets in the form. Stored values are not known here; an empty value keeps them.

import { Group, Input, PasswordInput, Stack, TextInput } from '@mantine/core'
import { FIELDS } from '../../../api/rules.ts'
import { PlusIcon } from '../../../components/icons.tsx'
import { Note, SmallButton } from '../../../components/styled.tsx'
import { replaceAt } from '../../../destination/form/draft.ts'
import type { FieldsProps } from '../../../destination/form/field-state.ts'
import { KEEP } from './auth-fields.tsx'
import type { NamedSecret } from './secrets-draft.ts'
import { RemoveButton } from './url-and-header-fields.tsx'
import { isMoved, type WebhookDraft } from './webhook-draft.ts'

export function SecretsFields({ draft, state }: FieldsProps<WebhookDraft>) {
  const { secrets } = draft
  const set = (next: NamedSecret[], ...fields: string[]): void => state.set({ secrets: next }, ...fields)
  return (
    <Stack gap="sm" role="group" aria-label="Secrets">
      <Note>
        Keys and tokens for the path, the headers and the body of the request, which read them as {'{{secrets.name}}'}. Write-only: they are
        not shown again.
      </Note>
      {secrets.map((secret, at) => (
        <Group key={at} gap="xs" align="flex-start">
          <TextInput
            label={`Secret ${at + 1} name`}
            placeholder="apiKey"
            value={secret.name}
            onChange={(event) => set(replaceAt(secrets, at, { ...secret, name: event.currentTarget.value.trim() }), `secrets[${at}].name`)}
            error={state.problem(`secrets[${at}].name`)}
            readOnly={state.isReadOnly || secret.isStored}
            autoComplete="off"
            style={{ flex: '1 1 150px' }}
          />
          <PasswordInput
            label={`Secret ${at + 1} value`}
            placeholder={secret.isStored && !isMoved(draft) ? KEEP : ''}
            value={secret.value}
            onChange={(event) => set(replaceAt(secrets, at, { ...secret, value: event.currentTarget.value }), `secrets[${at}].value`)}
            error={state.problem(`secrets[${at}].value`)}
            readOnly={state.isReadOnly}
            autoComplete="new-password"
            data-1p-ignore
            visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret' }}
            style={{ flex: '2 1 180px' }}
          />
          {!state.isReadOnly && (
            <RemoveButton label={`Remove secret ${at + 1}`} onClick={() => set(secrets.filter((_, other) => other !== at))} />
          )}
        </Group>
      ))}
      {state.problem('secrets') !== null && <Input.Error>{state.problem('secrets')}</Input.Error>}
      {!state.isReadOnly && secrets.length < FIELDS.secrets.max && (
        <Group>
          <SmallButton leftSection={<PlusIcon size={14} />} onClick={() => set([...secrets, { name: '', value: '', isStored: false }])}>
            Add a secret
          </SmallButton>
        </Group>
      )}
    </Stack>
  )
}

export function secretsNote({ secrets }: WebhookDraft): string {
  return secrets.length === 0 ? 'none' : `${secrets.length} set`
}
