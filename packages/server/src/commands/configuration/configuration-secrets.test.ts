// Secrets in a configuration file: an export has references in their place, and applying the file shows and needs none.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configurationOf } from '../../api/configuration-export.ts'
import { WAREHOUSE_SETTINGS } from '../../destinations/warehouse/settings.ts'
import { addChangedSecrets, differencesOf } from './configuration-differences.ts'
import { DESTINATION, exported, exportedFrom, installed, schema, withSettings } from './fixtures/installed-configuration.ts'

const LOAD = { everyMs: 60_000, maxRows: 50_000, maxBytes: 33_554_432 }
const WAREHOUSE_FIELDS = {
  type: { default: 'webhook' },
  warehouse: WAREHOUSE_SETTINGS.warehouse.toJsonSchema(),
  load: WAREHOUSE_SETTINGS.load.toJsonSchema(),
}

test('an export contains no secret, lists the variables it refers to, and changes nothing when it is applied', () => {
  const { file, variables } = configurationOf(installed(), { withKeys: true })
  assert.equal(JSON.stringify(file).includes('hidden'), false)
  assert.deepEqual(variables, [
    'WAREHOUSE_URL_TOKEN',
    'WAREHOUSE_URL_N',
    'WAREHOUSE_AUTHORIZATION',
    'WAREHOUSE_X_TEAM',
    'WAREHOUSE_SHARED_SECRET',
    'WAREHOUSE_SIGNING_SECRET',
    'WAREHOUSE_SIGNING_SECRET_2',
  ])
  assert.deepEqual(file.destinations[0]?.['headers'], { Authorization: '${WAREHOUSE_AUTHORIZATION}', 'X-Team': '${WAREHOUSE_X_TEAM}' })
  assert.equal(Object.hasOwn(file.destinations[0] as object, 'batch'), false, 'a field with its default value is left out')
  const differences = differencesOf(file, installed(), {}, true)
  assert.deepEqual([differences.changes, differences.problems, differences.unmanaged], [[], [], []])
  assert.equal(differences.remarks.length, 2)
  assert.equal(configurationOf(installed(), { withKeys: false }).file.sources[0]?.['writeKeys'], undefined)
})

test('an export has a reference for every header and query value, and applying it changes nothing if all variables are set or none is', () => {
  const urls = ['https://a.example/hook?v=2&v=3', 'https://a.example/hook?v=4&v=5', 'https://a.example/$${x}?only&=nameless&empty=&']
  const headers = { 'X-Env': 'a${b}', 'x.env': 'second', 'X-Empty': '' }
  const stored = installed({ destinations: [{ ...DESTINATION, urls, headers, hasSharedSecret: false, signingSecretCount: 0 }] })
  const { file, variables } = configurationOf(stored, { withKeys: true })
  assert.deepEqual(file.destinations[0]?.['urls'], [
    'https://a.example/hook?v=${WAREHOUSE_URL_V}&v=${WAREHOUSE_URL_V_2}',
    'https://a.example/hook?v=${WAREHOUSE_URL_V_3}&v=${WAREHOUSE_URL_V_4}',
    'https://a.example/$$${x}?${WAREHOUSE_URL_QUERY}&=${WAREHOUSE_URL}&empty=&',
  ])
  assert.deepEqual(file.destinations[0]?.['headers'], { 'X-Env': '${WAREHOUSE_X_ENV}', 'x.env': '${WAREHOUSE_X_ENV_2}', 'X-Empty': '' })
  assert.equal(new Set(variables).size, variables.length)
  const values = ['2', '3', '4', '5', 'only', 'nameless', 'a${b}', 'second']
  const env = Object.fromEntries(variables.map((name, at) => [name, values[at]]))
  for (const set of [{}, env]) {
    const { changes, problems } = differencesOf(file, stored, set, true)
    assert.deepEqual([changes, problems], [[], []])
  }
  const { changes } = differencesOf(file, stored, { ...env, WAREHOUSE_X_ENV: 'shown-nowhere' }, true)
  assert.deepEqual([changes.length, JSON.stringify(changes[0]?.fields).includes('shown-nowhere')], [1, false])
})

test('the shape of a request is exported with references for its header values', () => {
  const body = { text: { '@template': '${not a reference} {{event}}' } }
  const request = { method: 'PUT', path: '/{{userId}}', headers: { 'X-Key': 'hidden {{userId}}', 'X-Empty': '' }, body, format: 'json' }
  const stored = installed({ destinations: [{ ...DESTINATION, headers: { 'Request-X-Key': 'h' }, request }] })
  const { file, variables } = configurationOf(stored, { withKeys: true })
  assert.deepEqual(file.destinations[0]?.['request'], {
    ...request,
    headers: { 'X-Key': '${WAREHOUSE_REQUEST_X_KEY_2}', 'X-Empty': '' },
    body: { text: { '@template': '$${not a reference} {{event}}' } },
  })
  assert.ok(variables.includes('WAREHOUSE_REQUEST_X_KEY_2'))
  const apply = (env: Record<string, string>) => differencesOf(file, stored, env, true)
  assert.deepEqual([apply({}).changes, apply({}).problems], [[], []])
  assert.deepEqual(apply({ WAREHOUSE_REQUEST_X_KEY_2: 'hidden {{userId}}' }).changes, [])
  const [change] = apply({ WAREHOUSE_REQUEST_X_KEY_2: 'shown-nowhere' }).changes
  assert.deepEqual(change?.settings, { request: { ...request, headers: { 'X-Key': 'shown-nowhere', 'X-Empty': '' } } })
  assert.doesNotMatch(JSON.stringify(change?.fields), /shown-nowhere|hidden/)
  const removed = differencesOf(exported(), stored, {}, true).changes[0]
  assert.equal(removed?.settings['request'], null)
})

test('header values of placeholders are exported as they are, and constants that may be credentials as references', () => {
  const headers = {
    'X-Tenant': '{{context.tenant}}',
    'X-Both': '{{a}}-{{b}}',
    Authorization: 'Bearer {{secrets.token}}',
    'X-Key': 'key {{a}}',
  }
  const body = { routing_key: 'R0123', dedup_key: { '@template': '{{messageId}}' }, text: 'plain', list: [{ apiToken: 'T0123' }] }
  const request = { method: 'POST', path: '/{{secrets.token}}/bot0123456789Abcdef/{{userId}}', headers, body, format: 'json' }
  const urls = ['https://hooks.slack.com/services/T000/B000', 'https://example.com/v1/0123456789abcdef/x?key=1']
  const secrets = { token: '(hidden)', routingKey: '(hidden)' }
  const stored = installed({ destinations: [{ ...DESTINATION, urls, headers: {}, request, secrets }] })
  const { file } = configurationOf(stored, { withKeys: true })
  const [entry = assert.fail()] = file.destinations
  assert.deepEqual(entry['request'], {
    ...request,
    path: '/{{secrets.token}}/${WAREHOUSE_REQUEST_PATH}{{userId}}',
    headers: { ...headers, 'X-Key': '${WAREHOUSE_REQUEST_X_KEY}' },
    body: { ...body, routing_key: '${WAREHOUSE_REQUEST_BODY_ROUTING_KEY}', list: [{ apiToken: '${WAREHOUSE_REQUEST_BODY_LIST}' }] },
  })
  assert.deepEqual(entry['secrets'], { token: '${WAREHOUSE_TOKEN}', routingKey: '${WAREHOUSE_ROUTING_KEY}' })
  assert.doesNotMatch(JSON.stringify(file), /T000|0123/)
  const apply = (env: Record<string, string>) => differencesOf(file, stored, env, true)
  assert.deepEqual([apply({}).changes, apply({}).problems], [[], []])
  assert.deepEqual(apply({}).remarks.filter((remark) => remark.includes('secrets.')).length, 2)
  assert.deepEqual(apply({ WAREHOUSE_TOKEN: 'new' }).wanted.destinations[0]?.settings['secrets'], { token: 'new' })
  assert.deepEqual(apply({ WAREHOUSE_TOKEN: 'new' }).changes, [], 'the service tells whether it differs')
  Object.assign(entry, { secrets: { routingKey: '${WAREHOUSE_ROUTING_KEY}', other: '${OTHER}' } })
  assert.match(apply({}).problems.join(), /secrets\.other: the environment variable OTHER is not set/)
  const [change] = apply({ OTHER: 'shown-nowhere' }).changes
  assert.deepEqual(change?.settings, { secrets: { token: null, other: 'shown-nowhere' } })
  assert.doesNotMatch(JSON.stringify(change?.fields), /shown-nowhere/)
  Object.assign(entry, { secrets: { routingKey: 'plain text' } })
  assert.match(apply({}).problems.join(), /secrets\.routingKey must be a reference/)
})

test('a token in the path of a request is exported as a reference, and shown in no change', () => {
  const request = { method: 'POST', path: '/bot0123456789Abcdef/{{userId}}/${x}', headers: {}, body: null, format: 'json' }
  const stored = installed({ destinations: [{ ...DESTINATION, urls: ['https://api.example/v1'], headers: {}, request }] })
  const { file } = configurationOf(stored, { withKeys: true })
  assert.deepEqual(file.destinations[0]?.['request'], { ...request, path: '/${WAREHOUSE_REQUEST_PATH}/{{userId}}/$${x}' })
  const apply = (env: Record<string, string>) => differencesOf(file, stored, env, true)
  assert.deepEqual([apply({}).changes, apply({}).problems], [[], []])
  const [change = assert.fail()] = apply({ WAREHOUSE_REQUEST_PATH: 'bot9876543210Abcdef' }).changes
  assert.equal((change.settings['request'] as { path: string }).path, '/bot9876543210Abcdef/{{userId}}/${x}')
  assert.doesNotMatch(JSON.stringify(change.fields), /0123456789|9876543210/)
})

test('a destination that gets another server sends its secrets again, and keeps none whose variable is not set', () => {
  const request = { method: 'POST', path: '', headers: { 'X-Key': 'key {{a}}' }, body: null, format: 'json' }
  const stored = installed({ destinations: [{ ...DESTINATION, request, secrets: { token: '(hidden)' } }] })
  const { file, variables } = configurationOf(stored, { withKeys: true })
  Object.assign(file.destinations[0] as object, { urls: ['https://other.example/'] })
  const missing = differencesOf(file, stored, {}, true)
  assert.match(missing.problems.join(), /headers\.Authorization: the environment variable WAREHOUSE_AUTHORIZATION is not set/)
  assert.match(missing.problems.join(), /request\.headers\.X-Key: the environment variable/)
  const env = Object.fromEntries(variables.map((name) => [name, `value of ${name}`]))
  const { changes, problems } = differencesOf(file, stored, env, true)
  assert.deepEqual(problems, [])
  assert.deepEqual(changes[0]?.settings['secrets'], { token: 'value of WAREHOUSE_TOKEN' })
  assert.deepEqual(changes[0]?.settings['headers'], {
    Authorization: 'value of WAREHOUSE_AUTHORIZATION',
    'X-Team': 'value of WAREHOUSE_X_TEAM',
  })
  assert.deepEqual(changes[0]?.settings['request'], { ...request, headers: { 'X-Key': 'value of WAREHOUSE_REQUEST_X_KEY' } })
})

test('a secret whose variable is not set stays unchanged, a new entry needs it, and a list with only some variables set is rejected', () => {
  const file = exported()
  assert.deepEqual(differencesOf(file, installed({ destinations: [] }), {}, false).problems.length, 5, 'URL, both headers and both secrets')
  const env = { WAREHOUSE_SIGNING_SECRET: 'one' }
  assert.match(
    differencesOf(file, installed(), env, false).problems.join(),
    /set either all of the environment variables or none\. Not set: WAREHOUSE_SIGNING_SECRET_2\./,
  )
  const all = { ...env, WAREHOUSE_SIGNING_SECRET_2: 'two', WAREHOUSE_SHARED_SECRET: 'three' }
  const differences = differencesOf(file, installed(), all, false)
  assert.equal(differences.changes.length, 0, 'only the service can tell whether the secret differs')
  assert.deepEqual(differences.wanted.destinations[0]?.settings['signingSecrets'], ['one', 'two'])
  addChangedSecrets(differences, file, [{ kind: 'destinations', index: 0, fields: ['sharedSecret'] }])
  assert.deepEqual(
    differences.changes.map(({ settings, id }) => [id, settings]),
    [['dst_1', { sharedSecret: 'three' }]],
  )
  assert.equal(JSON.stringify(differences.changes[0]?.fields).includes('three'), false)
})

test('a plain-text secret is rejected and not quoted', () => {
  for (const secret of [{ sharedSecret: 'plain-text' }, { signingSecrets: ['plain-text'] }, { signingSecrets: 'plain-text' }]) {
    const file = exported()
    Object.assign(file.destinations[0] as object, secret)
    const { problems } = differencesOf(file, installed(), {}, false)
    assert.match(problems.join(), /must not contain secrets/)
    assert.equal(problems.join().includes('plain-text'), false)
  }
})

test('credentials in auth and tls are exported as references, kept if the variable is not set, and never shown', () => {
  const oauth = {
    type: 'oauth2',
    tokenUrl: 'https://id.example/token?tenant=hidden',
    clientId: 'me',
    scope: null,
    audience: 'a',
    credentials: 'basic',
  }
  const tls = { certificate: 'PEM\n', subject: 'CN=me', expiresAt: '2027-01-01T00:00:00.000Z', hasPrivateKey: true, ca: null }
  const now = withSettings(
    { name: 'A', auth: { type: 'basic', username: 'hidden', hasPassword: true }, tls: null, deadLetter: null },
    { name: 'B', auth: { ...oauth, hasClientSecret: true }, tls, deadLetter: null },
  )
  const { file, variables } = configurationOf(now, { withKeys: true })
  assert.deepEqual(file.destinations[0]?.['auth'], { type: 'basic', username: '${A_USERNAME}', password: '${A_PASSWORD}' })
  assert.deepEqual(file.destinations[1]?.['auth'], {
    type: 'oauth2',
    tokenUrl: 'https://id.example/token?tenant=${B_TOKEN_URL_TENANT}',
    clientId: 'me',
    audience: 'a',
    clientSecret: '${B_CLIENT_SECRET}',
  })
  assert.deepEqual(file.destinations[1]?.['tls'], { certificate: 'PEM\n', privateKey: '${B_PRIVATE_KEY}' })
  assert.ok(
    ['A_USERNAME', 'A_PASSWORD', 'B_CLIENT_SECRET', 'B_TOKEN_URL_TENANT', 'B_PRIVATE_KEY'].every((name) => variables.includes(name)),
  )

  const kept = differencesOf(file, now, {}, true)
  assert.deepEqual([kept.changes, kept.problems], [[], []])
  assert.ok(
    kept.remarks.includes('destination B: auth.clientSecret stays unchanged, because the environment variable B_CLIENT_SECRET is not set.'),
  )
  assert.deepEqual(kept.wanted.destinations[0]?.settings['auth'], { type: 'basic', username: 'hidden' })

  const env = { A_PASSWORD: 'new-hidden', B_PRIVATE_KEY: 'key-hidden' }
  const set = differencesOf(file, now, env, true)
  assert.equal(set.changes.length, 0, 'only the service can tell whether they differ')
  addChangedSecrets(set, file, [{ kind: 'destinations', index: 0, fields: ['auth'] }])
  assert.deepEqual(set.changes[0]?.settings, { auth: { type: 'basic', username: 'hidden', password: 'new-hidden' } })
  assert.doesNotMatch(JSON.stringify(set.changes[0]?.fields), /hidden/)

  file.destinations[0] = {
    ...file.destinations[0],
    name: 'A',
    auth: { type: 'basic', username: 'other-hidden', password: 'secret in the file' },
  }
  const wrong = differencesOf(file, now, {}, true)
  assert.deepEqual(wrong.problems, ['destination A: auth.password must be a reference such as ${NAME}. The file must not contain secrets.'])
  assert.doesNotMatch(JSON.stringify(wrong.changes[0]?.fields), /hidden|secret/)
  const fresh = differencesOf(exportedFrom(now), withSettings(), {}, true)
  assert.ok(
    fresh.problems.some((problem) => problem.startsWith('destination A: auth.password: the environment variable A_PASSWORD is not set')),
  )
})

test('the secrets of warehouses are references, which are replaced, kept if they are not set, and needed for a new warehouse', () => {
  const place = (warehouse: object, secretSettings: string[]) => ({ type: 'warehouse', warehouse, secretSettings, load: LOAD })
  const common = { adopt: false, keepDays: null }
  const bucket = { engine: 'parquet', url: 's3://b/p', endpoint: null, region: null, accessKeyId: 'key', pathStyle: false, ...common }
  const warehouses = [
    { ...DESTINATION, ...place(bucket, ['secretAccessKey']), id: 'dst_1', name: 'Bucket' },
    {
      ...DESTINATION,
      ...place({ engine: 'postgres', url: 'postgres://u:(hidden)@h/d', schema: null, ...common }, ['url']),
      id: 'dst_2',
      name: 'Db',
    },
  ]
  const now = {
    ...installed({ destinations: warehouses }),
    schema: { ...schema, destinations: { ...schema.destinations, ...WAREHOUSE_FIELDS } },
  }
  const { file, variables } = configurationOf(now, { withKeys: true })
  assert.deepEqual(variables, ['BUCKET_WAREHOUSE_SECRETACCESSKEY', 'DB_WAREHOUSE_PASSWORD'])
  const unchanged = differencesOf(file, now, {}, true)
  assert.deepEqual([unchanged.changes, unchanged.problems], [[], []])
  const env = { BUCKET_WAREHOUSE_SECRETACCESSKEY: 'secret-1', DB_WAREHOUSE_PASSWORD: 'secret-2' }
  const given = differencesOf(file, now, env, true)
  assert.deepEqual([given.changes, given.problems], [[], []])
  const placeOf = (at: number): unknown => given.wanted.destinations[at]?.settings['warehouse']
  assert.equal((placeOf(0) as { secretAccessKey: string }).secretAccessKey, 'secret-1')
  assert.equal((placeOf(1) as { url: string }).url, 'postgres://u:secret-2@h/d')
  const nothing = { ...now, entries: { ...now.entries, destinations: [] } }
  const fresh = differencesOf(file, nothing, {}, true)
  assert.equal(fresh.problems.length, 2)
  for (const name of Object.keys(env)) assert.ok(fresh.problems.some((problem) => problem.includes(`${name} is not set`)))
  assert.doesNotMatch(JSON.stringify(differencesOf(file, nothing, env, true).changes.map(({ fields: shown }) => shown)), /secret-/)
})
