// The token endpoint over HTTP on a real store.

import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { type Store, StoreUnavailable } from '../store/store.ts'
import { type Assertion, assertRefused, ec, ed, part, rs256, rsa, spki, startRig } from './fixtures/token-endpoint.ts'
import { type OAuthDeps } from './oauth.ts'

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
