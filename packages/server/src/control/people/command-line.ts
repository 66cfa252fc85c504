// The routes of `switchyard login`: a page on which a person agrees, and the exchange of the code for a personal token. Codes are made in
// people/command-line-logins.ts.

import { displayName } from '../../api/resources/names.ts'
import { object, type Schema, string, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Caller } from '../access/authorize.ts'
import type { SingleSignOn } from '../access/people/single-sign-on.ts'
import { createToken, TOKEN_ONCE } from '../administration/tokens.ts'
import { type ControlParts, type Exchange, type Page, type Route, route } from '../routes/route.ts'
import { loginPage } from './login-page.ts'

const TOKEN_MS = 90 * 24 * 3_600_000

/** A port as text, because it comes from a query or a form. */
const PORT: Schema<string> = string({
  pattern: '^[1-9][0-9]{0,4}$',
  description: 'The port on 127.0.0.1 on which the command line listens.',
  check: (text) => (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? null : 'must be a port from 1 to 65535'),
})
const FIELDS = {
  port: PORT,
  state: string({
    min: 1,
    max: 200,
    description: 'Random text of the command line, which it gets back with the code.',
    check: (text) => (/^[\w.~-]+$/.test(text) ? null : 'must consist of letters, digits and the characters - . _ ~'),
  }),
  challenge: string({
    description: 'The SHA-256 of the verifier in base64url, without padding.',
    check: (text) => (/^[\w-]{43}$/.test(text) ? null : 'must be a SHA-256 in base64url, which has 43 characters'),
  }),
  name: withDefault(displayName('The name of the token, such as the name of the computer.'), 'Command line'),
}
const REQUEST = object(FIELDS)
const EXCHANGE = object({
  code: string({ min: 1, max: 200, writeOnly: true, description: 'The code that the browser handed over.' }),
  verifier: string({ min: 43, max: 128, writeOnly: true, description: 'The text whose SHA-256 is the challenge.' }),
})

export function commandLineRoutes(parts: ControlParts): Route[] {
  const { access, clock, store } = parts

  function configured(): SingleSignOn {
    if (access.singleSignOn === null) throw new ApiError('oidc_not_configured')
    return access.singleSignOn
  }

  return [
    route('GET', '/login/cli', {
      summary: 'Ask a person to give the command line access',
      access: 'public',
      description:
        'For browsers: `switchyard login` opens this page. When the person agrees, the browser is sent to http://127.0.0.1:PORT/ with a code, which is valid for a minute.',
      query: REQUEST,
      pages: { 200: 'A page that asks the person to agree, or to log in first.' },
      errors: ['oidc_not_configured'],
      async handle({ query, exchange }): Promise<Page> {
        configured()
        const caller = await personOf(exchange, (request) => access.authorize(request))
        if (caller === null) {
          const here = `/api/login/cli?${new URLSearchParams(query).toString()}`
          return {
            status: 200,
            html: loginPage({ kind: 'log_in', start: `/api/login/oidc?${new URLSearchParams({ returnTo: here }).toString()}` }),
          }
        }
        const { email, name } = caller.actor
        const person = email == null || email === name ? name : `${name} (${email})`
        return {
          status: 200,
          html: loginPage({ kind: 'consent', person, computer: query.name, port: Number(query.port), fields: query }),
          // Browsers apply form-action to the redirect, too.
          contentSecurityPolicy: `default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self' http://127.0.0.1:${query.port}; frame-ancestors 'none'`,
        }
      },
    }),
    route('POST', '/login/cli', {
      summary: 'Give the command line access',
      access: 'public',
      description: 'The form of the page before. Only a session of a person is accepted, and only from a page of this service.',
      body: REQUEST,
      form: true,
      pages: { 303: 'A redirect to http://127.0.0.1:PORT/ with `code` and `state`.' },
      errors: ['oidc_not_configured', 'unauthorized', 'cross_site_request', 'too_many_attempts'],
      async handle({ body, exchange }): Promise<Page> {
        const { commandLine } = configured()
        const { person, personSession } = await access.authorize(exchange.request)
        if (person === undefined || personSession === undefined)
          throw new ApiError('unauthorized', { message: 'Log in with single sign-on first: only people have personal tokens.' })
        const { port, state, challenge, name } = body
        const code = await commandLine.agree({ personId: person.personId, sessionKey: personSession, challenge, name })
        return { status: 303, location: `http://127.0.0.1:${port}/?${new URLSearchParams({ code, state }).toString()}` }
      },
    }),
    route('POST', '/login/cli/token', {
      summary: 'Exchange the code of a login for a personal token',
      access: 'public',
      description: 'The token has the role and the sources of the person, and expires after 90 days. It is shown only once.',
      body: EXCHANGE,
      status: 201,
      answer: TOKEN_ONCE,
      errors: ['oidc_not_configured', 'invalid_login_code', 'too_many_tokens'],
      async handle({ body }) {
        const { commandLine, people } = configured()
        const login = await commandLine.redeem(body.code, body.verifier)
        const live = login === null ? null : await people.live(login.sessionKey)
        if (login === null || live === null) throw new ApiError('invalid_login_code')
        const { id, subject, email, name, role, sources } = live.person
        return createToken(store, {
          actor: { id, name: name ?? email ?? subject.slice(0, 200), type: 'person', subject, email },
          wanted: { name: login.name, role, sources, expiresAtMs: clock.wallMs() + TOKEN_MS },
          owner: { personId: id, subject, email },
          nowMs: clock.wallMs(),
        })
      },
    }),
  ]
}

async function personOf({ request }: Exchange, authorize: (request: Exchange['request']) => Promise<Caller>): Promise<Caller | null> {
  try {
    const caller = await authorize(request)
    return caller.personSession === undefined ? null : caller
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}
