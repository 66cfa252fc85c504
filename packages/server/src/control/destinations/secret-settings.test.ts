// The setting `secrets` of a destination, through the control API: what is accepted, what is refused and where, what is shown, and what an update keeps.

import assert from 'node:assert/strict'
import test from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { startControl } from '../fixtures/start-control.ts'

const REQUEST = {
  path: '/{{secrets.path}}',
  headers: { 'X-Key': '{{secrets.token}}' },
  body: { key: { '@path': '$.secrets.token' }, text: { '@template': '{{secrets.token}} {{event}}' } },
}
const HOOK = {
  name: 'Hook',
  urls: ['https://example.com/hook'],
  secrets: { token: 'SECRET-token', path: 'SECRET-path' },
  request: REQUEST,
}

test('secrets are write-only: reads, versions, the audit log and the export show their names', async (t) => {
  const { call, store } = await startControl(t)
  const { status, body } = await call('POST', '/api/destinations', HOOK)
  assert.equal(status, 201)
  assert.deepEqual(body.secrets, { token: '(hidden)', path: '(hidden)' })
  const viewer = (await call('POST', '/api/tokens', { name: 'viewer', role: 'viewer' })).body.token as string
  await call('PATCH', `/api/destinations/${body.id}`, { secrets: { token: 'SECRET-2' } })
  await call('PATCH', `/api/destinations/${body.id}`, { request: { ...REQUEST, path: '' } })
  const shown = await Promise.all([
    call('GET', `/api/destinations/${body.id}`),
    call('GET', `/api/destinations/${body.id}`, undefined, { token: viewer }),
    call('GET', `/api/destinations/${body.id}/versions`),
    call('GET', '/api/audit'),
    call('GET', '/api/configuration'),
    call('GET', '/api/destinations'),
  ])
  assert.doesNotMatch(JSON.stringify(shown.map((answer) => answer.body)), /SECRET/)
  assert.match(JSON.stringify(shown[3]?.body), /"changedSecrets":\["secrets\.token"\]/)
  assert.match(shown[4]?.body.yaml, /token: \$\{HOOK_TOKEN\}/)
  assert.deepEqual(asWebhook(store.configuration().destinations.get(body.id)).secrets, { token: 'SECRET-2', path: 'SECRET-path' })
})

test('an update merges secrets by name, and null removes one that is not used', async (t) => {
  const { call, store } = await startControl(t)
  const { id } = (await call('POST', '/api/destinations', HOOK)).body
  const secrets = () => asWebhook(store.configuration().destinations.get(id)).secrets
  assert.equal((await call('PATCH', `/api/destinations/${id}`, { secrets: { other: 'o' } })).status, 200)
  assert.deepEqual(secrets(), { ...HOOK.secrets, other: 'o' })
  assert.equal((await call('PATCH', `/api/destinations/${id}`, { secrets: { other: null } })).status, 200)
  assert.deepEqual(secrets(), HOOK.secrets)
  const refused = await call('PATCH', `/api/destinations/${id}`, { secrets: { path: null } })
  assert.deepEqual([refused.status, refused.body.field], [400, 'request.path'])
  assert.deepEqual(secrets(), HOOK.secrets)
  const moved = await call('PATCH', `/api/destinations/${id}`, { secrets: { path: null }, request: { ...REQUEST, path: '' } })
  assert.equal(moved.status, 200)
  const restored = await call('PATCH', `/api/destinations/${id}`, { version: 1 })
  assert.deepEqual([restored.status, restored.body.field], [400, 'request.path'], 'the version needs a secret that is gone')
})

const REFUSED: [name: string, settings: object, field: string][] = [
  ['an unknown secret in the path', { request: { path: '/{{secrets.nope}}' } }, 'request.path'],
  ['an unknown secret in a header', { request: { headers: { 'X-A': 'a {{ secrets.nope }}' } } }, 'request.headers.X-A'],
  ['an unknown secret in a @path', { request: { body: { a: [{ '@path': '$.secrets.nope' }] } } }, 'request.body.a[0].@path'],
  ['an unknown secret with brackets', { request: { body: { a: { '@path': "$.['secrets']['nope']" } } } }, 'request.body.a.@path'],
  ['an unknown secret in a @template', { request: { body: { a: { '@template': 'x {{{secrets.nope}}}' } } } }, 'request.body.a.@template'],
  [
    'an unknown secret in a @if',
    { request: { body: { '@if': { exists: { '@path': '$.secrets.nope' }, else: 1 } } } },
    'request.body.@if.exists.@path',
  ],
  ['all secrets', { request: { body: { '@path': '$.secrets' } } }, 'request.body.@path'],
  ['a part of a secret', { request: { body: { '@path': '$.secrets.token.x' } } }, 'request.body.@path'],
  ['all secrets as an array', { request: { body: { '@arrayPath': ['$.secrets', { a: 1 }] } } }, 'request.body.@arrayPath[0]'],
  ['the placeholder', { secrets: { token: '(hidden)' } }, 'secrets.token'],
  ['an empty secret', { secrets: { token: '' } }, 'secrets.token'],
  ['a number', { secrets: { token: 1 } }, 'secrets.token'],
  ['a list', { secrets: ['a'] }, 'secrets'],
  ['a long secret', { secrets: { token: 'x'.repeat(8_193) } }, 'secrets.token'],
  ['a name with a dot', { secrets: { 'a.b': 'x' } }, 'secrets.a.b'],
  ['too many', { secrets: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`s${at}`, 'x'])) }, 'secrets'],
]
test('an invalid secret is refused: the error names the field and does not contain the value', async (t) => {
  const { call } = await startControl(t)
  const { id } = (await call('POST', '/api/destinations', HOOK)).body
  for (const [name, settings, field] of REFUSED) {
    for (const answer of [
      await call('POST', '/api/destinations', { ...HOOK, ...settings }),
      await call('PATCH', `/api/destinations/${id}`, settings),
    ]) {
      assert.deepEqual([answer.status, answer.body.field], [400, field], name)
      assert.doesNotMatch(answer.body.message as string, /SECRET/)
    }
  }
  const full = Object.fromEntries(Array.from({ length: 49 }, (_, at) => [`s${at}`, 'x']))
  assert.equal((await call('PATCH', `/api/destinations/${id}`, { secrets: full })).body.field, 'secrets', 'together with the stored ones')
})

test('a batch may have secrets in its path and headers, because they are the same for all messages', async (t) => {
  const { call } = await startControl(t)
  assert.equal((await call('POST', '/api/destinations', { ...HOOK, batch: { size: 10 } })).status, 201)
})

test('viewers and the audit log do not see tokens in URLs and constants of mappings that look like credentials', async (t) => {
  const { call } = await startControl(t)
  const request = {
    headers: { 'X-Tenant': '{{context.tenant}}', 'X-Key': 'SECRET-1' },
    body: { routing_key: 'SECRET-2', text: 'shown', a: [{ password: 'SECRET-3' }] },
  }
  const urls = [
    'https://hooks.slack.com/services/TSECRET/BSECRET/SECRET4',
    'https://discord.com/api/webhooks/1/SECRET5',
    'https://example.com/a/SECRET6789abcdef/b',
  ]
  const other = { ...request, path: '/bot1:SECRET6789abcdef/{{userId}}/send' }
  const { id } = (await call('POST', '/api/destinations', { name: 'Old', urls, request })).body
  const viewer = (await call('POST', '/api/tokens', { name: 'viewer', role: 'viewer' })).body.token as string
  await call('PATCH', `/api/destinations/${id}`, { request: { ...request, body: { ...request.body, routing_key: 'SECRET-7' } } })
  const { body } = await call('GET', `/api/destinations/${id}`, undefined, { token: viewer })
  assert.deepEqual(body.urls, ['https://hooks.slack.com/(hidden)', 'https://discord.com/(hidden)', 'https://example.com/a/(hidden)/b'])
  assert.deepEqual(body.request.headers, { 'X-Tenant': '{{context.tenant}}', 'X-Key': '(hidden)' })
  assert.deepEqual(body.request.body, { routing_key: '(hidden)', text: 'shown', a: [{ password: '(hidden)' }] })
  const audit = await call('GET', '/api/audit')
  const versions = await call('GET', `/api/destinations/${id}/versions`, undefined, { token: viewer })
  const health = await call('GET', `/api/destinations/${id}/health`, undefined, { token: viewer })
  for (const shown of [body, audit.body, versions.body, health.body, (await call('GET', '/api/configuration')).body])
    assert.doesNotMatch(JSON.stringify(shown), /SECRET/)
  assert.match(JSON.stringify(audit.body), /"changedSecrets":\["request\.body"\]/)

  const second = (await call('POST', '/api/destinations', { name: 'Bot', urls: ['https://example.com'], request: other })).body.id
  await call('PATCH', `/api/destinations/${second}`, { request: { ...other, path: '/bot2:SECRET6789abcdef/{{userId}}/send' } })
  const seen = await call('GET', `/api/destinations/${second}`, undefined, { token: viewer })
  assert.equal(seen.body.request.path, '/(hidden)/{{userId}}/send')
  const changed = await call('GET', '/api/audit')
  assert.doesNotMatch(JSON.stringify([changed.body, (await call('GET', '/api/configuration')).body]), /SECRET/)
  assert.match(JSON.stringify(changed.body), /"changedSecrets":\["request\.path"\]/)
})
