import assert from 'node:assert/strict'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { require } from '../definitions.ts'
import { integrationOf, MESSAGE, type Request, runSend } from '../fixtures/integrations.ts'
import { answerJson, startTool } from '../fixtures/tool.ts'

test('a request is recorded with its method, URL, time, status and the start of its answer', async (t) => {
  const { url } = await startTool(t, (response) => answerJson(response, 201, { text: 'ü'.repeat(5_000) }))
  const before = Date.now()
  const { requests, results, logs } = await runSend(
    integrationOf({ perform: (request) => request(`${url}/a/b`, { method: 'PUT', json: {} }) }),
  )
  assert.deepEqual([results, logs], [[{ kind: 'success' }], null])
  const [request] = requests
  assert.ok(request)
  const { positions, method, status, error, headers, body } = request
  assert.deepEqual(
    { positions, method, status, error, headers, body },
    { positions: [0], method: 'PUT', status: 201, error: null, headers: null, body: null },
  )
  assert.equal(request.url, `${url}/a/b`)
  assert.ok(request.startedAtMs >= before && request.totalMs > 0 && request.totalMs < 10_000)
  // 4 KB, without half of a character.
  assert.equal(request.responseStart, `{"text":"${'ü'.repeat(2_043)}`)
})

test('each hop of a redirect is recorded, over fresh and over reused connections', async (t) => {
  const { url } = await startTool(t, (response, { path }) => {
    const hop = Number(path.slice(1))
    if (hop < 3) response.writeHead(307, { location: `/${hop + 1}` }).end()
    else response.end('there')
  })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const nodeFetch = require('node-fetch') as (url: string, options?: object) => Promise<{ text(): Promise<string> }>
  const clients: ((request: Request) => unknown)[] = [
    (request) => request(`${url}/0`, { method: 'POST', json: {} }),
    async () => await (await nodeFetch(`${url}/0`, { agent })).text(),
    async () => await (await fetch(`${url}/0`)).text(),
  ]
  for (const perform of clients) {
    const integration = integrationOf({ perform })
    // The second run uses the connections of the first.
    for (let run = 0; run < 2; run++) {
      const { requests } = await runSend(integration)
      assert.deepEqual(
        requests.map((request) => [request.url.slice(url.length), request.status]),
        [
          ['/0', 307],
          ['/1', 307],
          ['/2', 307],
          ['/3', 200],
        ],
      )
      assert.equal(requests.at(-1)?.responseStart, 'there')
    }
  }
})

test('requests of runs at the same time belong to the run and the message that made them', async (t) => {
  const { url } = await startTool(t, (response, { path }) => setImmediate(() => response.end(path)))
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 })
  t.after(() => agent.destroy())
  const get = (path: string): Promise<void> =>
    new Promise((resolve, reject) => {
      http.get(`${url}${path}`, { agent }, (answer) => answer.resume().on('end', resolve)).on('error', reject)
    })
  const integration = integrationOf({
    fields: { id: { type: 'string' } },
    perform: async (_, { payload: { id } }) => {
      await get(`/${String(id)}/first`)
      await get(`/${String(id)}/second`)
    },
  })
  const runs = await Promise.all(
    Array.from({ length: 5 }, (_, run) =>
      runSend(integration, {
        messages: Array.from({ length: 12 }, (__, at) => ({ ...MESSAGE, id: `${run}-${at}` })),
        mapping: { id: { '@path': '$.id' } },
      }),
    ),
  )
  for (const [run, { requests }] of runs.entries()) {
    assert.equal(requests.length, 24)
    for (const { positions, url: address, responseStart } of requests) {
      assert.ok(address.startsWith(`${url}/${run}-${positions[0]}/`), `${address} in run ${run}, message ${positions[0]}`)
      assert.equal(responseStart, address.slice(url.length))
    }
  }
})

test('compressed answers are recorded as text, and one that is not what it says as compressed', async (t) => {
  const { url } = await startTool(t, (response, { path }) => {
    response.writeHead(200, { 'content-encoding': 'gzip' })
    if (path === '/good') response.end(gzipSync('hello '.repeat(100)))
    else if (path === '/bomb') response.end(gzipSync(Buffer.alloc(8 << 20)))
    else response.end('not gzip')
  })
  const get = (path: string): Promise<void> =>
    new Promise((resolve) => http.get(url + path, (answer) => answer.resume().on('end', resolve)))
  const { requests } = await runSend(integrationOf({ perform: async () => [await get('/good'), await get('/bomb'), await get('/bad')] }))
  assert.deepEqual(
    requests.map(({ responseStart }) => responseStart?.slice(0, 12)),
    ['hello hello ', '(compressed)', '(compressed)'],
  )
})

test('requests over HTTP/2 are recorded', async (t) => {
  const server = http2.createServer((_, response) => {
    response.writeHead(429, { 'retry-after': '4' })
    response.end('slow down')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const perform = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const session = http2.connect(origin)
      const stream = session.request({ ':path': '/stream', ':method': 'POST' })
      stream.on('error', reject)
      stream.resume().on('close', () => session.close(resolve))
      stream.end('x')
    })
  const { requests } = await runSend(integrationOf({ perform }))
  assert.deepEqual(
    requests.map(({ method, url, status, responseStart }) => ({ method, url, status, responseStart })),
    [{ method: 'POST', url: `${origin}/stream`, status: 429, responseStart: 'slow down' }],
  )
})

test('requests of the AWS SDK are recorded, with its retries, and its errors have the status of the answer', async (t) => {
  const { url } = await startTool(t, (response) => response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>'))
  const { S3Client, PutObjectCommand } = require('@aws-sdk/client-s3') as Record<
    string,
    new (
      options: object,
    ) => { send(command: unknown): Promise<unknown> }
  >
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'aws-secret-key' }
  const perform = (): Promise<unknown> => {
    const options = { endpoint: url, region: 'us-east-1', credentials, forcePathStyle: true, maxAttempts: 2 }
    const client = new (S3Client as new (o: object) => { send(command: unknown): Promise<unknown> })(options)
    return client.send(new (PutObjectCommand as new (o: object) => unknown)({ Bucket: 'b', Key: 'k', Body: 'hello' }))
  }
  const { requests, results } = await runSend(integrationOf({ perform }))
  assert.deepEqual(
    requests.map(({ method, status }) => [method, status]),
    [
      ['PUT', 503],
      ['PUT', 503],
    ],
  )
  assert.equal(results[0]?.kind === 'status' && results[0].status, 503)
})

test('50 requests of a run are recorded, and the logs say how many are not', async (t) => {
  const { url, received } = await startTool(t)
  const perform = (request: Request): unknown => Promise.all(Array.from({ length: 60 }, () => request(url)))
  const { requests, logs } = await runSend(integrationOf({ perform }))
  assert.equal(received.length, 60)
  assert.equal(requests.length, 50)
  assert.equal(logs, '10 more requests were made but not recorded.')
})

test('requests of other code in the process are not touched', async (t) => {
  integrationOf({})
  const { url } = await startTool(t, (response) => response.end('hello'))
  assert.equal(await (await fetch(url)).text(), 'hello')
  const { default: ownHttp, get } = await import('node:http')
  assert.equal(ownHttp.get, get)
  await new Promise((resolve) => get(url, (answer) => answer.resume().on('end', resolve)))
})

test('what an action logs is part of its run, with a limit', async () => {
  const integration = integrationOf({
    perform: (_, { logger }) => {
      console.log('a %s', 'line', { b: 1 })
      console.error(new Error('an error').message)
      logger.crit('critical')
      console.log('x'.repeat(10_000))
    },
  })
  const { logs } = await runSend(integration)
  assert.match(logs ?? '', /^a line \{ b: 1 \}\nan error\ncritical\nx+$/)
  assert.equal(logs?.length, 2_048)
  assert.equal((await runSend(integrationOf({}))).logs, null)
})
