// The secrets with which requests are signed.

import { FIELDS } from '../../../api/rules.ts'
import { Note } from '../../../components/styled.tsx'
import type { FieldsProps } from '../../../destination/form/field-state.ts'
import { SecretField } from './secret-field.tsx'
import type { SecretChange, WebhookDraft } from './webhook-draft.ts'

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
