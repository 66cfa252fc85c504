// The OpenAPI description matches the service: every path that the service serves is described, and every path that is
// described answers as the description says.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { documentProblems, valueProblems } from '../../packages/server/src/control/fixtures/check-openapi.ts'
import type { OpenApiDocument } from '../../packages/server/src/control/openapi/api-document.ts'
import { MAX_UNANSWERED } from '../../packages/server/src/http/connections.ts'
import { FILE_PATHS, PAGE_PATHS } from '../../packages/server/src/pages/paths.ts'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { TOKEN } from '../system/service.ts'
import { wire } from '../system/wiring.ts'

interface Served {
  method: string
  url: string
}

const served: Served[] = []
let service: InProcessService
let document: OpenApiDocument

before(async () => {
  service = await startInProcess({
    onRoute: ({ method, url }) => void served.push(...[method].flat().map((each) => ({ method: each, url }))),
  })
  document = (await (await fetch(`${service.url}/docs/openapi.json`)).json()) as OpenApiDocument
})
after(() => service[Symbol.asyncDispose]())

/** Not described: catch-all routes, HEAD, which belongs to GET, and OPTIONS, which browsers send before POST. */
function isOwnPath({ method, url }: Served): boolean {
  return method !== 'HEAD' && method !== 'OPTIONS' && !url.endsWith('*')
}

/** Redirects. */
const REDIRECTS = new Set(['/docs', '/docs/api'])
/** The dashboard: its pages and their files are not part of the API. */
const DASHBOARD = new Set([...PAGE_PATHS, ...FILE_PATHS])

test('every path that is served is described, and every path that is described is served', () => {
  const real = served
    .filter(isOwnPath)
    .filter(({ url }) => !REDIRECTS.has(url) && !DASHBOARD.has(url))
    .map(({ method, url }) => `${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`)
  const said = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual([...new Set(real)].sort(), said.sort())
})

test('the public description is complete, and the same as with a token', async () => {
  assert.deepEqual(documentProblems(document), [])
  assert.deepEqual(await service.api('/openapi.json'), document)
  assert.equal((await fetch(`${service.url}/api/openapi.json`)).status, 401)
})

test('paths outside the control API answer as described', async () => {
  const { writeKey } = await wire(service)
  const basic = { authorization: `Basic ${btoa(`${writeKey}:`)}` }
  const off = await service.api<{ id: string; writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'off', enabled: false } })
  const closed = await service.api<{ writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'closed', requireOAuth: true } })
  const json = (value: unknown): string => JSON.stringify(value)
  const track = { userId: 'u-1', event: 'Tested' }
  const cases: [method: string, path: string, described: string, status: number, init?: RequestInit][] = [
    ['post', '/v1/batch', '/v1/batch', 200, { headers: basic, body: json({ batch: [{ type: 'track', ...track }] }) }],
    ['post', '/v1/batch', '/v1/batch', 200, { headers: basic, body: json({ batch: [{ type: 'track', ...track }, { type: 'x' }] }) }],
    ['post', '/v1/batch', '/v1/batch', 400, { headers: basic, body: json({ batch: [{ type: 'x' }] }) }],
    ['post', '/v1/batch', '/v1/batch', 400, { headers: basic, body: '{' }],
    ['post', '/v1/batch', '/v1/batch', 400, { headers: basic, body: json({ batch: Array(2_501).fill(1) }) }],
    ['post', '/v1/track', '/v1/track', 200, { headers: basic, body: json(track) }],
    ['post', '/v1/track', '/v1/track', 400, { headers: basic, body: json({ userId: 'u-1' }) }],
    ['post', '/v1/track', '/v1/track', 401, { body: json({ ...track, writeKey: 'nobody' }) }],
    ['post', '/v1/track', '/v1/track', 401, { body: json({ ...track, writeKey: closed.writeKeys[0] }) }],
    ['post', '/v1/track', '/v1/track', 403, { body: json({ ...track, writeKey: off.writeKeys[0] }) }],
    ['post', '/v1/track', '/v1/track', 415, { headers: { ...basic, 'content-encoding': 'br' }, body: json(track) }],
    ['post', '/v1/t', '/v1/t', 200, { headers: basic, body: json(track) }],
    ['post', '/v1/identify', '/v1/identify', 400, { headers: basic, body: json({ userId: 'u-1', traits: 1 }) }],
    ['post', '/v1/page', '/v1/page', 400, { headers: basic, body: json({ userId: 'u-1', name: 1 }) }],
    ['post', '/v1/screen', '/v1/screen', 400, { headers: basic, body: json({ userId: 'u-1', category: 1 }) }],
    ['post', '/v1/group', '/v1/group', 400, { headers: basic, body: json({ userId: 'u-1' }) }],
    ['post', '/v1/alias', '/v1/alias', 400, { headers: basic, body: json({ userId: 'u-1' }) }],
    ['post', '/v1/m', '/v1/m', 200, { body: '{}' }],
    ['get', '/v1/pixel/track', '/v1/pixel/{type}', 200],
    ['get', `/v1/projects/${writeKey}/settings`, '/v1/projects/{writeKey}/settings', 200],
    ['get', '/v1/projects/nobody/settings', '/v1/projects/{writeKey}/settings', 404],
    ['get', `/v1/sourceConfig/?writeKey=${writeKey}`, '/v1/sourceConfig', 200],
    ['get', '/v1/sourceConfig/?writeKey=nobody', '/v1/sourceConfig', 404],
    ['post', `/beacon/v1/batch?writeKey=${writeKey}`, '/beacon/v1/batch', 200, { body: json({ batch: [{ type: 'track', ...track }] }) }],
    ['post', '/beacon/v1/batch?writeKey=nobody', '/beacon/v1/batch', 401, { body: json({ batch: [{ type: 'track', ...track }] }) }],
    ['post', '/oauth2/token', '/oauth2/token', 400, { body: new URLSearchParams({ grant_type: 'password' }) }],
    ['post', '/oauth2/token', '/oauth2/token', 401, { body: new URLSearchParams({ grant_type: 'client_credentials' }) }],
    ['post', '/oauth2/token', '/oauth2/token', 415, { headers: { 'content-type': 'application/json' }, body: '{}' }],
    ['get', '/healthz', '/healthz', 200],
    ['get', '/readyz', '/readyz', 200],
    ['get', '/metrics', '/metrics', 200],
    ['get', '/docs/openapi.json', '/docs/openapi.json', 200],
  ]
  for (const [method, path, described, status, init = {}] of cases) {
    const where = `${method} ${path} ${status}`
    const response = await fetch(service.url + path, { method: method.toUpperCase(), ...init })
    const text = await response.text()
    assert.equal(response.status, status, `${where}: ${text.slice(0, 200)}`)
    const content = contentOf(described, method, status)
    const type = (response.headers.get('content-type') ?? '').split(';', 1)[0] as string
    assert.deepEqual(Object.keys(content), [type], where)
    if (type === 'application/json') assert.deepEqual(valueProblems(document, content[type]?.schema, JSON.parse(text)), [], where)
  }
})

function contentOf(path: string, method: string, status: number): Record<string, { schema: object }> {
  const responses = document.paths[path]?.[method]?.['responses'] as Record<string, { $ref?: string; content?: object }>
  const found = responses[status]
  assert.ok(found !== undefined, `${method} ${path}: ${status} is not described`)
  const response = found.$ref === undefined ? found : document.components.responses[found.$ref.split('/').at(-1) as string]
  return (response as { content: Record<string, { schema: object }> }).content
}

test('too many pipelined requests for a public file close that connection, and nothing else', async () => {
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  let answered = ''
  socket.on('data', (chunk: Buffer) => {
    answered += chunk.toString('latin1').replaceAll(/[^]*?(HTTP|$)/g, '$1')
    // Without a limit all of them would be answered, and the connection would stay open.
    if (answered.length > 4 * MAX_UNANSWERED) socket.destroy(new Error('too many answers'))
  })
  const failed: string[] = []
  socket.on('error', (error) => failed.push(error.message))
  socket.write(`GET /docs/openapi.json HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n`.repeat(1_700))
  await new Promise((resolve) => socket.once('close', resolve))
  assert.ok(!failed.includes('too many answers'))
  assert.equal((await fetch(`${service.url}/healthz`)).status, 200)
})

test('the service does not wait for the body of a request to an unknown path', async () => {
  const head = `POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900000\r\nconnection: close\r\n\r\n`
  assert.match(await exchange(`${head}{"a":`), /^HTTP\/1.1 404 /)
})

test('malformed paths are refused with the usual error body, before and after the router', async () => {
  for (const [target, status, code] of [
    ['/api/../api/sources', 404, 'not_found'],
    ['//api/sources', 404, 'not_found'],
    ['/api/sources/..', 404, 'source_not_found'],
    ['/api/sources/%2e%2e', 404, 'source_not_found'],
    ['/api/sources/a%2Fb', 404, 'source_not_found'],
    ['/api/sources/%', 400, 'invalid_request'],
    ['/api/sources/%zz', 400, 'invalid_request'],
    ['/api/sources/%ff', 400, 'invalid_request'],
    [`/api/sources/${'x'.repeat(5_000)}`, 400, 'invalid_request'],
    ['/docs/nothing', 404, 'not_found'],
    ['/docs/openapi.json?x=1', 200, ''],
    ['/healthz/', 404, 'not_found'],
  ] as const) {
    const answer = await exchange(`GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\nconnection: close\r\n\r\n`)
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} ${code === '' ? '' : `[^]*"code":"${code}"`}`), target.slice(0, 60))
  }
})

test('the documentation without a slash at its end redirects to the one with a slash', async () => {
  const response = await fetch(`${service.url}/docs?x=1`, { redirect: 'manual' })
  assert.deepEqual([response.status, response.headers.get('location')], [308, '/docs/?x=1'])
})

async function exchange(request: string): Promise<string> {
  const { port, hostname } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write(request)
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}
