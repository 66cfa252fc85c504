import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'node:test'
import { StoreUnavailable } from '../store/store.ts'
import { controlRoutes } from './control.ts'
import { startControl, TOKEN } from './fixtures/start-control.ts'

test('without the token everything under /api is 401, even unknown paths', async (t) => {
  const { call } = await startControl(t)
  for (const authorization of ['', 'Bearer', 'Bearer ', 'Bearer wrong', `Basic ${TOKEN}`, TOKEN, `Bearer ${TOKEN} x`, `Bearer ${TOKEN}x`]) {
    for (const path of ['/api/sources', '/api/nothing', '/api', '/api/sources/x/write-keys']) {
      const { status, body, headers } = await call('GET', path, undefined, { headers: { authorization } })
      assert.deepEqual([status, body.code, headers.get('www-authenticate')], [401, 'unauthorized', 'Bearer'], `${authorization} ${path}`)
    }
  }
})

test('the scheme of the Authorization header is case-insensitive', async (t) => {
  const { call } = await startControl(t)
  assert.equal((await call('GET', '/api/sources', undefined, { headers: { authorization: `bearer ${TOKEN}` } })).status, 200)
})

test('an unauthorized request is answered before its body arrives', async (t) => {
  const { url } = await startControl(t)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write('POST /api/sources HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  assert.match(answer.toString(), /^HTTP\/1\.1 401 /)
})

test('an unknown path is 404', async (t) => {
  const { call } = await startControl(t)
  for (const path of ['/api', '/api/', '/api/nothing', '/api/sources/a/b', '/api/sources/', '/api/destinations/x/test/y']) {
    assert.deepEqual([(await call('GET', path)).status, (await call('POST', path, {})).body.code], [404, 'not_found'], path)
  }
})

test('an unsupported method is 405, with the supported methods in Allow', async (t) => {
  const { call } = await startControl(t)
  for (const [method, path, allow] of [
    ['PUT', '/api/sources', 'GET, POST, HEAD'],
    ['DELETE', '/api/sources', 'GET, POST, HEAD'],
    ['POST', '/api/sources/x', 'GET, PATCH, DELETE, HEAD'],
    ['GET', '/api/destinations/x/test', 'POST'],
    ['POST', '/api/ledger?recount=true', 'GET, HEAD'],
    ['GET', '/api/deliveries/x/replay', 'POST'],
    ['PATCH', '/api/suppressions', 'GET, POST, DELETE, HEAD'],
    ['OPTIONS', '/api/messages', 'GET, HEAD'],
  ] as const) {
    const { status, body, headers } = await call(method, path)
    assert.deepEqual([status, body.code, headers.get('allow')], [405, 'method_not_allowed', allow], `${method} ${path}`)
  }
})

test('HEAD returns the same as GET, without the body', async (t) => {
  const { call } = await startControl(t)
  const { status, text } = await call('HEAD', '/api/sources')
  assert.deepEqual([status, text], [200, ''])
})

test('a body that is not JSON in UTF-8 is invalid_json, whatever its Content-Type', async (t) => {
  const { call } = await startControl(t)
  for (const raw of ['{', 'name=x', '{"name":"x",}', new Uint8Array([0x7b, 0xff, 0x7d]), '\u0000']) {
    const { status, body } = await call('POST', '/api/sources', undefined, { raw })
    assert.deepEqual([status, body.code], [400, 'invalid_json'])
  }
  const { status } = await call('POST', '/api/sources', undefined, { raw: '{"name":"x"}', headers: { 'content-type': 'text/plain' } })
  assert.equal(status, 201)
})

test('a body that is not an object, or has an invalid Content-Type or Content-Encoding, is rejected', async (t) => {
  const { call } = await startControl(t)
  for (const raw of ['[]', 'null', '"x"', '1']) {
    const { status, body } = await call('POST', '/api/sources', undefined, { raw })
    assert.deepEqual([status, body.code], [400, 'invalid_request'], raw)
  }
  const odd = await call('POST', '/api/sources', undefined, { raw: '{"name":"x"}', headers: { 'content-type': 'banana' } })
  assert.deepEqual([odd.status, odd.body.code], [400, 'invalid_request'])
  const packed = await call('POST', '/api/sources', undefined, { raw: '{"name":"x"}', headers: { 'content-encoding': 'gzip' } })
  assert.deepEqual([packed.status, packed.body.code], [415, 'unsupported_encoding'])
})

test('a body over 1 MB is rejected', async (t) => {
  const { call } = await startControl(t)
  const { status, body } = await call('POST', '/api/deletions', { userIds: ['x'.repeat(1024 * 1024)] })
  assert.deepEqual([status, body.code], [400, 'body_too_large'])
})

test('__proto__ in a body or a query is an unknown field and pollutes nothing', async (t) => {
  const { call } = await startControl(t)
  const inBody = await call('POST', '/api/sources', undefined, { raw: '{"name":"x","__proto__":{"polluted":1}}' })
  assert.deepEqual([inBody.status, inBody.body.code, inBody.body.field], [400, 'unknown_field', '__proto__'])
  const constructor = await call('POST', '/api/sources', undefined, { raw: '{"name":"x","constructor":{"prototype":{"polluted":1}}}' })
  assert.deepEqual([constructor.status, constructor.body.code, constructor.body.field], [400, 'unknown_field', 'constructor'])
  const inHeaders = '{"name":"x","urls":["https://example.com"],"headers":{"__proto__":"y"}}'
  assert.equal((await call('POST', '/api/destinations', undefined, { raw: inHeaders })).body.field, 'headers.__proto__')
  const inQuery = await call('GET', '/api/messages?__proto__=x')
  assert.deepEqual([inQuery.status, inQuery.body.field], [400, '__proto__'])
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

test('unknown and repeated query parameters are rejected with their name', async (t) => {
  const { call } = await startControl(t)
  for (const [path, code, field] of [
    ['/api/sources?colour=red', 'unknown_field', 'colour'],
    ['/api/sources/x?colour=red', 'unknown_field', 'colour'],
    ['/api/messages?type=purchase', 'invalid_field', 'type'],
    ['/api/messages?userId=a&userId=b', 'invalid_field', 'userId'],
    ['/api/messages?from=yesterday', 'invalid_field', 'from'],
    ['/api/deliveries?state=lost', 'invalid_field', 'state'],
    ['/api/deliveries?limit=0', 'invalid_field', 'limit'],
    ['/api/ledger?recount=yes', 'invalid_field', 'recount'],
    ['/api/deletions?cursor=x', 'invalid_cursor', 'cursor'],
  ] as const) {
    const { status, body } = await call('GET', path)
    assert.deepEqual([status, body.code, body.field], [400, code, field], path)
  }
})

test('an unavailable store is 503 with Retry-After, and a bug is 500 without details', async (t) => {
  const fixture = await startControl(t)
  const { books } = fixture.store
  books.ledger = () => Promise.reject(new StoreUnavailable('disk full'))
  const away = await fixture.call('GET', '/api/ledger')
  assert.deepEqual([away.status, away.body.code], [503, 'store_unavailable'])
  assert.ok(Number(away.headers.get('retry-after')) > 0)
  books.ledger = () => Promise.reject(new Error('a private detail'))
  const bug = await fixture.call('GET', '/api/ledger')
  assert.deepEqual([bug.status, bug.body.code], [500, 'internal_error'])
  assert.doesNotMatch(bug.text, /private/)
})

test('every route has a summary and schemas for the OpenAPI document', async (t) => {
  const { deps } = await startControl(t)
  const routes = controlRoutes(deps)
  assert.equal(new Set(routes.map(({ method, path }) => `${method} ${path}`)).size, routes.length)
  for (const { method, path, summary, status, answer, bytes, pages, body, query } of routes) {
    assert.ok(summary.length > 5, path)
    assert.equal(answer === undefined, status === 204 || bytes === true || pages !== undefined, `${method} ${path}`)
    for (const schema of [answer, body, query]) assert.equal(schema?.toJsonSchema()['type'] ?? 'object', 'object', `${method} ${path}`)
    if (body !== undefined) assert.ok(method !== 'GET' && method !== 'DELETE', path)
  }
})
