// Sends the requests of one destination with its own authentication: an Authorization header, TLS settings, or both. Destinations without these
// settings use the HTTP client itself.

import type { Credentials } from '../../../destinations/port/kind.ts'
import { writtenForms } from '../../../destinations/webhook/secret-settings.ts'
import { HIDDEN } from '../../../secrets/hidden-url.ts'
import { type Outcome, REASONS, withoutAnswer } from '../../link/outcome.ts'
import type { HttpClient, SendRequest } from '../http/attempt.ts'
import { TlsIdentity } from '../http/connection.ts'
import { basicCredentials, type NoToken, TokenSource } from './token-source.ts'

export type RequestSender = Pick<HttpClient, 'send'>

/** If the receiver does not accept a new token either, tokens are not renewed for this long. Otherwise every message would request one. */
const REFUSED_PAUSE_MS = 10_000
/** Shorter texts also occur where they are no credentials. */
const MIN_HIDDEN_LENGTH = 4
const MIN_HEADER_LENGTH = 8
const CREDENTIAL_HEADER = /key|secret|token|passw|auth|credential|cookie|signature/i

export function senderFor(destination: Credentials, http: RequestSender): RequestSender {
  const { auth, tls, timeoutMs, secrets = {} } = destination
  // Longest first, because one secret may begin with another.
  const given = [...Object.values(secrets), ...credentialHeaders(destination)]
  const texts = [...new Set(given.flatMap(writtenForms))].sort((left, right) => right.length - left.length)
  const quiet = withoutEchoes(http, texts)
  const own = tls === null ? quiet : withTls(quiet, new TlsIdentity(tls))
  if (auth === null) return own
  if (auth.type === 'basic') return withAuthorization(own, basicCredentials(auth.username, auth.password))
  if (auth.type === 'bearer') return withAuthorization(own, `Bearer ${auth.token}`)
  // The authorization server may have a certificate of the private authority or of a public one.
  const tokens = new TokenSource({ http, auth, timeoutMs, tls: tls === null ? null : new TlsIdentity(tls, true) })
  return new OAuth2Client(own, tokens)
}

/** The values of headers whose names say that they are credentials, without the name of the scheme. */
function credentialHeaders({ headers = {}, request }: Credentials): string[] {
  const all = [...Object.entries(headers), ...Object.entries(request?.headers ?? {})]
  const values = all.filter(([name]) => CREDENTIAL_HEADER.test(name)).map(([, value]) => value.replace(/^\w+ +/, ''))
  return values.filter((value) => value.length >= MIN_HEADER_LENGTH && !value.includes('{{'))
}

/** Hides secrets of the request that a receiver repeats in its response. */
function withoutEchoes(http: RequestSender, texts: readonly string[]): RequestSender {
  if (texts.length === 0) return http
  return {
    send: (request, onOutcome) => http.send(request, (outcome) => onOutcome(texts.reduce(withoutCredentials, outcome))),
  }
}

function withTls(http: RequestSender, tls: TlsIdentity): RequestSender {
  return { send: (request, onOutcome) => http.send({ ...request, tls }, onOutcome) }
}

function withAuthorization(http: RequestSender, value: string): RequestSender {
  return { send: (request, onOutcome) => sendAuthorized(http, request, value, onOutcome) }
}

function sendAuthorized(http: RequestSender, request: SendRequest, value: string, onOutcome: (outcome: Outcome) => void): void {
  const headers = [...request.headers, 'Authorization', value]
  http.send({ ...request, headers }, (outcome) => onOutcome(withoutCredentials(outcome, value.slice(value.indexOf(' ') + 1))))
}

/** Some receivers repeat the headers of a request in their error pages. The start of a response is stored, and viewers can read it. */
function withoutCredentials(outcome: Outcome, credentials: string): Outcome {
  const { responseStart } = outcome
  if (responseStart === null || credentials.length < MIN_HIDDEN_LENGTH) return outcome
  let text = responseStart.replaceAll(credentials, HIDDEN)
  // The response may have been cut off inside them.
  for (let length = Math.min(credentials.length - 1, text.length); length >= MIN_HIDDEN_LENGTH; length--) {
    if (text.endsWith(credentials.slice(0, length))) text = text.slice(0, -length) + HIDDEN
  }
  return text === responseStart ? outcome : { ...outcome, responseStart: text }
}

class OAuth2Client implements RequestSender {
  readonly #http: RequestSender
  readonly #tokens: TokenSource
  #refusedUntilMs = 0

  constructor(http: RequestSender, tokens: TokenSource) {
    this.#http = http
    this.#tokens = tokens
  }

  /** The deadline of the request covers waiting for a token, and sending the request a second time with a new token after a 401. */
  send(request: SendRequest, onOutcome: (outcome: Outcome) => void): void {
    this.#attempt(request, performance.now(), true, onOutcome)
  }

  #attempt(request: SendRequest, startedAtMs: number, mayRenew: boolean, onOutcome: (outcome: Outcome) => void): void {
    this.#tokens.take(leftMs(request, startedAtMs), (granted) => {
      if (typeof granted !== 'string') return onOutcome(notAuthorized(granted, startedAtMs))
      const sentAtMs = performance.now()
      const timeoutMs = leftMs(request, startedAtMs)
      sendAuthorized(this.#http, { ...request, timeoutMs }, `Bearer ${granted}`, (outcome) => {
        if (outcome.status === 401) {
          if (mayRenew && sentAtMs >= this.#refusedUntilMs) {
            this.#tokens.reject(granted)
            return this.#attempt(request, startedAtMs, false, onOutcome)
          }
          if (!mayRenew) this.#refusedUntilMs = performance.now() + REFUSED_PAUSE_MS
        } else if (outcome.status !== null) this.#refusedUntilMs = 0
        onOutcome(delayed(outcome, sentAtMs - startedAtMs))
      })
    })
  }
}

function leftMs({ timeoutMs }: SendRequest, startedAtMs: number): number {
  return Math.max(1, Math.ceil(startedAtMs + timeoutMs - performance.now()))
}

/** The times of an outcome are measured from the start of the attempt, which includes waiting for a token. */
function delayed(outcome: Outcome, byMs: number): Outcome {
  const { timings } = outcome
  const firstByteMs = timings.firstByteMs === null ? null : timings.firstByteMs + byMs
  return { ...outcome, timings: { ...timings, firstByteMs, totalMs: timings.totalMs + byMs } }
}

function notAuthorized({ reason, error, retryAfterMs }: NoToken, startedAtMs: number): Outcome {
  return { ...withoutAnswer({ verdict: REASONS[reason][0], reason, error }, performance.now() - startedAtMs), retryAfterMs }
}
