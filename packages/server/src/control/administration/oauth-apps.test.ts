import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import test from 'node:test'
import { startControl } from '../fixtures/start-control.ts'

const pair = () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return {
    publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    privateKeyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
const [one, two, three] = [pair(), pair(), pair()]

test('an application is created, read, changed and deleted', async (t) => {
  const { call, store } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const { status, body } = await call('POST', '/api/oauth-apps', { name: 'Backend' })
  const { id, createdAt, ...rest } = body
  assert.deepEqual([status, rest], [201, { name: 'Backend', sourceIds: [], keys: [], tokensRevokedBefore: null }])
  assert.match(id, /^app_\w{12}$/)
  assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)

  const changed = await call('PATCH', `/api/oauth-apps/${id}`, { sourceIds: [source.id] })
  assert.deepEqual(changed.body, { ...body, sourceIds: [source.id] })
  assert.deepEqual((await call('PATCH', `/api/oauth-apps/${id}`, { name: 'Worker' })).body, { ...changed.body, name: 'Worker' })
  assert.deepEqual((await call('GET', '/api/oauth-apps')).body, { data: [{ ...changed.body, name: 'Worker' }], next: null })
  assert.deepEqual((await call('GET', `/api/oauth-apps/${id}`)).body.name, 'Worker')

  assert.equal((await call('DELETE', `/api/oauth-apps/${id}`)).status, 204)
  assert.equal(store.configuration().oauthApps.size, 0)
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/revoke-tokens'],
    ['DELETE', '/keys/k'],
  ] as const) {
    const answer = await call(method, `/api/oauth-apps/${id}${path}`, method === 'PATCH' ? {} : undefined)
    assert.deepEqual([answer.status, answer.body.code], [404, 'oauth_app_not_found'], `${method} ${path}`)
  }
  const added = await call('POST', `/api/oauth-apps/${id}/keys`, { publicKeyPem: one.publicKeyPem })
  assert.deepEqual([added.status, added.body.code], [404, 'oauth_app_not_found'])
})

test('keys can be added at creation or later, with a given or generated id, and removed', async (t) => {
  const { call } = await startControl(t)
  const { body: app } = await call('POST', '/api/oauth-apps', { name: 'Backend', keys: [{ id: 'first', publicKeyPem: one.publicKeyPem }] })
  assert.deepEqual([app.keys[0].id, app.keys[0].publicKeyPem], ['first', one.publicKeyPem])
  const path = `/api/oauth-apps/${app.id}/keys`

  const added = await call('POST', path, { publicKeyPem: two.publicKeyPem })
  assert.equal(added.status, 201)
  assert.match(added.body.keyId, /^key_[0-9a-f]{18}$/)
  assert.deepEqual(
    added.body.keys.map((key: { id: string }) => key.id),
    ['first', added.body.keyId],
  )
  const taken = await call('POST', path, { id: 'first', publicKeyPem: three.publicKeyPem })
  assert.deepEqual([taken.status, taken.body.code, taken.body.field], [409, 'oauth_key_taken', 'id'])

  assert.equal((await call('DELETE', `${path}/first`)).status, 204)
  const gone = await call('DELETE', `${path}/first`)
  assert.deepEqual([gone.status, gone.body.code], [404, 'oauth_key_not_found'])
  assert.equal((await call('GET', `/api/oauth-apps/${app.id}`)).body.keys.length, 1)
})

test('keys that stay in a replaced list keep their creation time', async (t) => {
  const { call, store } = await startControl(t)
  const { body: app } = await call('POST', '/api/oauth-apps', { name: 'Backend', keys: [{ id: 'first', publicKeyPem: one.publicKeyPem }] })
  const keys = [
    { id: 'first', publicKeyPem: `\r\n${one.publicKeyPem}` },
    { id: 'second', publicKeyPem: two.publicKeyPem },
  ]
  const { body } = await call('PATCH', `/api/oauth-apps/${app.id}`, { keys })
  assert.deepEqual(body.keys[0], app.keys[0])
  assert.equal(body.keys[1].id, 'second')
  await call('PATCH', `/api/oauth-apps/${app.id}`, { keys: [{ id: 'first', publicKeyPem: three.publicKeyPem }] })
  assert.deepEqual(
    store
      .configuration()
      .oauthApps.get(app.id)
      ?.keys.map(({ publicKeyPem }) => publicKeyPem),
    [three.publicKeyPem],
  )
})

test('an application has at most twenty keys, and keys that are added concurrently are all kept', async (t) => {
  const { call } = await startControl(t)
  const { body: app } = await call('POST', '/api/oauth-apps', { name: 'Backend' })
  const path = `/api/oauth-apps/${app.id}/keys`
  const answers = await Promise.all(Array.from({ length: 21 }, () => call('POST', path, { publicKeyPem: one.publicKeyPem })))
  assert.deepEqual(answers.map(({ status }) => status).filter((status) => status === 201).length, 20)
  assert.deepEqual(
    answers.filter(({ status }) => status !== 201).map(({ body }) => body.code),
    ['too_many_oauth_keys'],
  )
  assert.equal((await call('GET', `/api/oauth-apps/${app.id}`)).body.keys.length, 20)
})

test('each revocation moves the time before which tokens are rejected', async (t) => {
  const { call, store } = await startControl(t)
  const { body: app } = await call('POST', '/api/oauth-apps', { name: 'Backend' })
  const revoke = async (): Promise<number> => {
    const { status, body } = await call('POST', `/api/oauth-apps/${app.id}/revoke-tokens`)
    assert.equal(status, 200)
    assert.equal(Date.parse(body.tokensRevokedBefore), store.configuration().oauthApps.get(app.id)?.revokedBeforeMs)
    return Date.parse(body.tokensRevokedBefore)
  }
  const beforeMs = Date.now()
  const first = await revoke()
  assert.ok(first > beforeMs)
  assert.ok((await revoke()) > first)
})

const refused: [title: string, body: object, code: string, field: string][] = [
  ['no name', {}, 'invalid_field', 'name'],
  ['a name of several lines', { name: 'a\nb' }, 'invalid_field', 'name'],
  ['a source that there is not', { name: 'x', sourceIds: ['src_none'] }, 'invalid_field', 'sourceIds[0]'],
  ['the id of another kind of resource', { name: 'x', sourceIds: ['app_none'] }, 'invalid_field', 'sourceIds[0]'],
  ['a source twice', { name: 'x', sourceIds: ['a', 'a'] }, 'invalid_field', 'sourceIds[1]'],
  ['an id of its own', { name: 'x', id: 'mine' }, 'unknown_field', 'id'],
  ['a revocation', { name: 'x', tokensRevokedBefore: null }, 'unknown_field', 'tokensRevokedBefore'],
  ['a key without a key', { name: 'x', keys: [{ id: 'k' }] }, 'invalid_field', 'keys[0].publicKeyPem'],
  ['a key that is none', { name: 'x', keys: [{ publicKeyPem: 'none' }] }, 'invalid_field', 'keys[0].publicKeyPem'],
  ['a huge key', { name: 'x', keys: [{ publicKeyPem: 'x'.repeat(5_000) }] }, 'invalid_field', 'keys[0].publicKeyPem'],
  ['a key id that a path would lose', { name: 'x', keys: [{ id: '..', publicKeyPem: one.publicKeyPem }] }, 'invalid_field', 'keys[0].id'],
  [
    'the same key id twice',
    {
      name: 'x',
      keys: [
        { id: 'k', publicKeyPem: one.publicKeyPem },
        { id: 'k', publicKeyPem: two.publicKeyPem },
      ],
    },
    'invalid_field',
    'keys[1].id',
  ],
]
test('an invalid application is rejected', async (t) => {
  const { call, store } = await startControl(t)
  for (const [title, sent, code, field] of refused) {
    await t.test(`refuses ${title}`, async () => {
      const { status, body } = await call('POST', '/api/oauth-apps', sent)
      assert.deepEqual([status, body.code, body.field], [400, code, field])
    })
  }
  assert.equal(store.configuration().oauthApps.size, 0)
})

test('a private key that was pasted by mistake is rejected, and is neither returned, nor stored, nor in the audit log', async (t) => {
  const { call, store } = await startControl(t)
  const { body: app } = await call('POST', '/api/oauth-apps', { name: 'Backend' })
  const secret = one.privateKeyPem.split('\n')[1] as string
  for (const [method, path, sent] of [
    ['POST', '/api/oauth-apps', { name: 'x', keys: [{ publicKeyPem: one.privateKeyPem }] }],
    ['PATCH', `/api/oauth-apps/${app.id}`, { keys: [{ publicKeyPem: one.privateKeyPem }] }],
    ['POST', `/api/oauth-apps/${app.id}/keys`, { publicKeyPem: one.privateKeyPem }],
    ['POST', `/api/oauth-apps/${app.id}/keys`, { publicKeyPem: one.publicKeyPem + one.privateKeyPem }],
  ] as const) {
    const { status, text } = await call(method, path, sent)
    assert.equal(status, 400)
    assert.match(text, /is a private key/)
    assert.ok(!text.includes(secret.slice(0, 12)))
  }
  const { data } = await store.history.audit({}, { limit: 100, cursor: null })
  assert.equal(data.length, 1)
  assert.ok(!JSON.stringify(data).includes(secret))
})

test('every change has an audit entry with the values before and after', async (t) => {
  const { call, store } = await startControl(t)
  const { body: app } = await call('POST', '/api/oauth-apps', { name: 'Backend' })
  const path = `/api/oauth-apps/${app.id}`
  await call('PATCH', path, { name: 'Worker' })
  const { body } = await call('POST', `${path}/keys`, { publicKeyPem: one.publicKeyPem })
  await call('DELETE', `${path}/keys/${body.keyId}`)
  await call('DELETE', `${path}/keys/${body.keyId}`)
  await call('POST', `${path}/revoke-tokens`)
  await call('DELETE', path)
  const { data } = await store.history.audit({ subject: app.id }, { limit: 100, cursor: null })
  assert.deepEqual(
    data.map(({ action }) => action),
    ['delete', 'revoke-tokens', 'remove-key', 'add-key', 'update', 'create'].map((done) => `oauth-app.${done}`),
  )
  assert.deepEqual([data[4]?.before?.['name'], data[4]?.after?.['name']], ['Backend', 'Worker'])
  assert.deepEqual([data[0]?.after, data[0]?.before?.['name']], [null, 'Worker'])
})
