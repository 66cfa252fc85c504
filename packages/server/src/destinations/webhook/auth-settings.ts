// The settings with which the service authenticates itself to a receiver: `auth` and `tls`. Which values are accepted, which secrets an update
// may leave out, and what is shown. No error message here may quote a value, because it may be a secret.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { isoTime } from '@switchyard/protocol'
import { boolean, nullable, object, oneOf, string, time, variants, withDefault, writeOnly } from '../../api/schema.ts'
import type { Auth, TlsSettings, WebhookDestination } from '../../model/configuration.ts'
import { oncePerObject } from '../../model/once-per-object.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type { SettingsProblem } from '../port/kind.ts'
import { isMailUrl } from './email/mail-server.ts'
import { urlProblem } from './url-problem.ts'

const KIB = 1_024
const MAX_TEXT_LENGTH = 2_048
const MAX_TOKEN_LENGTH = 8_192
/** Enough for a chain, and for the authorities of a large company. */
const MAX_CERTIFICATES = 100

/** The value of a secret that the request does not contain. No secret can have it, because control characters are rejected. */
const LEFT_OUT = '\0'

const IS_PLACEHOLDER = 'is the placeholder "(hidden)"; send the real value, or leave the field out to keep the stored one'

function textProblem(text: string): string | null {
  if (text === HIDDEN) return IS_PLACEHOLDER
  return /\p{Cc}/u.test(text) ? 'must not contain control characters' : null
}

function usernameProblem(text: string): string | null {
  return text.includes(':') ? 'must not contain a colon, because HTTP Basic separates user name and password with it' : textProblem(text)
}

function tokenProblem(text: string): string | null {
  if (text === HIDDEN) return IS_PLACEHOLDER
  return /^[\x21-\x7e]+$/.test(text) ? null : 'must consist only of visible ASCII characters, without spaces'
}

/** RFC 6749, 3.3 */
function scopeProblem(text: string): string | null {
  return /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(text)
    ? null
    : 'must be one or more scopes of visible ASCII characters, separated by single spaces'
}

const secret = (options: Parameters<typeof string>[0]) => writeOnly(string(options), LEFT_OUT)
const text = (description: string, check = textProblem) =>
  withDefault(nullable(string({ min: 1, max: MAX_TEXT_LENGTH, check, description })), null)

const AUTH = variants(
  'type',
  {
    basic: {
      username: string({ max: MAX_TEXT_LENGTH, check: usernameProblem }),
      password: secret({ max: MAX_TEXT_LENGTH, check: textProblem, description: 'May be empty.' }),
    },
    bearer: { token: secret({ min: 1, max: MAX_TOKEN_LENGTH, check: tokenProblem }) },
    oauth2: {
      tokenUrl: string({
        max: MAX_TEXT_LENGTH,
        format: 'uri',
        check: urlProblem,
        description: 'The token endpoint, from which access tokens are requested with the grant type `client_credentials`.',
      }),
      clientId: string({ min: 1, max: MAX_TEXT_LENGTH, check: textProblem }),
      clientSecret: secret({ min: 1, max: MAX_TEXT_LENGTH, check: textProblem }),
      scope: text('The scopes to request, separated by spaces.', scopeProblem),
      audience: text('The audience to request. Not part of the standard, but some authorization servers require it.'),
      credentials: withDefault(
        oneOf(['basic', 'body'], {
          description: 'How the client id and secret are sent to the token endpoint: HTTP Basic, or in the body.',
        }),
        'basic',
      ),
    },
  },
  {
    description:
      'How the service authenticates itself to the receiver, in the Authorization header; null for no authentication. An update replaces the whole object. A secret that is left out is kept, unless the type, the user name, the token URL or the client id changes.',
  },
)

const TLS = object(
  {
    certificate: pem('The client certificate in PEM format, followed by intermediate certificates if there are any.', 64 * KIB),
    privateKey: writeOnly(
      nullable(string({ min: 1, max: 32 * KIB, description: 'The private key of the client certificate in PEM format, not encrypted.' })),
      LEFT_OUT,
    ),
    ca: pem('Certificate authorities in PEM format, trusted instead of the usual ones.', 256 * KIB),
  },
  {
    description:
      'A client certificate (mutual TLS), private certificate authorities, or both. An update replaces the whole object. A private key that is left out is kept if it belongs to the certificate.',
  },
)

function pem(description: string, max: number) {
  return withDefault(nullable(string({ min: 1, max, description })), null)
}

export const AUTH_SETTINGS = { auth: withDefault(nullable<Auth>(AUTH), null), tls: withDefault(nullable<TlsSettings>(TLS), null) }

// ── Secrets that an update leaves out ──

/**
 * Fills in the secrets that an update leaves out. Only where the secret keeps its purpose: otherwise anybody who may change the destination
 * could have a stored secret sent to an address of their own.
 */
export function withKeptSecrets<T extends Partial<Pick<WebhookDestination, 'auth' | 'tls'>>>(
  settings: T,
  before: WebhookDestination | undefined,
): T {
  const { auth, tls } = settings
  return {
    ...settings,
    ...(auth ? { auth: keptAuth(auth, before?.auth ?? null) } : {}),
    ...(tls ? { tls: keptTls(tls, before?.tls ?? null) } : {}),
  }
}

function keptAuth(auth: Auth, before: Auth | null): Auth {
  if (auth.type === 'basic' && auth.password === LEFT_OUT && before?.type === 'basic' && before.username === auth.username)
    return { ...auth, password: before.password }
  if (auth.type === 'bearer' && auth.token === LEFT_OUT && before?.type === 'bearer') return { ...auth, token: before.token }
  if (
    auth.type === 'oauth2' &&
    auth.clientSecret === LEFT_OUT &&
    before?.type === 'oauth2' &&
    before.tokenUrl === auth.tokenUrl &&
    before.clientId === auth.clientId
  )
    return { ...auth, clientSecret: before.clientSecret }
  return auth
}

function keptTls(tls: TlsSettings, before: TlsSettings | null): TlsSettings {
  if (tls.privateKey !== LEFT_OUT) return tls
  return { ...tls, privateKey: tls.certificate === null ? null : (before?.privateKey ?? null) }
}

/** The field of the secret that a request leaves out; null if it contains its secret. */
export function leftOutSecret(auth: Auth): string | null {
  if (auth.type === 'basic') return auth.password === LEFT_OUT ? 'auth.password' : null
  if (auth.type === 'bearer') return auth.token === LEFT_OUT ? 'auth.token' : null
  return auth.clientSecret === LEFT_OUT ? 'auth.clientSecret' : null
}

// ── Problems that the schema cannot detect ──

const REQUIRED = 'is required; the stored one is kept only if'

/** `settings` are those of a request, `all` the settings that the destination would have. */
export function authProblem(
  settings: Partial<WebhookDestination>,
  all: Partial<WebhookDestination>,
  checkUrl: (url: string) => string | null,
  before: WebhookDestination | undefined,
): SettingsProblem | null {
  const { auth, tls } = settings
  if (auth) {
    if (auth.type === 'basic' && auth.password === LEFT_OUT)
      return { field: 'auth.password', problem: `${REQUIRED} username stays the same` }
    if (auth.type === 'bearer' && auth.token === LEFT_OUT) return { field: 'auth.token', problem: `${REQUIRED} type stays the same` }
    if (auth.type === 'oauth2') {
      if (auth.clientSecret === LEFT_OUT) return { field: 'auth.clientSecret', problem: `${REQUIRED} tokenUrl and clientId stay the same` }
      const problem = checkUrl(auth.tokenUrl)
      if (problem !== null) return { field: 'auth.tokenUrl', problem }
    }
  }
  return authorizationProblem(all) ?? (tls ? tlsProblem(tls, before?.tls ?? null) : null) ?? unusedTlsProblem(all)
}

function authorizationProblem({ auth, headers = {}, request }: Partial<WebhookDestination>): SettingsProblem | null {
  if (auth == null) return null
  const found = (names: object): string | undefined => Object.keys(names).find((name) => name.toLowerCase() === 'authorization')
  const [plain, shaped] = [found(headers), found(request?.headers ?? {})]
  if (plain === undefined && shaped === undefined) return null
  const field = plain === undefined ? `request.headers.${shaped}` : `headers.${plain}`
  return { field, problem: 'must not be set together with auth, which sets this header; remove one of them' }
}

function unusedTlsProblem({ tls, urls = [] }: Partial<WebhookDestination>): SettingsProblem | null {
  if (tls == null || urls.some((url) => new URL(url).protocol === 'https:' || isMailUrl(url))) return null
  return { field: 'tls', problem: 'has no effect, because all URLs use http; use at least one https URL, or remove tls' }
}

function tlsProblem({ certificate, privateKey, ca }: TlsSettings, before: TlsSettings | null): SettingsProblem | null {
  if (certificate === null && ca === null) return { field: 'tls', problem: 'must have a certificate with its privateKey, a ca, or both' }
  if (certificate === null && privateKey !== null) return { field: 'tls.certificate', problem: 'is required with tls.privateKey' }
  for (const [name, given] of Object.entries({ certificate, ca })) {
    const problem = given === null ? null : certificatesProblem(given)
    if (problem !== null) return { field: `tls.${name}`, problem }
  }
  if (certificate === null) return null
  const leaf = new X509Certificate(certificate)
  if (certificate !== before?.certificate && leaf.validToDate.getTime() < Date.now())
    return { field: 'tls.certificate', problem: `expired at ${isoTime(leaf.validToDate.getTime())}; send a valid certificate` }
  const problem = keyProblem(privateKey, leaf)
  if (problem !== null) return { field: 'tls.privateKey', problem }
  try {
    createSecureContext({ cert: certificate, key: privateKey as string })
    return null
  } catch {
    return { field: 'tls.certificate', problem: 'cannot be used for TLS; its key may be too short, or its signature algorithm outdated' }
  }
}

function keyProblem(privateKey: string | null, certificate: X509Certificate): string | null {
  if (privateKey === null) return 'is required with tls.certificate'
  if (privateKey.includes('ENCRYPTED'))
    return 'is encrypted; remove its passphrase first, for example with: openssl pkey -in key.pem -out plain.pem'
  let key: KeyObject
  try {
    key = createPrivateKey(privateKey)
  } catch {
    return 'must be a private key in PEM, which begins with -----BEGIN PRIVATE KEY-----'
  }
  return certificate.checkPrivateKey(key) ? null : 'does not belong to the first certificate in tls.certificate'
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----/g

function certificatesProblem(given: string): string | null {
  // Certificates are shown to everybody.
  if (given.includes('PRIVATE KEY')) return 'must not contain a private key; send that in tls.privateKey'
  const found = given.match(CERTIFICATE) ?? []
  if (found.length === 0) return 'must be one or more certificates in PEM, each beginning with -----BEGIN CERTIFICATE-----'
  if (found.length > MAX_CERTIFICATES) return `must contain at most ${MAX_CERTIFICATES} certificates`
  const invalid = found.findIndex((each) => !isCertificate(each))
  return invalid === -1 ? null : `has an invalid certificate (number ${invalid + 1})`
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== null
  } catch {
    return false
  }
}

// ── What is shown ──

const SHOWN_AUTH = variants('type', {
  basic: { username: string({ description: 'For a viewer, (hidden).' }), hasPassword: boolean() },
  bearer: { hasToken: boolean() },
  oauth2: {
    tokenUrl: string({ description: 'For a viewer, each value in the query string is replaced by (hidden).' }),
    clientId: string(),
    hasClientSecret: boolean(),
    scope: nullable(string()),
    audience: nullable(string()),
    credentials: oneOf(['basic', 'body']),
  },
})
const SHOWN_TLS = object({
  certificate: nullable(string()),
  subject: nullable(string({ description: 'The subject of the client certificate.' })),
  expiresAt: nullable(time({ description: 'When the client certificate expires.' })),
  hasPrivateKey: boolean(),
  ca: nullable(string()),
})

export const SHOWN_AUTH_SETTINGS = { auth: nullable(SHOWN_AUTH), tls: nullable(SHOWN_TLS) }

export function showAuth({ auth, tls }: Pick<WebhookDestination, 'auth' | 'tls'>) {
  return { auth: auth === null ? null : authView(auth), tls: tls === null ? null : { ...tlsView(tls) } }
}

function authView(auth: Auth) {
  if (auth.type === 'basic') return { type: auth.type, username: auth.username, hasPassword: auth.password !== '' }
  if (auth.type === 'bearer') return { type: auth.type, hasToken: true }
  const { type, tokenUrl, clientId, scope, audience, credentials } = auth
  return { type, tokenUrl, clientId, hasClientSecret: true, scope, audience, credentials }
}

/** Destinations are shown far more often than they change, and a changed one has a new object. */
const tlsView = oncePerObject(({ certificate, privateKey, ca }: TlsSettings) => {
  const leaf = certificate === null ? null : new X509Certificate(certificate)
  return {
    certificate,
    subject: leaf === null ? null : leaf.subject.split('\n').join(', '),
    expiresAt: leaf === null ? null : isoTime(leaf.validToDate.getTime()),
    hasPrivateKey: privateKey !== null,
    ca,
  }
})
