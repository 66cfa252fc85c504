// How the service authenticates itself to the receiver, and its TLS settings. Secrets are write-only.

import { Input, Select, SimpleGrid, Textarea, TextInput } from '@mantine/core'
import { SecretInput } from '../../../components/inputs.tsx'
import { Note } from '../../../components/styled.tsx'
import { type FieldsProps, textInput } from '../../../destination/form/field-state.ts'
import { type AuthDraft, type AuthType, isSecretKept, SECRET_FIELDS, type TlsDraft, withoutStored } from './auth-draft.ts'
import { isMoved, type WebhookDraft } from './webhook-draft.ts'

const TYPES: readonly { value: AuthType; label: string }[] = [
  { value: 'none', label: 'None' },
  { value: 'basic', label: 'Basic: user name and password' },
  { value: 'bearer', label: 'Bearer token' },
  { value: 'oauth2', label: 'OAuth 2: client credentials' },
]
const SECRET_LABELS = { basic: 'Password', bearer: 'Token', oauth2: 'Client secret' } as const
export const KEEP = 'set; leave empty to keep it'

export function AuthFields({ draft, state }: FieldsProps<WebhookDraft>) {
  const { auth } = draft
  const isKept = isSecretKept(isMoved(draft) ? withoutStored(auth) : auth)
  const set = (changes: Partial<AuthDraft>): Partial<WebhookDraft> => ({ auth: { ...auth, ...changes } })
  const text = (field: 'username' | 'tokenUrl' | 'clientId' | 'scope' | 'audience') =>
    textInput(state, `auth.${field}`, auth[field], (value) => set({ [field]: field === 'tokenUrl' ? value.trim() : value }))
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <Select
        label="Method"
        description="Sent with every request in the Authorization header."
        data={[...TYPES]}
        value={auth.type}
        onChange={(type) => state.set(set({ type: type as AuthType, secret: '' }))}
        error={state.problem('auth')}
        readOnly={state.isReadOnly}
        allowDeselect={false}
      />
      {auth.type === 'basic' && <TextInput label="User name" description="Without a colon." {...text('username')} />}
      {auth.type === 'oauth2' && (
        <>
          <TextInput
            label="Token URL"
            description="Where access tokens are requested. A token is reused until shortly before it expires."
            placeholder="https://auth.example.com/oauth/token"
            {...text('tokenUrl')}
            required
          />
          <TextInput label="Client id" {...text('clientId')} required />
        </>
      )}
      {auth.type !== 'none' && (
        <SecretInput
          label={SECRET_LABELS[auth.type]}
          placeholder={isKept ? KEEP : ''}
          {...textInput(state, `auth.${SECRET_FIELDS[auth.type]}`, auth.secret, (secret) => set({ secret }))}
          description={auth.type === 'basic' ? 'May be empty. Write-only: it is not shown again.' : 'Write-only: it is not shown again.'}
          required={auth.type !== 'basic' && !isKept}
        />
      )}
      {auth.type === 'oauth2' && (
        <>
          <Select
            label="Send the credentials"
            data={[
              { value: 'basic', label: 'In the Authorization header' },
              { value: 'body', label: 'In the body of the token request' },
            ]}
            value={auth.credentials}
            onChange={(credentials) => state.set(set({ credentials: credentials as AuthDraft['credentials'] }))}
            readOnly={state.isReadOnly}
            allowDeselect={false}
          />
          <TextInput label="Scope" description="Optional; several are separated by spaces." {...text('scope')} />
          <TextInput label="Audience" description="Optional; some token endpoints need it." {...text('audience')} />
        </>
      )}
    </SimpleGrid>
  )
}

export function authNote({ auth }: WebhookDraft): string {
  return auth.type === 'none' ? 'none' : { basic: 'Basic', bearer: 'Bearer token', oauth2: 'OAuth 2' }[auth.type]
}

export function TlsFields({ draft, state }: FieldsProps<WebhookDraft>) {
  const { tls } = draft
  const area = (field: 'certificate' | 'privateKey' | 'ca') => ({
    ...textInput(
      state,
      `tls.${field}`,
      tls[field],
      (value): Partial<WebhookDraft> => ({ tls: { ...tls, [field]: value } satisfies TlsDraft }),
    ),
    autosize: true,
    minRows: 3,
    maxRows: 10,
    spellCheck: false,
    styles: { input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12 } },
  })
  return (
    <>
      <Note>
        Only needed by receivers that require a client certificate (mutual TLS), or whose certificate is from a private authority.
      </Note>
      <Textarea
        label="Client certificate"
        description="In PEM. To remove the certificate and its key, clear this field."
        placeholder="-----BEGIN CERTIFICATE-----"
        {...area('certificate')}
      />
      <Textarea
        label="Private key"
        description="In PEM. Write-only: it is not shown again after you save."
        placeholder={tls.hasPrivateKey ? KEEP : '-----BEGIN PRIVATE KEY-----'}
        {...area('privateKey')}
      />
      <Textarea
        label="Certificate authorities"
        description="In PEM. Trusted instead of the usual authorities."
        placeholder="-----BEGIN CERTIFICATE-----"
        {...area('ca')}
      />
      {state.problem('tls') !== null && <Input.Error>{state.problem('tls')}</Input.Error>}
    </>
  )
}

export function tlsNote({ tls: { certificate, ca } }: WebhookDraft): string {
  const parts = [...(certificate.trim() === '' ? [] : ['client certificate']), ...(ca.trim() === '' ? [] : ['private authority'])]
  return parts.length === 0 ? 'public certificate authorities' : parts.join(', ')
}
