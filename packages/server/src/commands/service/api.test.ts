import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { EXIT } from '../line/command.ts'
import { type Api, type ApiOptions, createApi } from './api.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

async function startApi(
  t: TestContext,
  handler: Handler,
  options: Partial<ApiOptions> = {},
): Promise<{ api: Api; abort: AbortController; url: string }> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const abort = new AbortController()
  t.after(() => abort.abort())
  return { api: createApi({ url, token: 'secret-token', signal: abort.signal, reconnectMs: 1, ...options }), abort, url }
}

function answer(status: number, body: unknown): Handler {
  return (_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function refusal(code: string, message: string): object {
  return { success: false, error: code, code, message }
}

test('sends the token, the query and the body', async (t) => {
  const seen: string[] = []
  const { api } = await startApi(t, (request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      seen.push(`${request.method} ${request.url} ${request.headers.authorization} ${body}`)
      if (request.method === 'DELETE') response.writeHead(204).end()
      else response.end('{"ok":true}')
    })
  })
  assert.deepEqual(await api.get('/api/x', { a: 'ä &', b: undefined, c: 2 }), { ok: true })
  await api.post('/api/x', { d: 1 })
  await api.patch('/api/x', { e: 1 })
  assert.equal(await api.delete('/api/x'), undefined)
  assert.deepEqual(seen, [
    'GET /api/x?a=%C3%A4+%26&c=2 Bearer secret-token ',
    'POST /api/x Bearer secret-token {"d":1}',
    'PATCH /api/x Bearer secret-token {"e":1}',
    'DELETE /api/x Bearer secret-token ',
  ])
})

test('reads a whole list, page by page', async (t) => {
  const { api } = await startApi(t, ({ url = '' }, response) => {
    const cursor = new URL(url, 'http://x').searchParams.get('cursor')
    response.end(JSON.stringify(cursor === null ? { data: [{ id: 1 }, { id: 2 }], next: 'two' } : { data: [{ id: 3 }], next: null }))
  })
  const ids: unknown[] = []
  for await (const { id } of api.all('/api/list')) ids.push(id)
  assert.deepEqual(ids, [1, 2, 3])
})

const ERRORS: [title: string, status: number, body: unknown, expected: { exit: number; message: RegExp }][] = [
  [
    'a bad request',
    400,
    refusal('invalid_field', 'name must be text.'),
    { exit: EXIT.usage, message: /^name must be text\. \(invalid_field\)$/ },
  ],
  [
    'an unknown token',
    401,
    refusal('unauthorized', 'x'),
    { exit: EXIT.unreachable, message: /rejected this control token.*SWITCHYARD_TOKEN/ },
  ],
  [
    'a write key in place of a token',
    401,
    refusal('unauthorized', 'It looks like a write key.'),
    { exit: EXIT.unreachable, message: /rejected this control token\. It looks like a write key\.$/ },
  ],
  ['an insufficient role', 403, refusal('forbidden', 'Only admins.'), { exit: EXIT.unreachable, message: /Only admins\. \(forbidden\)/ }],
  ['a missing resource', 404, refusal('source_not_found', 'No source.'), { exit: EXIT.notFound, message: /source_not_found/ }],
  [
    'an unknown path',
    404,
    refusal('not_found', 'x'),
    { exit: EXIT.failed, message: /has no endpoint \/api\/x\. It may be older than this command/ },
  ],
  ['a conflict', 409, refusal('last_write_key', 'Keep one.'), { exit: EXIT.failed, message: /last_write_key/ }],
  ['an error of the service', 503, refusal('store_unavailable', 'Disk full.'), { exit: EXIT.failed, message: /Disk full/ }],
  [
    'another program at that address',
    200,
    'hello',
    { exit: EXIT.unreachable, message: /answered 200, but the response is not from a Switchyard service/ },
  ],
  [
    'a proxy',
    502,
    { error: 'bad gateway' },
    { exit: EXIT.unreachable, message: /answered 502, but the response is not from a Switchyard service/ },
  ],
]
for (const [title, status, body, expected] of ERRORS) {
  test(`reports ${title} in one line with the right exit code`, async (t) => {
    const { api } = await startApi(t, answer(status, body))
    await assert.rejects(api.get('/api/x'), (error: Error & { exit: number }) => {
      assert.equal(error.exit, expected.exit)
      assert.match(error.message, expected.message)
      assert.doesNotMatch(error.message, /secret-token|\n/)
      return true
    })
  })
}

test('without a token, the error says how to set one', async (t) => {
  const { api } = await startApi(t, answer(401, refusal('unauthorized', 'x')), { token: null })
  await assert.rejects(api.get('/api/x'), {
    exit: EXIT.unreachable,
    message: /requires a control token\. Run `[^`]*switchyard login`, set SWITCHYARD_TOKEN or use --token/,
  })
})

test('without a service, the error says how to start one', async (t) => {
  const { url } = await startApi(t, answer(200, {}))
  const port = Number(new URL(url).port)
  const gone = createServer()
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve))
  const { port: free } = gone.address() as AddressInfo
  await new Promise((resolve) => gone.close(resolve))
  assert.notEqual(free, port)
  const api = createApi({ url: `http://127.0.0.1:${free}`, token: null, signal: new AbortController().signal })
  await assert.rejects(api.get('/api/x'), {
    exit: EXIT.unreachable,
    message: `Cannot reach a service at http://127.0.0.1:${free}. Start one with \`switchyard serve\`, or give the URL of a running one with --url.`,
  })
})

test('a call to a service that does not respond ends at the deadline', async (t) => {
  const { api } = await startApi(t, () => {}, { deadlineMs: 50 })
  await assert.rejects(api.get('/api/x'), { exit: EXIT.unreachable, message: /did not respond within 0\.05 s/ })
})

test('a slow call reports that it is waiting, until its response', async (t) => {
  let waits = 0
  let answerNow = (): void => {}
  const { api } = await startApi(t, (_request, response) => void (answerNow = () => response.end('{}')), {
    slowMs: 1,
    onSlow() {
      waits += 1
      if (waits >= 2) answerNow()
    },
  })
  await api.get('/api/x')
  assert.ok(waits >= 2)
})

test('https to the http port says to use http, and a URL with a path says to leave it out', async (t) => {
  const { url } = await startApi(t, answer(404, refusal('not_found', 'x')))
  const { signal } = new AbortController()
  await assert.rejects(createApi({ url: url.replace('http:', 'https:'), token: null, signal }).get('/api/x'), {
    exit: EXIT.unreachable,
    message: `The server at ${url.replace('http:', 'https:')} does not use TLS. Use ${url}: the service itself serves plain http, and needs a proxy for https.`,
  })
  await assert.rejects(createApi({ url: `${url}/api`, token: null, signal }).get('/api/x'), {
    message: `The service at ${url}/api has no endpoint /api/x. Leave out /api and use ${url}, unless a proxy serves the service under that path.`,
  })
})

test('events continue after a lost connection, and end with the signal', async (t) => {
  let connections = 0
  const { api, abort } = await startApi(t, (_request, response) => {
    connections += 1
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`id: ${connections}\nevent: accepted\ndata: {"n":${connections}}\n\n`)
    if (connections < 3) setImmediate(() => response.destroy())
  })
  const seen: unknown[] = []
  for await (const { event, data } of api.events('/api/live', {}, abort.signal)) {
    seen.push([event, data['n']])
    if (seen.length === 3) abort.abort()
  }
  assert.deepEqual(seen, [
    ['accepted', 1],
    ['accepted', 2],
    ['accepted', 3],
  ])
})

test('a rejected event stream is an error', async (t) => {
  const { api, abort } = await startApi(t, answer(404, refusal('source_not_found', 'No source.')))
  const events = api.events('/api/live', {}, abort.signal)[Symbol.asyncIterator]()
  await assert.rejects(events.next(), /source_not_found/)
})
