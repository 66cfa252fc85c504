import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startControl } from './fixtures/start-control.ts'

const SIGNING = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

test('the problems of all entries are returned at once, by the rules of the create routes, and nothing is changed', async (t) => {
  const { call } = await startControl(t, { checkUrl: (url) => (url.includes('169.254') ? 'must not be a metadata service' : null) })
  const before = (await call('GET', '/api/sources')).body
  const { status, body } = await call('POST', '/api/configuration/check', {
    sources: [{ settings: { name: 'good' } }, { settings: { name: '' } }, { settings: { name: 'x', writeKeys: ['a:b'] } }],
    destinations: [
      { settings: { name: 'd', urls: ['ftp://x'] } },
      { settings: { name: 'All', urls: ['https://a.example/'] } },
      { settings: { name: 'e', urls: ['https://a.example/'], unknown: 1 } },
      { settings: { name: 'f', urls: ['http://169.254.169.254/'] } },
      { settings: { name: 'g', urls: ['https://a.example/'], sharedSecret: 'in-plain' } },
    ],
    oauthApps: [{ settings: { name: 'o', keys: [{ id: 'k', publicKeyPem: 'no key' }] } }],
  })
  assert.equal(status, 200)
  const told = (body.problems as { kind: string; index: number; field: string }[]).map(
    ({ kind, index, field }) => `${kind} ${index} ${field}`,
  )
  assert.deepEqual(told, [
    'sources 1 name',
    'sources 2 writeKeys[0]',
    'destinations 0 urls[0]',
    'destinations 1 name',
    'destinations 2 unknown',
    'destinations 3 urls[0]',
    'oauthApps 0 keys[0].publicKeyPem',
  ])
  assert.equal(JSON.stringify(body).includes('in-plain'), false)
  assert.deepEqual((await call('GET', '/api/sources')).body, before)
})

test('the response says whether a secret differs from the stored one, without returning the stored one', async (t) => {
  const { call } = await startControl(t)
  const { id } = (
    await call('POST', '/api/destinations', {
      name: 'd',
      urls: ['https://a.example/'],
      sharedSecret: 'stored-secret',
      signingSecrets: [SIGNING],
    })
  ).body
  const changed = async (settings: object, of: string | null = id) => {
    const { body } = await call('POST', '/api/configuration/check', {
      destinations: [{ id: of, settings: { name: 'd', urls: ['https://a.example/'], ...settings } }],
    })
    assert.equal(JSON.stringify(body).includes('stored-secret'), false)
    assert.equal(JSON.stringify(body).includes(SIGNING), false)
    return (body.changedSecrets as { fields: string[] }[]).flatMap(({ fields }) => fields)
  }
  assert.deepEqual(await changed({ sharedSecret: 'stored-secret', signingSecrets: [SIGNING] }), [])
  assert.deepEqual(await changed({ sharedSecret: 'other', signingSecrets: [] }), ['sharedSecret', 'signingSecrets'])
  assert.deepEqual(await changed({}), [])
  assert.deepEqual(await changed({ sharedSecret: null }), ['sharedSecret'])
  assert.deepEqual(await changed({ sharedSecret: null }, null), [])
})

test('validation is for admins, because it compares secrets', async (t) => {
  const { call } = await startControl(t)
  const { token } = (await call('POST', '/api/tokens', { name: 'v', role: 'viewer' })).body
  assert.equal((await call('POST', '/api/configuration/check', {}, { token })).status, 403)
})

test('the schema of the file has names instead of ids, references instead of secrets, and the limits of the API', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('GET', '/api/configuration/schema')
  const { sources, destinations, oauthApps } = body.properties
  assert.deepEqual(body.required, ['version'])
  assert.equal(sources.items.properties.name.maxLength, 100)
  assert.equal(destinations.items.properties.sourceIds, undefined)
  assert.equal(destinations.items.properties.sources.type, 'array')
  assert.equal(destinations.items.properties.timeoutMs.maximum, 600_000)
  assert.ok(oauthApps.items.properties.keys)
  const reference = new RegExp(destinations.items.properties.sharedSecret.pattern)
  assert.deepEqual([reference.test('${NAME_1}'), reference.test('a secret'), reference.test('x${NAME}')], [true, false, false])
})

test('the file is the same as from `switchyard export`: with names, with references instead of secrets, and only for admins', async (t) => {
  const { call } = await startControl(t)
  const source = (await call('POST', '/api/sources', { name: 'Website', writeKeys: ['key-of-the-website'] })).body
  await call('POST', '/api/destinations', {
    name: 'Warehouse',
    sourceIds: [source.id],
    urls: ['https://a.example/hook?token=url-secret'],
    headers: { Authorization: 'Bearer header-secret', 'X-Team': 'team-secret' },
    sharedSecret: 'stored-secret',
    signingSecrets: [SIGNING],
  })
  const { status, body } = await call('GET', '/api/configuration')
  assert.equal(status, 200)
  const yaml = String(body.yaml)
  for (const text of ['stored-secret', SIGNING, 'header-secret', 'team-secret', 'url-secret', String(source.id)])
    assert.equal(yaml.includes(text), false, text)
  for (const text of [
    '- name: Warehouse',
    '- Website',
    'X-Team: ${WAREHOUSE_X_TEAM}',
    'key-of-the-website',
    '${WAREHOUSE_SHARED_SECRET}',
    'switchyard apply FILE',
  ])
    assert.ok(yaml.includes(text), text)
  assert.deepEqual(body.variables, [
    'WAREHOUSE_URL_TOKEN',
    'WAREHOUSE_AUTHORIZATION',
    'WAREHOUSE_X_TEAM',
    'WAREHOUSE_SHARED_SECRET',
    'WAREHOUSE_SIGNING_SECRET',
  ])
  assert.equal(String((await call('GET', '/api/configuration?writeKeys=false')).body.yaml).includes('key-of-the-website'), false)
  const { token } = (await call('POST', '/api/tokens', { name: 'v', role: 'viewer' })).body
  assert.equal((await call('GET', '/api/configuration', undefined, { token })).status, 403)
})

test('the export fails if two resources have the same name', async (t) => {
  const { call } = await startControl(t)
  for (let made = 0; made < 2; made += 1) await call('POST', '/api/sources', { name: 'Twin' })
  const { status, body } = await call('GET', '/api/configuration')
  assert.deepEqual([status, body.code, String(body.message).includes('Twin')], [409, 'same_names', true])
})
