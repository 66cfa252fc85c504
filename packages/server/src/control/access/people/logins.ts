// A login with single sign-on, from the button to the session. What a login in progress needs is in a cookie that only the service can read, so nothing
// is stored for those who never come back. A state works once, on all nodes, whatever becomes of the login.

import { randomBytes } from 'node:crypto'
import type { SecretBox } from '../../../secrets/secret-box.ts'
import { LOGIN_MS } from './login-cookie.ts'
import { InvalidCallback, LoginFailed } from './login-failures.ts'
import type { LivePerson, People } from './people.ts'
import type { LoginSecrets } from './provider.ts'
import { ProviderError } from './provider-problems.ts'
import { returnPath } from './return-path.ts'

const CONTEXT = 'login in progress'

interface LoginInProgress extends LoginSecrets {
  returnTo: string
  expiresAtMs: number
}

export class Logins {
  readonly #people: People
  readonly #box: SecretBox
  readonly #nowMs: () => number

  constructor(people: People, box: SecretBox, nowMs: () => number) {
    this.#people = people
    this.#box = box
    this.#nowMs = nowMs
  }

  /** Returns the address of the provider, and the content of the cookie. Throws LoginFailed. */
  async start(wanted: unknown): Promise<{ location: string; cookie: string }> {
    const returnTo = returnPath(wanted)
    const random = (): string => randomBytes(32).toString('base64url')
    const login: LoginInProgress = { state: random(), nonce: random(), verifier: random(), returnTo, expiresAtMs: this.#nowMs() + LOGIN_MS }
    try {
      const location = await this.#people.asking((provider) => provider.authorizationUrl(login))
      return { location: location.href, cookie: this.#box.seal(JSON.stringify(login), CONTEXT) }
    } catch (error) {
      throw failureOf(error, returnTo)
    }
  }

  /** `cookies` are the values of the login cookie. Throws LoginFailed, or NoAccess. */
  async finish(
    query: Readonly<Record<string, unknown>>,
    cookies: readonly string[],
  ): Promise<LivePerson & { cookie: string; returnTo: string }> {
    const { state, code, iss: issuer = null, error } = query
    const login = cookies.flatMap((cookie) => this.#open(cookie) ?? []).find((each) => each.state === state)
    if (login === undefined || login.expiresAtMs <= this.#nowMs()) throw new LoginFailed('login_expired')
    const { returnTo } = login
    if (!(await this.#people.documents.use(`state ${login.state}`, login.expiresAtMs, this.#nowMs())))
      throw new LoginFailed('login_expired')
    if (error !== undefined) {
      this.#people.noteRefusal(error)
      throw new LoginFailed(error === 'unauthorized_client' ? 'client_rejected' : 'login_refused', returnTo)
    }
    if (typeof code !== 'string' || code === '' || (issuer !== null && typeof issuer !== 'string')) throw new LoginFailed('login_expired')
    try {
      const identity = await this.#people.asking((provider) => provider.exchange({ code, issuer }, login))
      return { ...(await this.#people.logIn(identity)), returnTo }
    } catch (failure) {
      throw failureOf(failure, returnTo)
    }
  }

  #open(cookie: string): LoginInProgress | null {
    try {
      return JSON.parse(this.#box.open(cookie, CONTEXT)) as LoginInProgress
    } catch {
      return null
    }
  }
}

function failureOf(error: unknown, returnTo: string): unknown {
  if (error instanceof InvalidCallback) return new LoginFailed('login_expired', returnTo, error)
  if (!(error instanceof ProviderError)) return error
  // A code that the provider does not know is not a problem of the provider.
  const reason = error.isDenied && error.reason !== 'client_rejected' ? 'login_expired' : error.reason
  return new LoginFailed(reason, returnTo, error)
}
