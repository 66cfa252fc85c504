// Access tokens: JWTs that the service signs and that only the service reads. A token contains the application and the fingerprint
// of the key that it was issued for. The sources that it may send to are looked up in the configuration at every use, so that a
// revocation, a removed key or a change of the sources takes effect with the next request. Only verified signatures are cached.

import { createHash, randomUUID } from 'node:crypto'
import type { OAuthApp, OAuthKey, Store } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { CLOCK_SKEW_MS } from './client-assertion.ts'
import { fingerprintOf } from './keys.ts'
import { LruCache } from './lru-cache.ts'
import { createSigningKey, SIGNING_ALGORITHM } from './signing-key.ts'

export const TOKEN_LIFE_S = 86_400
export const SCOPE = 'tracking_api:write'

/** The tracking API of this installation, whatever its address: tokens are signed with a key that only this installation has. */
const AUDIENCE = 'tracking_api'
/** From RFC 9068, so that nothing else that may be signed with this key passes as an access token. */
const TYPE = 'at+jwt'
const MAX_TOKEN_LENGTH = 4_096
/** About 300 bytes each. */
const MAX_CACHED = 10_000

export interface AccessTokens {
  issue(app: OAuthApp, key: OAuthKey, issuer: string): Promise<string>
  /** Returns the ids of the sources that a token may send to, or null if it is invalid. Rejects if the store cannot provide the signing key. */
  sourcesOf(token: string): Promise<ReadonlySet<string> | null>
}

/** The content of a token whose signature was verified. */
interface Grant {
  appId: string
  /** The fingerprint of the key that the assertion was signed with. */
  keyFingerprint: string
  issuedAtMs: number
  expiresAtMs: number
}

export interface AccessTokenParts {
  store: Pick<Store, 'configuration' | 'secrets'>
  clock: Clock
  /** The maximum number of tokens in the cache. */
  maxCached?: number
}

export function createAccessTokens({ store, clock, maxCached = MAX_CACHED }: AccessTokenParts): AccessTokens {
  const signingKey = createSigningKey(store)
  const grants = new LruCache<Grant>(maxCached)
  const rightsOf = createRights()

  async function grantOf(token: string): Promise<Grant | null> {
    // Cached by hash, so that tokens are not kept in memory.
    const hash = createHash('sha256').update(token).digest('base64url')
    const known = grants.get(hash)
    if (known !== undefined) return known
    const grant = await readToken(token)
    if (grant !== null) grants.set(hash, grant)
    return grant
  }

  async function readToken(token: string): Promise<Grant | null> {
    const { publicKey } = await signingKey()
    // Loaded with the first token, because many installations have no application.
    const { errors, jwtVerify } = await import('jose')
    try {
      const { payload } = await jwtVerify(token, publicKey, {
        algorithms: [SIGNING_ALGORITHM],
        typ: TYPE,
        audience: AUDIENCE,
        currentDate: new Date(clock.wallMs()),
        requiredClaims: ['sub', 'iat', 'exp', 'key'],
      })
      return {
        appId: payload.sub as string,
        keyFingerprint: String(payload['key']),
        issuedAtMs: Math.round((payload.iat as number) * 1000),
        expiresAtMs: (payload.exp as number) * 1000,
      }
    } catch (error) {
      if (error instanceof errors.JOSEError) return null
      throw error
    }
  }

  return {
    async issue(app, key, issuer) {
      const { id, privateKey } = await signingKey()
      const { SignJWT } = await import('jose')
      const nowMs = clock.wallMs()
      // With milliseconds, and never before the last revocation, even if the clock was set back: a client whose token was revoked
      // requests a new one immediately, and that one must be valid.
      const issuedAtMs = Math.max(nowMs, app.revokedBeforeMs ?? 0)
      return new SignJWT({ client_id: app.id, scope: SCOPE, key: fingerprintOf(key.publicKeyPem) })
        .setProtectedHeader({ alg: SIGNING_ALGORITHM, typ: TYPE, kid: id })
        .setIssuer(issuer)
        .setSubject(app.id)
        .setAudience(AUDIENCE)
        .setIssuedAt(issuedAtMs / 1000)
        .setExpirationTime(Math.floor(nowMs / 1000) + TOKEN_LIFE_S)
        .setJti(randomUUID())
        .sign(privateKey)
    },

    async sourcesOf(token) {
      if (token.length > MAX_TOKEN_LENGTH) return null
      const grant = await grantOf(token)
      // Read after the await, so that a change in the meantime counts.
      const app = grant === null ? undefined : store.configuration().oauthApps.get(grant.appId)
      if (grant === null || app === undefined) return null
      const nowMs = clock.wallMs()
      const { issuedAtMs, expiresAtMs, keyFingerprint } = grant
      const revokedBeforeMs = app.revokedBeforeMs ?? 0
      if (nowMs >= expiresAtMs || issuedAtMs < revokedBeforeMs) return null
      // Issued while the clock was ahead. Such a token would survive revocations.
      if (issuedAtMs > Math.max(nowMs, revokedBeforeMs) + CLOCK_SKEW_MS) return null
      const { keys, sourceIds } = rightsOf(app)
      return keys.has(keyFingerprint) ? sourceIds : null
    },
  }
}

interface Rights {
  keys: ReadonlySet<string>
  sourceIds: ReadonlySet<string>
}

/** Returns the lists of an application as sets, cached for each version of the application. */
function createRights(): (app: OAuthApp) => Rights {
  const known = new WeakMap<OAuthApp, Rights>()
  return (app) => {
    let rights = known.get(app)
    if (rights === undefined) {
      rights = { keys: new Set(app.keys.map(({ publicKeyPem }) => fingerprintOf(publicKeyPem))), sourceIds: new Set(app.sourceIds) }
      known.set(app, rights)
    }
    return rights
  }
}
