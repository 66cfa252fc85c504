// The list of named secrets in the form. Stored values are not known here; an empty value keeps them.

import { ActionIcon, Button, Group, Input, PasswordInput, Stack, Text, TextInput, Tooltip } from '@mantine/core'
import { DeletionIcon, PlusIcon } from '../../../components/icons.tsx'
import { type Draft, isMoved, replaceAt } from '../draft.ts'
import { KEEP } from './auth-fields.tsx'
import type { FieldsProps } from './field-state.ts'
import { MAX_SECRETS, type NamedSecret } from './secrets-draft.ts'

export function SecretsFields({ draft, state }: FieldsProps) {
  const { secrets } = draft
  const set = (next: NamedSecret[], ...fields: string[]): void => state.set({ secrets: next }, ...fields)
  return (
    <Stack gap="sm" role="group" aria-label="Secrets">
      <Text size="sm" c="dimmed">
        Keys and tokens for the path, the headers and the body of the request, which read them as {'{{secrets.name}}'}. Write-only: they are
        not shown again.
      </Text>
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
            <Tooltip label={`Remove secret ${at + 1}`}>
              <ActionIcon
                variant="subtle"
                color="gray"
                size={36}
                mt={25}
                onClick={() => set(secrets.filter((_, other) => other !== at))}
                aria-label={`Remove secret ${at + 1}`}
              >
                <DeletionIcon size={16} />
              </ActionIcon>
            </Tooltip>
          )}
        </Group>
      ))}
      {state.problem('secrets') !== null && <Input.Error>{state.problem('secrets')}</Input.Error>}
      {!state.isReadOnly && secrets.length < MAX_SECRETS && (
        <Group>
          <Button
            variant="default"
            size="xs"
            leftSection={<PlusIcon size={14} />}
            onClick={() => set([...secrets, { name: '', value: '', isStored: false }])}
          >
            Add a secret
          </Button>
        </Group>
      )}
    </Stack>
  )
}

export function secretsNote({ secrets }: Draft): string {
  return secrets.length === 0 ? 'none' : `${secrets.length} set`
}
