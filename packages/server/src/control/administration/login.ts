// Login and logout of the dashboard: exchanges a control token for a session cookie, which scripts in the page cannot read. What a session may
// do is decided in authorize.ts.

import { sourceScope } from '../../api/resources/source-scope.ts'
import { nullable, object, oneOf, optional, string, time } from '../../api/schema.ts'
import { type Actor, ROLES, type Role, type SourceScope, StoreUnavailable } from '../../store/store.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const LOGIN = object({ token: string({ min: 1, max: 1_000, writeOnly: true, description: 'A control token.' }) })
const OWNER = object(
  { subject: string(), email: nullable(string()) },
  { description: 'The person to whom the token belongs; left out if nobody.' },
)
const SESSION = object(
  {
    actor: object({
      id: string(),
      name: string(),
      type: oneOf(['person', 'token', 'service']),
      subject: optional(string({ description: 'The id of the person at the identity provider; only for a person.' })),
      email: optional(nullable(string({ description: 'Only for a person.' }))),
      owner: optional(OWNER),
    }),
    role: oneOf(ROLES),
    sources: sourceScope('The sources of the caller: `all`, or a list of ids.'),
    expiresAt: nullable(time({ description: 'When the session ends; null for a bearer token.' })),
    dataSince: nullable(
      time({
        description: "When the oldest of the caller's sources was created: there is no earlier data. Null if there is no source.",
      }),
    ),
  },
  { title: 'Session', description: 'The caller of the request.' },
)

export function loginRoutes({ store, access }: ControlParts): Route[] {
  /** Ignores an unavailable store, because a full disk must not prevent an operator from logging in to see the reason. */
  async function recordLogin(actor: Actor, action: string, after: { role: Role } | null): Promise<void> {
    try {
      await recordAction(store.history, { actor, action, subject: actor.id, after })
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  function dataSince(scope: SourceScope): number | null {
    const ages = [...store.configuration().sources.values()]
      .filter(({ id, builtIn }) => !builtIn && (scope === 'all' || scope.includes(id)))
      .map(({ createdAtMs }) => createdAtMs)
    return ages.length === 0 ? null : Math.min(...ages)
  }

  return [
    route('POST', '/login', {
      summary: 'Log in to the dashboard',
      access: 'public',
      description: 'Sets a session cookie, which is valid for at most 12 hours. Revoking the token ends the session earlier.',
      body: LOGIN,
      answer: SESSION,
      errors: ['unauthorized', 'cross_site_request', 'too_many_attempts'],
      async handle({ body, exchange }) {
        const { actor, role, sources, expiresAtMs, cookie } = await access.logIn(exchange.request, body.token)
        await recordLogin(actor, 'session.login', { role })
        exchange.setHeader('set-cookie', cookie)
        return { actor: withOwner(actor), role, sources, expiresAtMs, dataSince: dataSince(sources) }
      },
    }),
    route('POST', '/logout', {
      summary: 'Log out of the dashboard',
      access: 'public',
      description: 'Ends the session, on every node, and removes its cookie from the browser. Other sessions of the same token go on.',
      status: 204,
      errors: ['cross_site_request'],
      async handle({ exchange }) {
        // First, because the browser loses its cookie even if the store cannot record the end of the session.
        exchange.setHeader('set-cookie', access.cookieOfLogOut(exchange.request))
        const actor = await access.logOut(exchange.request)
        if (actor !== null) await recordLogin(actor, 'session.logout', null)
      },
    }),
    route('GET', '/session', {
      summary: 'Retrieve the name, the role and the sources of the caller, and when its session ends',
      access: { role: 'viewer', sources: 'none' },
      answer: SESSION,
      handle: ({ actor, role, sources, exchange }) => ({
        actor: withOwner(actor),
        role,
        sources,
        expiresAtMs: exchange.caller?.expiresAtMs ?? null,
        dataSince: dataSince(sources),
      }),
    }),
  ]
}

function withOwner({ owner, ...actor }: Actor) {
  return { ...actor, ...(owner && { owner }) }
}
