// Client authentication: a JWT that the client signed with the private key of one of its application's keys (RFC 7523).
// Until the signature is verified, every error is the same, so that nobody learns which client ids and key ids exist. After that,
// the error says what to fix. The token endpoint makes sure that an assertion is used only once.

import { createPublicKey, type KeyObject } from 'node:crypto'
import type * as Jose from 'jose'
import type { Configuration, OAuthApp, OAuthKey } from '../store/store.ts'
import { type AssertionAlgorithm, algorithmOf } from './keys.ts'

/** How far the clocks of client and service may differ. */
export const CLOCK_SKEW_MS = 60_000
const MAX_AHEAD_MS = 5 * 60_000
const MAX_JTI_LENGTH = 255

export type CheckedAssertion =
  | { ok: true; app: OAuthApp; key: OAuthKey; jti: string; expiresAtMs: number }
  /** `clientId` is set if the application is known, for the log. `reason` is for the client. */
  | { ok: false; clientId: string | null; reason: string }

export interface AssertionContext {
  configuration: Configuration
  nowMs: number
  /** Whether a URL is the address of the authorization server as this client sees it. */
  isOwnAddress: (url: string) => boolean
}

const NOT_AUTHENTICATED =
  'The client assertion is not signed with a key of a known application. Check the client id (sub), the key id (kid), the private key and its algorithm.'

export async function checkAssertion(assertion: string, context: AssertionContext): Promise<CheckedAssertion> {
  // Loaded with the first assertion, because many installations have no application.
  const jose = await import('jose')
  const { configuration, nowMs } = context
  const claimed = claimedIds(assertion, jose)
  const app = claimed === null ? undefined : configuration.oauthApps.get(claimed.clientId)
  if (claimed === null || app === undefined) return { ok: false, clientId: null, reason: NOT_AUTHENTICATED }
  const rejected = (reason: string): CheckedAssertion => ({ ok: false, clientId: app.id, reason })
  const key = app.keys.find(({ id }) => id === claimed.keyId)
  if (key === undefined) return rejected(NOT_AUTHENTICATED)
  const { publicKey, algorithm } = verifierOf(key)
  let claims: Jose.JWTPayload
  try {
    const verified = await jose.jwtVerify(assertion, publicKey, {
      // Only the algorithm of the key. The sender must not choose it.
      algorithms: [algorithm],
      currentDate: new Date(nowMs),
      clockTolerance: CLOCK_SKEW_MS / 1000,
      requiredClaims: ['iss', 'sub', 'aud', 'iat', 'exp', 'jti'],
    })
    claims = verified.payload
  } catch (error) {
    if (!(error instanceof jose.errors.JOSEError)) throw error
    return rejected(reasonOf(error, jose))
  }
  const problem = claimsProblem(claims, app, context)
  if (problem !== null) return rejected(problem)
  return { ok: true, app, key, jti: claims.jti as string, expiresAtMs: Math.ceil((claims.exp as number) * 1000) }
}

/** Reads the client id and key id that an assertion claims, without verifying them. */
function claimedIds(assertion: string, { decodeJwt, decodeProtectedHeader }: typeof Jose): { clientId: string; keyId: string } | null {
  try {
    const { kid } = decodeProtectedHeader(assertion)
    const { sub } = decodeJwt(assertion)
    return typeof kid === 'string' && typeof sub === 'string' ? { clientId: sub, keyId: kid } : null
  } catch {
    return null
  }
}

function claimsProblem({ iss, sub, aud, iat = 0, exp = 0, jti }: Jose.JWTPayload, app: OAuthApp, context: AssertionContext): string | null {
  const { nowMs, isOwnAddress } = context
  if (sub !== app.id) return NOT_AUTHENTICATED
  if (iss !== app.id && !(typeof iss === 'string' && isOwnAddress(iss))) return 'The claim iss must be the client id.'
  // Exactly one audience: another server that also accepts the assertion could otherwise use it here.
  const [audience, ...others] = Array.isArray(aud) ? aud : [aud]
  if (typeof audience !== 'string' || others.length > 0 || !isOwnAddress(audience)) {
    return 'The claim aud must be the address of this authorization server: http(s)://HOST/oauth2, where HOST is the host that the request was sent to. Behind a proxy that changes the host, set SWITCHYARD_TRUSTED_PROXIES.'
  }
  if (exp * 1000 > nowMs + MAX_AHEAD_MS + CLOCK_SKEW_MS) return 'The claim exp is too far in the future. It may be at most 5 minutes ahead.'
  if (iat * 1000 > nowMs + CLOCK_SKEW_MS) return 'The claim iat is in the future. Check the clock of the client.'
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_LENGTH) {
    return `The claim jti must be a string of 1 to ${MAX_JTI_LENGTH} characters that is unique to each assertion.`
  }
  return null
}

function reasonOf(error: Jose.errors.JOSEError, { errors }: typeof Jose): string {
  if (error instanceof errors.JWTExpired) return 'The client assertion has expired. Create a new one, and check the clock of the client.'
  if (error instanceof errors.JWTClaimValidationFailed) {
    const claim = ['iss', 'sub', 'aud', 'iat', 'exp', 'jti', 'nbf'].find((name) => name === error.claim)
    if (claim === 'nbf') return 'The claim nbf is invalid or in the future. Check the clock of the client.'
    if (claim !== undefined) return `The claim ${claim} is missing or invalid. A client assertion requires iss, sub, aud, iat, exp and jti.`
  }
  return NOT_AUTHENTICATED
}

interface Verifier {
  publicKey: KeyObject
  algorithm: AssertionAlgorithm
}

/** Cached for as long as the configuration contains the key. */
const verifiers = new WeakMap<OAuthKey, Verifier>()

function verifierOf(key: OAuthKey): Verifier {
  let verifier = verifiers.get(key)
  if (verifier === undefined) {
    const publicKey = createPublicKey(key.publicKeyPem)
    const algorithm = algorithmOf(publicKey)
    if (algorithm === null) throw new Error(`the key ${key.id} is of an unsupported type`)
    verifier = { publicKey, algorithm }
    verifiers.set(key, verifier)
  }
  return verifier
}
