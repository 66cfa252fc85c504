// A write-only secret: shows whether it is set, and replaces or removes it. A new value is kept only in this form until it is saved.

import { Badge, Button, CopyButton, Group, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { replaceAt, type SecretChange, signingSecretOf } from '../draft.ts'
import type { FieldState } from './field-state.ts'

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
  state: FieldState
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
        <Badge variant="light" color={isSet ? 'teal' : 'gray'} tt="none" size="sm">
          {isSet ? (setCount > 1 ? `${setCount} set` : 'set') : 'not set'}
        </Badge>
        {change.kind === 'remove' && (
          <Badge variant="light" color="red" tt="none" size="sm">
            removed when you save
          </Badge>
        )}
        {change.kind === 'set' && isSet && (
          <Badge variant="light" color="orange" tt="none" size="sm">
            replaced when you save
          </Badge>
        )}
      </Group>
      <Text size="sm" c="dimmed">
        {description}
      </Text>
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
              <Button
                size="compact-xs"
                variant="default"
                onClick={() => set(replaceAt(values, at, signingSecretOf(crypto.getRandomValues(new Uint8Array(32)))), fieldAt(at))}
              >
                Generate
              </Button>
            )}
            {value !== '' && (
              <CopyButton value={value}>
                {({ copied, copy }) => (
                  <Button size="compact-xs" variant="default" onClick={copy}>
                    {copied ? 'Copied' : 'Copy'}
                  </Button>
                )}
              </CopyButton>
            )}
            {values.length > 1 && (
              <Button size="compact-xs" variant="default" onClick={() => set(values.filter((_, other) => other !== at))}>
                Remove this secret
              </Button>
            )}
          </Group>
        </Stack>
      ))}
      {change.kind === 'set' && (
        <Text size="xs" c="dimmed">
          Copy it to the receiver before you save. It is not shown again.
        </Text>
      )}
      {!state.isReadOnly && (
        <Group gap="xs">
          {change.kind === 'keep' ? (
            <>
              <Button
                size="xs"
                variant="default"
                onClick={() => set([''])}
                aria-label={`${isSet ? 'Replace' : 'Set'} ${title.toLowerCase()}`}
              >
                {isSet ? 'Replace' : 'Set'}
              </Button>
              {isSet && (
                <Button
                  size="xs"
                  variant="default"
                  onClick={() => onChange({ kind: 'remove' })}
                  aria-label={`Remove ${title.toLowerCase()}`}
                >
                  Remove
                </Button>
              )}
            </>
          ) : (
            <>
              {change.kind === 'set' && values.length < maxCount && (
                <Button size="xs" variant="default" onClick={() => set([...values, ''])}>
                  Add another secret
                </Button>
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
