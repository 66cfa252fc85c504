// The token endpoint over HTTP on a real store, and the validation of its tokens. Assertions are built by hand, so that each can be
// invalid in exactly one way.

import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import Fastify from 'fastify'
import { newStoreLocation, type TestStore } from '../store/fixtures/test-store.ts'
import { type OAuthApp, type Store, StoreUnavailable } from '../store/store.ts'
import { createAccessTokens } from './access-token.ts'
import { createOAuth, type OAuth, type OAuthDeps } from './oauth.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ed = generateKeyPairSync('ed25519')
const spki = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString()

const KEYS = [
  { id: 'rsa', publicKeyPem: spki(rsa.publicKey), createdAtMs: 0 },
  { id: 'ec', publicKeyPem: spki(ec.publicKey), createdAtMs: 0 },
  { id: 'ed', publicKeyPem: spki(ed.publicKey), createdAtMs: 0 },
]

interface Assertion {
  header?: object
  claims?: object
  /** Claims to leave out. */
  without?: string[]
  signature?: (input: string) => Buffer
}

interface Rig {
  url: string
  store: TestStore
  oauth: OAuth
  app: OAuthApp
  sourceId: string
  /** The clock, which tests can set. */
  clock: { nowMs: number }
  log: string[]
  assertion: (change?: Assertion) => string
  /** Sends a token request, with a valid assertion unless overridden. */
  ask: (form?: Record<string, string>, init?: RequestInit) => Promise<{ status: number; headers: Headers; text: string; body: Answer }>
  token: (change?: Assertion) => Promise<string>
}

interface Answer {
  access_token: string
  token_type: string
  expires_in: number
  scope: string
  error: string
  error_description: string
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const rs256 = (input: string): Buffer => sign('sha256', Buffer.from(input), rsa.privateKey)

async function startRig(
  t: TestContext,
  overrides: Partial<OAuthDeps> & { wrap?: (store: Store) => OAuthDeps['store'] } = {},
): Promise<Rig> {
  const place = await newStoreLocation()
  const store = await place.open()
  const { id: sourceId } = await store.resources.createSource({ name: 's', enabled: true, writeKeys: ['k'], requireOAuth: true })
  const app = await store.resources.createOAuthApp({ name: 'a', sourceIds: [sourceId], keys: KEYS, revokedBeforeMs: null })
  const clock = { nowMs: Date.now() }
  const { wrap = () => store, ...deps } = overrides
  const oauth = createOAuth({
    store: wrap(store),
    clock: { wallMs: () => clock.nowMs, scheduleMs: () => clock.nowMs },
    requestedOrigin: ({ headers }) => ({ protocol: 'http', host: headers.host }),
    ...deps,
  })
  const log: string[] = []
  const fastify = Fastify({ logger: { level: 'info', stream: { write: (line: string) => void log.push(line) } } })
  await oauth.register(fastify)
  const url = await fastify.listen({ port: 0, host: '127.0.0.1' })
  t.after(async () => {
    await fastify.close()
    await store.close()
    await place.remove()
  })

  const assertion: Rig['assertion'] = ({ header = {}, claims = {}, without = [], signature = rs256 } = {}) => {
    const nowS = Math.floor(clock.nowMs / 1000)
    const all = { iss: app.id, sub: app.id, aud: `${url}/oauth2`, iat: nowS - 5, exp: nowS + 55, jti: randomUUID(), ...claims }
    const kept = Object.fromEntries(Object.entries(all).filter(([name]) => !without.includes(name)))
    const input = `${part({ alg: 'RS256', typ: 'JWT', kid: 'rsa', ...header })}.${part(kept)}`
    return `${input}.${signature(input).toString('base64url')}`
  }
  const ask: Rig['ask'] = async (form = {}, init = {}) => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion(),
      scope: 'tracking_api:write',
      ...form,
    })
    const response = await fetch(`${url}/oauth2/token`, { method: 'POST', body, ...init })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: (text === '' ? {} : JSON.parse(text)) as Answer }
  }
  const token: Rig['token'] = async (change) => {
    const { status, text, body } = await ask({ client_assertion: assertion(change) })
    assert.equal(status, 200, text)
    return body.access_token
  }
  return { url, store, oauth, app, sourceId, clock, log, assertion, ask, token }
}

function assertRefused({ status, headers, body }: Awaited<ReturnType<Rig['ask']>>, code: string, expected: number, sentence: RegExp): void {
  assert.deepEqual([status, body.error], [expected, code], body.error_description)
  assert.match(body.error_description, sentence)
  // RFC 6749, 5.2.
  assert.match(body.error_description, /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
  assert.deepEqual(Object.keys(body), ['error', 'error_description'])
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.match(headers.get('content-type') ?? '', /^application\/json/)
}

// ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────────

test('a signed assertion gets a token for the application’s sources', async (t) => {
  const { ask, oauth, sourceId, app, url } = await startRig(t)
  const { status, headers, body } = await ask()
  const { access_token, ...rest } = body
  assert.deepEqual([status, rest], [200, { token_type: 'Bearer', expires_in: 86_400, scope: 'tracking_api:write' }])
  assert.deepEqual([headers.get('cache-control'), headers.get('pragma')], ['no-store', 'no-cache'])
  assert.deepEqual(await oauth.sourcesOf(access_token), new Set([sourceId]))
  const [header, claims] = access_token.split('.', 2).map((text) => JSON.parse(Buffer.from(text, 'base64url').toString()) as object)
  assert.partialDeepStrictEqual(header, { alg: 'EdDSA', typ: 'at+jwt' })
  const { iat, exp, jti, key, ...named } = claims as Record<string, number | string>
  assert.deepEqual(named, {
    iss: `${url}/oauth2`,
    sub: app.id,
    client_id: app.id,
    aud: 'tracking_api',
    scope: 'tracking_api:write',
  })
  assert.ok(Math.abs((exp as number) - (iat as number) - 86_400) <= 1)
  assert.ok(typeof jti === 'string' && typeof key === 'string')
})

test('RS256, ES256 and EdDSA are accepted, each with its type of key', async (t) => {
  const { token, oauth } = await startRig(t)
  const es256 = (input: string): Buffer => sign('sha256', Buffer.from(input), { key: ec.privateKey, dsaEncoding: 'ieee-p1363' })
  for (const [alg, kid, signature] of [
    ['RS256', 'rsa', rs256],
    ['ES256', 'ec', es256],
    ['EdDSA', 'ed', (input: string): Buffer => sign(null, Buffer.from(input), ed.privateKey)],
  ] as const) {
    assert.notEqual(await oauth.sourcesOf(await token({ header: { alg, kid }, signature })), null, alg)
  }
})

test('variants that other clients send are accepted: of iss and aud, without scope, with client_id', async (t) => {
  const { url, app, assertion, ask } = await startRig(t)
  const host = url.slice('http://'.length)
  const forms: [Record<string, string>, Assertion?][] = [
    [{}, { claims: { iss: `${url}/oauth2` } }],
    [{}, { claims: { aud: `${url}/oauth2/token` } }],
    [{}, { claims: { aud: `${url}/oauth2/` } }],
    [{}, { claims: { aud: [`${url}/oauth2`] } }],
    // Behind a proxy that adds TLS and a path prefix and keeps the host.
    [{}, { claims: { aud: `https://${host}/oauth2` } }],
    [{}, { claims: { aud: `${url}/switchyard/oauth2` } }],
    [{}, { header: { typ: undefined } }],
    [{ scope: '' }],
    [{ client_id: app.id }],
    [{ unknown: 'parameter' }],
  ]
  for (const [form, change] of forms) {
    const { status, text } = await ask({ client_assertion: assertion(change), ...form })
    assert.equal(status, 200, `${JSON.stringify([form, change])} ${text}`)
  }
})

test('the host is read from the headers of a trusted proxy', async (t) => {
  const requestedOrigin: OAuthDeps['requestedOrigin'] = ({ headers }) => ({
    protocol: 'https',
    host: headers['x-forwarded-host'] as string,
  })
  const { ask, assertion } = await startRig(t, { requestedOrigin })
  const headers = { 'x-forwarded-host': 'Events.Example.com:443' }
  const good = await ask({ client_assertion: assertion({ claims: { aud: 'https://events.example.com/oauth2' } }) }, { headers })
  assert.equal(good.status, 200, good.text)
  const [, claims = ''] = good.body.access_token.split('.')
  assert.match(Buffer.from(claims, 'base64url').toString(), /"iss":"https:\/\/events.example.com\/oauth2"/)
  assertRefused(await ask({}, { headers }), 'invalid_client', 401, /^The claim aud must be the address/)
  assertRefused(await ask({}), 'invalid_client', 401, /^The claim aud must be the address/)
})

// ── Invalid assertions ─────────────────────────────────────────────────────────────────────────────────────────────

const NOT_KNOWN = /^The client assertion is not signed with a key of a known application/

test('every failed authentication gets the same error, whatever the reason', async (t) => {
  const { ask, assertion, app } = await startRig(t)
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const hmac = (input: string): Buffer => createHmac('sha256', spki(rsa.publicKey)).update(input).digest()
  const pss = (input: string): Buffer =>
    sign('sha256', Buffer.from(input), { key: rsa.privateKey, padding: 6 /* RSA_PKCS1_PSS_PADDING */, saltLength: 32 })
  const good = assertion()
  const [header, claims, signature] = good.split('.') as [string, string, string]
  const attempts: Record<string, string> = {
    'an unknown application': assertion({ claims: { sub: 'app_none', iss: 'app_none' } }),
    'an unknown key': assertion({ header: { kid: 'none' } }),
    'no key': assertion({ header: { kid: undefined } }),
    'a key id that every object has': assertion({ header: { kid: '__proto__' } }),
    'a subject that every object has': assertion({ claims: { sub: 'constructor' } }),
    'no subject': assertion({ without: ['sub'] }),
    'the key of somebody else': assertion({ signature: (input) => sign('sha256', Buffer.from(input), stranger.privateKey) }),
    'another key of the application': assertion({ header: { kid: 'ed' } }),
    'no signature, with alg none': assertion({ header: { alg: 'none' }, signature: () => Buffer.alloc(0) }),
    'no signature': `${header}.${claims}.`,
    'the public key used as a shared secret': assertion({ header: { alg: 'HS256' }, signature: hmac }),
    'the algorithm of another kind of key': assertion({ header: { alg: 'ES256' } }),
    'an unsupported algorithm': assertion({ header: { alg: 'PS256' }, signature: pss }),
    'a key of its own in the header': assertion({
      header: { jwk: stranger.publicKey.export({ format: 'jwk' }) },
      signature: (input) => sign('sha256', Buffer.from(input), stranger.privateKey),
    }),
    'an extension that must be understood': assertion({ header: { crit: ['b64'], b64: false } }),
    'changed claims': `${header}.${part({ sub: app.id, iss: app.id })}.${signature}`,
    'no JWT': 'x',
    'dots alone': '..',
    'five parts': `${good}.x.y`,
    'no JSON': `${Buffer.from('{').toString('base64url')}.${claims}.${signature}`,
  }
  for (const [title, client_assertion] of Object.entries(attempts)) {
    await t.test(title, async () => assertRefused(await ask({ client_assertion }), 'invalid_client', 401, NOT_KNOWN))
  }
  assert.equal((await ask({ client_assertion: good })).status, 200, 'the unmodified assertion is accepted')
})

test('for a signed assertion with an invalid claim, the error names the claim', async (t) => {
  const { ask, assertion, clock, url } = await startRig(t)
  const nowS = Math.floor(clock.nowMs / 1000)
  const attempts: [string, Assertion, RegExp][] = [
    ['expired', { claims: { exp: nowS - 61 } }, /has expired/],
    ['more than six minutes ahead', { claims: { exp: nowS + 362 } }, /at most 5 minutes ahead/],
    ['without exp', { without: ['exp'] }, /claim exp is missing/],
    ['with an exp that is not a number', { claims: { exp: '9999999999' } }, /claim exp is missing or invalid/],
    ['with a huge exp', { claims: { exp: 1e300 } }, /exp is too far in the future/],
    ['from the future', { claims: { iat: nowS + 62 } }, /iat is in the future/],
    ['not valid yet', { claims: { nbf: nowS + 62 } }, /claim nbf/],
    ['without iat', { without: ['iat'] }, /claim iat is missing/],
    ['without an id', { without: ['jti'] }, /claim jti is missing/],
    ['with an empty id', { claims: { jti: '' } }, /claim jti/],
    ['with a huge id', { claims: { jti: 'x'.repeat(256) } }, /claim jti/],
    ['with an id that is not a string', { claims: { jti: { toString: 'x' } } }, /claim jti/],
    ['without an issuer', { without: ['iss'] }, /claim iss is missing/],
    ['of another issuer', { claims: { iss: 'app_other' } }, /iss must be the client id/],
    ['without an audience', { without: ['aud'] }, /claim aud is missing/],
    ['for another server', { claims: { aud: 'https://oauth2.segment.io' } }, /aud must be the address/],
    ['for another host', { claims: { aud: 'http://other.example/oauth2' } }, /aud must be the address/],
    ['for another port', { claims: { aud: 'http://127.0.0.1:1/oauth2' } }, /aud must be the address/],
    ['for another path', { claims: { aud: `${url}/v1` } }, /aud must be the address/],
    ['for a host with the same prefix', { claims: { aud: `${url}.evil.example/oauth2` } }, /aud must be the address/],
    ['for a user at another host', { claims: { aud: `${url}@evil.example/oauth2` } }, /aud must be the address/],
    ['for this server and another', { claims: { aud: [`${url}/oauth2`, 'https://evil.example/oauth2'] } }, /aud must be the address/],
    ['with an empty list of audiences', { claims: { aud: [] } }, /aud must be the address/],
  ]
  for (const [title, change, sentence] of attempts) {
    await t.test(title, async () => assertRefused(await ask({ client_assertion: assertion(change) }), 'invalid_client', 401, sentence))
  }
})

test('clocks may differ by a minute', async (t) => {
  const { token, clock } = await startRig(t)
  const nowS = Math.floor(clock.nowMs / 1000)
  await token({ claims: { iat: nowS - 120, exp: nowS - 58 } })
  await token({ claims: { iat: nowS + 58, exp: nowS + 58 + 300 } })
})

test('an assertion gets one token, even with concurrent requests', async (t) => {
  const { ask, assertion, clock, log } = await startRig(t)
  const form = { client_assertion: assertion() }
  const answers = await Promise.all(Array.from({ length: 12 }, () => ask(form)))
  const refused = answers.filter(({ status }) => status !== 200)
  assert.equal(refused.length, 11)
  for (const answer of refused) assertRefused(answer, 'invalid_client', 401, /was already used/)
  // Until it has expired.
  clock.nowMs += 110_000
  assertRefused(await ask(form), 'invalid_client', 401, /was already used/)
  clock.nowMs += 10_000
  assertRefused(await ask(form), 'invalid_client', 401, /has expired/)
  assert.match(log.join(''), /a request for an access token was rejected/)
})

// ── Invalid requests ───────────────────────────────────────────────────────────────────────────────────────────────

test('an invalid token request is rejected according to RFC 6749', async (t) => {
  const { ask, app, assertion } = await startRig(t)
  const twice = `grant_type=client_credentials&grant_type=client_credentials&client_assertion=${assertion()}`
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  assertRefused(await ask({ grant_type: '' }), 'invalid_request', 400, /grant_type is missing/)
  assertRefused(await ask({ grant_type: 'password' }), 'unsupported_grant_type', 400, /client_credentials/)
  assertRefused(await ask({ grant_type: '__proto__' }), 'unsupported_grant_type', 400, /client_credentials/)
  assertRefused(await ask({ client_assertion: '' }), 'invalid_client', 401, /client_assertion is missing/)
  assertRefused(await ask({ client_assertion_type: 'x' }), 'invalid_client', 401, /client_assertion_type must be urn:/)
  assertRefused(await ask({ scope: 'admin' }), 'invalid_scope', 400, /only supported scope is tracking_api:write/)
  assertRefused(await ask({ scope: 'tracking_api:write admin' }), 'invalid_scope', 400, /only supported scope/)
  assertRefused(await ask({ client_id: `${app.id}x` }), 'invalid_client', 401, /client_id does not match the application/)
  assertRefused(await ask({}, { body: twice, headers: form }), 'invalid_request', 400, /grant_type is given more than once/)
  assertRefused(await ask({}, { body: '', headers: form }), 'invalid_request', 400, /grant_type is missing/)
  const json = { 'content-type': 'application/json' }
  assertRefused(
    await ask({}, { body: '{"grant_type":"client_credentials"}', headers: json }),
    'invalid_request',
    415,
    /Content-Type must be application/,
  )
  assertRefused(await ask({}, { body: 'a=b', headers: { 'content-type': '' } }), 'invalid_request', 415, /Content-Type must be application/)
  assertRefused(
    await ask({}, { body: 'a=b', headers: { ...form, 'content-encoding': 'gzip' } }),
    'invalid_request',
    415,
    /Content-Encoding/,
  )
  assertRefused(await ask({ more: 'x'.repeat(17_000) }), 'invalid_request', 413, /at most 16384 bytes/)
  assert.equal((await ask({}, { headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' } })).status, 200)
})

test('only POST is accepted', async (t) => {
  const { ask, url } = await startRig(t)
  for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    const answer = await ask({}, { method, body: null })
    assertRefused(answer, 'invalid_request', 405, /Use POST/)
    assert.equal(answer.headers.get('allow'), 'POST')
  }
  const elsewhere = await fetch(`${url}/oauth2/authorize`)
  assert.deepEqual([elsewhere.status, ((await elsewhere.json()) as { code: string }).code], [404, 'not_found'])
})

test('a body that exceeds its declared length is cut off', async (t) => {
  const { url } = await startRig(t)
  const status = await new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'transfer-encoding': 'chunked' }
    const sending = httpRequest(`${url}/oauth2/token`, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sending.on('error', reject)
    for (let at = 0; at < 40; at++) sending.write('x'.repeat(1_024))
    sending.end()
  })
  assert.equal(status, 413)
})

test('an incomplete body is not logged, because anyone can send one', async (t) => {
  const { url, ask, log } = await startRig(t)
  const { port } = new URL(url)
  const head = 'POST /oauth2/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n'
  for (const rest of ['Transfer-Encoding: chunked\r\n\r\nno length', 'Content-Length: 9\r\n\r\nshort']) {
    const socket = connect(Number(port), '127.0.0.1')
    socket.resume().end(head + rest)
    await once(socket, 'close')
  }
  assert.equal((await ask()).status, 200)
  assert.deepEqual(
    log.filter((line) => line.includes('failed')),
    [],
  )
})

test('an unavailable store is reported as such, and requests succeed again when it recovers', async (t) => {
  let isDown = true
  const down = async (): Promise<never> => {
    throw new StoreUnavailable('disk full')
  }
  const wrap = (store: Store): OAuthDeps['store'] => ({
    configuration: () => store.configuration(),
    oauth: store.oauth,
    secrets: { ...store.secrets, getOrCreate: (name, fresh) => (isDown ? down() : store.secrets.getOrCreate(name, fresh)) },
  })
  const { ask, oauth } = await startRig(t, { wrap })
  const answer = await ask()
  assertRefused(answer, 'temporarily_unavailable', 503, /Retry-After/)
  assert.equal(answer.headers.get('retry-after'), '1')
  await assert.rejects(oauth.sourcesOf('a.b.c'), StoreUnavailable)
  isDown = false
  assert.equal((await ask()).status, 200)
})

test('neither assertions nor tokens nor the signing key are in the log or in error responses', async (t) => {
  const { ask, assertion, token, log, store } = await startRig(t)
  const bad = assertion({ claims: { aud: 'https://other.example/' } })
  const used = assertion()
  const refusals = [await ask({ client_assertion: bad }), await ask({ client_assertion: 'SECRET' }), await ask({ client_assertion: used })]
  refusals.push(await ask({ client_assertion: used }))
  const access = await token()
  const signing = await store.secrets.getOrCreate('oauth_signing_key', 'another')
  assert.match(signing, /^-----BEGIN PRIVATE KEY-----/)
  const written = [...log, ...refusals.filter(({ status }) => status !== 200).map(({ text }) => text)].join('\n')
  for (const secret of [bad, used, access, 'SECRET', signing]) {
    for (const piece of secret.split(/[.\n]/).filter((each) => each.length > 5)) assert.ok(!written.includes(piece), piece)
  }
})

test('a rejection is logged with its reason, at a limited rate', async (t) => {
  const { ask, assertion, log, clock, app } = await startRig(t)
  const logged = (): string[] => log.filter((line) => line.includes('a request for an access token was rejected'))
  for (let at = 0; at < 5; at++) await ask({ client_assertion: assertion({ signature: () => Buffer.alloc(256) }) })
  assert.equal(logged().length, 1)
  assert.partialDeepStrictEqual(JSON.parse(logged()[0] as string), { clientId: app.id, level: 40 })
  await ask({ client_assertion: assertion({ claims: { iss: 'another' } }) })
  assert.equal(logged().length, 2)
  clock.nowMs += 60_000
  await ask({ client_assertion: assertion({ signature: () => Buffer.alloc(256) }) })
  assert.equal(logged().length, 3)
  // Nothing is logged for unknown applications.
  for (let at = 0; at < 3; at++) await ask({ client_assertion: assertion({ claims: { sub: `app_${at}` } }) })
  assert.equal(logged().length, 3)
})

test('the signing key is stored encrypted and stays the same', async (t) => {
  const place = await newStoreLocation()
  t.after(() => place.remove())
  const clock = { wallMs: () => Date.now(), scheduleMs: () => Date.now() }
  const first = await place.open()
  const app = await first.resources.createOAuthApp({ name: 'a', sourceIds: [], keys: KEYS, revokedBeforeMs: null })
  const token = await createAccessTokens({ store: first, clock }).issue(app, KEYS[0] as (typeof KEYS)[0], 'http://x/oauth2')
  await first.close()
  const stored = (await place.bytes()).toString('latin1')
  assert.match(stored, /secret\.oauth_signing_key.?v1\./)
  assert.doesNotMatch(stored, /PRIVATE KEY/)
  const second = await place.open()
  assert.deepEqual(await createAccessTokens({ store: second, clock }).sourcesOf(token), new Set())
  await second.close()
})

// ── Validation of tokens ────────────────────────────────────────────────────────────────────────────────────────────

test('a token that was altered or signed with another key is invalid', async (t) => {
  const { token, oauth, assertion, app } = await startRig(t)
  const access = await token()
  const [header, claims, signature] = access.split('.') as [string, string, string]
  const read = (text: string): object => JSON.parse(Buffer.from(text, 'base64url').toString()) as object
  const forged = (change: object, alg: object = {}): string => {
    const input = `${part({ ...read(header), ...alg })}.${part({ ...read(claims), ...change })}`
    return `${input}.${sign(null, Buffer.from(input), ed.privateKey).toString('base64url')}`
  }
  const bad = [
    '',
    'x',
    'x'.repeat(5_000),
    'a.b.c',
    `${header}.${claims}.`,
    `${header}.${part({ ...read(claims), sub: 'app_other' })}.${signature}`,
    `${part({ alg: 'none' })}.${claims}.`,
    `${part({ ...read(header), alg: 'HS256' })}.${claims}.${signature}`,
    forged({}),
    forged({ exp: 9_999_999_999 }),
    // A client assertion is not an access token.
    assertion(),
    assertion({ claims: { aud: 'tracking_api', client_id: app.id } }),
  ]
  for (const text of bad) assert.equal(await oauth.sourcesOf(text), null, text.slice(0, 80))
  assert.notEqual(await oauth.sourcesOf(access), null)
})

test('a token expires after a day', async (t) => {
  const { token, oauth, clock } = await startRig(t)
  const access = await token()
  clock.nowMs += 86_398_000
  assert.notEqual(await oauth.sourcesOf(access), null)
  clock.nowMs += 2_000
  assert.equal(await oauth.sourcesOf(access), null, 'known before')
  const fresh = createOAuth({
    store: (await startRig(t)).store,
    clock: { wallMs: () => clock.nowMs, scheduleMs: () => clock.nowMs },
    requestedOrigin: () => ({ protocol: 'http', host: undefined }),
  })
  assert.equal(await fresh.sourcesOf(access), null, 'from another installation')
})

test('revoked tokens are rejected immediately, and a new one is valid even in the same millisecond', async (t) => {
  const { token, oauth, store, app, clock } = await startRig(t)
  const before = await token()
  assert.notEqual(await oauth.sourcesOf(before), null)
  // As the control API does.
  await store.resources.updateOAuthApp(app.id, { revokedBeforeMs: clock.nowMs + 1 })
  assert.equal(await oauth.sourcesOf(before), null)
  const next = await token()
  assert.notEqual(await oauth.sourcesOf(next), null)
  // Setting the clock back makes no revoked token valid and no valid token invalid.
  clock.nowMs -= 3_600_000
  assert.equal(await oauth.sourcesOf(before), null)
  assert.notEqual(await oauth.sourcesOf(await token()), null)
})

test('a token that was issued while the clock was ahead does not survive a revocation', async (t) => {
  const { token, oauth, store, app, clock } = await startRig(t)
  clock.nowMs += 3_600_000
  const ahead = await token()
  clock.nowMs -= 3_600_000
  await store.resources.updateOAuthApp(app.id, { revokedBeforeMs: clock.nowMs + 1 })
  assert.equal(await oauth.sourcesOf(ahead), null)
})

test('changes of the application and its sources apply to existing tokens', async (t) => {
  const { token, oauth, store, app, sourceId } = await startRig(t)
  const access = await token()
  const other = await store.resources.createSource({ name: 'o', enabled: true, writeKeys: ['o'], requireOAuth: true })
  await store.resources.updateOAuthApp(app.id, { sourceIds: [other.id, sourceId] })
  assert.deepEqual(await oauth.sourcesOf(access), new Set([other.id, sourceId]))
  await store.resources.deleteSource(sourceId)
  assert.deepEqual(await oauth.sourcesOf(access), new Set([other.id]))
  await store.resources.deleteOAuthApp(app.id)
  assert.equal(await oauth.sourcesOf(access), null)
})

test('tokens become invalid when their key is removed, even if another key reuses its id', async (t) => {
  const { token, oauth, store, app } = await startRig(t)
  const [byRsa, byEd] = [
    await token(),
    await token({ header: { alg: 'EdDSA', kid: 'ed' }, signature: (input) => sign(null, Buffer.from(input), ed.privateKey) }),
  ]
  const another = spki(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey)
  await store.resources.updateOAuthApp(app.id, { keys: KEYS.map((key) => (key.id === 'rsa' ? { ...key, publicKeyPem: another } : key)) })
  assert.equal(await oauth.sourcesOf(byRsa), null)
  assert.notEqual(await oauth.sourcesOf(byEd), null)
})

test('a token that was evicted from the cache is verified again', async (t) => {
  const { store, app, clock, sourceId } = await startRig(t)
  const tokens = createAccessTokens({ store, clock: { wallMs: () => clock.nowMs, scheduleMs: () => clock.nowMs }, maxCached: 2 })
  const all = await Promise.all(Array.from({ length: 5 }, () => tokens.issue(app, KEYS[0] as (typeof KEYS)[0], 'http://x/oauth2')))
  for (let round = 0; round < 2; round++) {
    for (const token of all) assert.deepEqual(await tokens.sourcesOf(token), new Set([sourceId]))
  }
})
