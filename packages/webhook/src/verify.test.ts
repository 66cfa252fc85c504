// Server requests: a real node:http server on a free port, with bodies sent over a socket. Express and Fastify are simulated by
// the changes they make to an IncomingMessage, because this package depends on neither.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type ClientRequest, createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { type TestContext } from 'node:test'
import {
  generateSecret,
  type ServerRequest,
  signBody,
  signStandardWebhook,
  type VerifyOptions,
  type VerifyResult,
  verify,
} from './index.ts'

const sharedSecret = 'a shared secret'
const signingSecrets = generateSecret()
const both = { sharedSecret, signingSecrets }
const ONE = '{"type":"track","messageId":"m-1","properties":{"2":"é ✓","b":1e+21,"__proto__":1}}'
const BATCH = `[${ONE},{"type":"track","messageId":"m-2"}]`

const signed = (body: string): Record<string, string> => ({
  'content-type': 'application/json',
  'x-signature': signBody(body, sharedSecret),
  ...signStandardWebhook({ id: 'msg_1', timestampSeconds: Math.floor(Date.now() / 1000), body }, signingSecrets),
})

const outcome = (result: VerifyResult): string => (result.ok ? 'ok' : result.code)

type Receive = (request: IncomingMessage) => Promise<VerifyResult>

/** A receiver on a free port that responds with the result of the verification. */
async function receiver(t: TestContext, receive: Receive): Promise<number> {
  const server = createServer((request, response) => {
    receive(request).then(
      (result) => response.writeHead(result.ok ? 200 : result.status).end(JSON.stringify(result)),
      (error: unknown) => response.writeHead(599).end(String(error)),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function post(port: number, body: string, headers = signed(body)): Promise<VerifyResult> {
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers })
  return (await response.json()) as VerifyResult
}

function open(port: number, headers: Record<string, string>): ClientRequest {
  const client = httpRequest({ host: '127.0.0.1', port, method: 'POST', headers })
  // The receiver may answer and close while the body is still being sent.
  client.on('error', () => undefined)
  return client
}

async function answerTo(client: ClientRequest): Promise<{ status: number | undefined; result: VerifyResult }> {
  const [response] = (await once(client, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, result: JSON.parse(text) }
}

async function drain(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

test('node:http: the body is read from the request and verified', async (t) => {
  const port = await receiver(t, (request) => verify(request, both))
  for (const body of [ONE, BATCH]) {
    const result = await post(port, body, { ...signed(body), 'X-Attempt': '2' })
    assert.equal(result.ok && result.body, body)
    assert.equal(result.ok && result.attempt, 2)
    assert.equal(result.ok && result.webhookId, 'msg_1')
  }
  assert.equal(outcome(await post(port, ONE.replace('m-1', 'm-2'), signed(ONE))), 'signature_invalid')
  assert.equal(outcome(await post(port, '', signed(ONE))), 'signature_invalid')
})

test('node:http: a signature header sent twice is rejected', async (t) => {
  const port = await receiver(t, (request) => verify(request, { sharedSecret }))
  const client = httpRequest({ host: '127.0.0.1', port, method: 'POST' })
  client.setHeader('x-signature', [signBody(ONE, sharedSecret), '0'.repeat(40)])
  client.end(ONE)
  assert.equal(outcome((await answerTo(client)).result), 'header_repeated')
})

test('node:http: an unsigned request is rejected without waiting for its body', async (t) => {
  const port = await receiver(t, (request) => verify(request, both))
  const client = open(port, {})
  client.write('{')
  const { status, result } = await answerTo(client)
  assert.equal(status, 401)
  assert.equal(outcome(result), 'signature_missing')
  client.destroy()
})

test('node:http: a body that arrives byte by byte is rejected at the timeout', async (t) => {
  const port = await receiver(t, (request) => verify(request, { ...both, timeoutMs: 150 }))
  const client = open(port, signed(ONE))
  const drip = setInterval(() => client.write('{'), 10)
  t.after(() => clearInterval(drip))
  const { status, result } = await answerTo(client)
  assert.equal(status, 408)
  assert.equal(outcome(result), 'body_timeout')
  client.destroy()
})

test('node:http: a body over the limit is rejected while it is still arriving', async (t) => {
  const port = await receiver(t, async (request) => {
    const result = await verify(request, { ...both, maxBodyBytes: 100_000 })
    assert.equal(request.isPaused(), true)
    return result
  })
  const client = open(port, signed(ONE))
  const chunk = 'x'.repeat(10_000)
  const pump = setInterval(() => client.write(chunk), 1)
  t.after(() => clearInterval(pump))
  const { status, result } = await answerTo(client)
  assert.equal(status, 413)
  assert.equal(outcome(result), 'body_too_large')
  client.destroy()
})

test('node:http: a content-length over the limit is rejected before a byte is read', async (t) => {
  const port = await receiver(t, (request) => verify(request, both))
  const client = open(port, { ...signed(ONE), 'content-length': String(1024 * 1024 + 1) })
  client.flushHeaders()
  assert.equal(outcome((await answerTo(client)).result), 'body_too_large')
  client.destroy()
})

test('node:http: the limit is 1 MiB unless set, the last byte included', async (t) => {
  const port = await receiver(t, (request) => verify(request, both))
  const frame = JSON.stringify({ note: '' }).length
  const body = JSON.stringify({ note: 'x'.repeat(1024 * 1024 - frame) })
  assert.equal(outcome(await post(port, body)), 'ok')
  assert.equal(outcome(await post(port, `${body} `)), 'body_too_large')
})

test('node:http: a sender that disconnects half-way is rejected and does not hang', async (t) => {
  const verified = new EventEmitter<{ done: [VerifyResult] }>()
  const port = await receiver(t, async (request) => {
    request.once('data', () => client.destroy())
    const result = await verify(request, both)
    verified.emit('done', result)
    return result
  })
  const done = once(verified, 'done') as Promise<[VerifyResult]>
  const client = open(port, { ...signed(ONE), 'content-length': '1000' })
  client.write('{')
  const [result] = await done
  assert.equal(outcome(result), 'body_unreadable')
})

test('node:http: a request that has already ended is rejected at once', async (t) => {
  const verified = new EventEmitter<{ done: [VerifyResult] }>()
  const port = await receiver(t, async (request) => {
    client.destroy()
    await new Promise((resolve) => request.once('close', resolve))
    const result = await verify(request, both)
    verified.emit('done', result)
    return result
  })
  const done = once(verified, 'done') as Promise<[VerifyResult]>
  const client = open(port, { ...signed(ONE), 'content-length': '1000' })
  client.flushHeaders()
  const [result] = await done
  assert.equal(outcome(result), 'body_unreadable')
})

test('node:http: a request that was paused or given an encoding is still read', async (t) => {
  const port = await receiver(t, (request) => {
    request.pause()
    request.setEncoding('utf8')
    return verify(request, both)
  })
  assert.equal(outcome(await post(port, ONE)), 'ok')
})

test('node:http: nothing stays attached to the request', async (t) => {
  const port = await receiver(t, async (request) => {
    const events = ['data', 'end', 'error', 'close'] as const
    const before = events.map((event) => request.listenerCount(event))
    const result = await verify(request, both)
    assert.deepEqual(
      events.map((event) => request.listenerCount(event)),
      before,
    )
    return result
  })
  assert.equal(outcome(await post(port, ONE)), 'ok')
})

type Framework = (request: IncomingMessage) => ServerRequest | Promise<ServerRequest>

const frameworks: [title: string, prepare: Framework, options: VerifyOptions][] = [
  ['Express with rawBody kept beside a parsed body', keepsBoth, both],
  ['Express with express.raw()', async (request) => Object.assign(request, { body: await drain(request) }), both],
  ['Express with express.text()', async (request) => Object.assign(request, { body: (await drain(request)).toString() }), both],
  ['Express with express.json(), X-Signature', parses, { sharedSecret, allowUnprovenMessages: true }],
  ['Express with express.json(), Standard Webhooks', parses, { signingSecrets }],
  ['Express with express.json(), both', parses, both],
  ['Express 4 with a parser that passed it over and left {}', (request) => Object.assign(request, { body: {} }), both],
  ['Express without a parser', (request) => Object.assign(request, { body: undefined }), both],
  [
    'Fastify with fastify-raw-body',
    async (request) => ({ ...(await fastify(request)), rawBody: await drain(request), body: { a: 1 } }),
    both,
  ],
  ['Fastify with a parser that keeps a buffer', async (request) => ({ ...(await fastify(request)), body: await drain(request) }), both],
  [
    'Fastify with its own JSON parser',
    async (request) => ({ ...(await fastify(request)), body: JSON.parse(String(await drain(request))) }),
    both,
  ],
  ['Fastify before its parser has run', fastify, both],
  ['Fastify with no body on the request', async (request) => ({ ...(await fastify(request)), body: null }), both],
]

for (const [title, prepare, options] of frameworks) {
  test(`${title}: verifies one message and a batch, and rejects a changed one`, async (t) => {
    const port = await receiver(t, async (request) => verify(await prepare(request), options))
    for (const body of [ONE, BATCH]) {
      const result = await post(port, body)
      assert.equal(result.ok && result.body, body)
    }
    assert.equal(outcome(await post(port, ONE.replace('m-1', 'm-2'), signed(ONE))), 'signature_invalid')
  })
}

const lost: [title: string, prepare: Framework][] = [
  ['a stream read to its end', async (request) => (await drain(request), request)],
  ['a stream read in part', async (request) => (await once(request, 'data'), request.pause())],
  ["Fastify's stream read to its end", async (request) => (await drain(request), fastify(request))],
  ['headers alone', (request) => ({ headers: request.headers })],
]

for (const [title, prepare] of lost) {
  test(`${title}, with no body kept, is rejected and does not hang`, async (t) => {
    const port = await receiver(t, async (request) => verify(await prepare(request), both))
    assert.equal(outcome(await post(port, ONE)), 'body_already_read')
  })
}

test('a parsed body that a middleware changed is rejected like a forged one', async (t) => {
  const port = await receiver(t, async (request) => {
    const parsed = await parses(request)
    return verify(Object.assign(parsed, { body: { ...(parsed.body as object), added: true } }), both)
  })
  assert.equal(outcome(await post(port, ONE)), 'signature_invalid')
})

test('a parsed body that cannot be written as JSON is rejected', async () => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  for (const body of [circular, { n: 1n }, () => undefined]) {
    assert.equal(outcome(await verify({ headers: signed(ONE), body }, both)), 'body_unreadable')
  }
})

test("the application's mistakes reject with TypeError", async () => {
  await assert.rejects(verify({ headers: signed(ONE), body: ONE }, {}), TypeError)
  await assert.rejects(verify({ headers: signed(ONE), body: ONE }, { signingSecrets: 'whsec_?' }), TypeError)
  for (const request of [undefined, null, {}, { headers: 7 }])
    await assert.rejects(verify(request as unknown as ServerRequest, both), TypeError)
})

async function keepsBoth(request: IncomingMessage): Promise<ServerRequest> {
  const rawBody = await drain(request)
  return Object.assign(request, { rawBody, body: { changed: 'by a later middleware' } })
}

async function parses(request: IncomingMessage): Promise<ServerRequest> {
  return Object.assign(request, { body: JSON.parse(String(await drain(request))) as unknown })
}

async function fastify(request: IncomingMessage): Promise<ServerRequest> {
  return { raw: request, headers: request.headers }
}
