// Attacks on the login: by other sites, by other people, and by a provider or somebody in between who sends what it should not.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { Browser, CLIENT } from './fixtures/identity-provider.ts'
import { type Script, startScriptedProvider } from './fixtures/scripted-provider.ts'
import { type Desk, PUBLIC_URL, startDeskWith } from './fixtures/start-single-sign-on.ts'

async function startScripted(
  t: Parameters<typeof startScriptedProvider>[0],
  options: Parameters<typeof startDeskWith>[2] = {},
): Promise<Desk<Script>> {
  const desk = await startDeskWith(t, await startScriptedProvider(t), options)
  await desk.call('POST', '/api/sources', { name: 'shop' })
  return desk
}

const without =
  (...names: readonly string[]) =>
  (claims: JWTPayload): JWTPayload =>
    Object.fromEntries(Object.entries(claims).filter(([name]) => !names.includes(name)))

/** The callback to which the provider sends this browser. */
async function callbackOf(desk: Desk<Script>, browser: Browser, returnTo = '/'): Promise<string> {
  const start = await browser.get(`${desk.url}/api/login/oidc?${new URLSearchParams({ returnTo }).toString()}`)
  return (await browser.follow(start.headers.get('location') ?? '', desk.idp.issuer)).replace(PUBLIC_URL, desk.url)
}

async function assertRefused(desk: Desk<Script>, browser: Browser, response: Response, what: string): Promise<void> {
  assert.equal(response.status, 400, what)
  assert.ok(!response.headers.getSetCookie().some((cookie) => cookie.startsWith('switchyard_session=')), what)
  assert.equal((await desk.call('GET', '/api/session', undefined, desk.as(browser))).status, 401, what)
}

test('a callback works once, and only in the browser that started the login', async (t) => {
  const desk = await startScripted(t)
  const [ada, eve] = [new Browser(), new Browser()]
  const callback = await callbackOf(desk, ada)
  await assertRefused(desk, eve, await eve.get(callback), 'a browser that has not started a login')
  await callbackOf(desk, eve)
  await assertRefused(desk, eve, await eve.get(callback), 'login CSRF: the code of somebody else, in a browser with a login in progress')

  const next = await callbackOf(desk, ada)
  const jar = new Map(ada.jars.get(new URL(desk.url).origin))
  const first = await ada.get(next)
  assert.equal(first.status, 303)
  assert.ok(
    first.headers.getSetCookie().some((cookie) => /^switchyard_login=;.*Max-Age=0/.test(cookie)),
    'the cookie of the login is gone',
  )
  const copy = new Browser()
  copy.jars.set(new URL(desk.url).origin, jar)
  await assertRefused(desk, copy, await copy.get(next), 'replayed with a copy of the cookie')
})

test('a callback with another state, code or issuer is refused', async (t) => {
  const desk = await startScripted(t)
  for (const [what, change] of Object.entries<(query: URLSearchParams) => void>({
    'another state': (query) => query.set('state', 'x'),
    'no state': (query) => query.delete('state'),
    'two states': (query) => query.append('state', 'x'),
    'another code': (query) => query.set('code', 'forged'),
    'no code': (query) => query.delete('code'),
    'two codes': (query) => query.append('code', 'x'),
    'the issuer of another provider': (query) => query.set('iss', 'https://evil.example'),
    'no issuer, although the provider always sends it': (query) => query.delete('iss'),
    'a response of another flow': (query) => (query.delete('code'), query.set('response', 'x.y.z')),
  })) {
    const browser = new Browser()
    const callback = new URL(await callbackOf(desk, browser))
    change(callback.searchParams)
    await assertRefused(desk, browser, await browser.get(callback.href), what)
  }
})

test('the cookie of a login is Lax, and a forged one is ignored', async (t) => {
  const desk = await startScripted(t)
  const start = await new Browser().get(`${desk.url}/api/login/oidc`)
  assert.match(start.headers.getSetCookie()[0] ?? '', /^switchyard_login=v1\.[\w.-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/)
  const location = new URL(start.headers.get('location') ?? '')
  assert.equal(location.searchParams.get('code_challenge_method'), 'S256')
  for (const name of ['state', 'nonce', 'code_challenge']) assert.match(location.searchParams.get(name) ?? '', /^[\w-]{43}$/)
  const browser = new Browser()
  browser.jars.set(new URL(desk.url).origin, new Map([['switchyard_login', Buffer.from('{"state":"x"}').toString('base64url')]]))
  await assertRefused(
    desk,
    browser,
    await browser.get(`${desk.url}/api/login/oidc/callback?code=a&state=x&iss=${desk.idp.issuer}`),
    'forged',
  )
})

test('a login that takes more than ten minutes has to be started again', async (t) => {
  let nowMs = Date.now()
  const desk = await startScripted(t, { nowMs: () => nowMs })
  const browser = new Browser()
  const callback = await callbackOf(desk, browser)
  nowMs += 10 * 60_000
  await assertRefused(desk, browser, await browser.get(callback), 'too late')
})

test('a session that somebody chose before the login does not become one', async (t) => {
  const desk = await startScripted(t)
  const browser = new Browser()
  const planted = `p.per_${'0'.repeat(24)}.${'x'.repeat(43)}`
  browser.jars.set(new URL(desk.url).origin, new Map([['switchyard_session', planted]]))
  assert.equal((await desk.logIn(browser)).status, 303)
  const own = browser.jars.get(new URL(desk.url).origin)?.get('switchyard_session')
  assert.notEqual(own, planted)
  const attacker = { token: null, headers: { cookie: `switchyard_session=${planted}`, 'sec-fetch-site': 'same-origin' } }
  assert.equal((await desk.call('GET', '/api/session', undefined, attacker)).status, 401)
})

test('after the login, the browser goes only to paths of this service', async (t) => {
  const desk = await startScripted(t)
  for (const [wanted, expected] of [
    ['/sources?a=b#c', '/sources?a=b#c'],
    ['//evil.example', '/'],
    ['/\\evil.example', '/'],
    ['\\\\evil.example', '/'],
    ['/\t/evil.example', '/'],
    ['/.//evil.example', '/'],
    ['/x/..//evil.example', '/'],
    ['/%2f%2fevil.example', '/%2f%2fevil.example'],
    ['/%5cevil.example', '/%5cevil.example'],
    ['https://evil.example/', '/'],
    ['https:evil.example', '/'],
    ['javascript:alert(1)', '/'],
    ['evil.example', '/'],
    ['', '/'],
    [`/${'x'.repeat(5_000)}`, '/'],
  ] as const) {
    const browser = new Browser()
    const response = await browser.get(await callbackOf(desk, browser, wanted))
    assert.equal(response.headers.get('location'), expected, wanted)
  }
})

test('an ID token is refused unless it is signed by the provider, for this client and this login', async (t) => {
  const desk = await startScripted(t)
  const { idToken, sign } = desk.idp
  const other = generateKeyPair('RS256')
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const cases: Record<string, (script: Script) => void> = {
    'with alg none': (script) => (script.sign = async (claims) => `${part({ alg: 'none' })}.${part(claims)}.`),
    'signed with the client secret': (script) =>
      (script.sign = (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(CLIENT.secret.padEnd(32, 'x')))),
    'signed with another key': (script) =>
      (script.sign = async (claims) =>
        new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'key-1' }).sign((await other).privateKey)),
    'signed with a key that the provider does not have': (script) =>
      (script.sign = async (claims) =>
        new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'key-9' }).sign((await other).privateKey)),
    'for another client': changed((claims) => ({ ...claims, aud: 'another-client' })),
    'for several clients, issued to another': changed((claims) => ({ ...claims, aud: [CLIENT.id, 'another'], azp: 'another' })),
    'of another issuer': changed((claims) => ({ ...claims, iss: 'https://evil.example' })),
    'with another nonce': changed((claims) => ({ ...claims, nonce: 'x' })),
    'without a nonce': changed(without('nonce')),
    'without a subject': changed(without('sub')),
  }
  function changed(idToken: (claims: JWTPayload) => JWTPayload): (script: Script) => void {
    return (script) => (script.idToken = idToken)
  }
  for (const [what, change] of Object.entries(cases)) {
    Object.assign(desk.idp, { idToken, sign })
    change(desk.idp)
    const browser = new Browser()
    await assertRefused(desk, browser, await browser.get(await callbackOf(desk, browser)), what)
  }

  Object.assign(desk.idp, { sign, idToken: (claims: JWTPayload) => ({ ...claims, iat: nowSeconds - 900, exp: nowSeconds - 600 }) })
  const browser = new Browser()
  const response = await browser.get(await callbackOf(desk, browser, '/sources'))
  assert.equal(
    response.headers.get('location'),
    '/?login=clock_wrong&returnTo=%2Fsources',
    'expired: the login page says that a clock is wrong',
  )
  const { oidc } = (await desk.call('GET', '/api/login/methods', undefined, { token: null })).body
  assert.equal(oidc.problem.reason, 'clock_wrong')
})

test('groups may be text, a list, missing, of another type, or ten thousand', async (t) => {
  const desk = await startScripted(t)
  const many = Array.from({ length: 10_000 }, (_, index) => `group-${index}`)
  for (const [groups, expected] of [
    ['data-eng', 303],
    [['a', 'data-eng'], 303],
    [[...many, 'data-eng'], 303],
    [many, 403],
    [undefined, 403],
    ['data-eng ', 403],
    ['DATA-ENG', 403],
    ['a,data-eng', 403],
    [[['data-eng']], 403],
    [{ 'data-eng': true }, 403],
    [{ length: 1, 0: 'data-eng' }, 403],
    [7, 403],
    [null, 403],
  ] as const) {
    desk.idp.claims = { sub: 'ada', groups }
    const browser = new Browser()
    const response = await browser.get(await callbackOf(desk, browser))
    assert.equal(response.status, expected, JSON.stringify(groups)?.slice(0, 60))
  }
})

test('a logout token must be signed for this client, say that it is one, and be new', async (t) => {
  const desk = await startScripted(t)
  const browser = new Browser()
  await desk.logIn(browser)
  const post = async (token: string): Promise<number> =>
    (await fetch(`${desk.url}/api/login/oidc/backchannel-logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) }))
      .status
  for (const [what, change] of Object.entries<(claims: JWTPayload) => JWTPayload>({
    'another client': (claims) => ({ ...claims, aud: 'x' }),
    'another issuer': (claims) => ({ ...claims, iss: 'https://evil.example' }),
    'an ID token': without('events'),
    'with a nonce': (claims) => ({ ...claims, nonce: 'x' }),
    'an old one': (claims) => ({ ...claims, iat: Number(claims.iat) - 1_000 }),
    'about nobody': without('sub', 'sid'),
    'without an id': without('jti'),
  }))
    assert.equal(await post(await desk.idp.logoutToken(change)), 400, what)
  assert.equal((await desk.call('GET', '/api/session', undefined, desk.as(browser))).status, 200, 'nothing of this ended the session')
  assert.equal(await post(await desk.idp.logoutToken((claims) => ({ ...without('sub')(claims), sid: 'another session' }))), 200)
  assert.equal((await desk.call('GET', '/api/session', undefined, desk.as(browser))).status, 200, 'another session ended')
  const token = await desk.idp.logoutToken((claims) => claims)
  assert.equal(await post(token), 200)
  assert.equal((await desk.call('GET', '/api/session', undefined, desk.as(browser))).status, 401)
  assert.equal(await post(token), 400, 'a logout token works once')
  const entries = (await desk.call('GET', '/api/audit?action=session.logout')).body.data as { actor: { type: string; name: string } }[]
  assert.deepEqual(
    entries.map(({ actor }) => [actor.type, actor.name]),
    [['service', desk.idp.issuer]],
  )
})
