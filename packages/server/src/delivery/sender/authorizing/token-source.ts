// Access tokens of one destination (OAuth 2, client credentials: RFC 6749, 4.4). A token is requested once for all requests that wait for it, and
// used until shortly before it expires. Tokens are only in memory and never logged; an error contains nothing of the endpoint's answer except
// its status and a standard error code.

import { USER_AGENT } from '../../../destinations/webhook/request.ts'
import type { Auth } from '../../../store/store.ts'
import { type Outcome, REASONS } from '../../link/outcome.ts'
import { type HttpClient, MAX_RESPONSE_BYTES } from '../http/attempt.ts'
import type { TlsIdentity } from '../http/connection.ts'

export type OAuth2 = Extract<Auth, { type: 'oauth2' }>

/** Why there is no token. */
export interface NoToken {
  reason: 'auth_unavailable' | 'auth_refused' | 'aborted'
  error: string
  retryAfterMs: number | null
}

export type Granted = string | NoToken

/** After a failure, the endpoint is not asked again for this long, or for as long as it asks for, up to the maximum. */
const PAUSE_MS = 1_000
const MAX_PAUSE_MS = 60_000
/** A token is renewed before it ends: earlier by a tenth of its lifetime, and by one more second, because servers count in whole seconds. */
const MARGIN_MS = 1_000
const MAX_MARGIN_MS = 60_000
/** The lifetime of a token whose response does not say it. */
const USUAL_LIFETIME_S = 300
/** A shorter lifetime would mean a token request for nearly every message. A token that expired earlier is replaced after the receiver's 401. */
const MIN_USE_MS = 1_000
const MAX_USE_MS = 24 * 3_600_000
/** With a longer one, most receivers would refuse the headers. */
const MAX_TOKEN_LENGTH = 12_288

/** RFC 6749, 5.2. Other texts are not passed on: a server could put anything into them. */
const ERROR_CODES: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
])

export interface TokenSourceOptions {
  http: Pick<HttpClient, 'send'>
  auth: OAuth2
  /** The timeout of a token request. */
  timeoutMs: number
  tls: TlsIdentity | null
}

export class TokenSource {
  readonly #options: TokenSourceOptions
  readonly #host: string
  #token: string | null = null
  #usableUntilMs = 0
  #failure: NoToken | null = null
  #pausedUntilMs = 0
  /** Set while a token is requested. */
  #waiting: Set<(granted: Granted) => void> | null = null

  constructor(options: TokenSourceOptions) {
    this.#options = options
    this.#host = new URL(options.auth.tokenUrl).host
  }

  /** Calls back once, perhaps at once, and at the latest after `timeoutMs`. */
  take(timeoutMs: number, onGranted: (granted: Granted) => void): void {
    const now = performance.now()
    if (this.#token !== null && now < this.#usableUntilMs) return onGranted(this.#token)
    if (this.#waiting === null && this.#failure !== null && now < this.#pausedUntilMs) return onGranted(this.#failure)
    this.#wait(timeoutMs, onGranted)
  }

  /** The receiver did not accept this token. The next call of take() gets another one. */
  reject(token: string): void {
    if (this.#token === token) this.#token = null
  }

  #wait(timeoutMs: number, onGranted: (granted: Granted) => void): void {
    const starts = this.#waiting === null
    const waiting = (this.#waiting ??= new Set())
    const deadline = setTimeout(() => {
      waiting.delete(granted)
      onGranted(unavailable(`The deadline passed while waiting for an access token from ${this.#host}.`))
    }, timeoutMs)
    const granted = (result: Granted): void => {
      clearTimeout(deadline)
      onGranted(result)
    }
    waiting.add(granted)
    if (starts) this.#request()
  }

  #request(): void {
    const { http, auth, timeoutMs, tls } = this.#options
    const { tokenUrl: url } = auth
    const { headers, body } = tokenRequest(auth)
    const verdictOf = (status: number) => (status === 200 ? 'success' : 'temporary')
    http.send({ url, headers, body, timeoutMs, verdictOf, keepAnswer: true, keepBytes: MAX_RESPONSE_BYTES, tls }, (outcome) =>
      this.#answered(outcome),
    )
  }

  #answered(outcome: Outcome): void {
    const result = readAnswer(outcome, this.#host)
    const now = performance.now()
    const waiting = this.#waiting ?? []
    this.#waiting = null
    let granted: Granted
    if ('token' in result) {
      this.#token = granted = result.token
      this.#usableUntilMs = now + result.usableMs
      this.#failure = null
    } else {
      this.#failure = granted = result
      this.#pausedUntilMs = now + Math.min(Math.max(result.retryAfterMs ?? 0, PAUSE_MS), MAX_PAUSE_MS)
    }
    for (const each of waiting) each(granted)
  }
}

function tokenRequest({ clientId, clientSecret, scope, audience, credentials }: OAuth2): { headers: string[]; body: string } {
  const form = new URLSearchParams({ grant_type: 'client_credentials' })
  if (scope !== null) form.set('scope', scope)
  if (audience !== null) form.set('audience', audience)
  const headers = ['User-Agent', USER_AGENT, 'Content-Type', 'application/x-www-form-urlencoded', 'Accept', 'application/json']
  if (credentials === 'body') {
    form.set('client_id', clientId)
    form.set('client_secret', clientSecret)
  } else headers.push('Authorization', basicCredentials(formEncoded(clientId), formEncoded(clientSecret)))
  return { headers, body: form.toString() }
}

export function basicCredentials(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

/** RFC 6749, 2.3.1: the client id and secret are encoded before HTTP Basic encodes them again. */
function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

function readAnswer({ status, reason, responseStart, retryAfterMs }: Outcome, host: string): { token: string; usableMs: number } | NoToken {
  if (reason === 'aborted') return { reason, error: REASONS.aborted[1], retryAfterMs: null }
  const answer = parsed(responseStart)
  if (reason === null) return readToken(answer, host)
  if (status === null || reason !== `http_${status}`) return unavailable(NETWORK[reason]?.(host) ?? notReached(host, reason))
  const code = ERROR_CODES.has(answer?.['error']) ? `, ${String(answer?.['error'])}` : ''
  if (status >= 400 && status < 500 && status !== 408 && status !== 429)
    return {
      reason: 'auth_refused',
      error: `The token endpoint ${host} refused to issue an access token (${status}${code}).`,
      retryAfterMs,
    }
  const more = status >= 300 && status < 400 ? ', and redirects are not followed' : ''
  return unavailable(`The token endpoint ${host} answered ${status}${code}${more}.`, retryAfterMs)
}

const NETWORK: Readonly<Record<string, (host: string) => string>> = {
  timeout: (host) => `The token endpoint ${host} did not answer in time.`,
  address_refused: (host) =>
    `The token endpoint ${host} resolves to an address that is not public, and the configuration of this service does not allow it.`,
}

function notReached(host: string, reason: string): string {
  return `The token endpoint ${host} could not be reached (${reason}).`
}

function readToken(answer: Record<string, unknown> | null, host: string): { token: string; usableMs: number } | NoToken {
  const invalid = (problem: string): NoToken => unavailable(`The token endpoint ${host} answered 200, but ${problem}.`)
  if (answer === null) return invalid(`its response is not a JSON object of less than ${MAX_RESPONSE_BYTES / 1_024} KB`)
  const { access_token: token, token_type: type, expires_in: expiresIn } = answer
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH || !/^[\x21-\x7e]+$/.test(token))
    return invalid('access_token in its response is missing or cannot be sent in a header')
  // Some servers leave the type out, although the standard requires it.
  if (type !== undefined && !(typeof type === 'string' && type.toLowerCase() === 'bearer'))
    return invalid('token_type in its response is not Bearer')
  const seconds = expiresIn === undefined || expiresIn === null ? USUAL_LIFETIME_S : Number(expiresIn)
  const lifetimeMs = (Number.isFinite(seconds) ? seconds : USUAL_LIFETIME_S) * 1_000
  const usableMs = lifetimeMs - Math.min(MARGIN_MS + lifetimeMs / 10, MAX_MARGIN_MS)
  return { token, usableMs: Math.min(Math.max(usableMs, MIN_USE_MS), MAX_USE_MS) }
}

function parsed(text: string | null): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function unavailable(error: string, retryAfterMs: number | null = null): NoToken {
  return { reason: 'auth_unavailable', error, retryAfterMs }
}
