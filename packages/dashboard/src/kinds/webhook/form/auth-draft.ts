// How the service authenticates itself to the receiver, while it is edited. Secrets are write-only: an empty one keeps what is stored. Pure.

import type { Operations } from '../../../api/types.ts'
import type { Noted } from '../../../destination/form/draft.ts'
import type { Problem } from '../../../destination/form/validation.ts'
import type { DestinationOf } from '../../../destination/kind.ts'
import { urlProblem } from './validation.ts'

type Webhook = DestinationOf<'webhook'>
type Change = Required<Operations['PATCH /api/destinations/{id}']['body']>
export type AuthType = 'none' | 'basic' | 'bearer' | 'oauth2'

export interface AuthDraft {
  type: AuthType
  /** What is stored, whose secret can be kept. */
  stored: { type: AuthType; username: string; tokenUrl: string; clientId: string; hasPassword: boolean }
  /** The password, the token or the client secret, by the type. */
  secret: string
  username: string
  tokenUrl: string
  clientId: string
  scope: string
  audience: string
  credentials: 'basic' | 'body'
}

export interface TlsDraft {
  hasPrivateKey: boolean
  certificate: string
  privateKey: string
  ca: string
}

/** The name of the secret in the API, by the type. */
export const SECRET_FIELDS = { basic: 'password', bearer: 'token', oauth2: 'clientSecret' } as const

export function authDraftOf(auth: Webhook['auth']): AuthDraft {
  const stored = {
    type: auth?.type ?? ('none' as const),
    username: auth?.type === 'basic' ? auth.username : '',
    tokenUrl: auth?.type === 'oauth2' ? auth.tokenUrl : '',
    clientId: auth?.type === 'oauth2' ? auth.clientId : '',
    hasPassword: auth?.type === 'basic' && auth.hasPassword,
  }
  const { scope, audience, credentials } = auth?.type === 'oauth2' ? auth : { scope: null, audience: null, credentials: 'basic' as const }
  const { hasPassword: _, ...shown } = stored
  return { ...shown, stored, secret: '', scope: scope ?? '', audience: audience ?? '', credentials }
}

/** Whether the stored secret is kept if none is entered: not if it would be sent to somebody else, or for another user. */
export function isSecretKept({ type, stored, username, tokenUrl, clientId }: AuthDraft): boolean {
  return type === stored.type && username === stored.username && tokenUrl === stored.tokenUrl && clientId === stored.clientId
}

/** The draft for another server, to which the stored secret is not sent. */
export function withoutStored(draft: AuthDraft): AuthDraft {
  return { ...draft, stored: { ...draft.stored, type: 'none' } }
}

/** What the API gets; null for none. */
export function authBodyOf(draft: AuthDraft): Change['auth'] {
  const { type, secret, username, tokenUrl, clientId, scope, audience, credentials } = draft
  if (type === 'none') return null
  const isKept = secret === '' && isSecretKept(draft)
  if (type === 'basic') return { type, username, ...(isKept ? {} : { password: secret }) }
  if (type === 'bearer') return { type, ...(isKept ? {} : { token: secret }) }
  const optional = { scope: scope === '' ? null : scope, audience: audience === '' ? null : audience }
  return { type, tokenUrl, clientId, ...(isKept ? {} : { clientSecret: secret }), ...optional, credentials }
}

/** By field of the API. */
export function authProblems(draft: AuthDraft): Noted[] {
  const { type, secret, username, tokenUrl, clientId, scope } = draft
  const isMissing = secret === '' && !isSecretKept(draft)
  if (type === 'basic') return [['auth.username', username.includes(':') ? 'A user name cannot contain a colon.' : null]]
  if (type === 'bearer') {
    const isPlain = /^[\x21-\x7e]*$/.test(secret)
    return [['auth.token', isMissing ? 'Enter the token.' : isPlain ? null : 'Use only visible ASCII characters, without spaces.']]
  }
  if (type === 'none') return []
  const isScope = /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(scope)
  return [
    ['auth.tokenUrl', tokenUrl === '' ? 'Enter the URL of the token endpoint.' : urlProblem(tokenUrl)],
    ['auth.clientId', clientId === '' ? 'Enter the client id.' : null],
    ['auth.clientSecret', isMissing ? 'Enter the client secret.' : null],
    ['auth.scope', scope === '' || isScope ? null : 'Separate scopes by single spaces.'],
  ]
}

export function tlsDraftOf(tls: Webhook['tls']): TlsDraft {
  return { hasPrivateKey: tls?.hasPrivateKey ?? false, certificate: tls?.certificate ?? '', privateKey: '', ca: tls?.ca ?? '' }
}

/** What the API gets; null for none. Without a certificate there is no key either. */
export function tlsBodyOf({ certificate, privateKey, ca }: TlsDraft): Change['tls'] {
  if (certificate.trim() === '' && ca.trim() === '') return null
  const text = (pem: string): string | null => (pem.trim() === '' ? null : pem)
  return {
    certificate: text(certificate),
    ca: text(ca),
    ...(text(certificate) === null ? { privateKey: null } : privateKey.trim() === '' ? {} : { privateKey }),
  }
}

export function tlsProblems({ certificate, privateKey, ca, hasPrivateKey }: TlsDraft): Noted[] {
  const isSet = certificate.trim() !== ''
  return [
    ['tls.certificate', pemProblem(certificate) ?? (!isSet && privateKey.trim() !== '' ? 'Enter the certificate of this key.' : null)],
    [
      'tls.privateKey',
      privateKey.trim() === '' ? (isSet && !hasPrivateKey ? 'Enter the private key of the certificate.' : null) : pemProblem(privateKey),
    ],
    ['tls.ca', pemProblem(ca)],
  ]
}

function pemProblem(text: string): Problem {
  return text.trim() === '' || text.includes('-----BEGIN ') ? null : 'Must be PEM: it starts with -----BEGIN.'
}
