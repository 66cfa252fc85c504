// The secrets in the form: those that sign requests, and named ones that the request reads. They are write-only; a new value is kept only in
// this form until it is saved.

import { Button, Group, Stack, Title } from '@mantine/core'
import { FIELDS } from '../../../api/rules.ts'
import { CopyTextButton } from '../../../components/copyable.tsx'
import { SecretInput } from '../../../components/inputs.tsx'
import { Note, SecondaryButton, SmallButton, SmallNote, SmallTag } from '../../../components/styled.tsx'
import { replaceAt } from '../../../destination/form/draft.ts'
import type { FieldState, FieldsProps } from '../../../destination/form/field-state.ts'
import { KEEP } from './auth-fields.tsx'
import { NamedRows } from './named-rows.tsx'
import { isMoved, type SecretChange, signingSecretOf, type WebhookDraft } from './webhook-draft.ts'

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

export function SecretField(props: SecretFieldProps) {
  const { title, description, field, setCount, maxCount, canGenerate = false, change, onChange, state } = props
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
          <SecretInput
            label={maxCount === 1 ? `New ${title.toLowerCase()}` : `New signing secret ${at + 1}`}
            value={value}
            onChange={(event) =>
              set(
                replaceAt(values, at, field === 'sharedSecret' ? event.currentTarget.value : event.currentTarget.value.trim()),
                fieldAt(at),
              )
            }
            error={state.problem(fieldAt(at))}
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
            {value !== '' && <CopyTextButton text={value} size="compact-xs" />}
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

export function SigningFields({ draft, state }: FieldsProps<WebhookDraft>) {
  const { hasSharedSecret, signingSecretCount } = draft.stored
  return (
    <>
      <Note>
        A signature lets the receiver verify that a request comes from this service and was not changed. Secrets are write-only: they are
        not shown again after you save.
      </Note>
      <SecretField
        title="Signing secrets"
        description="For the Standard Webhooks header webhook-signature. One secret is enough. To rotate it without downtime: set the old and the new secret together, switch the receiver to the new one, then set only the new one."
        field="signingSecrets"
        setCount={signingSecretCount}
        maxCount={FIELDS.signingSecrets.max}
        canGenerate
        change={draft.signingSecrets}
        onChange={(signingSecrets, ...fields) => state.set({ signingSecrets }, ...fields)}
        state={state}
      />
      <SecretField
        title="Shared secret"
        description="For the older X-Signature header. Only needed by receivers that verify that header."
        field="sharedSecret"
        setCount={hasSharedSecret ? 1 : 0}
        maxCount={1}
        change={draft.sharedSecret}
        onChange={(sharedSecret, ...fields) => state.set({ sharedSecret }, ...fields)}
        state={state}
      />
    </>
  )
}

export function signingNote({ sharedSecret, signingSecrets, stored }: WebhookDraft): string {
  const isSet = (change: SecretChange, before: boolean): boolean => (change.kind === 'keep' ? before : change.kind === 'set')
  const set = [
    ...(isSet(signingSecrets, stored.signingSecretCount > 0) ? ['signing secrets'] : []),
    ...(isSet(sharedSecret, stored.hasSharedSecret) ? ['shared secret'] : []),
  ]
  return set.length === 0 ? 'not signed' : `with ${set.join(' and ')}`
}

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
