// A write-only secret: shows whether it is set, and replaces or removes it. A new value is kept only in this form until it is saved.

import { Button, CopyButton, Group, PasswordInput, Stack, Title } from '@mantine/core'
import { Note, SecondaryButton, SmallButton, SmallNote, SmallTag } from '../../../components/styled.tsx'
import { replaceAt } from '../../../destination/form/draft.ts'
import type { FieldState } from '../../../destination/form/field-state.ts'
import { type SecretChange, signingSecretOf, type WebhookDraft } from './webhook-draft.ts'

interface SecretFieldProps {
  title: string
  description: string
  /** The name of the field in the API. */
  field: 'sharedSecret' | 'signingSecrets'
  setCount: number
  maxCount: number
  canGenerate?: boolean
  change: SecretChange
  onChange: (change: SecretChange, ...fields: string[]) => void
  state: FieldState<WebhookDraft>
}

export function SecretField({
  title,
  description,
  field,
  setCount,
  maxCount,
  canGenerate = false,
  change,
  onChange,
  state,
}: SecretFieldProps) {
  const isSet = setCount > 0
  const fieldAt = (at: number): string => (field === 'sharedSecret' ? field : `${field}[${at}]`)
  const values = change.kind === 'set' ? change.values : []
  const set = (next: string[], ...fields: string[]): void => onChange({ kind: 'set', values: next }, ...fields)
  return (
    <Stack gap="xs" role="group" aria-label={title}>
      <Group gap="xs">
        <Title order={3} size="sm">
          {title}
        </Title>
        <SmallTag color={isSet ? 'teal' : 'gray'}>{isSet ? (setCount > 1 ? `${setCount} set` : 'set') : 'not set'}</SmallTag>
        {change.kind === 'remove' && <SmallTag color="red">removed when you save</SmallTag>}
        {change.kind === 'set' && isSet && <SmallTag color="orange">replaced when you save</SmallTag>}
      </Group>
      <Note>{description}</Note>
      {values.map((value, at) => (
        <Stack key={at} gap={4}>
          <PasswordInput
            label={maxCount === 1 ? `New ${title.toLowerCase()}` : `New signing secret ${at + 1}`}
            value={value}
            onChange={(event) =>
              set(
                replaceAt(values, at, field === 'sharedSecret' ? event.currentTarget.value : event.currentTarget.value.trim()),
                fieldAt(at),
              )
            }
            error={state.problem(fieldAt(at))}
            autoComplete="new-password"
            data-1p-ignore
            visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the secret' }}
            {...(field === 'signingSecrets' ? { placeholder: 'whsec_…' } : {})}
          />
          <Group gap="xs">
            {canGenerate && (
              <SecondaryButton
                size="compact-xs"
                onClick={() => set(replaceAt(values, at, signingSecretOf(crypto.getRandomValues(new Uint8Array(32)))), fieldAt(at))}
              >
                Generate
              </SecondaryButton>
            )}
            {value !== '' && (
              <CopyButton value={value}>
                {({ copied, copy }) => (
                  <SecondaryButton size="compact-xs" onClick={copy}>
                    {copied ? 'Copied' : 'Copy'}
                  </SecondaryButton>
                )}
              </CopyButton>
            )}
            {values.length > 1 && (
              <SecondaryButton size="compact-xs" onClick={() => set(values.filter((_, other) => other !== at))}>
                Remove this secret
              </SecondaryButton>
            )}
          </Group>
        </Stack>
      ))}
      {change.kind === 'set' && <SmallNote>Copy it to the receiver before you save. It is not shown again.</SmallNote>}
      {!state.isReadOnly && (
        <Group gap="xs">
          {change.kind === 'keep' ? (
            <>
              <SmallButton onClick={() => set([''])} aria-label={`${isSet ? 'Replace' : 'Set'} ${title.toLowerCase()}`}>
                {isSet ? 'Replace' : 'Set'}
              </SmallButton>
              {isSet && (
                <SmallButton onClick={() => onChange({ kind: 'remove' })} aria-label={`Remove ${title.toLowerCase()}`}>
                  Remove
                </SmallButton>
              )}
            </>
          ) : (
            <>
              {change.kind === 'set' && values.length < maxCount && (
                <SmallButton onClick={() => set([...values, ''])}>Add another secret</SmallButton>
              )}
              <Button size="xs" variant="subtle" onClick={() => onChange({ kind: 'keep' })}>
                {isSet ? 'Keep current' : 'Cancel'}
              </Button>
            </>
          )}
        </Group>
      )}
    </Stack>
  )
}
