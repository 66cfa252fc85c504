// The routes of a login with single sign-on. Browsers are sent here by links and by the identity provider, so the answers are redirects and pages. The
// checks of a login are in people/logins.ts.

import { nullable, object, optional, type Schema, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { loginCookie, loginsOfCookies } from '../access/people/login-cookie.ts'
import { LoginFailed, NoAccess } from '../access/people/login-failures.ts'
import { PROVIDER_PROBLEMS, ProviderError, type ProviderProblem } from '../access/people/provider-problems.ts'
import type { SingleSignOn } from '../access/people/single-sign-on.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { type ControlParts, type Page, type Route, route } from '../routes/route.ts'
import { loginPage } from './login-page.ts'

const METHODS = object(
  {
    token: { parse: (value: unknown) => value === true, toJsonSchema: () => ({ type: 'boolean', const: true }) },
    oidc: nullable(
      object({
        name: string({ description: 'The name of the identity provider.' }),
        problem: optional(
          object(
            {
              reason: string({ description: 'Such as `unreachable`. The page about single sign-on lists all.' }),
              message: string(),
              advice: string(),
              since: time(),
            },
            { description: 'What was wrong when the service last asked the provider; left out if it answered.' },
          ),
        ),
      }),
    ),
  },
  { title: 'LoginMethods', description: 'How people can log in.' },
)

const START = object({
  returnTo: optional(
    string({
      description: 'The path to which the browser returns after the login. Anything that is not a path on this origin is ignored.',
    }),
  ),
})

/** Providers add parameters of their own. */
const CALLBACK: Schema<Readonly<Record<string, unknown>>> = {
  parse: (value) => value as Readonly<Record<string, unknown>>,
  toJsonSchema: () => ({
    type: 'object',
    properties: {
      code: { type: 'string', description: 'The authorization code of the provider.' },
      state: { type: 'string', description: 'The state of the login.' },
      iss: { type: 'string', description: 'The issuer that answers.' },
      error: { type: 'string', description: 'Why the provider refused.' },
    },
  }),
}

/** A form may have other fields, which are ignored. */
const LOGOUT_TOKEN: Schema<{ logout_token: string }> = {
  parse(value) {
    const token = (value as Record<string, unknown> | null)?.['logout_token']
    if (typeof token !== 'string' || token === '') throw new ApiError('invalid_logout_token')
    return { logout_token: token }
  },
  toJsonSchema: () => ({
    type: 'object',
    properties: { logout_token: { type: 'string', description: 'A signed token of the provider.' } },
    required: ['logout_token'],
  }),
}

export function singleSignOnRoutes(parts: ControlParts): Route[] {
  return [...startRoutes(parts), callbackRoute(parts), logoutRoute(parts)]
}

function configured({ access }: Pick<ControlParts, 'access'>): SingleSignOn {
  if (access.singleSignOn === null) throw new ApiError('oidc_not_configured')
  return access.singleSignOn
}

/** Ignores an unavailable store: the login and the logout count. */
async function record({ store }: Pick<ControlParts, 'store'>, entry: Parameters<typeof recordAction>[1]): Promise<void> {
  try {
    await recordAction(store.history, entry)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
  }
}

function startRoutes(parts: ControlParts): Route[] {
  const { access } = parts
  return [
    route('GET', '/login/methods', {
      summary: 'List the ways to log in',
      access: 'public',
      answer: METHODS,
      handle() {
        const { singleSignOn } = access
        if (singleSignOn === null) return { token: true, oidc: null }
        const { name, people } = singleSignOn
        const { problem } = people
        const shown = problem && { reason: problem.reason, ...PROVIDER_PROBLEMS[problem.reason], sinceMs: problem.sinceMs }
        return { token: true, oidc: { name, ...(shown && { problem: shown }) } }
      },
    }),
    route('GET', '/login/oidc', {
      summary: 'Start a login with single sign-on',
      access: 'public',
      description:
        'For browsers. If the provider does not work, the browser is sent to the login page, with the reason in the parameter `login`.',
      query: START,
      pages: { 303: 'A redirect to the identity provider, or to the login page.' },
      errors: ['oidc_not_configured'],
      async handle({ query, exchange }): Promise<Page> {
        try {
          const { location, cookie } = await configured(parts).logins.start(query.returnTo)
          exchange.setHeader('set-cookie', loginCookie(cookie, access.isSecure(exchange.request)))
          return { status: 303, location }
        } catch (error) {
          return failurePage(error, configured(parts))
        }
      },
    }),
  ]
}

function callbackRoute(parts: ControlParts): Route {
  const { access } = parts
  return route('GET', '/login/oidc/callback', {
    summary: 'End a login with single sign-on',
    access: 'public',
    description: 'The identity provider sends the browser here. Sets a session cookie, which is valid for at most 12 hours.',
    query: CALLBACK,
    pages: {
      200: 'The person is logged in. The page continues at a path of the API.',
      303: 'The person is logged in: a redirect to the path that was asked for. Or the provider does not work: a redirect to the login page.',
      400: 'The callback does not belong to a login of this browser, was used before, or is more than ten minutes old.',
      403: 'The person has no access. The page says whom to ask.',
    },
    errors: ['oidc_not_configured'],
    async handle({ query, exchange }): Promise<Page> {
      const { request } = exchange
      const { logins } = configured(parts)
      const isSecure = access.isSecure(request)
      exchange.setHeader('set-cookie', loginCookie('', isSecure))
      try {
        const { person, session, cookie, returnTo } = await logins.finish(query, loginsOfCookies(request.headers.cookie, isSecure))
        const { id, subject, email, name, role, sources } = person
        const actor = { id, name: name ?? email ?? subject.slice(0, 200), type: 'person' as const, subject, email }
        await record(parts, {
          actor,
          action: 'session.login',
          subject: id,
          after: { role, sources: sources === 'all' ? sources : [...sources] },
        })
        exchange.setHeader('set-cookie', access.cookieOfPerson(request, cookie, session))
        // The browser does not send the new cookie while it follows redirects from another site.
        return returnTo.startsWith('/api/')
          ? { status: 200, html: loginPage({ kind: 'continue', to: returnTo }) }
          : { status: 303, location: returnTo }
      } catch (error) {
        return failurePage(error, configured(parts))
      }
    },
  })
}

function logoutRoute(parts: ControlParts): Route {
  const { access, clock } = parts
  return route('POST', '/login/oidc/backchannel-logout', {
    summary: 'End sessions that ended at the identity provider',
    access: 'public',
    description: 'The identity provider calls this when a person logs out there (OpenID Connect Back-Channel Logout).',
    body: LOGOUT_TOKEN,
    form: true,
    answer: object({
      sessions: {
        parse: (value: unknown) => value as number,
        toJsonSchema: () => ({ type: 'integer', description: 'How many sessions ended.' }),
      },
    }),
    errors: ['oidc_not_configured', 'invalid_logout_token'],
    async handle({ body }) {
      const { people, issuer } = configured(parts)
      const nowMs = clock.wallMs()
      const token = await people
        .asking((provider) => provider.readLogoutToken(body.logout_token, nowMs))
        .catch((error: unknown) => {
          throw new ApiError('invalid_logout_token', {
            cause: error,
            ...(error instanceof ProviderError && { message: `The logout token could not be verified. ${error.message}` }),
          })
        })
      if (!(await people.documents.use(`logout ${token.jti}`, token.expiresAtMs, nowMs))) throw new ApiError('invalid_logout_token')
      const sessions = await people.endByProvider(token)
      await access.endWatched()
      if (sessions > 0)
        await record(parts, {
          actor: { id: 'service', name: issuer, type: 'service' },
          action: 'session.logout',
          subject: null,
          after: { sessions },
        })
      return { sessions }
    },
  })
}

function failurePage(error: unknown, { contact }: SingleSignOn): Page {
  if (error instanceof NoAccess) return { status: 403, html: loginPage({ kind: 'no_access', contact }) }
  if (!(error instanceof LoginFailed)) throw error
  const { reason, returnTo } = error
  if (reason === 'login_expired' || reason === 'token_invalid' || reason === 'signature_invalid')
    return { status: 400, html: loginPage({ kind: 'failed', message: messageOf(reason), returnTo }) }
  const query = new URLSearchParams({ login: reason, ...(returnTo !== '/' && { returnTo }) })
  return { status: 303, location: `/?${query.toString()}` }
}

function messageOf(reason: 'login_expired' | ProviderProblem): string {
  if (reason === 'login_expired') return 'This login has expired, was used before, or was started in another browser. Log in again.'
  const { message, advice } = PROVIDER_PROBLEMS[reason]
  return `${message} ${advice}`
}
