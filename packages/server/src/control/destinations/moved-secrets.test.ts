// An admin cannot have stored secrets sent to another server: a change of the server asks for them again, by every way that changes a destination.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { type Fixture, startControl } from '../fixtures/start-control.ts'

const EVIL = 'https://evil.example'
const WEBHOOK = {
  name: 'Hook',
  urls: ['https://api.example.com/v1?key=SECRET-1', 'https://other.example.com:8443/'],
  headers: { 'X-Key': 'SECRET-2', 'X-Empty': '' },
  sharedSecret: 'SECRET-3',
  secrets: { token: 'SECRET-4', id: 'SECRET-5' },
  auth: { type: 'basic', username: 'SECRET-6', password: 'SECRET-7' },
  request: { path: '/{{secrets.token}}', headers: { 'X-A': 'SECRET-8', 'X-B': '{{userId}}' }, body: { api_key: 'SECRET-9' } },
}
const ALL = ['auth.username', 'auth.password', 'headers.X-Key', 'secrets.token', 'secrets.id', 'request.headers.X-A', 'request.body']
const { auth, headers, secrets, request } = WEBHOOK
const GIVEN = { auth, headers, secrets, request }

async function created(t: TestContext, settings: object = WEBHOOK): Promise<Fixture & { path: string; id: string }> {
  const fixture = await startControl(t)
  const { body, status } = await fixture.call('POST', '/api/destinations', settings)
  assert.equal(status, 201, JSON.stringify(body))
  return { ...fixture, id: body.id, path: `/api/destinations/${body.id}` }
}

test('a change to another server is refused with all fields, in an update, a preview and a check of a file, and changes nothing', async (t) => {
  const { call, path, id, store } = await created(t)
  const before = store.configuration().destinations.get(id)
  const others = [
    [EVIL],
    [...WEBHOOK.urls, EVIL],
    ['http://api.example.com/v1'],
    ['https://api.example.com:444/v1'],
    ['https://api.example.com.evil.example/v1'],
    ['https://other.example.com/'],
  ]
  for (const urls of others) {
    for (const [method, place, body] of [
      ['PATCH', path, { urls }],
      ['POST', `${path}/preview`, { message: { type: 'track', userId: 'u', event: 'e' }, changes: { urls } }],
    ] as const) {
      const answer = await call(method, place, body)
      assert.deepEqual(
        [answer.status, answer.body.code, answer.body.field, answer.body.fields],
        [400, 'secrets_needed', ALL[0], ALL],
        String(urls),
      )
      assert.doesNotMatch(answer.text, /SECRET/)
    }
  }
  const settings = { name: 'Hook', urls: [EVIL], headers, auth: { type: 'basic', username: 'SECRET-6' }, request }
  const { problems } = (await call('POST', '/api/configuration/check', { destinations: [{ id, settings }] })).body
  assert.deepEqual([problems[0].code, problems[0].field], ['secrets_needed', 'auth.password'])
  assert.deepEqual(store.configuration().destinations.get(id), before)
})

test('the names of secrets may be those that every object has', async (t) => {
  const names = ['constructor', 'toString', 'valueOf']
  const secrets = Object.fromEntries(names.map((name) => [name, 'SECRET']))
  const { call, path } = await created(t, { name: 'Hook', urls: ['https://api.example.com'], secrets })
  for (const given of [{}, { secrets: {} }]) {
    const { status, body } = await call('PATCH', path, { urls: [EVIL], ...given })
    assert.deepEqual([status, body.fields], [400, names.map((name) => `secrets.${name}`)])
  }
  assert.equal((await call('PATCH', path, { urls: [EVIL], secrets })).status, 200)
})

test('only what is not given again is named, and a request with everything is accepted', async (t) => {
  const { call, path, store, id } = await created(t)
  const fieldsOf = async (change: object): Promise<string[]> => (await call('PATCH', path, { urls: [EVIL], ...change })).body.fields
  assert.deepEqual(await fieldsOf({ ...GIVEN, auth: { type: 'basic', username: 'x' } }), ['auth.password'])
  assert.deepEqual(await fieldsOf({ ...GIVEN, secrets: { token: 'new' } }), ['secrets.id'])
  assert.deepEqual(await fieldsOf({ auth, headers, secrets }), ['request.headers.X-A', 'request.body'])
  assert.deepEqual(await fieldsOf({ auth, request, secrets }), ['headers.X-Key'])
  const answer = await call('PATCH', path, { urls: [EVIL], ...GIVEN, secrets: { token: 'new', id: null } })
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(asWebhook(store.configuration().destinations.get(id)).secrets, { token: 'new' })
  assert.equal(
    asWebhook(store.configuration().destinations.get(id)).sharedSecret,
    'SECRET-3',
    'a signing secret is not sent to the receiver',
  )
})

test('other changes keep the secrets: another path, fewer URLs, another order, no URLs at all', async (t) => {
  const { call, path } = await created(t)
  const [first, second = ''] = WEBHOOK.urls
  const changes = [
    { urls: [second, first] },
    { urls: ['https://API.example.com:443/v2?key=x', second] },
    { urls: [second] },
    { name: 'x' },
    { request: null },
    { headers: {} },
  ]
  for (const change of changes) assert.equal((await call('PATCH', path, change)).status, 200, JSON.stringify(change))
  assert.equal((await call('PATCH', path, { urls: [first] })).body.code, 'secrets_needed', 'a server that was removed is another one')
})

test('secrets of oauth2 are bound to the token endpoint, too', async (t) => {
  const oauth2 = { type: 'oauth2', tokenUrl: 'https://auth.example.com/token', clientId: 'c', clientSecret: 'SECRET' }
  const { call, path } = await created(t, { name: 'Hook', urls: ['https://api.example.com/'], auth: oauth2 })
  const { clientSecret: _, ...kept } = oauth2
  for (const change of [{ urls: [EVIL] }, { urls: [EVIL], auth: kept }, { auth: { ...kept, tokenUrl: `${EVIL}/token` } }]) {
    const { status, body } = await call('PATCH', path, change)
    assert.deepEqual([status, body.code, body.fields], [400, 'secrets_needed', ['auth.clientSecret']], JSON.stringify(change))
  }
  assert.equal((await call('PATCH', path, { auth: { ...kept, scope: 'a' } })).status, 200)
  assert.equal((await call('PATCH', path, { auth: { ...oauth2, tokenUrl: `${EVIL}/token` } })).status, 200)
})

test('a request that was removed does not come back for another server', async (t) => {
  const shaped = { headers: { 'X-A': 'SECRET-8' }, body: { text: 'x' } }
  const { call, path } = await created(t, { name: 'Hook', urls: ['https://api.example.com/'], request: shaped })
  assert.equal((await call('PATCH', path, { request: null })).status, 200)
  assert.equal((await call('PATCH', path, { urls: [EVIL] })).status, 200, 'there is nothing to send')
  for (const change of [{ version: 1 }, { version: 1, urls: [EVIL, 'https://api.example.com/'] }]) {
    const { status, body } = await call('PATCH', path, change)
    assert.deepEqual([status, body.code, body.fields], [400, 'secrets_needed', ['request.headers.X-A']])
  }
  assert.equal((await call('PATCH', path, { urls: ['https://api.example.com/'] })).status, 200)
  assert.equal((await call('PATCH', path, { version: 1 })).status, 200, 'at its own server, it does')
})
