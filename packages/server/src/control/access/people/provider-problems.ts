// What can be wrong with the identity provider, as data: a reason that the login page and the diagnostics show, found out from the error
// that a request to the provider ended with. The sentences quote nothing that the provider sent.

export const PROVIDER_PROBLEMS = {
  unreachable: {
    message: 'The identity provider does not respond.',
    advice: 'Check that it is running and that this machine can reach it. Log in with a control token in the meantime.',
  },
  certificate_expired: {
    message: 'The TLS certificate of the identity provider has expired.',
    advice: 'Renew the certificate of the provider, or check the clock of this machine.',
  },
  certificate_invalid: {
    message: 'The TLS certificate of the identity provider is not trusted.',
    advice: 'Set NODE_EXTRA_CA_CERTS to a PEM file with the certificate authority of the provider, and restart the service.',
  },
  misconfigured: {
    message: 'The identity provider did not answer as an OpenID Connect provider.',
    advice: 'Check SWITCHYARD_OIDC_ISSUER: it must be exactly the issuer that the provider names at /.well-known/openid-configuration.',
  },
  client_rejected: {
    message: 'The identity provider rejects the client id or the client secret of this service.',
    advice: 'Check SWITCHYARD_OIDC_CLIENT_ID and SWITCHYARD_OIDC_CLIENT_SECRET, and the redirect URI that is registered at the provider.',
  },
  clock_wrong: {
    message: 'The identity provider sent a token that is expired or not valid yet.',
    advice: 'The clock of the provider or of this machine is wrong: synchronize both with NTP.',
  },
  signature_invalid: {
    message: 'The signature of a token of the identity provider is not valid.',
    advice:
      'If the provider has just changed its keys, log in again. Otherwise check that nothing between the service and the provider changes its answers.',
  },
  token_invalid: {
    message: 'The identity provider sent a token that is not meant for this service.',
    advice: 'Check SWITCHYARD_OIDC_ISSUER and SWITCHYARD_OIDC_CLIENT_ID.',
  },
} as const satisfies Record<string, { message: string; advice: string }>

export type ProviderProblem = keyof typeof PROVIDER_PROBLEMS

export class ProviderError extends Error {
  override name = 'ProviderError'
  readonly reason: ProviderProblem
  /** The provider says that the person, the code or the token has no access any more: `invalid_grant`, or status 401. */
  readonly isDenied: boolean

  constructor(reason: ProviderProblem, { isDenied = false, cause }: { isDenied?: boolean; cause?: unknown } = {}) {
    super(PROVIDER_PROBLEMS[reason].message, { cause })
    this.reason = reason
    this.isDenied = isDenied
  }
}

const UNTRUSTED = new Set([
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

const BY_CODE: Readonly<Record<string, ProviderProblem>> = {
  CERT_HAS_EXPIRED: 'certificate_expired',
  OAUTH_TIMEOUT: 'unreachable',
  OAUTH_ABORT: 'unreachable',
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: 'clock_wrong',
  ERR_JWT_EXPIRED: 'clock_wrong',
  OAUTH_KEY_SELECTION_FAILED: 'signature_invalid',
  ERR_JWKS_NO_MATCHING_KEY: 'signature_invalid',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'signature_invalid',
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: 'token_invalid',
}

/** `status` is that of the last response of the provider; null if there was none. */
export function providerError(error: unknown, status: number | null): ProviderError {
  if (error instanceof ProviderError) return error
  const chain = chainOf(error)
  const codes = chain.map(({ code }) => code)
  const oauth = chain.map(({ error: each }) => each).find((each) => typeof each === 'string')
  const isDenied = status === 401 || oauth === 'invalid_grant'
  const made = (reason: ProviderProblem): ProviderError => new ProviderError(reason, { isDenied, cause: error })
  if (oauth === 'invalid_client' || oauth === 'unauthorized_client' || chain.some(isClientChallenge)) return made('client_rejected')
  if (status !== null && (status >= 500 || status === 429)) return made('unreachable')
  for (const code of codes) {
    if (typeof code !== 'string') continue
    if (UNTRUSTED.has(code) || code.startsWith('ERR_SSL_')) return made('certificate_invalid')
    const known = BY_CODE[code]
    if (known !== undefined) return made(known)
  }
  if (chain.some(({ message }) => typeof message === 'string' && message.includes('signature verification failed')))
    return made('signature_invalid')
  return made(status === null ? 'unreachable' : 'misconfigured')
}

/** A challenge to authenticate with Basic is about the client; access tokens are asked for with Bearer. */
function isClientChallenge({ cause }: Link): boolean {
  return Array.isArray(cause) && cause.some((each: { scheme?: unknown } | null) => String(each?.scheme).toLowerCase() === 'basic')
}

type Link = { readonly code?: unknown; readonly error?: unknown; readonly message?: unknown; readonly cause?: unknown }

function chainOf(error: unknown): Link[] {
  const chain: Link[] = []
  for (let next = error; typeof next === 'object' && next !== null && chain.length < 10; next = (next as Link).cause) chain.push(next)
  return chain
}
