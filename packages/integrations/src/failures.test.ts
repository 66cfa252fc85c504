import assert from 'node:assert/strict'
import { createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { require } from './definitions.ts'
import { errors, integrationOf, MESSAGE, type Request, runSend } from './fixtures/integrations.ts'
import { answerJson, startTool } from './fixtures/tool.ts'
import type { StepResult } from './integration.ts'

/** The library's multi-status answer. */
interface Reported {
  pushErrorResponse(response: object): void
  pushSuccessResponse(response: object): void
}

const post = (url: string) => (request: Request) => request(url, { method: 'POST', json: { a: 1 } })

async function resultOf(perform: (request: Request) => unknown): Promise<StepResult> {
  const { results } = await runSend(integrationOf({ perform }))
  return results[0] as StepResult
}

async function closedPort(): Promise<number> {
  const server = createTcpServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

for (const status of [400, 401, 403, 404, 429, 500, 503]) {
  test(`an answer of ${status} is the result, with its Retry-After`, async (t) => {
    const { url } = await startTool(t, (response) => answerJson(response, status, {}, { 'retry-after': '7' }))
    const { results, requests } = await runSend(integrationOf({ perform: post(url) }))
    assert.deepEqual(results, [
      { kind: 'status', status, retryAfter: '7', message: results[0]?.kind === 'status' ? results[0].message : '' },
    ])
    assert.equal(requests[0]?.status, status)
    assert.equal(requests[0]?.error, null)
  })
}

test('a refused connection is a failure of the network', async () => {
  const port = await closedPort()
  const { results, requests } = await runSend(integrationOf({ perform: post(`http://127.0.0.1:${port}/`) }))
  assert.equal(results[0]?.kind === 'network' && results[0].code, 'ECONNREFUSED')
  assert.deepEqual([requests[0]?.status, requests[0]?.error], [null, 'ECONNREFUSED'])
})

test('a connection that is reset is a failure of the network, before and after the start of the answer', async (t) => {
  const before = await startTool(t, (response) => response.socket?.resetAndDestroy())
  const first = await runSend(integrationOf({ perform: post(before.url) }))
  assert.equal(first.results[0]?.kind === 'network' && first.results[0].code, 'ECONNRESET')
  assert.equal(first.requests[0]?.error, 'ECONNRESET')
  const during = await startTool(t, (response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('the start', () => response.socket?.resetAndDestroy())
  })
  const second = await runSend(integrationOf({ perform: post(during.url) }))
  assert.equal(second.results[0]?.kind, 'network')
  assert.deepEqual([second.requests[0]?.status, second.requests[0]?.responseStart], [200, 'the start'])
})

test('an answer that is not what its content-encoding says is a failure of the network', async (t) => {
  const tool = await startTool(t, (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('not gzip'))
  const { results } = await runSend(integrationOf({ perform: post(tool.url) }))
  assert.equal(results[0]?.kind === 'network' && results[0].code, 'Z_DATA_ERROR')
})

test('an error that an action reports for a single message as it does for batches is a failure', async () => {
  const { MultiStatusResponse } = require('@segment/actions-core') as { MultiStatusResponse: new () => Reported }
  const reported = (report: (response: Reported) => void): Promise<StepResult> =>
    resultOf(() => {
      const response = new MultiStatusResponse()
      report(response)
      return response
    })
  const error = (status: number, errormessage: string) => (response: Reported) => response.pushErrorResponse({ status, errormessage })
  assert.deepEqual(await reported(error(400, 'no such folder')), {
    kind: 'status',
    status: 400,
    retryAfter: null,
    message: 'no such folder',
  })
  assert.deepEqual(await reported(error(503, 'busy')), { kind: 'status', status: 503, retryAfter: null, message: 'busy' })
  assert.deepEqual(await reported((response) => response.pushSuccessResponse({ status: 200, sent: {}, body: 'ok' })), { kind: 'success' })
})

test('the code of a network error is found in what caused the error', async () => {
  const cause = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
  const refused = Object.assign(new Error('guard'), { code: 'ERR_ADDRESS_REFUSED' })
  const result = (thrown: Error): Promise<StepResult> => resultOf(() => Promise.reject(thrown))
  assert.deepEqual(await result(new TypeError('fetch failed', { cause })), {
    kind: 'network',
    code: 'ECONNREFUSED',
    message: 'fetch failed',
  })
  assert.deepEqual(await result(new AggregateError([new Error('x'), refused], 'all failed')), {
    kind: 'network',
    code: 'ERR_ADDRESS_REFUSED',
    message: 'all failed',
  })
  const loop = new Error('loop') as Error & { cause: unknown }
  loop.cause = loop
  assert.equal((await result(loop)).kind, 'failed')
})

test('the errors of the library decide', async () => {
  const cases: [() => unknown, string][] = [
    [() => new errors.RetryableError('later'), 'integration_retry'],
    [() => new errors.IntegrationError('no', 'NO', 400), 'integration_failed'],
    [() => new errors.IntegrationError('no', 'NO', 501), 'integration_failed'],
    [() => new errors.IntegrationError('no', 'NO', 409), 'integration_failed'],
    ...[408, 423, 429, 500, 502, 505].map((status): [() => unknown, string] => [
      () => new errors.IntegrationError('later', 'LATER', status),
      'integration_retry',
    ]),
    [() => new errors.APIError('locked', 423), 'integration_retry'],
    [() => new errors.PayloadValidationError('bad'), 'invalid_payload'],
    [() => new errors.InvalidAuthenticationError('who'), 'invalid_authentication'],
    [() => new errors.SelfTimeoutError('slow'), 'timeout'],
    [() => new Error('unknown'), 'integration_failed'],
    [() => new TypeError("Cannot read properties of undefined (reading 'x')"), 'integration_failed'],
  ]
  for (const [error, code] of cases) {
    const thrown = error() as Error
    const expected = { kind: 'failed', code, message: thrown.message }
    assert.deepEqual(await resultOf(() => Promise.reject(thrown)), expected)
    assert.deepEqual(
      await resultOf(() => {
        throw thrown
      }),
      expected,
    )
  }
  assert.deepEqual(await resultOf(() => Promise.reject(new errors.APIError('quota', 429))), {
    kind: 'status',
    status: 429,
    retryAfter: null,
    message: 'quota',
  })
})

test('an IntegrationError that reports an outage is judged by the answer, or by the connection that failed', async (t) => {
  const tool = await startTool(t, (response) => answerJson(response, 503, {}, { 'retry-after': '3' }))
  const wrapped = (url: string) => (request: Request) =>
    post(url)(request).catch(() => {
      throw new errors.IntegrationError('The tool is down', 'DOWN', 503)
    })
  assert.deepEqual(await resultOf(wrapped(tool.url)), { kind: 'status', status: 503, retryAfter: '3', message: 'The tool is down' })
  const port = await closedPort()
  assert.deepEqual(await resultOf(wrapped(`http://127.0.0.1:${port}`)), {
    kind: 'network',
    code: 'ECONNREFUSED',
    message: 'The tool is down',
  })
  const rejects = await startTool(t, (response) => answerJson(response, 400, {}))
  assert.deepEqual(await resultOf(wrapped(rejects.url)), { kind: 'failed', code: 'integration_retry', message: 'The tool is down' })
})

test('a Retry-After counts, whatever error the definition makes of the answer', async (t) => {
  const tool = await startTool(t, (response) => answerJson(response, 429, {}, { 'retry-after': '4' }))
  const thrown = (instead: Error) => (request: Request) => post(tool.url)(request).catch(() => Promise.reject(instead))
  const later = { kind: 'failed', code: 'integration_retry', message: 'Rate limit reached.', retryAfter: '4' }
  assert.deepEqual(await resultOf(thrown(new errors.RetryableError('Rate limit reached.'))), later)
  assert.deepEqual(await resultOf(thrown(new errors.IntegrationError('Rate limit reached.', 'LIMIT', 500))), later)
})

test('a locked record in a multi-status answer is retried', async () => {
  const integration = integrationOf({
    performBatch: () => {
      const response = new errors.MultiStatusResponse()
      response.pushErrorResponse({ status: 423, errormessage: 'locked' })
      response.pushSuccessResponse({ status: 200, body: {}, sent: {} })
      return response
    },
  })
  const { results } = await runSend(integration, { messages: [MESSAGE, MESSAGE] })
  assert.deepEqual(results, [{ kind: 'failed', code: 'integration_retry', message: 'locked' }, { kind: 'success' }])
})

test('values that are no errors, and errors that cannot be read, fail the message and nothing else', async () => {
  const hostile = Object.defineProperty(new Error('x'), 'name', {
    get() {
      throw new Error('no name')
    },
  })
  for (const value of [
    'text',
    null,
    undefined,
    7,
    {},
    Symbol('s'),
    hostile,
    Object.create(null),
    new Proxy({}, { get: () => assert.fail() }),
  ]) {
    const result = await resultOf(() => Promise.reject(value as Error))
    assert.equal(result.kind === 'failed' && result.code, 'integration_failed')
  }
})

test('a payload that does not fit the fields of the action fails with the field', async () => {
  const action = { fields: { id: { type: 'string', label: 'ID', description: 'An id.', required: true } } } as const
  const { results } = await runSend(integrationOf(action), { mapping: { id: { '@path': '$.missing' } } })
  assert.equal(results[0]?.kind === 'failed' && results[0].code, 'invalid_payload')
  assert.match(results[0]?.kind === 'failed' ? results[0].message : '', /missing the required field 'id'/)
})

test('a run that ignores the deadline ends at the deadline, and what it does later is not recorded', async (t) => {
  const { url, received } = await startTool(t)
  const abort = new AbortController()
  let onLate: (value: unknown) => void
  const late = new Promise((resolve) => {
    onLate = resolve
  })
  const integration = integrationOf({
    perform: async (request) => {
      await new Promise((resolve) => abort.signal.addEventListener('abort', resolve))
      await new Promise((resolve) => setImmediate(resolve))
      onLate(await request(url).catch((error: unknown) => error))
      throw new Error('after the deadline')
    },
  })
  const running = runSend(integration, { signal: abort.signal })
  setImmediate(() => abort.abort())
  const { results, requests } = await running
  assert.equal(results[0]?.kind === 'failed' && results[0].code, 'timeout')
  assert.deepEqual(requests, [])
  assert.ok((await late) instanceof Error)
  assert.deepEqual(received, [])
})

test('the deadline ends an answer that never ends', async (t) => {
  // Requests whose headers are recorded are made by Node.js, and others over our own connections.
  for (const isDetailed of [true, false]) {
    const abort = new AbortController()
    const { url } = await startTool(t, (response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('the start', () => setImmediate(() => abort.abort()))
    })
    const { results, requests } = await runSend(integrationOf({ perform: post(url) }), { isDetailed, signal: abort.signal })
    assert.equal(results[0]?.kind === 'failed' && results[0].code, 'timeout')
    assert.equal(requests.length, 1)
  }
})

test('the deadline ends requests that the library and others have made', async (t) => {
  const closed: Promise<unknown>[] = []
  const abort = new AbortController()
  const { url } = await startTool(t, (response, _, count) => {
    closed.push(new Promise((resolve) => response.on('close', resolve)))
    if (count === 3) abort.abort()
  })
  const { default: http } = await import('node:http')
  const integration = integrationOf({
    perform: (request) => {
      http.get(url).on('error', () => {})
      return Promise.all([request(url), fetch(url)])
    },
  })
  const { results, requests } = await runSend(integration, { signal: abort.signal })
  assert.deepEqual(
    results.map((result) => result.kind === 'failed' && result.code),
    ['timeout'],
  )
  assert.equal(requests.length, 3)
  await Promise.all(closed)
})

test('each message of a multi-status answer has its own result', async (t) => {
  const { url } = await startTool(t, (response) => answerJson(response, 207, {}, { 'retry-after': '9' }))
  const integration = integrationOf({
    fields: { id: { type: 'string', label: 'ID', description: 'An id.', required: true } },
    performBatch: async (request, { payload }) => {
      await request(url, { method: 'POST', json: payload })
      const response = new errors.MultiStatusResponse()
      response.pushSuccessResponse({ status: 201, body: {}, sent: {} })
      response.pushErrorResponse({ status: 429, errormessage: 'slow down' })
      response.pushErrorResponse({ status: 400, errortype: 'PAYLOAD_VALIDATION_FAILED', errormessage: 'bad email' })
      response.pushErrorResponse({ status: 500, errortype: 'RETRYABLE_ERROR', errormessage: 'again' })
      response.pushErrorResponse({ status: 404, errormessage: 'no such list' })
      return response
    },
  })
  const ids = ['a', 'b', undefined, 'c', 'd', 'e', 'f']
  const messages = ids.map((id) => Object.assign({}, MESSAGE, id !== undefined && { id }))
  const { results, requests } = await runSend(integration, { messages, mapping: { id: { '@path': '$.id' } } })
  assert.deepEqual(
    results.map((result) =>
      result.kind === 'success' ? 'success' : result.kind === 'status' ? result.status : result.kind === 'failed' && result.code,
    ),
    // The third has no id, so the action does not get it; the action says nothing about the last.
    ['success', 429, 'invalid_payload', 'invalid_payload', 'integration_retry', 404, 500],
  )
  assert.deepEqual(results[1], { kind: 'status', status: 429, retryAfter: '9', message: 'slow down' })
  assert.deepEqual(
    requests.map(({ positions }) => positions),
    [[0, 1, 2, 3, 4, 5, 6]],
  )
})

test('a batch that is refused as a whole fails for every message', async (t) => {
  const { url } = await startTool(t, (response) => answerJson(response, 503, {}))
  const integration = integrationOf({ performBatch: (request) => request(url, { method: 'POST', json: [] }) })
  const { results } = await runSend(integration, { messages: [MESSAGE, MESSAGE] })
  assert.deepEqual(
    results.map((result) => result.kind === 'status' && result.status),
    [503, 503],
  )
})

test('a batch that makes several requests fails if one of them is refused, although the definition does not look at the answers', async (t) => {
  const { url } = await startTool(t, (response, { path }) =>
    answerJson(response, path === '/refused' ? 429 : 200, {}, path === '/refused' ? { 'retry-after': '4' } : {}),
  )
  const integration = integrationOf({
    performBatch: (request) =>
      Promise.all(['/taken', '/refused'].map((path) => request(`${url}${path}`, { method: 'POST', throwHttpErrors: false }))),
  })
  const { results } = await runSend(integration, { messages: [MESSAGE, MESSAGE] })
  assert.deepEqual(
    results.map((result) => result.kind === 'status' && [result.status, result.retryAfter]),
    [
      [429, '4'],
      [429, '4'],
    ],
  )
})

test('a message of an error has a limit', async () => {
  const result = await resultOf(() => Promise.reject(new Error('x'.repeat(100_000))))
  assert.equal(result.kind === 'failed' && result.message.length, 1_000)
})
