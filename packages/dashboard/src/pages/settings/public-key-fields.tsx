// A public key to be added: its PEM, judged while it is typed, and the id that clients sign with.

import { Code, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { checkPublicKey } from './public-key.ts'

export interface KeyDraft {
  id: string
  pem: string
}

export const NO_KEY: KeyDraft = { id: '', pem: '' }

const KEY_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$/

/** As the API takes it; null while it is not good. */
export function keyOf({ id, pem }: KeyDraft): { id?: string; publicKeyPem: string } | null {
  if (!checkPublicKey(pem).ok || (id !== '' && !KEY_ID.test(id))) return null
  return id === '' ? { publicKeyPem: pem } : { id, publicKeyPem: pem }
}

export function KeyFields({ draft, onChange, isRequired }: { draft: KeyDraft; onChange: (draft: KeyDraft) => void; isRequired: boolean }) {
  const judged = draft.pem.trim() === '' ? null : checkPublicKey(draft.pem)
  return (
    <Stack gap="sm">
      <Textarea
        label="Public key"
        description="In PEM: RSA of at least 2048 bits, EC on P-256, or Ed25519. Never the private key."
        placeholder={'-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----'}
        value={draft.pem}
        onChange={(event) => onChange({ ...draft, pem: event.currentTarget.value })}
        error={judged !== null && !judged.ok ? judged.problem : null}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        required={isRequired}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 'var(--mantine-font-size-xs)' } }}
      />
      {judged?.ok && (
        <Text size="sm" c="teal" role="status">
          {judged.kind}: good.
        </Text>
      )}
      {judged === null && (
        <Text size="xs" c="dimmed">
          To make a pair: <Code>openssl genpkey -algorithm ed25519 -out private.pem</Code>, then{' '}
          <Code>openssl pkey -in private.pem -pubout</Code> shows the public half.
        </Text>
      )}
      <TextInput
        label="Key id"
        description="The keyId that clients sign with. One is made up when it is left empty."
        value={draft.id}
        onChange={(event) => onChange({ ...draft, id: event.currentTarget.value.trim() })}
        error={draft.id !== '' && !KEY_ID.test(draft.id) ? 'Letters, digits, and . _ ~ - after the first of them, 100 at most.' : null}
      />
    </Stack>
  )
}
