import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nullable, object, string, withDefault } from '../../api/schema.ts'
import { controlRoutes } from '../control.ts'
import { documentProblems, valueProblems } from '../fixtures/check-openapi.ts'
import { startControl } from '../fixtures/start-control.ts'
import type { ControlParts } from '../routes/route.ts'
import { apiDocument } from './api-document.ts'
import { openApiDocument } from './document.ts'
import { EXAMPLES } from './examples.ts'
import type { Operation } from './operation.ts'

const routes = controlRoutes({} as ControlParts)
const document = apiDocument(routes)

function described(schema: Operation['answers'][number]['schema']): ReturnType<typeof openApiDocument> {
  const operation: Operation = {
    method: 'get',
    path: '/things',
    id: 'getThings',
    tag: 'Things',
    summary: 'Things',
    security: 'none',
    parameters: [],
    answers: [{ status: 200, description: 'Things.', type: 'application/json', ...(schema ? { schema } : {}) }],
    errors: ['not_found', 'invalid_field', 'unknown_field'],
  }
  return openApiDocument({
    title: 'Test',
    version: '1',
    summary: '',
    description: '',
    tags: [{ name: 'Things', description: 'Of a test.' }],
    securitySchemes: {},
    security: { control: [], tracking: [], none: [] },
    operations: [operation],
  })
}

test('the document follows the rules of OpenAPI 3.1', () => {
  assert.deepEqual(documentProblems(document), [])
})

test('every route is in the document, with its status, its role and every error code it declares', () => {
  for (const { method, path, status, access, pages, errors = [] } of routes) {
    const where = `${method} ${path}`
    const operation = document.paths[`/api${path.replaceAll(/:(\w+)/g, '{$1}')}`]?.[method.toLowerCase()]
    assert.ok(operation !== undefined, where)
    const responses = operation['responses'] as Record<string, unknown>
    for (const each of pages === undefined ? [status] : Object.keys(pages)) assert.ok(responses[each] !== undefined, where)
    assert.equal(operation['x-role'], access === 'public' ? undefined : access.role, where)
    const text = JSON.stringify({ responses, shared: document.components.responses })
    for (const code of errors) assert.ok(text.includes(`"${code}"`), `${where} ${code}`)
  }
})

test('the role in the document is the role that the route requires', async (t) => {
  const { call } = await startControl(t)
  const { token } = (await call('POST', '/api/tokens', { name: 'looks', role: 'viewer' })).body as { token: string }
  for (const { method, path, access, pages, body } of routes) {
    // Logins need no role. Those of browsers and providers take parameters that are not in the document.
    if (access === 'public' && (pages !== undefined || body !== undefined)) continue
    const operation = document.paths[`/api${path.replaceAll(/:(\w+)/g, '{$1}')}`]?.[method.toLowerCase()]
    // The role is checked before the query, so the request has no effect.
    const asked = `/api${path.replaceAll(/:(\w+)/g, 'x')}?surprise=1`
    const { status } = await call(method, asked, undefined, { headers: { authorization: `Bearer ${token}` } })
    const needed = operation?.['x-role'] ?? 'viewer'
    assert.equal(status, needed === 'viewer' ? 400 : 403, `${method} ${path}`)
  }
})

test('the service serves the same document under /api, with a token', async (t) => {
  const { call } = await startControl(t)
  const { status, body, headers } = await call('GET', '/api/openapi.json')
  assert.equal(status, 200)
  assert.match(headers.get('content-type') ?? '', /^application\/json/)
  assert.deepEqual(body, JSON.parse(JSON.stringify(document)))
  assert.equal((await call('GET', '/api/openapi.json', undefined, { headers: { authorization: '' } })).status, 401)
})

test('every route with a body has an example, which its schema accepts', () => {
  for (const { method, path, body } of routes) if (body !== undefined) assert.ok(`${method} ${path}` in EXAMPLES, `${method} ${path}`)
  for (const [name, example] of Object.entries(EXAMPLES)) {
    const route = routes.find(({ method, path }) => `${method} ${path}` === name)
    assert.ok(route?.body !== undefined, `${name} is no route with a body`)
    assert.doesNotThrow(() => route.body?.parse(example, ''), name)
  }
})

test('responses of the control API match the document', async (t) => {
  const { call } = await startControl(t)
  const source = (await call('POST', '/api/sources', { name: 'a' })).body
  const destination = (await call('POST', '/api/destinations', { name: 'b', sourceIds: [source.id], urls: ['https://example.com/'] })).body
  for (const [method, path, described, body] of [
    ['GET', '/api/sources', '/api/sources'],
    ['GET', `/api/sources/${source.id}`, '/api/sources/{id}'],
    ['POST', `/api/sources/${source.id}/write-keys`, '/api/sources/{id}/write-keys', {}],
    ['GET', '/api/destinations', '/api/destinations'],
    ['GET', `/api/destinations/${destination.id}/health`, '/api/destinations/{id}/health'],
    ['GET', `/api/destinations/${destination.id}/versions`, '/api/destinations/{id}/versions'],
    ['GET', '/api/destinations/health', '/api/destinations/health'],
    ['GET', '/api/destinations/summary', '/api/destinations/summary'],
    ['GET', '/api/ledger', '/api/ledger'],
    ['GET', '/api/messages', '/api/messages'],
    ['POST', '/api/deletions', '/api/deletions', { userIds: ['u'] }],
    ['GET', '/api/deletions', '/api/deletions'],
    ['GET', '/api/sources/nothing', '/api/sources/{id}'],
    ['GET', '/api/sources?limit=0', '/api/sources'],
    ['POST', '/api/sources', '/api/sources', { name: 1 }],
  ] as const) {
    const answer = await call(method, path, body)
    const responses = document.paths[described]?.[method.toLowerCase()]?.['responses'] as Record<string, { $ref?: string }>
    const found = responses[answer.status]
    assert.ok(found !== undefined, `${method} ${path}: ${answer.status} is not described`)
    const response = (found.$ref === undefined ? found : document.components.responses[found.$ref.split('/').at(-1) ?? '']) as {
      content: { 'application/json': { schema: object } }
    }
    assert.deepEqual(valueProblems(document, response.content['application/json'].schema, answer.body), [], `${method} ${path}`)
  }
})

test('a schema with a title is written once, even if it is nullable or has a default', () => {
  const thing = object({ name: string() }, { title: 'Thing', description: 'A thing.' })
  const { components, paths } = described(
    object({ one: thing, maybe: nullable(thing), usual: withDefault(thing, { name: 'x' }) }).toJsonSchema(),
  )
  const reference = { $ref: '#/components/schemas/Thing' }
  assert.deepEqual(components.schemas['Thing'], thing.toJsonSchema())
  const text = JSON.stringify(paths)
  assert.ok(
    text.includes(
      JSON.stringify({ one: reference, maybe: { oneOf: [reference, { type: 'null' }] }, usual: { ...reference, default: { name: 'x' } } }),
    ),
  )
})

test('two different schemas with the same title are an error', () => {
  const schema = object({ a: object({ a: string() }, { title: 'Thing' }), b: object({ b: string() }, { title: 'Thing' }) }).toJsonSchema()
  assert.throws(() => described(schema), /Two different schemas have the title Thing/)
})

test('a field called title or default is an ordinary field', () => {
  const schema = object({ title: string(), default: string() }).toJsonSchema()
  const { paths } = described(schema)
  assert.ok(JSON.stringify(paths).includes(JSON.stringify(schema)))
})

test('the checker reports problems of a document', () => {
  const good = described({ type: 'string' })
  assert.deepEqual(documentProblems(good), [])
  // oxlint-disable-next-line typescript/no-explicit-any -- broken on purpose
  type Loose = any
  const broken = (change: (document: Loose) => void): string => {
    const copy: Loose = structuredClone(good)
    change(copy)
    return documentProblems(copy).join('\n')
  }
  const operation = (copy: Loose): Loose => copy['paths']['/things'].get
  assert.match(
    broken((copy) => (copy['openapi'] = '3.0.0')),
    /3\.1/,
  )
  assert.match(
    broken((copy) => (operation(copy).operationId = undefined)),
    /operationId/,
  )
  assert.match(
    broken((copy) => (copy['paths']['/others'] = structuredClone(copy['paths']['/things']))),
    /not unique/,
  )
  assert.match(
    broken((copy) => (copy['paths']['/things/{id}'] = { get: { ...operation(copy), operationId: 'x' } })),
    /but has id/,
  )
  assert.match(
    broken((copy) => (operation(copy).responses[200].content['application/json'].schema = { $ref: '#/nowhere' })),
    /leads nowhere/,
  )
  assert.match(
    broken((copy) => (operation(copy).responses[200].content['application/json'].schema = { type: 'text' })),
    /no type/,
  )
  assert.match(
    broken((copy) => (operation(copy).security = [{ magic: [] }])),
    /magic is not declared/,
  )
  assert.match(
    broken((copy) => (operation(copy).responses = { 200: { description: '' } })),
    /no description/,
  )
  assert.match(
    broken((copy) => (operation(copy).tags = ['Other'])),
    /not declared/,
  )
})
