// People who log in with single sign-on: who they are, what they may do, and their sessions. A session is asked about at the provider again while it is used;
// a person whose access ends there loses it here on every node. People without a session are asked about hourly if they own tokens. Whether a
// request may do something is decided in control/, not here.

import { type Claims, claimOf, type Granted, grantOf, matchingRule, type RoleRule } from '../../../api/settings/role-rules.ts'
import type { SecretBox } from '../../../secrets/secret-box.ts'
import { type ControlToken, type Store, StoreUnavailable } from '../../../store/store.ts'
import type { Clock } from '../../../timing/clock.ts'
import { NoAccess } from './login-failures.ts'
import { hashOf, newSessionCookie, type Person, PersonDocuments, type PersonSession, personIdOf, sessionKeyOf } from './person-documents.ts'
import type { Identity, Provider } from './provider.ts'
import { ProviderError, type ProviderProblem } from './provider-problems.ts'

export const SESSION_MS = 12 * 3_600_000
/** Less than the promised minute, so that the time of the check itself is included. */
const CHECK_EVERY_MS = 45_000
const RETRY_AWAY_MS = 10_000
/** Longer than all requests of a check may take together. */
const LEASE_MS = 25_000
/** How long the owner of a token may go unasked, and when nodes ask without being made to. */
const OWNER_MS = 60 * 60_000
const OWNER_CHECK_MS = 50 * 60_000
const KEEP_MS = 400 * 24 * 3_600_000
const WAIT_STEP_MS = 50

export interface PeopleOptions {
  store: Pick<Store, 'documents' | 'configuration'>
  clock: Clock
  provider: Provider
  box: SecretBox
  issuer: string
  rules: readonly RoleRule[]
  graceSeconds: number
  /** For the log. */
  onEvent: (event: { problem: string; source?: string; personId?: string; err?: unknown }) => void
  checkEveryMs?: number
}

/** A person with a live session, as they are now. */
export interface LivePerson {
  person: Person
  session: PersonSession
}

export class People {
  readonly documents: PersonDocuments
  readonly #options: PeopleOptions
  readonly #rules: string
  readonly #checkEveryMs: number
  readonly #checking = new Map<string, Promise<void>>()
  /** When this node last asked about the owner of a token, by person. */
  readonly #triedMs = new Map<string, number>()
  /** The last problem with the provider; null after it answered. */
  #problem: { reason: ProviderProblem; sinceMs: number } | null = null

  constructor(options: PeopleOptions) {
    this.#options = options
    this.documents = new PersonDocuments(options.store.documents, options.box)
    this.#rules = hashOf(JSON.stringify(options.rules))
    this.#checkEveryMs = options.checkEveryMs ?? CHECK_EVERY_MS
  }

  get problem(): { reason: ProviderProblem; sinceMs: number } | null {
    return this.#problem
  }

  /** Runs a request to the provider, and remembers whether the provider works. */
  async asking<T>(ask: (provider: Provider) => Promise<T>): Promise<T> {
    try {
      const answer = await ask(this.#options.provider)
      this.#problem = null
      return answer
    } catch (error) {
      // A client that is rejected is a problem for everybody, also if the status is 401.
      if (error instanceof ProviderError && (!error.isDenied || error.reason === 'client_rejected')) {
        if (this.#problem?.reason !== error.reason) this.#options.onEvent({ problem: error.message, err: error.cause })
        this.#problem = { reason: error.reason, sinceMs: this.#problem?.sinceMs ?? this.#nowMs() }
      }
      throw error
    }
  }

  /** Logs the error code of a login that the provider refused, unless the person cancelled it. The code comes with the browser. */
  noteRefusal(code: unknown): void {
    if (code === 'access_denied') return
    const shown = typeof code === 'string' && /^[a-z_]{1,60}$/.test(code) ? code : 'an unreadable error'
    this.#options.onEvent({ problem: `the identity provider refused a login: ${shown}` })
  }

  /** For the diagnostics. Whether people can log in is known only from logins, so this does not clear the last problem. */
  checkProvider(): Promise<{ clockAheadMs: number | null }> {
    return this.#options.provider.check()
  }

  /** Starts a session. Throws NoAccess if no rule matches. */
  async logIn(identity: Identity): Promise<LivePerson & { cookie: string }> {
    const personId = personIdOf(this.#options.issuer, identity.subject)
    const claims = claimsOfLogin(identity, this.#options.rules)
    const granted = this.#granted(identity, {})
    if (granted === null) {
      await this.documents.updatePerson(personId, (before) => (before?.hasAccess ? { ...before, hasAccess: false } : null))
      throw new NoAccess()
    }
    const nowMs = this.#nowMs()
    const cookie = newSessionCookie(personId)
    const key = sessionKeyOf(cookie) as string
    const session: PersonSession = {
      key,
      personId,
      startedAtMs: nowMs,
      expiresAtMs: nowMs + SESSION_MS,
      isEnded: false,
      rules: this.#rules,
      checkedAtMs: nowMs,
      triedAtMs: nowMs,
      awaySinceMs: null,
      leaseUntilMs: 0,
      sid: identity.sid,
      grant: this.documents.seal(key, identity.grant),
      claims,
    }
    const person = await this.#keepPerson(personId, identity, granted, true)
    await this.documents.updateSession(key, () => session)
    return { person, session, cookie }
  }

  /** The session of a cookie and its person, after they were asked about again if it is time; null if the session is over. */
  async sessionOf(cookie: string): Promise<LivePerson | null> {
    const key = sessionKeyOf(cookie)
    return key === null ? null : this.live(key)
  }

  /** The same by the key of the session. */
  async live(key: string): Promise<LivePerson | null> {
    const found = await this.#read(key)
    if (found === null) return null
    const { session } = found
    const nowMs = this.#nowMs()
    if (this.#isFresh(session, nowMs)) return found
    if (session.awaySinceMs !== null && !this.#isBeyondGrace(session.awaySinceMs)) {
      // The provider is away, so requests do not wait for it.
      if (nowMs - session.triedAtMs >= RETRY_AWAY_MS) void this.#check(key).catch(() => {})
      return found
    }
    await this.#check(key)
    return this.#read(key)
  }

  /** What the owner of a token may do now; null if they have no access. */
  async ownerAccess(personId: string): Promise<Granted | null> {
    let person = await this.documents.person(personId)
    const nowMs = this.#nowMs()
    const isDue = (known: Person): boolean => nowMs - known.checkedAtMs >= OWNER_MS || known.rules !== this.#rules
    if (person?.hasAccess && isDue(person) && nowMs - (this.#triedMs.get(personId) ?? 0) >= RETRY_AWAY_MS) {
      this.#triedMs.set(personId, nowMs)
      await this.checkPerson(personId)
      person = await this.documents.person(personId)
    }
    if (person === undefined || !person.hasAccess || person.issuer !== this.#options.issuer) return null
    // Asking failed if it is still due.
    return !isDue(person) || (person.awaySinceMs !== null && !this.#isBeyondGrace(person.awaySinceMs)) ? person : null
  }

  /** Asks about the owners of tokens who were not asked about for almost an hour, and removes what has expired. */
  async tend(tokens: Iterable<ControlToken>): Promise<void> {
    const nowMs = this.#nowMs()
    const owners = new Set(
      [...tokens].flatMap(({ owner, expiresAtMs }) => (owner && (expiresAtMs ?? nowMs) >= nowMs ? [owner.personId] : [])),
    )
    for (const personId of owners) {
      const person = await this.documents.person(personId)
      if (person?.hasAccess && (nowMs - person.checkedAtMs >= OWNER_CHECK_MS || person.rules !== this.#rules))
        await this.checkPerson(personId)
    }
    for (const session of await this.documents.sessions(null)) if (session.expiresAtMs <= nowMs) await this.end(session.key)
    await this.documents.dropPeople(nowMs - KEEP_MS)
  }

  /** Asks about a person with one of their grants. Without any that the provider accepts, they have no access. */
  async checkPerson(personId: string): Promise<void> {
    const order = (one: PersonSession): number => (one.isEnded ? 0 : 1)
    const sessions = (await this.documents.sessions(personId)).sort((a, b) => order(b) - order(a) || b.startedAtMs - a.startedAtMs)
    for (const { key } of sessions) {
      await this.#check(key)
      if ((await this.documents.session(key)) !== undefined) return
    }
    await this.documents.updatePerson(personId, (before) => (before?.hasAccess ? { ...before, hasAccess: false } : null))
  }

  /** Ends a session on every node. The grant is kept if the person owns tokens, in place of older ones. */
  async end(key: string): Promise<void> {
    const session = await this.documents.session(key)
    if (session === undefined || (session.isEnded && session.expiresAtMs > this.#nowMs())) return
    const { personId } = session
    const nowMs = this.#nowMs()
    const ownsTokens = this.#ownsTokens(personId)
    const expiresAtMs = nowMs + KEEP_MS
    await this.documents.updateSession(key, (now) => (now === undefined || !ownsTokens ? null : { ...now, isEnded: true, expiresAtMs }))
    if (!ownsTokens) return
    const older = (await this.documents.sessions(personId)).filter((each) => each.isEnded && each.key !== key)
    for (const each of older) await this.documents.updateSession(each.key, () => null)
  }

  /** Ends all sessions of a person, and returns how many. */
  async endAll(personId: string): Promise<number> {
    return this.#endEach(await this.documents.sessions(personId))
  }

  /** Ends the sessions that a logout token names. */
  async endByProvider({ subject, sid }: { subject: string | null; sid: string | null }): Promise<number> {
    const personId = subject === null ? null : personIdOf(this.#options.issuer, subject)
    const sessions = await this.documents.sessions(personId)
    return this.#endEach(sid === null ? sessions : sessions.filter((session) => session.sid === sid))
  }

  isLiveSession({ isEnded, expiresAtMs }: PersonSession): boolean {
    return !isEnded && expiresAtMs > this.#nowMs()
  }

  // ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #read(key: string): Promise<LivePerson | null> {
    const [personId = ''] = key.split(' ', 1)
    const [session, person] = await Promise.all([this.documents.session(key), this.documents.person(personId)])
    if (session === undefined || person === undefined || !this.isLiveSession(session)) return null
    if (!person.hasAccess || person.issuer !== this.#options.issuer) return null
    return { person, session }
  }

  #isFresh({ checkedAtMs, rules }: PersonSession, nowMs: number): boolean {
    return Math.abs(nowMs - checkedAtMs) < this.#checkEveryMs && rules === this.#rules
  }

  #isBeyondGrace(awaySinceMs: number): boolean {
    return this.#nowMs() - awaySinceMs >= this.#options.graceSeconds * 1_000
  }

  #ownsTokens(personId: string): boolean {
    const nowMs = this.#nowMs()
    const tokens = [...this.#options.store.configuration().tokens.values()]
    return tokens.some(({ owner, expiresAtMs }) => owner?.personId === personId && (expiresAtMs === null || expiresAtMs > nowMs))
  }

  #nowMs(): number {
    return this.#options.clock.wallMs()
  }

  // ── Asking the provider again ───────────────────────────────────────────────────────────────────────────────────

  /** One check of a session at a time, on all nodes. */
  #check(key: string): Promise<void> {
    const running = this.#checking.get(key)
    if (running !== undefined) return running
    const check = this.#checkOrWait(key).finally(() => this.#checking.delete(key))
    this.#checking.set(key, check)
    return check
  }

  async #checkOrWait(key: string): Promise<void> {
    const nowMs = this.#nowMs()
    let own: PersonSession | null = null
    await this.documents.updateSession(key, (now) => {
      own = null
      if (now === undefined || now.leaseUntilMs > nowMs) return undefined
      own = { ...now, leaseUntilMs: nowMs + LEASE_MS, triedAtMs: nowMs }
      return own
    })
    if (own !== null) return this.#ask(own)
    // Another node asks. Its answer is in the store.
    for (const endMs = nowMs + LEASE_MS; this.#nowMs() < endMs; ) {
      const session = await this.documents.session(key)
      if (session === undefined || session.leaseUntilMs === 0) return
      // The other node was lost while it asked.
      if (session.leaseUntilMs <= this.#nowMs()) return this.#checkOrWait(key)
      await new Promise((resolve) => setTimeout(resolve, WAIT_STEP_MS))
    }
  }

  async #ask(session: PersonSession): Promise<void> {
    const { key, personId } = session
    const person = await this.documents.person(personId)
    if (person === undefined) return this.documents.updateSession(key, () => null)
    try {
      const identity = await this.asking((provider) => provider.renew(this.documents.open(session), person.subject))
      const granted = this.#granted(identity, session.claims)
      const nowMs = this.#nowMs()
      // First the grant: the one before can usually not be used again.
      await this.documents.updateSession(key, (now) =>
        now === undefined
          ? undefined
          : {
              ...now,
              rules: this.#rules,
              checkedAtMs: nowMs,
              awaySinceMs: null,
              leaseUntilMs: 0,
              sid: identity.sid ?? now.sid,
              grant: this.documents.seal(key, identity.grant),
            },
      )
      if (granted === null) await this.#endAccess(personId)
      else await this.#keepPerson(personId, identity, granted, !session.isEnded)
    } catch (error) {
      await this.#failed(session, error)
    }
  }

  async #failed({ key, personId }: PersonSession, error: unknown): Promise<void> {
    if (error instanceof StoreUnavailable) throw error
    // Without its key, the grant cannot be used.
    const isDenied = !(error instanceof ProviderError) || error.isDenied
    if (isDenied) {
      await this.documents.updateSession(key, () => null)
      const left = await this.documents.sessions(personId)
      if (left.length === 0) await this.#endAccess(personId)
      return
    }
    const nowMs = this.#nowMs()
    await this.documents.updateSession(key, (now) => {
      if (now === undefined) return undefined
      const awaySinceMs = now.awaySinceMs ?? nowMs
      const kept = { ...now, awaySinceMs, leaseUntilMs: 0 }
      if (now.isEnded || !this.#isBeyondGrace(awaySinceMs)) return kept
      return this.#ownsTokens(personId) ? { ...kept, isEnded: true, expiresAtMs: nowMs + KEEP_MS } : null
    })
    await this.documents.updatePerson(personId, (before) =>
      before === undefined || before.awaySinceMs !== null ? null : { ...before, awaySinceMs: nowMs },
    )
  }

  async #endAccess(personId: string): Promise<void> {
    await this.documents.updatePerson(personId, (before) => (before?.hasAccess ? { ...before, hasAccess: false } : null))
    for (const { key } of await this.documents.sessions(personId)) await this.documents.updateSession(key, () => null)
  }

  async #endEach(sessions: readonly PersonSession[]): Promise<number> {
    const live = sessions.filter((session) => this.isLiveSession(session))
    for (const { key } of live) await this.end(key)
    return live.length
  }

  // ── What the rules give ─────────────────────────────────────────────────────────────────────────────────────────

  /** `known` are claims of the ID token of the login, for a check that returned none. */
  #granted({ idToken, userinfo }: Identity, known: Claims): Granted | null {
    const claims = [idToken ?? {}, userinfo ?? {}, ...(idToken === null ? [known] : [])]
    const rule = matchingRule(this.#options.rules, claims)
    return rule === null ? null : grantOf(rule, this.#options.store.configuration().sources, this.#onUnknown)
  }

  readonly #onUnknown = (source: string, problem: 'unknown' | 'ambiguous'): void => {
    const text = problem === 'unknown' ? 'names a source that does not exist' : 'has a name that several sources have'
    this.#options.onEvent({ problem: `SWITCHYARD_OIDC_ROLES ${text}: it gives nothing`, source })
  }

  async #keepPerson(personId: string, identity: Identity, granted: Granted, isSeen: boolean): Promise<Person> {
    const nowMs = this.#nowMs()
    const made = (before: Person | undefined): Person => ({
      id: personId,
      issuer: this.#options.issuer,
      subject: identity.subject,
      email: shownClaim(identity, ['email']) ?? before?.email ?? null,
      name: shownClaim(identity, ['name', 'preferred_username']) ?? before?.name ?? null,
      ...granted,
      hasAccess: true,
      rules: this.#rules,
      createdAtMs: before?.createdAtMs ?? nowMs,
      lastSeenAtMs: isSeen || before === undefined ? nowMs : before.lastSeenAtMs,
      checkedAtMs: nowMs,
      awaySinceMs: null,
    })
    let person = made(undefined)
    await this.documents.updatePerson(personId, (before) => (person = made(before)))
    return person
  }
}

const MAX_SHOWN = 200

function textOf(value: unknown): string | null {
  const isShown = typeof value === 'string' && value.trim() !== '' && value.length <= MAX_SHOWN && !/[\p{Cc}\p{Surrogate}]/u.test(value)
  return isShown ? value : null
}

/** For display only: a person is known by issuer and subject. */
function shownClaim({ idToken, userinfo }: Identity, names: readonly string[]): string | null {
  const all = [idToken ?? {}, userinfo ?? {}]
  for (const name of names) for (const claims of all) if (textOf(claims[name]) !== null) return textOf(claims[name])
  return null
}

/** The values of the ID token that rules compare, where userinfo does not have the claim. */
function claimsOfLogin({ idToken, userinfo }: Identity, rules: readonly RoleRule[]): Claims {
  const kept = new Map<string, unknown>()
  for (const { claim, value } of rules) {
    const given = claimOf(idToken ?? {}, claim)
    if (given === undefined || claimOf(userinfo ?? {}, claim) !== undefined) continue
    const values = (kept.get(claim) ?? []) as string[]
    if (given === value || (Array.isArray(given) && given.includes(value))) values.push(value)
    kept.set(claim, values)
    if (claim === 'email') kept.set('email_verified', idToken?.['email_verified'] === true)
  }
  return Object.fromEntries(kept)
}
