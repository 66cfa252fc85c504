// Authentication to receivers, against a real authorization server.

import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import test, { type TestContext } from 'node:test'
import { until } from '../../../store/conformance/fixtures.ts'
import type { Auth, TlsSettings } from '../../../store/store.ts'
import { assertFailed, clientFor, httpReceiver, post } from '../../fixtures/attempts.ts'
import {
  type AuthorizationServer,
  CLIENT_ID,
  CLIENT_SECRET,
  startAuthorizationServer,
  tokenCheck,
} from '../../fixtures/authorization-server.ts'
import { createAddressGuard } from '../http/address-guard.ts'
import type { HttpClient, HttpClientOptions } from '../http/attempt.ts'
import { type RequestSender, senderFor } from './authorized-client.ts'

const TIMEOUT_MS = 3_000

function senderWith(http: HttpClient, auth: Auth | null, tls: TlsSettings | null = null, timeoutMs = TIMEOUT_MS): HttpClient {
  const sender: RequestSender = senderFor({ auth, tls, timeoutMs }, http)
  return { send: (request, onOutcome) => sender.send(request, onOutcome), close: () => http.close(), inFlight: 0 }
}

interface Scene {
  server: AuthorizationServer
  url: string
  sender: HttpClient
  /** The tokens that the receiver got, each with its answer. */
  seen: [string | null, number][]
}

async function scene(t: TestContext, change: Partial<Auth> = {}, options: Partial<HttpClientOptions> = {}): Promise<Scene> {
  const server = await startAuthorizationServer(t)
  const seen: Scene['seen'] = []
  const url = await httpReceiver(
    t,
    tokenCheck(server, (token, status) => seen.push([token, status])),
  )
  const sender = senderWith(clientFor(t, options), { ...server.auth(), ...change } as Auth)
  return { server, url, sender, seen }
}

test('basic and bearer credentials are sent in the Authorization header, in UTF-8', async (t) => {
  const got: (string | undefined)[] = []
  const url = await httpReceiver(t, (request, response) => {
    got.push(request.headers.authorization)
    request.resume()
    response.end()
  })
  const http = clientFor(t)
  await post(senderWith(http, { type: 'basic', username: 'käthe', password: 'a:b ✓' }), url)
  await post(senderWith(http, { type: 'basic', username: 'key', password: '' }), url)
  await post(senderWith(http, { type: 'bearer', token: 'abc.def' }), url)
  await post(senderWith(http, null), url)
  assert.deepEqual(got, [
    `Basic ${Buffer.from('käthe:a:b ✓').toString('base64')}`,
    `Basic ${Buffer.from('key:').toString('base64')}`,
    'Bearer abc.def',
    undefined,
  ])
})

test('credentials that a receiver repeats in its response are not recorded, even if the response is cut off', async (t) => {
  let before = ''
  const url = await httpReceiver(t, (request, response) => {
    request.resume()
    response.writeHead(500).end(`${before}authorization: ${request.headers.authorization}\nagain: ${request.headers.authorization}`)
  })
  const http = clientFor(t)
  const token = 'token-of-the-receiver'
  const bearer = senderWith(http, { type: 'bearer', token })
  assert.equal((await post(bearer, url)).responseStart, 'authorization: Bearer (hidden)\nagain: Bearer (hidden)')
  const basic = await post(senderWith(http, { type: 'basic', username: 'key', password: 'secret' }), url)
  assert.equal(basic.responseStart, 'authorization: Basic (hidden)\nagain: Basic (hidden)')
  for (const shown of [8, token.length - 1]) {
    before = 'x'.repeat(4_096 - 'authorization: Bearer '.length - shown)
    assert.equal((await post(bearer, url)).responseStart, `${before}authorization: Bearer (hidden)`)
  }
  const { server, sender } = await scene(t)
  before = ''
  const granted = await post(sender, url)
  assert.equal(server.issued.length, 1)
  assert.equal(granted.responseStart, 'authorization: Bearer (hidden)\nagain: Bearer (hidden)')
})

test('secrets that a receiver repeats are not recorded in any form, also if one begins with another', async (t) => {
  const secrets = { short: 'abcdef', long: 'abcdef/"GHI"', other: 'Zz-9876' }
  const long = secrets.long
  const echoes = [secrets.short, long, encodeURIComponent(long), JSON.stringify(long), JSON.stringify(JSON.stringify(long))]
  echoes.push(long.toUpperCase(), secrets.other.toLowerCase(), Buffer.from(secrets.other).toString('base64'))
  const url = await httpReceiver(t, (request, response) => {
    request.resume()
    response.writeHead(500).end(`tenant-visible ${echoes.join(' | ')}`)
  })
  const http = clientFor(t)
  const headers = { Authorization: 'Bearer header-token-1', 'X-Tenant': 'tenant-visible' }
  const request = { method: 'POST', path: '', headers: { 'X-Api-Key': 'header-key-2' }, body: null, format: 'json' } as const
  echoes.push('header-token-1', 'header-key-2')
  const sender = senderFor({ auth: null, tls: null, timeoutMs: TIMEOUT_MS, secrets, headers, request }, http)
  const { responseStart } = await post({ send: (request, done) => sender.send(request, done), close: () => http.close(), inFlight: 0 }, url)
  assert.equal(responseStart?.replaceAll(/[\\"]/g, ''), `tenant-visible ${echoes.map(() => '(hidden)').join(' | ')}`)
})

test('a destination without auth and tls uses the HTTP client itself', (t) => {
  const http = clientFor(t)
  assert.equal(senderFor({ auth: null, tls: null, timeoutMs: TIMEOUT_MS }, http), http)
})

test('100 requests at once lead to one token request, and later ones reuse the token', async (t) => {
  const { server, url, sender, seen } = await scene(t, { scope: 'events:write' })
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => post(sender, url)))
  assert.ok(outcomes.every(({ verdict }) => verdict === 'success'))
  assert.equal((await post(sender, url)).verdict, 'success')
  assert.deepEqual([server.requests, server.issued.length, seen.length], [1, 1, 101])
  assert.deepEqual(new Set(seen.map(([token]) => token)), new Set(server.issued))
})

test('the client authenticates itself in the body if the setting says so', async (t) => {
  const server = await startAuthorizationServer(t, { authMethod: 'client_secret_post' })
  const url = await httpReceiver(
    t,
    tokenCheck(server, () => undefined),
  )
  const http = clientFor(t)
  assert.equal((await post(senderWith(http, server.auth()), url)).verdict, 'success')
  assert.equal((await post(senderWith(http, server.auth({ credentials: 'basic' })), url)).verdict, 'success')
  assert.deepEqual(server.hadHeader, [false, true])
})

test('scope and audience are part of the token request, and are refused as the server says', async (t) => {
  const { server, url, seen } = await scene(t)
  const http = clientFor(t)
  const bodies: string[] = []
  server.intercept = (request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      bodies.push(body)
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"access_token":"x","token_type":"bearer"}')
    })
  }
  // The receiver does not accept this token, so it is renewed once.
  await post(senderWith(http, server.auth({ scope: 'a b', audience: 'https://api.example.com/' })), url)
  const body = 'grant_type=client_credentials&scope=a+b&audience=https%3A%2F%2Fapi.example.com%2F'
  assert.deepEqual(bodies, [body, body])
  server.intercept = null
  const outcome = await post(senderWith(http, server.auth({ scope: 'events:read' })), url)
  assertFailed(outcome, 'temporary', 'auth_refused')
  assert.match(outcome.error ?? '', /\(400, invalid_scope\)\.$/)
  assert.equal(seen.length, 2)
})

test('an expired token is replaced before it is sent', async (t) => {
  const { server, url, sender, seen } = await scene(t)
  server.lifetimeS = 3
  assert.equal((await post(sender, url)).verdict, 'success')
  await until(
    () => server.isValid(server.issued[0] as string),
    (isValid) => !isValid,
    'the token has expired',
  )
  assert.equal((await post(sender, url)).verdict, 'success')
  assert.deepEqual(
    seen.map(([, status]) => status),
    [200, 200],
  )
  assert.equal(server.issued.length, 2)
})

test('a revoked token is renewed once for all requests that got a 401, and they are sent again within the same attempt', async (t) => {
  const { server, url, sender, seen } = await scene(t)
  await post(sender, url)
  await server.revoke(server.issued[0] as string)
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => post(sender, url)))
  assert.ok(outcomes.every(({ verdict, status }) => verdict === 'success' && status === 200))
  assert.equal(server.issued.length, 2)
  assert.equal(seen.filter(([, status]) => status === 200).length, 21)
})

test('a receiver that accepts no token gets the request twice, and later requests do not ask for new tokens', async (t) => {
  const { server, sender } = await scene(t)
  let count = 0
  const url = await httpReceiver(t, (request, response) => {
    count++
    request.resume()
    response.writeHead(401).end('no')
  })
  const outcome = await post(sender, url)
  assertFailed(outcome, 'permanent', 'http_401')
  assert.deepEqual([count, server.issued.length, outcome.responseStart], [2, 2, 'no'])
  for (let nth = 0; nth < 5; nth++) await post(sender, url)
  assert.deepEqual([count, server.issued.length], [7, 2])
})

test('a client secret that was replaced is refused with the name of the endpoint and the error code, and works after the change', async (t) => {
  const { server, url, sender, seen } = await scene(t)
  server.clientSecret = 'rotated'
  const outcome = await post(sender, url)
  assertFailed(outcome, 'temporary', 'auth_refused')
  const { host } = new URL(server.tokenUrl)
  assert.equal(outcome.error, `The token endpoint ${host} refused to issue an access token (401, invalid_client).`)
  assert.deepEqual([outcome.responseStart, outcome.status, outcome.address, seen.length], [null, null, null, 0])
  const changed = senderWith(clientFor(t), server.auth({ clientSecret: 'rotated' }))
  assert.equal((await post(changed, url)).verdict, 'success')
})

test('a failing token endpoint is asked once per interval, and used again when it is back', async (t) => {
  const { server, url, sender } = await scene(t)
  server.intercept = (_, response) => response.writeHead(503).end('{"error":"secret text"}')
  // Stops the clock: on a busy machine, the requests may take longer than the interval.
  const nowMs = performance.now()
  const stopped = t.mock.method(performance, 'now', () => nowMs)
  for (let nth = 0; nth < 20; nth++) {
    const outcome = await post(sender, url)
    assertFailed(outcome, 'temporary', 'auth_unavailable')
    assert.match(outcome.error ?? '', /^The token endpoint 127\.0\.0\.1:\d+ answered 503\.$/)
  }
  assert.equal(server.requests, 1)
  server.intercept = null
  stopped.mock.restore()
  await until(
    () => post(sender, url),
    ({ verdict }) => verdict === 'success',
    'the endpoint is used again',
  )
  assert.equal(server.requests, 2)
})

test('a token endpoint that asks for a pause gets it', async (t) => {
  const { server, url, sender } = await scene(t)
  server.intercept = (_, response) => response.writeHead(429, { 'retry-after': '30' }).end()
  const outcome = await post(sender, url)
  assertFailed(outcome, 'temporary', 'auth_unavailable')
  assert.equal(outcome.retryAfterMs, 30_000)
})

test('a token endpoint that hangs costs no more than the deadline of the attempt', async (t) => {
  const { server, url } = await scene(t)
  const held: ServerResponse[] = []
  server.intercept = (_, response) => void held.push(response)
  const sender = senderWith(clientFor(t), server.auth(), null, 200)
  const startedAtMs = performance.now()
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => post(sender, url, { timeoutMs: 200 })))
  // Without the deadline they would wait for ever.
  assert.ok(performance.now() - startedAtMs < 30_000)
  for (const outcome of outcomes) assertFailed(outcome, 'temporary', 'auth_unavailable')
  // On a busy machine, the last ones start while the token has been requested for a while.
  assert.ok(outcomes.some(({ timings }) => timings.totalMs >= 190))
  assert.equal(held.length, 1)
})

const USELESS: Record<string, [body: string | Buffer, error: RegExp]> = {
  'that is not JSON': ['<html>', /its response is not a JSON object/],
  'that is a list': ['[]', /its response is not a JSON object/],
  'without a token': ['{"token_type":"Bearer"}', /access_token in its response is missing/],
  'with a token that breaks headers': [
    JSON.stringify({ access_token: 'a\r\nX-Evil: 1', token_type: 'Bearer' }),
    /cannot be sent in a header/,
  ],
  'with a token that is too long': [JSON.stringify({ access_token: 'a'.repeat(20_000) }), /cannot be sent in a header/],
  'with another type of token': ['{"access_token":"a","token_type":"DPoP"}', /token_type in its response is not Bearer/],
  'that is huge': [Buffer.alloc(1_000_000, ' '), /not a JSON object of less than 64 KB/],
}

for (const [what, [body, error]] of Object.entries(USELESS)) {
  test(`an answer of the token endpoint ${what} is a temporary failure`, async (t) => {
    const { server, url, sender, seen } = await scene(t)
    server.intercept = (_, response) => response.end(body)
    const outcome = await post(sender, url)
    assertFailed(outcome, 'temporary', 'auth_unavailable')
    assert.match(outcome.error ?? '', error)
    assert.deepEqual([seen.length, outcome.responseStart], [0, null])
  })
}

test('a slow answer of the token endpoint ends at the deadline', async (t) => {
  const { server, url } = await scene(t)
  server.intercept = (_, response) => {
    const drip = setInterval(() => response.write(' '), 20)
    response.once('close', () => clearInterval(drip))
  }
  const outcome = await post(senderWith(clientFor(t), server.auth(), null, 200), url, { timeoutMs: 200 })
  assertFailed(outcome, 'temporary', 'auth_unavailable')
})

test('a redirect of the token endpoint is not followed, and its credentials go nowhere else', async (t) => {
  const { server, url, sender } = await scene(t)
  let redirected = 0
  const elsewhere = await httpReceiver(t, (_, response) => {
    redirected++
    response.end()
  })
  server.intercept = (_, response) => response.writeHead(307, { location: elsewhere }).end()
  const outcome = await post(sender, url)
  assertFailed(outcome, 'temporary', 'auth_unavailable')
  assert.match(outcome.error ?? '', /answered 307, and redirects are not followed\.$/)
  assert.equal(redirected, 0)
})

test('a token endpoint at an address that is not allowed is not dialled', async (t) => {
  const guard = createAddressGuard({ allowPrivate: false, allow: [] })
  const { server, url, sender } = await scene(t, {}, { guard })
  const outcome = await post(sender, url)
  assertFailed(outcome, 'temporary', 'auth_unavailable')
  assert.match(outcome.error ?? '', /resolves to an address that is not public/)
  assert.equal(server.requests, 0)
})

test('a token endpoint that cannot be reached is a temporary failure', async (t) => {
  const { url, sender } = await scene(t, { tokenUrl: 'http://127.0.0.1:1/token' })
  const outcome = await post(sender, url)
  assertFailed(outcome, 'temporary', 'auth_unavailable')
  assert.equal(outcome.error, 'The token endpoint 127.0.0.1:1 could not be reached (connection_refused).')
})

test('requests that wait for a token end as aborted when the client closes', async (t) => {
  const { server, url } = await scene(t)
  let asked: () => void = () => undefined
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  server.intercept = () => asked()
  const http = clientFor(t)
  const sender = senderWith(http, server.auth())
  const pending = Promise.all([post(sender, url), post(sender, url)])
  await isAsked
  await http.close()
  assert.deepEqual(
    (await pending).map(({ reason }) => reason),
    ['aborted', 'aborted'],
  )
})

test('no error contains the client id, the secret or a token', async (t) => {
  const { server, url, sender } = await scene(t)
  const answers = [
    [400, JSON.stringify({ error: CLIENT_SECRET, error_description: CLIENT_ID })],
    [500, CLIENT_SECRET],
    [200, JSON.stringify({ access_token: `${CLIENT_SECRET}\n` })],
  ] as const
  for (const [status, body] of answers) {
    server.intercept = (_, response) => response.writeHead(status).end(body)
    const text = JSON.stringify(await post(senderWith(clientFor(t), server.auth()), url))
    assert.ok(!text.includes('safe') && !text.includes('special'), text)
  }
  assert.ok(sender)
})
