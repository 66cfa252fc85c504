// The access token. Batches that wait for it share one request; it is renewed in the background after half of its lifetime,
// and discarded when the tracking API rejects it. If no token can be obtained, every waiting batch gets the error.

import { platform } from '#platform'
import { AnalyticsError, messageOf } from '../call/errors.ts'
import type { Answer, Transport } from '../http/transport.ts'
import type { JwtSigner } from '../platform/platform.ts'
import type { OAuthSettings } from '../settings.ts'
import { backoffMs, isTemporary, parseRetryAfter, type RetryEvent, statusLine } from './verdict.ts'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const ASSERTION_LIFE_S = 60

interface Token {
  value: string
  renewAt: number
  expiresAt: number
}

export interface TokenSourceOptions {
  oauth: OAuthSettings
  authServer: string
  transport: Transport
  maxRetries: number
  /** Maximum time to wait because the authorization server responds with Retry-After. */
  maxRateLimitMs: number
  timeoutMs: number
  /** Waits. Resolves to false if the client was closed meanwhile. */
  pause: (ms: number) => Promise<boolean>
  onRetry: (event: RetryEvent) => void
}

export class TokenSource {
  readonly #options: TokenSourceOptions
  #signer: JwtSigner | undefined
  #token: Token | undefined
  #request: Promise<Token> | undefined
  /** The server's clock minus ours; 0 until a response shows that they differ. */
  #skewMs = 0

  constructor(options: TokenSourceOptions) {
    this.#options = options
  }

  async get(): Promise<string> {
    const token = this.#token
    const now = Date.now()
    if (token === undefined || now >= token.expiresAt) return (await this.#renew()).value
    // Still valid: use it, and renew it in the background. If that fails, the error is reported when this token has expired.
    if (now >= token.renewAt) this.#renew().catch(() => {})
    return token.value
  }

  /** Discards a token that the tracking API has rejected, unless another batch has already replaced it. */
  discard(value: string): void {
    if (this.#token?.value === value) this.#token = undefined
  }

  #renew(): Promise<Token> {
    this.#request ??= this.#fetch()
      .then((token) => {
        this.#token = token
        return token
      })
      .finally(() => {
        this.#request = undefined
      })
    return this.#request
  }

  async #fetch(): Promise<Token> {
    const { maxRetries, maxRateLimitMs, pause, onRetry } = this.#options
    let pauseLimitAt: number | undefined
    for (let retry = 0; ; retry++) {
      let problem: unknown
      let waitMs = backoffMs(retry, Math.random())
      try {
        const answer = await this.#requestToken()
        if (answer.status === 200) return parseToken(answer.text)
        problem = new Error(statusLine(answer.status, answer.statusText, answer.text.slice(0, 300)))
        const clockWasOff = this.#learnClock(answer)
        if (!isTemporary(answer.status) && !(clockWasOff && retry === 0)) throw failure(problem)
        const askedMs = parseRetryAfter(answer.headers['retry-after'], Date.now())
        if (askedMs !== undefined) pauseLimitAt ??= performance.now() + maxRateLimitMs
        waitMs = askedMs ?? waitMs
      } catch (error) {
        if (error instanceof AnalyticsError) throw error
        problem = error
      }
      if (retry >= maxRetries) throw failure(problem)
      const leftMs = (pauseLimitAt ?? Infinity) - performance.now()
      if (waitMs > leftMs) {
        // Wait before failing, because the next batch would otherwise ignore the pause.
        await pause(Math.max(leftMs, 0))
        throw failure(problem)
      }
      onRetry({ error: failure(problem), attempts: retry + 1, waitMs })
      if (!(await pause(waitMs))) throw failure(new Error('the client is closed'))
    }
  }

  async #requestToken(): Promise<Answer> {
    const { oauth, authServer, transport, timeoutMs } = this.#options
    const assertion = await this.#assertion().catch((error: unknown) => {
      // A retry does not help if the key cannot sign.
      throw failure(error)
    })
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_assertion_type: ASSERTION_TYPE,
      client_assertion: assertion,
      scope: oauth.scope ?? 'tracking_api:write',
    }).toString()
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    return transport.send({ url: `${authServer}/token`, headers, body: platform.encode(form), bodyText: () => form, timeoutMs })
  }

  async #assertion(): Promise<string> {
    const { oauth, authServer } = this.#options
    const signer = this.#signerOf(oauth)
    const now = Math.floor((Date.now() + this.#skewMs) / 1000)
    const header = { alg: signer.alg, typ: 'JWT', kid: oauth.keyId }
    const claims = {
      iss: oauth.clientId,
      sub: oauth.clientId,
      aud: authServer,
      iat: now - 5,
      exp: now + ASSERTION_LIFE_S - 5,
      jti: platform.newId(),
    }
    const input = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`
    return `${input}.${platform.base64(await signer.sign(input), 'base64url')}`
  }

  /** Read at the first request: as in the public client, an unusable key fails messages, not the program that creates the client. */
  #signerOf(oauth: OAuthSettings): JwtSigner {
    try {
      this.#signer ??= platform.signer(oauth.clientKey)
      return this.#signer
    } catch (error) {
      throw new Error(`oauthSettings.clientKey is not a usable private key in PEM format: ${messageOf(error)}`, { cause: error })
    }
  }

  /** The server may have rejected the request because our clock is wrong. Corrects it by the response's Date header. Returns true if a retry is worthwhile. */
  #learnClock(answer: Answer): boolean {
    const theirs = Date.parse(answer.headers['date'] ?? '')
    if (Number.isNaN(theirs)) return false
    const skew = theirs - Date.now()
    const moved = Math.abs(skew - this.#skewMs) > 5_000
    if (moved) this.#skewMs = skew
    return moved
  }
}

function parseToken(text: string): Token {
  const body = JSON.parse(text) as { access_token?: unknown; expires_in?: unknown } | null
  const lifeS = body?.expires_in ?? 3600
  if (typeof body?.access_token !== 'string' || typeof lifeS !== 'number' || !(lifeS > 0)) {
    throw failure(new Error('the response of the authorization server has no valid access_token or expires_in'))
  }
  if (/[^\x21-\x7e]/.test(body.access_token))
    throw failure(new Error('the access token contains characters that are not allowed in an HTTP header'))
  const now = Date.now()
  return { value: body.access_token, renewAt: now + lifeS * 500, expiresAt: now + lifeS * 1000 }
}

function failure(reason: unknown): AnalyticsError {
  return new AnalyticsError('oauth_failure', `could not get an access token: ${messageOf(reason)}`, { reason })
}

function base64url(text: string): string {
  return platform.base64(platform.encode(text), 'base64url')
}
