import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import test, { type TestContext } from 'node:test'
import { LiveFeed } from '../../observe/live.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { createClock } from '../../timing/clock.ts'
import { hashToken } from '../access/admin-token.ts'
import { type AccessOptions, createAccess, type TrustedProxies } from '../access/authorize.ts'
import { type Answer, type Fixture, startControl, TOKEN } from '../fixtures/start-control.ts'

const HOUR_MS = 3_600_000

/** Takes the address and the protocol from headers that only the test sends. */
const PROXIES: TrustedProxies = {
  senderAddress: ({ headers }: IncomingMessage) => String(headers['x-test-address'] ?? '192.0.2.1'),
  requestedOrigin: ({ headers }) => ({ protocol: headers['x-test-https'] === undefined ? 'http' : 'https', host: headers.host }),
}

interface Browser extends Fixture {
  origin: string
  logIn: (token?: string, headers?: Record<string, string>) => Promise<Answer>
  /** Sends a request with the cookie of a login. */
  as: (cookie: string, method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
}

async function startBrowser(t: TestContext, access: Partial<AccessOptions> = {}): Promise<Browser> {
  const fixture = await startControl(
    t,
    { live: new LiveFeed({ wallMs: () => Date.now(), maxListeners: 1 }) },
    { proxies: PROXIES, ...access },
  )
  const { url, call } = fixture
  return {
    ...fixture,
    origin: url,
    logIn: (token = TOKEN, headers = {}) => call('POST', '/api/login', { token }, { token: null, headers }),
    as: (cookie, method, path, body, headers = {}) => call(method, path, body, { token: null, headers: { cookie, ...headers } }),
  }
}

function cookieOf({ headers }: Answer): string {
  const [set = ''] = headers.getSetCookie()
  return set.split(';', 1)[0] as string
}

const SAME = { 'sec-fetch-site': 'same-origin' }

test('a login creates a session with the rights of the token', async (t) => {
  const { logIn, as } = await startBrowser(t)
  const answer = await logIn()
  assert.equal(answer.status, 200)
  const inMs = Date.parse(answer.body.expiresAt) - Date.now()
  assert.ok(inMs > 11.9 * HOUR_MS && inMs <= 12 * HOUR_MS)
  assert.match(answer.headers.get('set-cookie') ?? '', /^switchyard_session=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
  assert.doesNotMatch(answer.headers.get('set-cookie') ?? '', new RegExp(TOKEN))
  const cookie = cookieOf(answer)
  const session = await as(cookie, 'GET', '/api/session')
  assert.deepEqual(session.body, {
    actor: { id: 'admin', name: 'admin', type: 'token' },
    role: 'admin',
    sources: 'all',
    expiresAt: answer.body.expiresAt,
    dataSince: null,
  })
  const shop = await as(cookie, 'POST', '/api/sources', { name: 'Shop' }, SAME)
  assert.equal(shop.status, 201)
  assert.equal((await as(cookie, 'GET', '/api/session')).body.dataSince, shop.body.createdAt)
})

test('a write key in the login form is recognised by its form', async (t) => {
  const { logIn, call } = await startBrowser(t)
  const [key] = (await call('POST', '/api/sources', { name: 'Shop' })).body.writeKeys as [string]
  const refused = await logIn(key)
  assert.equal(refused.status, 401)
  assert.match(refused.body.message, /looks like a write key/)
  assert.match((await logIn('wrong')).body.message, /^The token is not valid or was revoked/)
})

test('over https, also behind a proxy, the cookie is Secure and tied to the host', async (t) => {
  const { logIn, as } = await startBrowser(t)
  const https = { 'x-test-https': '1' }
  const answer = await logIn(TOKEN, https)
  assert.match(
    answer.headers.get('set-cookie') ?? '',
    /^__Host-switchyard_session=.*; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/,
  )
  const cookie = cookieOf(answer)
  assert.equal((await as(cookie, 'GET', '/api/session', undefined, https)).status, 200)
  assert.equal(
    (await as(cookie.replace('__Host-', ''), 'GET', '/api/session', undefined, https)).status,
    401,
    'a neighbour can set that one',
  )
})

test('the session of a viewer can read but not change anything', async (t) => {
  const { call, logIn, as } = await startBrowser(t)
  const { body } = await call('POST', '/api/tokens', { name: 'Vera', role: 'viewer' })
  const cookie = cookieOf(await logIn(body.token))
  assert.equal((await as(cookie, 'GET', '/api/session')).body.role, 'viewer')
  assert.equal((await as(cookie, 'POST', '/api/sources', { name: 'Shop' }, SAME)).body.code, 'forbidden')
})

test('a session ends when it expires, when its token is revoked, and when the session key changes', async (t) => {
  const late = { ms: 0 }
  const real = createClock()
  const clock = { wallMs: () => real.wallMs() + late.ms, scheduleMs: () => real.scheduleMs() }
  const { call, logIn, as, deps } = await startBrowser(t, { clock })
  const { body } = await call('POST', '/api/tokens', { name: 'Ann', role: 'admin' })
  const cookie = cookieOf(await logIn(body.token))
  late.ms = 12 * HOUR_MS - 5_000
  assert.equal((await as(cookie, 'GET', '/api/session')).status, 200)
  late.ms = 12 * HOUR_MS + 5_000
  assert.equal((await as(cookie, 'GET', '/api/session')).status, 401, 'use does not extend the session')
  const again = cookieOf(await logIn(body.token))
  const actor = { id: body.id, name: 'Ann', type: 'token', owner: null } as const
  const caller = { actor, role: 'admin', sources: 'all', expiresAtMs: null } as const
  assert.ok(await deps.access.isStillValid(caller))
  assert.equal((await as(again, 'DELETE', `/api/tokens/${body.id}`, undefined, SAME)).status, 204)
  assert.equal((await as(again, 'GET', '/api/session')).status, 401)
  assert.ok(!(await deps.access.isStillValid(caller)), 'long responses end too')
  const other = await startBrowser(t)
  assert.equal((await other.as(cookieOf(await logIn()), 'GET', '/api/session')).status, 401)
})

test('after a logout a copied cookie is worthless, other sessions go on, and open streams of the session end', async (t) => {
  const { logIn, as, deps, origin } = await startBrowser(t)
  const copied = cookieOf(await logIn())
  // A session of the same millisecond would be the same.
  await new Promise((resolve) => setTimeout(resolve, 2))
  const kept = cookieOf(await logIn())
  assert.notEqual(copied, kept)
  const live = await fetch(`${origin}/api/live`, { headers: { cookie: copied } })
  assert.equal(live.status, 200)
  assert.equal((await as(copied, 'POST', '/api/logout', undefined, SAME)).status, 204)
  assert.equal((await as(copied, 'GET', '/api/session')).status, 401)
  assert.equal((await as(copied, 'POST', '/api/sources', { name: 'Shop' }, SAME)).status, 401)
  assert.equal((await as(kept, 'GET', '/api/session')).status, 200)
  // Ends only because the session has ended.
  await live.text()
  // Another process on the same store, as after a restart.
  const next = await createAccess({ store: deps.store, clock: createClock(), admin: { hash: hashToken(TOKEN) } })
  const allows = (cookie: string): Promise<boolean> =>
    next.allows({ method: 'GET', headers: { cookie }, socket: { remoteAddress: '127.0.0.1' } } as unknown as IncomingMessage)
  assert.deepEqual([await allows(copied), await allows(kept)], [false, true])
})

test('an ended session is forgotten when it would have expired', async (t) => {
  const late = { ms: 0 }
  const real = createClock()
  const clock = { wallMs: () => real.wallMs() + late.ms, scheduleMs: () => real.scheduleMs() }
  const { logIn, as, deps } = await startBrowser(t, { clock })
  for (const ms of [0, 1_000, 12 * HOUR_MS + 5_000]) {
    late.ms = ms
    await as(cookieOf(await logIn()), 'POST', '/api/logout', undefined, SAME)
  }
  assert.equal((await deps.store.documents.list('ended_session', { order: 'key', limit: 10 })).length, 1)
})

test('a logout that cannot be stored fails, and still removes the cookie from the browser', async (t) => {
  const { logIn, as, deps } = await startBrowser(t)
  const cookie = cookieOf(await logIn())
  t.mock.method(deps.store.documents, 'update', () => Promise.reject(new StoreUnavailable('the disk is full')))
  const answer = await as(cookie, 'POST', '/api/logout', undefined, SAME)
  assert.equal(answer.status, 503)
  assert.match(answer.headers.get('set-cookie') ?? '', /^switchyard_session=; .*Max-Age=0$/)
})

test('logging out removes the cookie, whether or not there was one', async (t) => {
  const { call, logIn, as } = await startBrowser(t)
  const answer = await as(cookieOf(await logIn()), 'POST', '/api/logout', undefined, SAME)
  assert.equal(answer.status, 204)
  assert.equal(answer.headers.get('set-cookie'), 'switchyard_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0')
  assert.equal((await call('POST', '/api/logout', undefined, { token: null })).status, 204)
  const foreign = await call('POST', '/api/logout', undefined, { token: null, headers: { 'sec-fetch-site': 'cross-site' } })
  assert.equal(foreign.body.code, 'cross_site_request')
})

test('a change from another page with the cookie is rejected', async (t) => {
  const { logIn, as, origin, store } = await startBrowser(t)
  const cookie = cookieOf(await logIn())
  const before = store.configuration()
  const { host, port } = new URL(origin)
  const from = (headers: Record<string, string>): Promise<Answer> => as(cookie, 'POST', '/api/sources', { name: 'x' }, headers)
  for (const headers of [
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'cross-site', origin },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `https://${host}` },
    { origin: `http://127.0.0.1:${Number(port) + 1}` },
    { origin: `http://127.0.0.1` },
    { origin: `http://${host}.evil.example` },
    { origin: `http://user@${host}` },
  ] as Record<string, string>[]) {
    const { status, body } = await from(headers)
    assert.deepEqual([status, body.code], [403, 'cross_site_request'], JSON.stringify(headers))
  }
  assert.equal(store.configuration(), before)
  assert.equal((await from({ origin })).status, 201, 'a browser that sends only Origin')
  assert.equal((await from({ ...SAME, origin: 'https://proxy.example' })).status, 201, 'behind an unknown proxy')
})

test('other origins cannot read responses, and requests that state another origin are rejected', async (t) => {
  const { logIn, as, call } = await startBrowser(t)
  const cookie = cookieOf(await logIn())
  for (const site of ['cross-site', 'same-site']) {
    assert.equal((await as(cookie, 'GET', '/api/sources', undefined, { 'sec-fetch-site': site })).body.code, 'cross_site_request')
  }
  assert.equal((await as(cookie, 'GET', '/api/sources', undefined, { 'sec-fetch-site': 'none' })).status, 200, 'typed into the address bar')
  const plain = await as(cookie, 'GET', '/api/sources', undefined, { origin: 'https://evil.example' })
  assert.equal(plain.body.code, 'cross_site_request')
  const preflight = await call('OPTIONS', '/api/sources', undefined, {
    token: null,
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' },
  })
  assert.equal(preflight.status, 401)
  for (const { headers } of [plain, preflight, await as(cookie, 'GET', '/api/sources', undefined, SAME)]) {
    assert.deepEqual(
      [...headers.keys()].filter((name) => name.startsWith('access-control')),
      [],
    )
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
  }
})

test('a bearer token is accepted from any origin, and a cookie does not make up for a wrong one', async (t) => {
  const { call, logIn } = await startBrowser(t)
  const cookie = cookieOf(await logIn())
  const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', cookie }
  assert.equal((await call('POST', '/api/sources', { name: 'x' }, { headers })).status, 201)
  for (const token of ['wrong', '']) {
    assert.equal((await call('GET', '/api/sources', undefined, { token, headers: { ...SAME, cookie } })).status, 401)
  }
})

test('a session works behind a proxy with its own Basic authentication', async (t) => {
  const { logIn, as } = await startBrowser(t)
  const cookie = cookieOf(await logIn())
  const authorization = 'Basic cHJveHk6cGFzc3dvcmQ='
  assert.equal((await as(cookie, 'GET', '/api/session', undefined, { authorization })).status, 200)
  assert.equal((await as(cookie, 'POST', '/api/sources', { name: 'Shop' }, { authorization, 'sec-fetch-site': 'same-site' })).status, 403)
  assert.equal((await as('', 'GET', '/api/session', undefined, { authorization })).status, 401)
  assert.equal((await as(cookie, 'GET', '/api/session', undefined, { authorization: 'Bearer' })).status, 401)
})

test('another page cannot log in a browser, but a program can log in', async (t) => {
  const { logIn, origin } = await startBrowser(t)
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-site', origin },
  ]) {
    const answer = await logIn(TOKEN, headers)
    assert.deepEqual([answer.body.code, answer.headers.get('set-cookie')], ['cross_site_request', null])
  }
  assert.equal((await logIn()).status, 200)
  assert.equal((await logIn(TOKEN, { origin })).status, 200)
})

test('wrong tokens are rate limited by address, for logins and bearer tokens alike, and are logged without the token', async (t) => {
  const failures: unknown[] = []
  const { call, logIn } = await startBrowser(t, { onFailure: (failure) => failures.push(failure) })
  const tries: Answer[] = []
  for (let at = 0; at < 16; at += 2) {
    tries.push(await logIn(`SECRET-guess-${at}`))
    tries.push(await call('GET', '/api/sources', undefined, { token: `SECRET-guess-${at + 1}` }))
  }
  const codes = tries.map(({ body }) => body.code)
  assert.deepEqual(
    codes.slice(0, 10),
    Array.from({ length: 10 }, () => 'unauthorized'),
  )
  assert.deepEqual(
    codes.slice(10),
    Array.from({ length: 6 }, () => 'too_many_attempts'),
  )
  const last = tries.at(-1) as Answer
  const seconds = Number(last.headers.get('retry-after'))
  assert.ok(last.status === 429 && Number.isInteger(seconds) && seconds >= 1 && seconds <= 10)
  assert.equal((await logIn()).status, 429, 'not even the valid token is accepted from there, or guessing could continue')
  assert.equal((await call('GET', '/api/sources')).status, 429)
  assert.deepEqual(failures[0], { address: '192.0.2.1', how: 'login' })
  assert.deepEqual(failures[1], { address: '192.0.2.1', how: 'bearer' })
  assert.equal(failures.length, 10, 'tokens that are not checked are not logged')
  assert.doesNotMatch(JSON.stringify([failures, tries.map(({ text }) => text)]), /SECRET/)
  const elsewhere = { 'x-test-address': '192.0.2.2' }
  assert.equal((await logIn(TOKEN, elsewhere)).status, 200)
  assert.equal((await call('GET', '/api/sources', undefined, { headers: elsewhere })).status, 200)
})

test('an attacker who guesses from the same address does not lock out the owner of a generated token', async (t) => {
  const { call, logIn } = await startBrowser(t)
  const { token } = (await call('POST', '/api/tokens', { name: 'Prometheus' })).body
  for (let at = 0; at < 20; at++) await logIn(`guess-${at}`)
  assert.equal((await logIn()).status, 429, 'a token that a person chose could be guessed')
  assert.equal((await call('GET', '/api/sources', undefined, { token })).status, 200)
  assert.equal((await logIn(token)).status, 200)
  const wrong = `sy_${'A'.repeat(43)}`
  assert.equal((await logIn(wrong)).status, 429, 'a wrong token in the form of a generated one waits too')
})

test('a cookie of the same name that another port has set does not end a session', async (t) => {
  const { logIn, as } = await startBrowser(t)
  const cookie = cookieOf(await logIn())
  assert.equal((await as(`switchyard_session=tossed.in; ${cookie}`, 'GET', '/api/session')).status, 200)
  assert.equal((await as(`${'switchyard_session=tossed.in; '.repeat(200)}${cookie}`, 'GET', '/api/session')).status, 200)
})

test('concurrent attempts are counted separately', async (t) => {
  const { logIn } = await startBrowser(t)
  const codes = (await Promise.all(Array.from({ length: 60 }, (_, at) => logIn(`guess-${at}`)))).map(({ body }) => body.code)
  assert.equal(codes.filter((code) => code === 'unauthorized').length, 10)
})

test('however many addresses fail, a valid token from another address is accepted at once', async (t) => {
  const { call, logIn } = await startBrowser(t)
  for (let at = 0; at < 300; at++) await logIn('guess', { 'x-test-address': `198.51.${at >> 8}.${at & 255}` })
  const fresh = { 'x-test-address': '203.0.113.1' }
  assert.equal((await logIn('guess', fresh)).status, 401)
  assert.equal((await logIn('another', fresh)).status, 429, 'the tight limit applies to all')
  assert.equal((await logIn(TOKEN, { 'x-test-address': '203.0.113.2' })).status, 200)
  assert.equal((await call('GET', '/api/sources', undefined, { headers: { 'x-test-address': '203.0.113.3' } })).status, 200)
})

test('a session that has ended, or no token at all, is not a guess', async (t) => {
  const { call, as, logIn } = await startBrowser(t)
  for (let at = 0; at < 30; at++) {
    assert.equal((await as('switchyard_session=over.over', 'GET', '/api/session')).status, 401)
    assert.equal((await call('GET', '/api/sources', undefined, { token: null })).status, 401)
    assert.equal((await call('GET', '/api/sources', undefined, { token: null, headers: { authorization: 'Basic eDp5' } })).status, 401)
  }
  assert.equal((await logIn()).status, 200)
})

test('login works while the store cannot be written', async (t) => {
  const { logIn, as, store } = await startBrowser(t)
  store.history.noteAudit = () => Promise.reject(new StoreUnavailable('disk full'))
  store.resources.setSetting = () => Promise.reject(new StoreUnavailable('disk full'))
  const cookie = cookieOf(await logIn())
  assert.equal((await as(cookie, 'GET', '/api/session')).status, 200)
  assert.equal((await as(cookie, 'POST', '/api/logout', undefined, SAME)).status, 204)
})

test('an invalid login request is rejected, and the response does not repeat its content', async (t) => {
  const { call } = await startBrowser(t)
  for (const [raw, code] of [
    ['{"token":"SECRET","x":1}', 'unknown_field'],
    ['{"token":["SECRET"]}', 'invalid_field'],
    ['{"token":""}', 'invalid_field'],
    ['{}', 'invalid_field'],
    ['SECRET', 'invalid_json'],
    [`{"token":"${'SECRET'.repeat(200)}"}`, 'invalid_field'],
    [`{"token":"${'SECRET'.repeat(5_000)}"}`, 'body_too_large'],
    ['{"__proto__":{"token":"SECRET"}}', 'unknown_field'],
  ] as const) {
    const { status, body, text } = await call('POST', '/api/login', undefined, { token: null, raw })
    assert.deepEqual([status, body.code], [400, code], raw.slice(0, 60))
    assert.doesNotMatch(text, /SECRET/)
  }
})

test('a cookie cannot inject anything into the response headers', async (t) => {
  const { url } = await startBrowser(t)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const cookie = 'switchyard_session=%0d%0aset-cookie:x=y; switchyard_session=\x01'
  socket.write(`POST /api/logout HTTP/1.1\r\nhost: x\r\ncookie: ${cookie}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  assert.doesNotMatch(text, /x=y/)
})
