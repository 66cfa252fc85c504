// Who asks: from a bearer token or a session's cookie to an actor with a role, before anything of a body is read. Costs no
// read of the disk: tokens are part of the configuration in memory. Guessing is slowed down by address. A browser's cookie
// goes along with requests that other pages make, so those are refused here; a bearer token does not, and is exempt.

import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ApiError } from '../../errors.ts'
import type { Actor, ControlToken, Role, Store } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { type AdminToken, FIRST_TOKEN, hashToken, looksGenerated, tokenMatches } from './admin-token.ts'
import { AttemptLimit } from './attempt-limit.ts'
import { SESSION_MS, type Session, Sessions, sessionCookie, sessionsOfCookies } from './sessions.ts'

export interface Caller {
  actor: Actor
  role: Role
  /** Of a session; null for a bearer token. */
  expiresAtMs: number | null
}

/** Where a request comes from, past the proxies that are trusted. Ingest has it; app.ts hands it in. */
export interface TrustedProxies {
  senderAddress(request: IncomingMessage): string | null
  requestedOrigin(request: IncomingMessage): { protocol: 'http' | 'https'; host: string | undefined }
}

/** For the log: a wrong token, the first time that it comes from there. Never with the token. */
export type AttemptListener = (attempt: { address: string; how: 'login' | 'bearer' }) => void

export interface AccessOptions {
  store: Store
  clock: Clock
  admin: Pick<AdminToken, 'hash'>
  /** Without it, whoever connects is the sender, and nothing is https. */
  proxies?: TrustedProxies | undefined
  onFailure?: AttemptListener | undefined
}

/** 429, with the seconds for Retry-After. */
export class TooManyAttempts extends ApiError {
  readonly retryAfterSeconds: number

  constructor(waitMs: number) {
    super('too_many_attempts')
    this.retryAfterSeconds = Math.ceil(waitMs / 1_000)
  }
}

const DIRECT: TrustedProxies = {
  senderAddress: ({ socket }) => socket.remoteAddress ?? null,
  requestedOrigin: ({ headers }) => ({ protocol: 'http', host: headers.host }),
}

const USE_EVERY_MS = 60_000
const ADMIN_USED_AT = 'admin_token_used_at'
const SAFE_METHODS = new Set(['GET', 'HEAD'])

/** Needs the store's session key, which is made at the first start. */
export async function createAccess(options: AccessOptions): Promise<Access> {
  const key = await options.store.secrets.getOrCreate('session_key', randomBytes(32).toString('base64url'))
  return new Access(options, new Sessions(key))
}

export class Access {
  readonly #options: AccessOptions
  readonly #proxies: TrustedProxies
  readonly #sessions: Sessions
  readonly #limit: AttemptLimit
  /** By token, when its last use was written down. */
  readonly #usedMs = new Map<string, number>()
  readonly #watched = new Set<{ caller: Caller; end: () => void }>()
  #tokens: ReadonlyMap<string, ControlToken> | undefined
  #byHash: ReadonlyMap<string, ControlToken> = new Map()

  constructor(options: AccessOptions, sessions: Sessions) {
    this.#options = options
    this.#proxies = options.proxies ?? DIRECT
    this.#sessions = sessions
    this.#limit = new AttemptLimit({ nowMs: () => options.clock.scheduleMs() })
    options.store.onConfiguration(() => {
      for (const { caller, end } of this.#watched) if (!this.isStillValid(caller)) end()
    })
  }

  /** Throws unauthorized, cross_site_request or TooManyAttempts. */
  authorize(request: IncomingMessage): Caller {
    const bearer = bearerOf(request)
    const caller = bearer === undefined ? this.#bySession(request) : this.#byBearer(request, bearer)
    if (caller === null) throw new ApiError('unauthorized')
    this.#used(caller.actor.id)
    return caller
  }

  /** Calls `end` when the caller's token is revoked, for answers that go on. Gives what ends the watching. */
  watch(caller: Caller, end: () => void): () => void {
    const watched = { caller, end }
    this.#watched.add(watched)
    return () => this.#watched.delete(watched)
  }

  /** For what is not under /api and only asks whether: a scrape of the metrics. */
  allows(request: IncomingMessage): boolean {
    try {
      this.authorize(request)
      return true
    } catch (error) {
      if (error instanceof ApiError) return false
      throw error
    }
  }

  /** Whether the caller's token is still good, and its session not over: asked again by what goes on for long. */
  isStillValid({ actor, expiresAtMs }: Caller): boolean {
    if (expiresAtMs !== null && expiresAtMs <= this.#options.clock.wallMs()) return false
    return actor.id === FIRST_TOKEN.id || this.#options.store.configuration().tokens.has(actor.id)
  }

  /** Throws TooManyAttempts or unauthorized. */
  logIn(request: IncomingMessage, token: string): Caller & { expiresAtMs: number; cookie: string } {
    this.#rejectCrossSite(request, false)
    const caller = this.#checked(request, token, 'login')
    if (caller === null) throw new ApiError('unauthorized', { message: 'The token is not a valid control token, or it was revoked.' })
    this.#used(caller.actor.id)
    const expiresAtMs = this.#options.clock.wallMs() + SESSION_MS
    const session = this.#sessions.issue({ tokenId: caller.actor.id, expiresAtMs }, this.#hashOf(caller.actor.id) as string)
    return { ...caller, expiresAtMs, cookie: sessionCookie(session, SESSION_MS, this.#isSecure(request)) }
  }

  /** The cookie that removes the session's, and whose session it was. */
  logOut(request: IncomingMessage): { actor: Actor | null; cookie: string } {
    this.#rejectCrossSite(request, false)
    const caller = bearerOf(request) === undefined ? this.#bySession(request) : null
    return { actor: caller?.actor ?? null, cookie: sessionCookie('', 0, this.#isSecure(request)) }
  }

  /** When each token was last used, by id. */
  async uses(): Promise<Map<string, number>> {
    const { settings } = this.#options.store
    const [kept, first] = await Promise.all([settings.tokenUses(), settings.getSetting(ADMIN_USED_AT)])
    const uses = new Map(kept.map(({ id, atMs }) => [id, atMs]))
    if (first !== undefined) uses.set(FIRST_TOKEN.id, Number(first))
    // What this process knows may not be written down yet.
    for (const [id, atMs] of this.#usedMs) uses.set(id, Math.max(atMs, uses.get(id) ?? 0))
    return uses
  }

  #byBearer(request: IncomingMessage, authorization: string): Caller | null {
    const [, token] = /^Bearer +([^\s]+) *$/i.exec(authorization) ?? []
    return token === undefined ? null : this.#checked(request, token, 'bearer')
  }

  #bySession(request: IncomingMessage): Caller | null {
    const session = this.#sessionOf(request)
    if (session === null) return null
    this.#rejectCrossSite(request, true)
    return { ...this.#callerOf(session.tokenId), expiresAtMs: session.expiresAtMs }
  }

  #sessionOf(request: IncomingMessage): Session | null {
    const nowMs = this.#options.clock.wallMs()
    for (const text of sessionsOfCookies(request.headers.cookie, this.#isSecure(request))) {
      const session = this.#sessions.open(text, (id) => this.#hashOf(id), nowMs)
      if (session !== null) return session
    }
    return null
  }

  /**
   * A failed attempt makes its address wait; one that has to wait is not looked at, or it could go on guessing. But nobody
   * guesses a token that was generated: whoever has one is not locked out by a stranger behind the same proxy.
   */
  #checked(request: IncomingMessage, token: string, how: 'login' | 'bearer'): Caller | null {
    const address = this.#proxies.senderAddress(request) ?? 'unknown'
    const waitMs = this.#limit.waitMs(address)
    const id = waitMs === 0 || looksGenerated(token) ? this.#idOf(token) : undefined
    if (id !== undefined) return this.#callerOf(id)
    if (waitMs > 0) throw new TooManyAttempts(waitMs)
    // A few bits of the hash tell guesses apart and say nothing of the token.
    const isNew = this.#limit.failed(address, hashToken(token).slice(0, 12))
    if (isNew) this.#options.onFailure?.({ address, how })
    return null
  }

  #idOf(token: string): string | undefined {
    if (tokenMatches(token, this.#options.admin.hash)) return FIRST_TOKEN.id
    const { tokens } = this.#options.store.configuration()
    if (tokens !== this.#tokens) {
      this.#tokens = tokens
      this.#byHash = new Map([...tokens.values()].map((known) => [known.hash, known]))
      for (const known of this.#usedMs.keys()) if (known !== FIRST_TOKEN.id && !tokens.has(known)) this.#usedMs.delete(known)
    }
    return this.#byHash.get(hashToken(token))?.id
  }

  #hashOf(id: string): string | undefined {
    return id === FIRST_TOKEN.id ? this.#options.admin.hash : this.#options.store.configuration().tokens.get(id)?.hash
  }

  #callerOf(id: string): Caller {
    if (id === FIRST_TOKEN.id) return { actor: FIRST_TOKEN, role: 'admin', expiresAtMs: null }
    const token = this.#options.store.configuration().tokens.get(id)
    if (token === undefined) throw new ApiError('unauthorized')
    return { actor: { id, name: token.name }, role: token.role, expiresAtMs: null }
  }

  /** Written at most once a minute for each token, and not waited for. */
  #used(id: string): void {
    const { clock, store } = this.#options
    const nowMs = clock.wallMs()
    const lastMs = this.#usedMs.get(id)
    if (lastMs !== undefined && Math.abs(nowMs - lastMs) < USE_EVERY_MS) return
    this.#usedMs.set(id, nowMs)
    const written = id === FIRST_TOKEN.id ? store.settings.setSetting(ADMIN_USED_AT, String(nowMs)) : store.settings.useToken(id, nowMs)
    // A store that cannot be written says so elsewhere; who looks meanwhile sees what is in memory.
    void written.catch(() => {})
  }

  #isSecure(request: IncomingMessage): boolean {
    return this.#proxies.requestedOrigin(request).protocol === 'https'
  }

  /**
   * Browsers say where a request comes from: Sec-Fetch-Site to https and localhost, Origin with everything that is not a
   * plain read. With a cookie, a change must come from this very origin and say so; SameSite=Strict alone lets through what
   * another port of the same host sends. Without one (`strict` false), only what says that it is foreign is refused.
   */
  #rejectCrossSite(request: IncomingMessage, strict: boolean): void {
    const { 'sec-fetch-site': site, origin } = request.headers
    const safe = SAFE_METHODS.has(request.method ?? '')
    if (site !== undefined) {
      if (site === 'same-origin' || (site === 'none' && (safe || !strict))) return
    } else if (origin !== undefined) {
      const { protocol, host } = this.#proxies.requestedOrigin(request)
      if (host !== undefined && origin === `${protocol}://${host}`) return
    } else if (safe || !strict) return
    throw new ApiError('cross_site_request')
  }
}

/** What another scheme says is not for us: it may be a proxy's own, which browsers then send along with the cookie. */
function bearerOf({ headers: { authorization } }: IncomingMessage): string | undefined {
  return authorization !== undefined && /^bearer\b/i.test(authorization) ? authorization : undefined
}
