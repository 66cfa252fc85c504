// OAuth 2.0 with a client assertion, against an authorization server that verifies the assertion.

import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import test from 'node:test'
import { Analytics, type AnalyticsError, type HTTPClientRequest, type RetryEvent } from '@switchyard/node'
import { type PlannedAnswer, type ReceivedRequest, startTrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }

function keyPair(type: 'rsa' | 'ec' | 'ed25519') {
  const pair =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : type === 'ec'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('ed25519')
  return { publicKey: pair.publicKey, pem: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

const rsa = keyPair('rsa')
const oauthSettings = { clientId: 'app-1', clientKey: rsa.pem, keyId: 'key-1' }

interface Claims {
  iss: string
  sub: string
  aud: string
  iat: number
  exp: number
  jti: string
}

function parseAssertion(request: ReceivedRequest): {
  header: { alg: string; kid: string }
  claims: Claims
  input: string
  signature: Buffer
} {
  const form = new URLSearchParams(request.text)
  assert.equal(form.get('grant_type'), 'client_credentials')
  assert.equal(form.get('client_assertion_type'), 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
  assert.equal(request.headers['content-type'], 'application/x-www-form-urlencoded')
  const [header, claims, signature] = (form.get('client_assertion') ?? '').split('.') as [string, string, string]
  const decode = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString())
  return {
    header: decode(header) as { alg: string; kid: string },
    claims: decode(claims) as Claims,
    input: `${header}.${claims}`,
    signature: Buffer.from(signature, 'base64url'),
  }
}

const tokens = (list: ReceivedRequest[]): ReceivedRequest[] => list.filter((request) => request.path.endsWith('/token'))
const batches = (list: ReceivedRequest[]): ReceivedRequest[] => list.filter((request) => !request.path.endsWith('/token'))
const granted = (token: string, expiresIn = 3600): PlannedAnswer => ({
  body: JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: expiresIn }),
})

/** Serves tokens t1, t2, …, and batches; a test can set the response to each by its number. */
function startServers(
  plan: {
    token?: (number: number) => PlannedAnswer | undefined
    batch?: (request: ReceivedRequest, number: number) => PlannedAnswer | undefined
  } = {},
) {
  const counts = { token: 0, batch: 0 }
  return startTrackingServer((request) => {
    if (!request.path.endsWith('/token')) return plan.batch?.(request, ++counts.batch)
    const number = ++counts.token
    return plan.token?.(number) ?? granted(`t${number}`)
  })
}

for (const [type, alg] of [
  ['rsa', 'RS256'],
  ['ec', 'ES256'],
  ['ed25519', 'EdDSA'],
] as const) {
  test(`the token request carries a signed assertion (${alg}), and the token authorises the batch`, async () => {
    const pair = keyPair(type)
    await using server = await startServers()
    const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings: { ...oauthSettings, clientKey: pair.pem } })
    analytics.track(event)
    assert.equal((await analytics.closeAndFlush()).delivered, 1)
    const [request] = tokens(server.requests)
    assert.ok(request)
    assert.equal(request.path, '/oauth2/token')
    assert.equal(new URLSearchParams(request.text).get('scope'), 'tracking_api:write')
    const { header, claims, input, signature } = parseAssertion(request)
    assert.deepEqual(header, { alg, typ: 'JWT', kid: 'key-1' })
    assert.equal(claims.sub, 'app-1')
    assert.equal(claims.iss, 'app-1')
    assert.equal(claims.aud, `${server.url}/oauth2`)
    assert.ok(claims.exp - claims.iat <= 60)
    assert.ok(Math.abs(claims.iat - Date.now() / 1000) < 30)
    assert.ok(claims.jti.length > 20)
    const key = createPublicKey(pair.publicKey.export({ type: 'spki', format: 'pem' }))
    assert.ok(
      alg === 'EdDSA'
        ? verify(null, Buffer.from(input), key, signature)
        : verify('sha256', Buffer.from(input), alg === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' } : key, signature),
    )
    const [batch] = batches(server.requests)
    assert.equal(batch?.headers['authorization'], 'Bearer t1')
    assert.equal(batch?.body.writeKey, 'wk')
  })
}

test('five batches share one token request', async () => {
  await using server = await startServers({ token: () => ({ ...granted('t1'), delayMs: 30 }) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, oauthSettings })
  for (let i = 0; i < 5; i++) analytics.track(event)
  assert.equal((await analytics.closeAndFlush()).delivered, 5)
  assert.equal(tokens(server.requests).length, 1)
  assert.equal(batches(server.requests).length, 5)
})

test('a pause that the authorization server asks for lasts at most maxRateLimitDuration', async () => {
  await using server = await startServers({ token: () => ({ status: 429, headers: { 'Retry-After': '300' } }) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings, maxRateLimitDuration: 0.3 })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  const started = performance.now()
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 1, pending: 0 })
  const tookMs = performance.now() - started
  assert.ok(tookMs >= 290 && tookMs < 60_000, `${tookMs} ms`)
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['oauth_failure'],
  )
  assert.equal(tokens(server.requests).length, 1)
})

test('a temporary failure of the authorization server emits retry, and the retry waits, after Retry-After: 0 for a second', async () => {
  const answers = [{ status: 503 }, { status: 429, headers: { 'Retry-After': '0' } }]
  await using server = await startServers({ token: (number) => answers[number - 1] })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings })
  const retries: RetryEvent[] = []
  analytics.on('retry', (retry) => retries.push(retry))
  analytics.track(event)
  assert.equal((await analytics.closeAndFlush()).delivered, 1)
  assert.deepEqual(
    retries.map(({ error, attempts }) => [error.code, attempts]),
    [
      ['oauth_failure', 1],
      ['oauth_failure', 2],
    ],
  )
  assert.ok(retries.every(({ waitMs }) => waitMs >= 150))
  assert.equal(retries[1]?.waitMs, 1_000)
})

test('a token is renewed after half of its lifetime, without delaying the batch that triggers it', async (t) => {
  await using server = await startServers({ token: (number) => granted(`t${number}`, 3600) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings })
  analytics.track(event)
  await analytics.flush()
  const halfLater = Date.now() + 1_900_000
  t.mock.method(Date, 'now', () => halfLater)
  const used = (): (string | undefined)[] => batches(server.requests).map((request) => request.headers['authorization'])
  for (let tries = 0; tries < 100 && used().at(-1) !== 'Bearer t2'; tries++) {
    analytics.track(event)
    await analytics.flush()
  }
  await analytics.closeAndFlush()
  assert.equal(tokens(server.requests).length, 2)
  assert.deepEqual(used().slice(0, 2), ['Bearer t1', 'Bearer t1'])
  assert.equal(used().at(-1), 'Bearer t2')
})

test('an expired token is replaced before it is used', async (t) => {
  await using server = await startServers({ token: (number) => granted(`t${number}`, 3600) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings })
  analytics.track(event)
  await analytics.flush()
  const later = Date.now() + 3_700_000
  t.mock.method(Date, 'now', () => later)
  analytics.track(event)
  await analytics.closeAndFlush()
  assert.deepEqual(
    batches(server.requests).map((request) => request.headers['authorization']),
    ['Bearer t1', 'Bearer t2'],
  )
})

test('a 401 from the tracking API renews the token and retries the batch once; nothing is lost', async () => {
  await using server = await startServers({
    batch: (request) => (request.headers['authorization'] === 'Bearer t1' ? { status: 401 } : undefined),
  })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1, maxRetries: 0, oauthSettings })
  for (let i = 0; i < 5; i++) analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 5, failed: 0, pending: 0 })
  assert.equal(tokens(server.requests).length, 2)
})

test('a second 401 fails the batch: the token is not renewed endlessly', async () => {
  await using server = await startServers({
    batch: () => ({ status: 401, body: '{"success":false,"code":"oauth_required","message":"No."}' }),
  })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 1, pending: 0 })
  assert.equal(batches(server.requests).length, 2)
  assert.deepEqual(
    errors.map((error) => [error.code, error.status]),
    [['delivery_failure', 401]],
  )
})

test('the token request is retried after temporary failures, and then fails with oauth_failure', async () => {
  await using server = await startServers({ token: () => ({ status: 500 }) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings: { ...oauthSettings, maxRetries: 1 } })
  const error = await new Promise<AnalyticsError | undefined>((resolve) => {
    analytics.on('error', () => {})
    analytics.track(event, resolve)
    void analytics.flush()
  })
  assert.equal(error?.code, 'oauth_failure')
  assert.equal(tokens(server.requests).length, 2)
  await analytics.closeAndFlush()
})

test('with maxRetries 0 the first error of the token request is reported', async () => {
  await using server = await startServers({ token: () => ({ reset: true }) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 0, oauthSettings })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 1, pending: 0 })
  assert.deepEqual(codes, ['oauth_failure'])
  assert.equal(tokens(server.requests).length, 1)
})

test('a key that cannot be used fails messages with oauth_failure; the constructor does not throw', async () => {
  await using server = await startServers({})
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings: { ...oauthSettings, clientKey: 'not a key' } })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 1, pending: 0 })
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['oauth_failure'],
  )
  assert.match(errors[0]?.message ?? '', /oauthSettings\.clientKey is not a usable private key in PEM format/)
  assert.equal(server.requests.length, 0)
})

test('an error of the authorization server without a body ends without a space', async () => {
  await using server = await startServers({ token: () => ({ status: 400, body: '' }) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings })
  const reasons: unknown[] = []
  analytics.on('error', (error) => reasons.push(error.reason?.message))
  analytics.track(event)
  await analytics.closeAndFlush()
  assert.deepEqual(reasons, ['[400] Bad Request'])
})

test('a rejected token request is not retried, and a later batch requests a token again', async () => {
  await using server = await startServers({
    token: (number) => (number === 1 ? { status: 400, body: '{"error":"invalid_client"}' } : undefined),
  })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  analytics.track(event)
  assert.equal((await analytics.flush()).failed, 1)
  assert.match(errors[0]?.message ?? '', /invalid_client/)
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
})

test('a response without a usable token causes oauth_failure', async () => {
  for (const body of [
    '{}',
    'not json',
    '{"access_token":"a\\r\\nX-Evil: 1","expires_in":60}',
    '{"access_token":"a","expires_in":"soon"}',
  ]) {
    await using server = await startServers({ token: () => ({ body }) })
    const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: 0, oauthSettings })
    const codes: string[] = []
    analytics.on('error', (error) => codes.push(error.code))
    analytics.track(event)
    await analytics.closeAndFlush()
    assert.deepEqual(codes, ['oauth_failure'], body)
  }
})

test('a wrong clock is corrected by the Date of the response, and a new assertion is sent', async () => {
  const anHourAhead = (): string => new Date(Date.now() + 3_600_000).toUTCString()
  await using server = await startServers({
    token: (number) => (number === 1 ? { status: 400, headers: { Date: anHourAhead() }, body: '{"error":"invalid_client"}' } : undefined),
  })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, oauthSettings })
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
  const [first, second] = tokens(server.requests).map((request) => parseAssertion(request).claims)
  assert.ok((second?.iat ?? 0) - (first?.iat ?? 0) > 3_500)
  assert.notEqual(first?.jti, second?.jti)
})

test('authServer, scope and httpClient of oauthSettings are used', async () => {
  await using server = await startServers()
  const seen: HTTPClientRequest[] = []
  const httpClient = {
    makeRequest: async (options: HTTPClientRequest) => {
      seen.push({ ...options })
      return { status: 200, statusText: 'OK', text: async () => '{"access_token":"mine","expires_in":60}' }
    },
  }
  const analytics = new Analytics({
    writeKey: 'wk',
    host: server.url,
    oauthSettings: { ...oauthSettings, authServer: 'https://auth.invalid/oauth2/', scope: 'custom', httpClient },
  })
  analytics.track(event)
  await analytics.closeAndFlush()
  assert.equal(seen[0]?.url, 'https://auth.invalid/oauth2/token')
  assert.match(seen[0]?.body ?? '', /scope=custom/)
  assert.equal(server.requests[0]?.headers['authorization'], 'Bearer mine')
})

test('a client closed while it waits for a token stops requesting it, even with unlimited retries', async () => {
  await using server = await startServers({ token: () => ({ status: 503 }) })
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxRetries: Number.POSITIVE_INFINITY, oauthSettings })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 100 }), { stored: 0, failed: 0, pending: 1 })
  await new Promise((resolve) => setTimeout(resolve, 100))
  const asked = tokens(server.requests).length
  await new Promise((resolve) => setTimeout(resolve, 600))
  assert.equal(tokens(server.requests).length, asked)
  assert.equal(codes.length, 1)
})
