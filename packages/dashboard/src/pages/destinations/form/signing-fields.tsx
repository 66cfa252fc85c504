// The secrets with which requests are signed.

import { Text } from '@mantine/core'
import type { Draft } from '../draft.ts'
import { LIMITS } from '../validation.ts'
import type { FieldsProps } from './field-state.ts'
import { SecretField } from './secret-field.tsx'

interface SigningProps extends FieldsProps {
  hasSharedSecret: boolean
  signingSecretCount: number
}

export function SigningFields({ draft, state, hasSharedSecret, signingSecretCount }: SigningProps) {
  return (
    <>
      <Text size="sm" c="dimmed">
        A signature lets the receiver verify that a request comes from this service and was not changed. Secrets are write-only: they are
        not shown again after you save.
      </Text>
      <SecretField
        title="Signing secrets"
        description="For the Standard Webhooks header webhook-signature. One secret is enough. To rotate it without downtime: set the old and the new secret together, switch the receiver to the new one, then set only the new one."
        field="signingSecrets"
        setCount={signingSecretCount}
        maxCount={LIMITS.signingSecrets}
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

export function signingNote({ sharedSecret, signingSecrets }: Draft, hasSharedSecret: boolean, signingSecretCount: number): string {
  const isSet = (change: Draft['sharedSecret'], before: boolean): boolean => (change.kind === 'keep' ? before : change.kind === 'set')
  const set = [
    ...(isSet(signingSecrets, signingSecretCount > 0) ? ['signing secrets'] : []),
    ...(isSet(sharedSecret, hasSharedSecret) ? ['shared secret'] : []),
  ]
  return set.length === 0 ? 'not signed' : `with ${set.join(' and ')}`
}
