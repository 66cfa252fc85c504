// Sessions and tokens of people after the login: the provider is asked again, and what ends there ends here.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LiveFeed } from '../../observe/live.ts'
import { openSingleSignOn } from '../access/people/single-sign-on.ts'
import type { CallOptions } from '../fixtures/start-control.ts'
import { Browser } from './fixtures/identity-provider.ts'
import { type Script, startScriptedProvider } from './fixtures/scripted-provider.ts'
import { type Desk, SETTINGS, startDeskWith } from './fixtures/start-single-sign-on.ts'

const MINUTE_MS = 60_000

interface Timed extends Desk<Script> {
  pass(ms: number): void
  nowMs(): number
  /** A session of the person of the script. */
  enter(): Promise<CallOptions>
  status(options: CallOptions): Promise<number>
  shop: string
}

async function start(t: Parameters<typeof startScriptedProvider>[0], options: Parameters<typeof startDeskWith>[2] = {}): Promise<Timed> {
  let offsetMs = 0
  const desk = await startDeskWith(t, await startScriptedProvider(t), { nowMs: () => Date.now() + offsetMs, ...options })
  const shop = (await desk.call('POST', '/api/sources', { name: 'shop' })).body.id
  return {
    ...desk,
    shop,
    pass: (ms) => void (offsetMs += ms),
    nowMs: () => Date.now() + offsetMs,
    async enter() {
      const browser = new Browser()
      assert.equal((await desk.logIn(browser)).status, 303)
      return desk.as(browser)
    },
    status: async (session) => (await desk.call('GET', '/api/session', undefined, session)).status,
  }
}

test('a session is asked about at the provider once a minute while it is used, with each refresh token once', async (t) => {
  const desk = await start(t)
  const session = await desk.enter()
  const asked = (): number => desk.idp.requests.filter((path) => path === '/token').length
  const before = asked()
  for (let request = 0; request < 5; request += 1) assert.equal(await desk.status(session), 200)
  assert.equal(asked(), before)
  for (let minute = 1; minute <= 3; minute += 1) {
    desk.pass(MINUTE_MS)
    const statuses = await Promise.all(Array.from({ length: 8 }, () => desk.status(session)))
    assert.deepEqual(new Set(statuses), new Set([200]))
    assert.equal(asked(), before + minute)
  }
  assert.equal(desk.idp.reused, 0)
})

test('two nodes do not ask with the same refresh token at the same time', async (t) => {
  const desk = await start(t)
  const session = await desk.enter()
  const { people, ...other } = await openSingleSignOn(
    { ...SETTINGS, issuer: desk.idp.issuer },
    { store: desk.store, clock: { ...desk.deps.clock, wallMs: () => desk.nowMs() }, onEvent: () => {} },
  )
  t.after(() => other.close())
  const cookie = /switchyard_session=(.*)/.exec(session.headers?.['cookie'] ?? '')?.[1] ?? ''
  for (let minute = 0; minute < 3; minute += 1) {
    desk.pass(MINUTE_MS)
    const both = await Promise.all(
      Array.from({ length: 6 }, (_, index) => (index % 2 === 0 ? people.sessionOf(cookie) : desk.singleSignOn.people.sessionOf(cookie))),
    )
    assert.ok(both.every((live) => live !== null))
  }
  assert.equal(desk.idp.reused, 0)
  assert.equal(desk.idp.requests.filter((path) => path === '/token').length, 4)
})

for (const [what, change] of Object.entries<(script: Script) => void>({
  invalid_grant: (script) => script.answers.set('/token', { status: 400, body: { error: 'invalid_grant' } }),
  'status 401': (script) => script.answers.set('/token', { status: 401 }),
  'another subject': (script) => (script.claims = { ...script.claims, sub: 'eve' }),
  'claims to which no rule applies': (script) => (script.claims = { ...script.claims, groups: ['others'] }),
  'no such claim any more': (script) => (script.claims = { sub: 'ada' }),
})) {
  test(`a session ends at once when the provider answers with ${what}`, async (t) => {
    const desk = await start(t)
    const session = await desk.enter()
    const token = (await desk.call('POST', '/api/tokens', { name: 'own' }, session)).body.token
    assert.equal(await desk.status({ token }), 200)
    change(desk.idp)
    assert.equal(await desk.status(session), 200, 'not before the provider is asked')
    desk.pass(MINUTE_MS)
    assert.equal(await desk.status(session), 401)
    assert.equal(await desk.status({ token }), 401, 'nor does a token of a person without access work')
  })
}

test('without refresh tokens, the userinfo endpoint is asked, and its 401 ends the session', async (t) => {
  const desk = await start(t)
  desk.idp.refreshes = false
  desk.idp.userinfo = { name: 'Ada' }
  const session = await desk.enter()
  desk.pass(MINUTE_MS)
  assert.equal(await desk.status(session), 200, 'the groups are known from the ID token of the login')
  desk.idp.answers.set('/userinfo', { status: 401 })
  desk.pass(MINUTE_MS)
  assert.equal(await desk.status(session), 401)
})

for (const [what, answer] of Object.entries({ 'does not answer': null, 'answers 500': { status: 500 }, 'answers 429': { status: 429 } })) {
  test(`a provider that ${what} ends no session before the grace is over, and the admin token works after that`, async (t) => {
    const desk = await start(t)
    const session = await desk.enter()
    desk.pass(MINUTE_MS)
    for (const path of ['/token', '/userinfo', '/.well-known/openid-configuration', '/jwks']) desk.idp.answers.set(path, answer)
    assert.equal(await desk.status(session), 200)
    desk.pass(14 * MINUTE_MS)
    assert.equal(await desk.status(session), 200)
    desk.idp.answers.clear()
    desk.pass(MINUTE_MS / 2)
    assert.equal(await desk.status(session), 200)
    desk.pass(MINUTE_MS)
    assert.equal(await desk.status(session), 200, 'it is back')

    for (const path of ['/token', '/userinfo', '/.well-known/openid-configuration', '/jwks']) desk.idp.answers.set(path, answer)
    desk.pass(MINUTE_MS)
    assert.equal(await desk.status(session), 200)
    desk.pass(15 * MINUTE_MS)
    assert.equal(await desk.status(session), 401)
    const browser = new Browser()
    const refused = await browser.get(`${desk.url}/api/login/oidc?returnTo=/live`)
    assert.equal(refused.headers.get('location'), '/?login=unreachable&returnTo=%2Flive')
    const methods = (await desk.call('GET', '/api/login/methods', undefined, { token: null })).body
    assert.equal(methods.oidc.problem.reason, 'unreachable')
    const check = (await desk.call('GET', '/api/diagnostics')).body.checks.find(({ name }: { name: string }) => name === 'single_sign_on')
    assert.equal(check.state, 'bad')
    assert.match(check.message, /does not respond/)
    assert.equal(await desk.status({}), 200)
  })
}

test('keys that the provider has just replaced are found', async (t) => {
  const desk = await start(t)
  const session = await desk.enter()
  await desk.idp.rotateKeys()
  desk.pass(MINUTE_MS)
  assert.equal(await desk.status(session), 200)
  await desk.idp.rotateKeys()
  assert.equal(await desk.status(await desk.enter()), 200)
})

test('a session lasts twelve hours at most', async (t) => {
  const desk = await start(t)
  const session = await desk.enter()
  desk.pass(12 * 60 * MINUTE_MS - 1_000)
  assert.equal(await desk.status(session), 200)
  desk.pass(1_000)
  assert.equal(await desk.status(session), 401)
})

test('a live stream ends within a second when its session ends, and when the scope of the person shrinks', async (t) => {
  const live = new LiveFeed({ wallMs: () => Date.now() })
  const desk = await start(t, { parts: { live } })
  await desk.call('POST', '/api/sources', { name: 'other' })
  const rules = desk.idp
  async function open({ headers = {}, token }: CallOptions): Promise<() => Promise<number>> {
    const own = token == null ? headers : { authorization: `Bearer ${token}` }
    const response = await fetch(`${desk.url}/api/live`, { headers: own })
    assert.equal(response.status, 200)
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    return async () => {
      const startedMs = performance.now()
      while (!(await reader.read()).done);
      return performance.now() - startedMs
    }
  }
  rules.claims = { sub: 'ada', groups: ['everybody'] }
  const first = await desk.enter()
  const ended = await open(first)
  const [person] = (await desk.call('GET', '/api/people')).body.data
  assert.deepEqual([person.role, person.sources], ['viewer', 'all'])
  assert.equal((await desk.call('DELETE', `/api/people/${person.id}/sessions`)).status, 204)
  assert.ok((await ended()) < 1_000)
  assert.equal(await desk.status(first), 401)
  assert.equal((await desk.call('GET', '/api/people')).body.data[0].sessions, 0)

  const second = await desk.enter()
  const token = (await desk.call('POST', '/api/tokens', { name: 'own' }, second)).body.token
  const shrunk = await Promise.all([open(second), open({ token })])
  rules.claims = { sub: 'ada', groups: ['data-eng'] }
  desk.pass(MINUTE_MS)
  // Also the stream of a token of this person.
  for (const end of shrunk) await end()
  const session = await desk.call('GET', '/api/session', undefined, second)
  assert.deepEqual([session.body.role, session.body.sources], ['editor', [desk.shop]], 'the session goes on with less')
})

test('rules with a name that no source has, or several, give nothing and are logged', async (t) => {
  const desk = await start(t, { rules: [{ claim: 'groups', value: 'data-eng', role: 'editor', sources: ['shop', 'nothing', 'system'] }] })
  const session = await desk.enter()
  const known = async () => (await desk.call('GET', '/api/session', undefined, session)).body.sources
  assert.deepEqual(await known(), [desk.shop])
  assert.deepEqual(new Set(desk.events.map(({ source }) => source)), new Set(['nothing', 'system']))
  const twin = (await desk.call('POST', '/api/sources', { name: 'shop' })).body.id
  desk.pass(MINUTE_MS)
  assert.deepEqual(await known(), [], 'an ambiguous name gives neither')
  await desk.call('DELETE', `/api/sources/${twin}`)
  desk.pass(MINUTE_MS)
  assert.deepEqual(await known(), [desk.shop])
})

test('an email counts only if the provider has verified it, and a person is not their email', async (t) => {
  const desk = await start(t, { rules: [{ claim: 'email', value: 'ada@example.com', role: 'viewer', sources: 'all' }] })
  const logIn = async (claims: Record<string, unknown>): Promise<number> => {
    desk.idp.claims = claims
    return (await desk.logIn(new Browser())).status
  }
  assert.equal(await logIn({ sub: 'ada', email: 'ada@example.com' }), 403)
  assert.equal(await logIn({ sub: 'ada', email: 'ada@example.com', email_verified: 'true' }), 403)
  assert.equal(await logIn({ sub: 'ada', email: 'ada@example.com', email_verified: true }), 303)
  assert.equal(await logIn({ sub: 'another', email: 'ada@example.com', email_verified: true }), 303)
  assert.equal((await desk.call('GET', '/api/people')).body.data.length, 2)
})

test('people make, list and revoke tokens of their own, with at most what they have', async (t) => {
  const desk = await start(t)
  const other = (await desk.call('POST', '/api/sources', { name: 'other' })).body.id
  const service = (await desk.call('POST', '/api/tokens', { name: 'ci', role: 'viewer' })).body
  const session = await desk.enter()
  const make = (body: object, options: CallOptions = session) => desk.call('POST', '/api/tokens', { name: 'own', ...body }, options)
  const own = (await make({})).body
  assert.deepEqual([own.role, own.sources, own.owner], ['editor', [desk.shop], { subject: 'ada', email: 'ada@example.com' }])
  assert.equal((await make({ role: 'viewer' })).body.role, 'viewer')
  assert.equal((await make({ role: 'admin' })).status, 403)
  assert.equal((await make({ sources: 'all' })).status, 403)
  const [foreign, unknown] = [await make({ sources: [other] }), await make({ sources: ['src_nothing'] })]
  assert.deepEqual(
    [foreign.status, foreign.body.message],
    [400, unknown.body.message],
    'a source out of scope is refused like one that does not exist',
  )
  assert.equal((await make({}, { token: own.token })).status, 403, 'a token makes no tokens')
  assert.equal((await make({ name: 7 }, { token: own.token })).status, 403, 'before it is looked at')

  const listed = (await desk.call('GET', '/api/tokens', undefined, session)).body.data
  assert.deepEqual(new Set(listed.map(({ owner }: { owner: unknown }) => JSON.stringify(owner))), new Set([JSON.stringify(own.owner)]))
  assert.equal((await desk.call('GET', '/api/tokens')).body.data.find(({ id }: { id: string }) => id === service.id).owner, null)
  assert.equal((await desk.call('DELETE', `/api/tokens/${service.id}`, undefined, session)).body.code, 'token_not_found')
  assert.equal((await desk.call('DELETE', '/api/tokens/admin', undefined, session)).body.code, 'token_not_found')
  assert.equal((await desk.call('DELETE', `/api/tokens/${own.id}`, undefined, session)).status, 204)
  assert.equal(await desk.status({ token: own.token }), 401)
  const audit = (await desk.call('GET', '/api/audit?action=token.create')).body.data[0]
  assert.deepEqual([audit.actor.type, audit.actor.subject, audit.actor.email], ['person', 'ada', 'ada@example.com'])
  const statuses: number[] = []
  for (let nth = 2; nth <= 21; nth++) statuses.push((await make({})).status)
  assert.deepEqual([new Set(statuses.slice(0, -1)), statuses.at(-1)], [new Set([201]), 409], 'a person has 20 tokens at most')
  assert.equal((await make({})).body.code, 'too_many_tokens')
})

test('a token has the lesser of its own and the present role and sources of its owner, who is asked about hourly without a session', async (t) => {
  const desk = await start(t)
  desk.idp.claims = { sub: 'ada', groups: ['admins'] }
  const session = await desk.enter()
  const token = (await desk.call('POST', '/api/tokens', { name: 'own' }, session)).body.token
  const seen = async () => {
    const { status, body } = await desk.call('GET', '/api/session', undefined, { token })
    return status === 200 ? [body.role, body.sources] : status
  }
  assert.deepEqual(await seen(), ['admin', 'all'])
  const entry = (await desk.call('POST', '/api/sources', { name: 'made' }, { token })).status
  assert.equal(entry, 201)
  const audit = (await desk.call('GET', '/api/audit?action=source.create')).body.data[0]
  assert.deepEqual([audit.actor.type, audit.actor.owner], ['token', { subject: 'ada', email: null }])

  assert.equal((await desk.call('POST', '/api/logout', undefined, session)).status, 204)
  assert.deepEqual(await seen(), ['admin', 'all'], 'the end of the session does not end the token')
  desk.idp.claims = { sub: 'ada', groups: ['data-eng'] }
  desk.pass(59 * MINUTE_MS)
  await desk.singleSignOn.people.tend(desk.store.configuration().tokens.values())
  assert.deepEqual(await seen(), ['editor', [desk.shop]], 'the timer has asked')
  desk.idp.answers.set('/token', null)
  desk.pass(61 * MINUTE_MS)
  assert.deepEqual(await seen(), ['editor', [desk.shop]], 'within the grace')
  desk.pass(15 * MINUTE_MS)
  assert.equal(await seen(), 401, 'a provider that is away for longer ends it')
  desk.idp.answers.clear()
  desk.pass(MINUTE_MS)
  assert.deepEqual(await seen(), ['editor', [desk.shop]], 'until it is back')
  desk.idp.answers.set('/token', { status: 400, body: { error: 'invalid_grant' } })
  desk.pass(61 * MINUTE_MS)
  assert.equal(await seen(), 401)
  desk.idp.answers.clear()
  await desk.enter()
  assert.deepEqual(await seen(), ['editor', [desk.shop]], 'the person is back')
})

test('the store has no token of the provider in plain text, and no cookie', async (t) => {
  const desk = await start(t)
  const session = await desk.enter()
  const kinds = await Promise.all(
    ['person', 'person-session', 'person-used'].map((kind) => desk.store.documents.list(kind, { order: 'key', limit: 100 })),
  )
  const text = JSON.stringify(kinds)
  assert.ok(kinds.every((documents) => documents.length === 1))
  assert.doesNotMatch(text, /refresh-\d|"access"/)
  assert.ok(!text.includes(session.headers?.['cookie']?.split('.').at(-1) ?? 'nothing'))
})
