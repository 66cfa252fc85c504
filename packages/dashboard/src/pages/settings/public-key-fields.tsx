// The fields for a new public key: its PEM, checked while it is typed, and its key id.

import { Code, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { SmallNote } from '../../components/styled.tsx'
import { checkPublicKey } from './public-key.ts'

export interface KeyDraft {
  id: string
  pem: string
}

export const NO_KEY: KeyDraft = { id: '', pem: '' }

const KEY_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$/

/** The key as sent to the API; null while the fields are invalid. */
export function keyOf({ id, pem }: KeyDraft): { id?: string; publicKeyPem: string } | null {
  if (!checkPublicKey(pem).ok || (id !== '' && !KEY_ID.test(id))) return null
  return id === '' ? { publicKeyPem: pem } : { id, publicKeyPem: pem }
}

export function KeyFields({ draft, onChange, isRequired }: { draft: KeyDraft; onChange: (draft: KeyDraft) => void; isRequired: boolean }) {
  const checked = draft.pem.trim() === '' ? null : checkPublicKey(draft.pem)
  return (
    <Stack gap="sm">
      <Textarea
        label="Public key"
        description="PEM format: RSA (2048 bits or more), EC P-256 or Ed25519. Never paste the private key."
        placeholder={'-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----'}
        value={draft.pem}
        onChange={(event) => onChange({ ...draft, pem: event.currentTarget.value })}
        error={checked !== null && !checked.ok ? checked.problem : null}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        required={isRequired}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 'var(--mantine-font-size-xs)' } }}
      />
      {checked?.ok && (
        <Text size="sm" c="teal" role="status">
          Valid {checked.kind} key.
        </Text>
      )}
      {checked === null && (
        <SmallNote>
          To create a key pair: <Code>openssl genpkey -algorithm ed25519 -out private.pem</Code>. To print the public key:{' '}
          <Code>openssl pkey -in private.pem -pubout</Code>
        </SmallNote>
      )}
      <TextInput
        label="Key id"
        description="The keyId that clients use. Leave empty to generate one."
        value={draft.id}
        onChange={(event) => onChange({ ...draft, id: event.currentTarget.value.trim() })}
        error={
          draft.id !== '' && !KEY_ID.test(draft.id) ? 'Use at most 100 letters, digits and . _ ~ - and start with a letter or digit.' : null
        }
      />
    </Stack>
  )
}
