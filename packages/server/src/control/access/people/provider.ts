// The identity provider: the only module that knows openid-client. It is loaded only if single sign-on is set up. Every token is verified with its
// signature, also those that come directly from the provider. Requests go only to https, or to http on loopback, have a deadline, and read
// a bounded answer. Keys are read anew for each token, so that a provider may change them at any time; logins and re-checks are rare.

import { randomBytes } from 'node:crypto'
import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose'
import * as client from 'openid-client'
import { isLoopbackHost } from '../../../api/parse-values.ts'
import type { Claims } from '../../../api/settings/role-rules.ts'
import { InvalidCallback } from './login-failures.ts'
import { ProviderError, providerError } from './provider-problems.ts'

const TIMEOUT_SECONDS = 5
/** Room for ten thousand groups. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const METADATA_MS = 10 * 60_000
const SIGNATURES = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const LOGOUT_TOKEN_SECONDS = 300

export interface ProviderSettings {
  issuer: string
  clientId: string
  clientSecret: string
  scopes: string
  redirectUri: string
}

/** The secrets of a login in progress. */
export interface LoginSecrets {
  state: string
  nonce: string
  verifier: string
}

/** With what the provider is asked again whether a person still has access. */
export interface Grant {
  refreshToken: string | null
  accessToken: string
}

export interface Identity {
  subject: string
  /** Of the ID token; null if a re-check returned none. */
  idToken: Claims | null
  /** Null if the provider has no userinfo endpoint. */
  userinfo: Claims | null
  /** The id of the session at the provider, for back-channel logout. */
  sid: string | null
  grant: Grant
}

export interface LogoutToken {
  subject: string | null
  sid: string | null
  jti: string
  expiresAtMs: number
}

interface Asked {
  configuration: client.Configuration
  /** The status of the last response. */
  status: number | null
  /** How far the clock of the provider is ahead, from its Date header; null if it sent none. */
  clockAheadMs: number | null
}

export class Provider {
  readonly #settings: ProviderSettings
  #metadata: { value: client.ServerMetadata; atMs: number } | null = null

  constructor(settings: ProviderSettings) {
    this.#settings = settings
  }

  /** The address to which the browser is sent. Throws ProviderError. */
  async authorizationUrl({ state, nonce, verifier }: LoginSecrets): Promise<URL> {
    return this.#ask(async ({ configuration }) =>
      client.buildAuthorizationUrl(configuration, {
        redirect_uri: this.#settings.redirectUri,
        scope: this.#settings.scopes,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        // Otherwise the provider gives no refresh token for this scope.
        ...(this.#settings.scopes.split(' ').includes('offline_access') && { prompt: 'consent' }),
      }),
    )
  }

  /** Exchanges the code of a callback, whose state has been compared. Throws ProviderError, or InvalidCallback for another issuer. */
  async exchange({ code, issuer }: { code: string; issuer: string | null }, { state, nonce, verifier }: LoginSecrets): Promise<Identity> {
    return this.#ask(async (asked) => {
      const { configuration } = asked
      const metadata = configuration.serverMetadata()
      const isNamed = issuer !== null || metadata.authorization_response_iss_parameter_supported === true
      if (isNamed && issuer !== metadata.issuer) throw new InvalidCallback()
      const url = new URL(this.#settings.redirectUri)
      url.search = new URLSearchParams({ code, state, ...(issuer !== null && { iss: issuer }) }).toString()
      const answer = await client
        .authorizationCodeGrant(configuration, url, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        })
        .catch((error: unknown) => {
          const problem = providerError(error, asked.status)
          // It answered, with something that is no valid ID token.
          throw problem.reason === 'misconfigured' && asked.status === 200 ? new ProviderError('token_invalid', { cause: error }) : problem
        })
      const idToken = answer.claims() as Claims
      const subject = String(idToken['sub'])
      const grant = { refreshToken: answer.refresh_token ?? null, accessToken: answer.access_token }
      return this.#identity(configuration, { subject, idToken, grant })
    })
  }

  /** Asks again who the person is. The grant may be used only once: the answer has the next. Throws ProviderError. */
  async renew(grant: Grant, subject: string): Promise<Identity> {
    return this.#ask(async ({ configuration }) => {
      if (grant.refreshToken === null) {
        if (configuration.serverMetadata().userinfo_endpoint === undefined) throw new ProviderError('misconfigured', { isDenied: true })
        return this.#identity(configuration, { subject, idToken: null, grant })
      }
      const answer = await client.refreshTokenGrant(configuration, grant.refreshToken)
      const idToken = (answer.claims() as Claims | undefined) ?? null
      if (idToken !== null && idToken['sub'] !== subject) throw new ProviderError('token_invalid', { isDenied: true })
      const next = { refreshToken: answer.refresh_token ?? grant.refreshToken, accessToken: answer.access_token }
      return this.#identity(configuration, { subject, idToken, grant: next })
    })
  }

  /** Throws ProviderError if the provider cannot be asked, and any other error if the token is not valid. */
  async readLogoutToken(text: string, nowMs: number): Promise<LogoutToken> {
    const { issuer, jwks_uri } = await this.#ask(async ({ configuration }) => configuration.serverMetadata())
    if (jwks_uri === undefined) throw new ProviderError('misconfigured')
    let status: number | null = null
    const keys = createRemoteJWKSet(new URL(jwks_uri), {
      timeoutDuration: TIMEOUT_SECONDS * 1_000,
      cacheMaxAge: 0,
      [customFetch]: async (url: string, options: RequestInit) => {
        const response = await boundedFetch(url, options)
        status = response.status
        return response
      },
    })
    const { payload } = await jwtVerify(text, keys, {
      issuer,
      audience: this.#settings.clientId,
      algorithms: SIGNATURES,
      requiredClaims: ['iat', 'jti'],
      maxTokenAge: LOGOUT_TOKEN_SECONDS,
      clockTolerance: 30,
      currentDate: new Date(nowMs),
    }).catch((error: unknown) => {
      throw status === null || status >= 500 || status === 429 ? providerError(error, status) : error
    })
    const { sub, sid, jti, nonce, events } = payload
    const event = typeof events === 'object' && events !== null && Object.hasOwn(events, LOGOUT_EVENT)
    const isText = (value: unknown): boolean => value === undefined || (typeof value === 'string' && value !== '')
    if (!event || nonce !== undefined || !isText(sub) || !isText(sid) || (sub === undefined && sid === undefined))
      throw new Error('not a logout token')
    return {
      subject: sub ?? null,
      sid: typeof sid === 'string' ? sid : null,
      jti: jti as string,
      expiresAtMs: nowMs + (LOGOUT_TOKEN_SECONDS + 60) * 1_000,
    }
  }

  /** For the diagnostics: reads the configuration and the keys of the provider anew, and asks whether it knows this client. Throws ProviderError. */
  async check(): Promise<{ clockAheadMs: number | null }> {
    this.#metadata = null
    return this.#ask(async (asked) => {
      const { jwks_uri, authorization_endpoint, token_endpoint } = asked.configuration.serverMetadata()
      if (jwks_uri === undefined || authorization_endpoint === undefined || token_endpoint === undefined)
        throw new ProviderError('misconfigured')
      const response = await fetchOf(asked)(jwks_uri, { method: 'GET', signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1_000) })
      const keys = (await response.json()) as { keys?: unknown }
      if (response.status !== 200 || !Array.isArray(keys.keys) || keys.keys.length === 0) throw new ProviderError('misconfigured')
      const { clockAheadMs } = asked
      await this.#checkClient(asked)
      return { clockAheadMs }
    })
  }

  /**
   * A login that may show no page ends with a redirect, and one that the provider refuses with a page: because of the client id or the redirect
   * URI. A code that was never issued is refused as such only if the client secret is right.
   */
  async #checkClient(asked: Asked): Promise<void> {
    const redirect_uri = this.#settings.redirectUri
    const random = (): string => randomBytes(32).toString('base64url')
    const address = client.buildAuthorizationUrl(asked.configuration, {
      redirect_uri,
      scope: this.#settings.scopes,
      prompt: 'none',
      state: random(),
      nonce: random(),
      code_challenge: random(),
      code_challenge_method: 'S256',
    })
    const { status } = await fetchOf(asked)(address.href, { method: 'GET', signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1_000) })
    if (status === 400 || status === 401 || status === 403) throw new ProviderError('client_rejected')
    const code = { code: random(), redirect_uri, code_verifier: random() }
    await client.genericGrantRequest(asked.configuration, 'authorization_code', code).catch((error: unknown) => {
      const problem = providerError(error, asked.status)
      if (problem.reason !== 'misconfigured') throw problem
    })
  }

  async #identity(
    configuration: client.Configuration,
    { subject, idToken, grant }: Pick<Identity, 'subject' | 'idToken' | 'grant'>,
  ): Promise<Identity> {
    const hasUserinfo = configuration.serverMetadata().userinfo_endpoint !== undefined
    const userinfo = hasUserinfo ? ((await client.fetchUserInfo(configuration, grant.accessToken, subject)) as Claims) : null
    const sid = idToken?.['sid']
    return { subject, idToken, userinfo, sid: typeof sid === 'string' ? sid : null, grant }
  }

  /** Every other error than InvalidCallback becomes a ProviderError. */
  async #ask<T>(work: (asked: Asked) => Promise<T>): Promise<T> {
    const asked: Asked = { configuration: null as unknown as client.Configuration, status: null, clockAheadMs: null }
    try {
      asked.configuration = await this.#configuration(asked)
      return await work(asked)
    } catch (error) {
      if (error instanceof InvalidCallback) throw error
      const problem = providerError(error, asked.status)
      // Its endpoints may have changed.
      if (!problem.isDenied) this.#metadata = null
      throw problem
    }
  }

  async #configuration(asked: Asked): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings
    const nowMs = performance.now()
    if (this.#metadata === null || nowMs - this.#metadata.atMs > METADATA_MS) {
      const found = await client.discovery(new URL(issuer), clientId, undefined, undefined, {
        timeout: TIMEOUT_SECONDS,
        execute: isHttp(issuer) ? [client.allowInsecureRequests] : [],
        [client.customFetch]: fetchOf(asked) as client.CustomFetch,
      })
      // A copy, because the original has methods.
      this.#metadata = { value: JSON.parse(JSON.stringify(found.serverMetadata())) as client.ServerMetadata, atMs: nowMs }
      asked.status = null
    }
    const { value } = this.#metadata
    const methods = value.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const authentication = methods.includes('client_secret_basic') ? client.ClientSecretBasic : client.ClientSecretPost
    const configuration = new client.Configuration(value, clientId, undefined, authentication(clientSecret))
    configuration.timeout = TIMEOUT_SECONDS
    configuration[client.customFetch] = fetchOf(asked) as client.CustomFetch
    if (isHttp(issuer)) client.allowInsecureRequests(configuration)
    // The signature of ID tokens is verified, although they come directly from the provider.
    client.enableNonRepudiationChecks(configuration)
    return configuration
  }
}

function isHttp(url: string): boolean {
  return new URL(url).protocol === 'http:'
}

/** Notes the status and the clock of each response. */
function fetchOf(asked: Asked): (url: string, options: RequestInit) => Promise<Response> {
  return async (url, options) => {
    asked.status = null
    const response = await boundedFetch(url, options)
    asked.status = response.status
    const dateMs = Date.parse(response.headers.get('date') ?? '')
    if (!Number.isNaN(dateMs)) asked.clockAheadMs = dateMs - Date.now()
    return response
  }
}

async function boundedFetch(given: string, options: RequestInit): Promise<Response> {
  const url = new URL(given)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopbackHost(url.hostname))) throw new ProviderError('misconfigured')
  const response = await fetch(url, { ...options, redirect: 'manual' })
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.length
    if (bytes > MAX_ANSWER_BYTES) throw new ProviderError('misconfigured')
    parts.push(part)
  }
  const { status, headers } = response
  return new Response(bytes === 0 ? null : Buffer.concat(parts), { status, headers: withoutEncoding(headers) })
}

/** The body is decoded already. */
function withoutEncoding(headers: Headers): Headers {
  const kept = new Headers(headers)
  kept.delete('content-encoding')
  kept.delete('content-length')
  return kept
}
