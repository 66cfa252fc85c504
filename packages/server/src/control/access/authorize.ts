// Authorization: finds the actor and role for a bearer token or session cookie, before the body is read. Tokens are part of the configuration in
// memory; for a session, one lookup in the store says whether it was ended by a logout. People, their sessions and the owners of tokens are looked up in
// people/, which is loaded only with single sign-on. Guessing is rate limited by address. Browsers also send cookies with requests of other
// pages, so cross-site requests with a cookie are rejected here; requests with a bearer token are exempt.

import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { lesserOf } from '../../api/settings/role-rules.ts'
import { ApiError } from '../../errors.ts'
import {
  type Actor,
  type ControlToken,
  type Role,
  type SourceScope,
  type Store,
  StoreUnavailable,
  type TokenOwner,
} from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { type AdminToken, FIRST_TOKEN, hashToken, looksGenerated, looksLikeWriteKey, tokenMatches } from './admin-token.ts'
import { AttemptLimit } from './attempt-limit.ts'
import type { LivePerson } from './people/people.ts'
import type { SingleSignOn } from './people/single-sign-on.ts'
import { EndedSessions, SESSION_MS, type Session, Sessions, sessionCookie, sessionId, sessionsOfCookies } from './sessions.ts'

export interface Caller {
  actor: Actor & Required<Pick<Actor, 'type' | 'owner'>>
  role: Role
  sources: SourceScope
  /** When the session ends; null for a bearer token. */
  expiresAtMs: number | null
  /** Undefined for a bearer token. */
  sessionId?: string | undefined
  /** The person who makes the request, or who owns the token. */
  person?: TokenOwner | undefined
  /** The key of the session of a person (people/person-documents.ts). */
  personSession?: string | undefined
}

/** Finds the sender of a request behind trusted proxies (http/proxies.ts). app.ts passes it in. */
export interface TrustedProxies {
  senderAddress(request: IncomingMessage): string | null
  requestedOrigin(request: IncomingMessage): { protocol: 'http' | 'https'; host: string | undefined }
}

/** A long response, such as a live stream. */
interface Watched {
  caller: Caller
  end: () => void
  isChecking: boolean
}

/** Called for the log when a wrong token is sent from an address for the first time. It does not get the token. */
export type AttemptListener = (attempt: { address: string; how: 'login' | 'bearer' }) => void

export interface AccessOptions {
  store: Store
  clock: Clock
  admin: Pick<AdminToken, 'hash'>
  /** Without it, the peer of the connection is the sender, and the protocol is http. */
  proxies?: TrustedProxies | undefined
  onFailure?: AttemptListener | undefined
  /** Null if single sign-on is not set up. Then no person has access, and no token of a person works. */
  singleSignOn?: SingleSignOn | null | undefined
}

/** An error with status 429 and the seconds for Retry-After. */
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
/** How often it is checked whether sessions with open streams have ended elsewhere. */
const WATCH_EVERY_MS = 500
const ADMIN_USED_AT = 'admin_token_used_at'
const SAFE_METHODS = new Set(['GET', 'HEAD'])

/** Loads the session key from the store; it is created at the first start. */
export async function createAccess(options: AccessOptions): Promise<Access> {
  const key = await options.store.secrets.getOrCreate('session_key', randomBytes(32).toString('base64url'))
  return new Access(options, new Sessions(key))
}

export class Access {
  readonly #options: AccessOptions
  readonly #proxies: TrustedProxies
  readonly #sessions: Sessions
  readonly #ended: EndedSessions
  readonly #limit: AttemptLimit
  /** When the last use of each token was recorded, by token id. */
  readonly #usedMs = new Map<string, number>()
  readonly #watched = new Set<Watched>()
  #watching: NodeJS.Timeout | undefined
  #tokens: ReadonlyMap<string, ControlToken> | undefined
  #byHash: ReadonlyMap<string, ControlToken> = new Map()

  constructor(options: AccessOptions, sessions: Sessions) {
    this.#options = options
    this.#proxies = options.proxies ?? DIRECT
    this.#sessions = sessions
    this.#ended = new EndedSessions(options.store.documents)
    this.#limit = new AttemptLimit({ nowMs: () => options.clock.scheduleMs() })
    options.store.onConfiguration(() => {
      for (const { caller, end } of this.#watched) if (caller.person === undefined && !this.#hasToken(caller)) end()
      void this.#endWatched()
    })
  }

  get singleSignOn(): SingleSignOn | null {
    return this.#options.singleSignOn ?? null
  }

  /** Throws unauthorized, cross_site_request or TooManyAttempts; for a session also StoreUnavailable. */
  async authorize(request: IncomingMessage): Promise<Caller> {
    const bearer = bearerOf(request)
    const caller = bearer === undefined ? await this.#bySession(request) : await this.#limitedByOwner(this.#byBearer(request, bearer))
    if (caller === null) throw new ApiError('unauthorized', { message: unauthorizedMessage(request.headers.authorization) })
    if (caller.actor.type === 'token') this.#recordUse(caller.actor.id)
    return caller
  }

  /** Calls `end` when the token of the caller is revoked or its session is ended, for long responses. Returns a function that stops watching. */
  watch(caller: Caller, end: () => void): () => void {
    const watched: Watched = { caller, end, isChecking: false }
    this.#watched.add(watched)
    this.#watching ??= setInterval(() => void this.#endWatched(), WATCH_EVERY_MS).unref()
    return () => {
      this.#watched.delete(watched)
      if (this.#watched.size > 0) return
      clearInterval(this.#watching)
      this.#watching = undefined
    }
  }

  /** Whether the request is authorized and its caller has all sources, for routes outside of /api, such as the metrics. */
  async allows(request: IncomingMessage): Promise<boolean> {
    try {
      return (await this.authorize(request)).sources === 'all'
    } catch (error) {
      if (error instanceof ApiError || error instanceof StoreUnavailable) return false
      throw error
    }
  }

  /** Whether the token of the caller is still valid and its session has not ended. Long responses check this repeatedly. */
  async isStillValid(caller: Caller): Promise<boolean> {
    if (caller.personSession !== undefined) {
      const live = (await this.singleSignOn?.people.live(caller.personSession)) ?? null
      return live !== null && live.person.role === caller.role && isDeepStrictEqual(live.person.sources, caller.sources)
    }
    if (caller.person === undefined ? !this.#hasToken(caller) : !(await this.#hasOwnedToken(caller))) return false
    return !(caller.sessionId !== undefined && (await this.#ended.has(caller.sessionId)))
  }

  /** Throws TooManyAttempts or unauthorized. */
  async logIn(request: IncomingMessage, token: string): Promise<Caller & { expiresAtMs: number; cookie: string }> {
    this.#rejectCrossSite(request, false)
    const caller = await this.#limitedByOwner(this.#authenticate(request, token, 'login'))
    if (caller === null)
      throw new ApiError('unauthorized', {
        message: looksLikeWriteKey(token)
          ? WRITE_KEY_GIVEN
          : 'The token is not valid or was revoked. Check that you copied the whole token, or ask an admin for a new one.',
      })
    this.#recordUse(caller.actor.id)
    const nowMs = this.#options.clock.wallMs()
    const expiresAtMs = Math.min(nowMs + SESSION_MS, this.#expiryOf(caller.actor.id))
    const session = this.#sessions.issue({ tokenId: caller.actor.id, expiresAtMs }, this.#hashOf(caller.actor.id) as string)
    return { ...caller, expiresAtMs, cookie: sessionCookie(session, expiresAtMs - nowMs, this.#isSecure(request)) }
  }

  /** Ends the session on every node, so that a copy of its cookie is worthless. Returns the actor of the session. */
  async logOut(request: IncomingMessage): Promise<Actor | null> {
    const caller = bearerOf(request) === undefined ? await this.#bySession(request) : null
    if (caller?.personSession !== undefined) {
      await this.singleSignOn?.people.end(caller.personSession)
      void this.#endWatched()
      return caller.actor
    }
    if (caller?.sessionId === undefined || caller.expiresAtMs === null) return null
    await this.#ended.add(caller.sessionId, caller.expiresAtMs, this.#options.clock.wallMs())
    for (const watched of this.#watched) if (watched.caller.sessionId === caller.sessionId) watched.end()
    return caller.actor
  }

  /** A cookie that removes the session cookie from the browser. */
  cookieOfLogOut(request: IncomingMessage): string {
    this.#rejectCrossSite(request, false)
    return sessionCookie('', 0, this.#isSecure(request))
  }

  /** The session cookie of a person who has just logged in. */
  cookieOfPerson(request: IncomingMessage, cookie: string, { expiresAtMs }: LivePerson['session']): string {
    return sessionCookie(cookie, expiresAtMs - this.#options.clock.wallMs(), this.#isSecure(request))
  }

  /** Whether browsers reach the service over https. */
  isSecure(request: IncomingMessage): boolean {
    return this.#isSecure(request)
  }

  /** Ends open streams of sessions that have ended. The store is asked, which knows what other nodes did. */
  async endWatched(): Promise<void> {
    await this.#endWatched()
  }

  /** All tokens but the first. */
  tokens(): ControlToken[] {
    return [...this.#options.store.configuration().tokens.values()]
  }

  /** When each token was last used, by id. */
  async lastUses(): Promise<Map<string, number>> {
    const { resources } = this.#options.store
    const [kept, first] = await Promise.all([resources.tokenUses(), resources.getSetting(ADMIN_USED_AT)])
    const uses = new Map(kept.map(({ id, atMs }) => [id, atMs]))
    if (first !== undefined) uses.set(FIRST_TOKEN.id, Number(first))
    // The latest uses in this process may not be stored yet.
    for (const [id, atMs] of this.#usedMs) uses.set(id, Math.max(atMs, uses.get(id) ?? 0))
    return uses
  }

  #byBearer(request: IncomingMessage, authorization: string): Caller | null {
    const [, token] = /^Bearer +([^\s]+) *$/i.exec(authorization) ?? []
    return token === undefined ? null : this.#authenticate(request, token, 'bearer')
  }

  async #bySession(request: IncomingMessage): Promise<Caller | null> {
    const live = await this.#personOf(request)
    if (live !== null) {
      this.#rejectCrossSite(request, true)
      return personCaller(live)
    }
    const session = await this.#sessionOf(request)
    if (session === null) return null
    this.#rejectCrossSite(request, true)
    const caller = await this.#limitedByOwner(this.#callerOf(session.tokenId))
    return caller === null ? null : { ...caller, expiresAtMs: session.expiresAtMs, sessionId: session.id }
  }

  async #personOf(request: IncomingMessage): Promise<LivePerson | null> {
    if (this.singleSignOn === null) return null
    for (const text of sessionsOfCookies(request.headers.cookie, this.#isSecure(request))) {
      const live = await this.singleSignOn.people.sessionOf(text)
      if (live !== null) return live
    }
    return null
  }

  /** A token of a person has at most the role and the sources of that person. Null if they have no access. */
  async #limitedByOwner(caller: Caller | null): Promise<Caller | null> {
    if (caller?.person === undefined) return caller
    const access = (await this.singleSignOn?.people.ownerAccess(caller.person.personId)) ?? null
    return access === null ? null : { ...caller, ...lesserOf(caller, access) }
  }

  async #hasOwnedToken(caller: Caller): Promise<boolean> {
    const { actor, role, sources, expiresAtMs } = caller
    if ((expiresAtMs !== null && expiresAtMs <= this.#options.clock.wallMs()) || !this.#isInForce(actor.id)) return false
    const now = await this.#limitedByOwner(this.#callerOf(actor.id))
    return now !== null && now.role === role && isDeepStrictEqual(now.sources, sources)
  }

  /** Each on its own, because one may have to wait for the identity provider. */
  async #endWatched(): Promise<void> {
    const watched = [...this.#watched].filter(({ caller }) => caller.sessionId !== undefined || caller.person !== undefined)
    await Promise.all(watched.map((each) => this.#endIfOver(each)))
  }

  /** A store that is unavailable ends nothing: the next check finds out. */
  async #endIfOver(watched: Watched): Promise<void> {
    if (watched.isChecking) return
    watched.isChecking = true
    try {
      if (!(await this.isStillValid(watched.caller))) watched.end()
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) watched.end()
    } finally {
      watched.isChecking = false
    }
  }

  async #sessionOf(request: IncomingMessage): Promise<(Session & { id: string }) | null> {
    const nowMs = this.#options.clock.wallMs()
    for (const text of sessionsOfCookies(request.headers.cookie, this.#isSecure(request))) {
      const session = this.#sessions.open(text, (id) => (this.#isInForce(id) ? this.#hashOf(id) : undefined), nowMs)
      const id = sessionId(text)
      if (session !== null && !(await this.#ended.has(id))) return { ...session, id }
    }
    return null
  }

  /**
   * A failed attempt makes its address wait, and while it waits its tokens are not checked. Generated tokens are the exception, because they
   * cannot be guessed: their owner must not be locked out by an attacker behind the same proxy.
   */
  #authenticate(request: IncomingMessage, token: string, how: 'login' | 'bearer'): Caller | null {
    const address = this.#proxies.senderAddress(request) ?? 'unknown'
    const waitMs = this.#limit.waitMs(address)
    const id = waitMs === 0 || looksGenerated(token) ? this.#idOf(token) : undefined
    if (id !== undefined) return this.#callerOf(id)
    if (waitMs > 0) throw new TooManyAttempts(waitMs)
    // A few bits of the hash distinguish guesses and reveal nothing about the token.
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
    const id = this.#byHash.get(hashToken(token))?.id
    return id !== undefined && this.#isInForce(id) ? id : undefined
  }

  /** With the same role and sources: a response that goes on for long was made for these. */
  #hasToken({ actor, role, sources, expiresAtMs }: Caller): boolean {
    if (expiresAtMs !== null && expiresAtMs <= this.#options.clock.wallMs()) return false
    if (!this.#isInForce(actor.id)) return false
    const now = this.#callerOf(actor.id)
    return now.role === role && isDeepStrictEqual(now.sources, sources)
  }

  /** Whether the token exists and has not expired. */
  #isInForce(id: string): boolean {
    return this.#hashOf(id) !== undefined && this.#expiryOf(id) > this.#options.clock.wallMs()
  }

  #expiryOf(id: string): number {
    return this.#options.store.configuration().tokens.get(id)?.expiresAtMs ?? Number.POSITIVE_INFINITY
  }

  #hashOf(id: string): string | undefined {
    return id === FIRST_TOKEN.id ? this.#options.admin.hash : this.#options.store.configuration().tokens.get(id)?.hash
  }

  #callerOf(id: string): Caller {
    if (id === FIRST_TOKEN.id) return { actor: FIRST_TOKEN, role: 'admin', sources: 'all', expiresAtMs: null }
    const token = this.#options.store.configuration().tokens.get(id)
    if (token === undefined) throw new ApiError('unauthorized')
    const { name, role, sources, owner } = token
    return { actor: { id, name, type: 'token', owner }, role, sources, expiresAtMs: null, ...(owner && { person: owner }) }
  }

  /** Recorded at most once a minute per token, without waiting for the write. */
  #recordUse(id: string): void {
    const { clock, store } = this.#options
    const nowMs = clock.wallMs()
    const lastMs = this.#usedMs.get(id)
    if (lastMs !== undefined && Math.abs(nowMs - lastMs) < USE_EVERY_MS) return
    this.#usedMs.set(id, nowMs)
    const written = id === FIRST_TOKEN.id ? store.resources.setSetting(ADMIN_USED_AT, String(nowMs)) : store.resources.useToken(id, nowMs)
    // Other parts report a store that cannot be written. Until then, the last use in memory is shown.
    void written.catch(() => {})
  }

  #isSecure(request: IncomingMessage): boolean {
    return this.#proxies.requestedOrigin(request).protocol === 'https'
  }

  /**
   * Browsers send the origin of a request: Sec-Fetch-Site to https and localhost, Origin with everything but plain reads. With a cookie, a
   * request that changes something must state the same origin; SameSite=Strict alone would accept requests from another port of the same
   * host. Without a cookie (`strict` is false), only requests that state another origin are rejected.
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

function personCaller({ person, session }: LivePerson): Caller {
  const { id, subject, email, name, role, sources } = person
  return {
    actor: { id, name: name ?? email ?? subject.slice(0, 200), type: 'person', owner: null, subject, email },
    role,
    sources,
    expiresAtMs: session.expiresAtMs,
    personSession: session.key,
    person: { personId: id, subject, email },
  }
}

const WRITE_KEY_GIVEN =
  'This token is not valid here. It looks like a write key, which can only send messages to /v1. The control API needs a control token, such as the admin token that the service printed at its first start.'

/** Judges only the form of what was sent, so the response says nothing about which keys and tokens exist. */
function unauthorizedMessage(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  if (/^basic\b/i.test(authorization))
    return 'The control API does not accept Basic authentication, which the tracking API uses for write keys. Send a control token as Authorization: Bearer <token>.'
  const [, token = ''] = /^bearer +(\S+)/i.exec(authorization) ?? []
  return looksLikeWriteKey(token) ? WRITE_KEY_GIVEN : undefined
}

/** Other schemes than Bearer are ignored: they may be for a proxy in front, and browsers then send them together with the cookie. */
function bearerOf({ headers: { authorization } }: IncomingMessage): string | undefined {
  return authorization !== undefined && /^bearer\b/i.test(authorization) ? authorization : undefined
}
