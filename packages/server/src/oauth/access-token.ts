// Access tokens: JWTs that the service signs and alone reads. A token tells which application got it and by which of its
// keys; what it is good for is looked up in the configuration at every use, so that a revocation, a removed key or another
// source takes effect with the next request. Only the reading of the signature is remembered.

import { createHash, randomUUID } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import type { OAuthApp, OAuthKey, Store } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { CLOCK_SKEW_MS } from './client-assertion.ts'
import { fingerprintOf } from './keys.ts'
import { LruCache } from './lru-cache.ts'
import { createSigningKey, SIGNING_ALGORITHM } from './signing-key.ts'

export const TOKEN_LIFE_S = 86_400
export const SCOPE = 'tracking_api:write'

/** The tracking API of this installation, by whatever address it is reached: only its own key signs for it. */
const AUDIENCE = 'tracking_api'
/** RFC 9068, so that nothing else that this key may ever sign is taken for an access token. */
const TYPE = 'at+jwt'
const MAX_TOKEN_LENGTH = 4_096
/** Some 300 bytes each. */
const REMEMBERED = 10_000

export interface AccessTokens {
  issue(app: OAuthApp, key: OAuthKey, issuer: string): Promise<string>
  /** The sources that a token is good for; null for one that is not good. Rejects when the store cannot be asked for the key. */
  sourcesOf(token: string): Promise<ReadonlySet<string> | null>
}

/** What a token says, once its signature has been checked. */
interface Grant {
  appId: string
  /** Of the key that the assertion was signed with. */
  keyFingerprint: string
  issuedAtMs: number
  expiresAtMs: number
}

export interface AccessTokenParts {
  store: Pick<Store, 'configuration' | 'secrets'>
  clock: Clock
  /** How many tokens are remembered. */
  remembered?: number
}

export function createAccessTokens({ store, clock, remembered = REMEMBERED }: AccessTokenParts): AccessTokens {
  const signingKey = createSigningKey(store)
  const grants = new LruCache<Grant>(remembered)
  const rightsOf = createRights()

  async function grantOf(token: string): Promise<Grant | null> {
    // By its hash, so that tokens do not lie about in memory.
    const hash = createHash('sha256').update(token).digest('base64url')
    const known = grants.get(hash)
    if (known !== undefined) return known
    const grant = await readToken(token)
    if (grant !== null) grants.set(hash, grant)
    return grant
  }

  async function readToken(token: string): Promise<Grant | null> {
    const { publicKey } = await signingKey()
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
      const nowMs = clock.wallMs()
      // With milliseconds, and not before the last revocation even if the clock was set back: a client whose token was
      // revoked asks for the next one at once, and that one is good.
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
      // Asked for after the wait: what was changed meanwhile counts.
      const app = grant === null ? undefined : store.configuration().oauthApps.get(grant.appId)
      if (grant === null || app === undefined) return null
      const nowMs = clock.wallMs()
      const { issuedAtMs, expiresAtMs, keyFingerprint } = grant
      const revokedBeforeMs = app.revokedBeforeMs ?? 0
      if (nowMs >= expiresAtMs || issuedAtMs < revokedBeforeMs) return null
      // Issued while the clock was ahead: it would outlive revocations.
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

/** An application's lists as sets, made once for each state of it. */
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
