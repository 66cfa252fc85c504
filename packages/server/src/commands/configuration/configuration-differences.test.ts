import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigurationFile, configurationOf, type Installed } from '../../api/configuration-export.ts'
import { KIND_SETTINGS } from '../../destinations/kinds.ts'
import { addChangedSecrets, differencesOf } from './configuration-differences.ts'
import { parseConfigurationFile } from './configuration-file.ts'

const BATCH = { size: 1, bytes: 512_000, lingerMs: 1_000 }
const schema: Installed['schema'] = {
  sources: { name: {}, enabled: { default: true }, requireOAuth: { default: false }, writeKeys: {} },
  destinations: {
    name: {},
    enabled: { default: true },
    paused: { default: false },
    sources: { default: [] },
    urls: {},
    headers: { default: {} },
    sharedSecret: {},
    signingSecrets: {},
    request: { default: null },
    secrets: { default: {} },
    batch: { default: BATCH, properties: { size: { default: 1 }, bytes: { default: 512_000 }, lingerMs: { default: 1_000 } } },
  },
  oauthApps: { name: {}, sources: { default: [] }, keys: { default: [] } },
  plans: { name: {}, sources: { default: [] }, rules: { items: { properties: { mode: { default: 'observe' } } } } },
}
const SOURCE = { id: 'src_1', name: 'web', enabled: true, requireOAuth: false, writeKeys: ['k1'], createdAt: 't' }
const DESTINATION = {
  id: 'dst_1',
  type: 'webhook',
  name: 'Warehouse',
  enabled: true,
  paused: false,
  sourceIds: ['src_1'],
  urls: ['https://a.example/?token=hidden-token&n=1'],
  headers: { Authorization: 'Bearer hidden-header', 'X-Team': 'a${b}' },
  hasSharedSecret: true,
  hasSigningSecrets: true,
  signingSecretCount: 2,
  request: null,
  transformation: null,
  batch: BATCH,
}
const APP = { id: 'app_1', name: 'app', sourceIds: ['src_1'], keys: [{ id: 'k', publicKeyPem: 'PEM', createdAt: 't' }] }

function installed(change: Partial<Installed['entries']> = {}): Installed {
  return {
    schema,
    kinds: KIND_SETTINGS,
    entries: { sources: [SOURCE], destinations: [DESTINATION], oauthApps: [APP], plans: [], ...change },
  }
}

function exported(): ConfigurationFile {
  return structuredClone(configurationOf(installed(), { withKeys: true }).file)
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

test('a paused destination is exported as paused, and a file without that field resumes it', () => {
  const paused = installed({ destinations: [{ ...DESTINATION, paused: true }] })
  const { file } = configurationOf(paused, { withKeys: true })
  assert.equal(file.destinations[0]?.['paused'], true)
  assert.deepEqual(differencesOf(file, paused, {}, true).changes, [])
  assert.equal(Object.hasOwn(exported().destinations[0] as object, 'paused'), false, 'a field with its default value is left out')
  assert.deepEqual(
    differencesOf(exported(), paused, {}, true).changes.map(({ settings }) => settings),
    [{ paused: false }],
  )
})

test('the order of an export does not depend on the order of creation', () => {
  const named = (name: string) => ({ ...SOURCE, id: name, name })
  const names = (list: object[]) => configurationOf(installed({ sources: list }), { withKeys: true }).file.sources.map(({ name }) => name)
  assert.deepEqual(names([named('b'), named('a'), named('C')]), names([named('C'), named('b'), named('a')]))
})

test('changes in the file are found field by field, and secrets are not shown', () => {
  const file = exported()
  Object.assign(file.destinations[0] as object, {
    batch: { size: 10 },
    headers: { Authorization: '${H}' },
    urls: ['https://b.example/?token=${U}'],
  })
  const differences = differencesOf(file, installed(), { H: 'hidden-new', U: 'hidden-url' }, false)
  assert.deepEqual(differences.problems, [])
  const [change] = differences.changes
  assert.deepEqual([change?.action, change?.kind, change?.id], ['update', 'destinations', 'dst_1'])
  assert.deepEqual(change?.settings, {
    batch: { size: 10, bytes: 512_000, lingerMs: 1_000 },
    headers: { Authorization: 'hidden-new' },
    urls: ['https://b.example/?token=hidden-url'],
  })
  assert.equal(JSON.stringify(change?.fields).includes('hidden'), false)
})

test('a field that is missing in the file is reset to its default', () => {
  const stored = { ...DESTINATION, batch: { ...BATCH, size: 50 } }
  const differences = differencesOf(exported(), installed({ destinations: [stored] }), {}, false)
  assert.deepEqual(differences.changes[0]?.settings, { batch: BATCH })
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

test('nothing is deleted without prune, and unmanaged entries are listed', () => {
  const empty = parseConfigurationFile({ version: 1 }, 'f')
  const kept = differencesOf(empty, installed(), {}, false)
  assert.deepEqual([kept.changes.length, kept.unmanaged.map(({ name }) => name)], [0, ['web', 'Warehouse', 'app']])
  assert.deepEqual(
    differencesOf(empty, installed(), {}, true).changes.map(({ action, id }) => [action, id]),
    [
      ['delete', 'src_1'],
      ['delete', 'dst_1'],
      ['delete', 'app_1'],
    ],
  )
})

test('a missing source, an ambiguous name and a write key of another source are found before anything is changed', () => {
  const file = exported()
  Object.assign(file.destinations[0] as object, { sources: ['nowhere'] })
  assert.match(differencesOf(file, installed(), {}, false).problems.join(), /there is no source nowhere/)
  assert.match(
    differencesOf(exported(), installed({ sources: [SOURCE, { ...SOURCE, id: 'src_2' }] }), {}, false).problems.join(),
    /the installation has several with this name/,
  )
  const other = exported()
  other.sources.push({ name: 'second', writeKeys: ['k1'] })
  assert.match(differencesOf(other, installed(), {}, false).problems.join(), /has the same write key/)
  const taken = parseConfigurationFile({ version: 1, sources: [{ name: 'second', writeKeys: ['k1'] }] }, 'f')
  assert.match(differencesOf(taken, installed(), {}, false).problems.join(), /the installed source web has this write key/)
})

test('a key of an application without an id in the file matches the installed key', () => {
  const file = exported()
  Object.assign(file.oauthApps[0] as object, { keys: [{ publicKeyPem: 'PEM\n' }] })
  assert.deepEqual(differencesOf(file, installed(), {}, false).changes, [])
})

test('the retry window of a file may have its older name, and an export has the policy only once', () => {
  const retry = { windowMs: 60_000, factor: 2 }
  const stored = { ...DESTINATION, retry, retryWindowMs: 60_000 }
  const policy = { default: { windowMs: 14_400_000, factor: 2 }, properties: { windowMs: { default: 14_400_000 }, factor: { default: 2 } } }
  const now: Installed = {
    schema: { ...schema, destinations: { ...schema.destinations, retry: policy, retryWindowMs: {} } },
    kinds: KIND_SETTINGS,
    entries: { ...installed().entries, destinations: [stored] },
  }
  const { file } = configurationOf(now, { withKeys: true })
  assert.deepEqual(file.destinations[0]?.['retry'], retry)
  assert.equal(Object.hasOwn(file.destinations[0] as object, 'retryWindowMs'), false)
  const changes = (fields: object): unknown => {
    const { retry: _, ...entry } = file.destinations[0] as (typeof file.destinations)[number]
    const given = parseConfigurationFile({ ...file, destinations: [{ ...entry, ...fields }] }, 'a.yaml')
    return differencesOf(given, now, {}, true).changes[0]?.settings
  }
  assert.equal(changes({ retry }), undefined)
  assert.equal(changes({ retryWindowMs: 60_000 }), undefined)
  assert.equal(changes({ retryWindowMs: 60_000, retry }), undefined)
  assert.deepEqual(changes({ retryWindowMs: 5_000, retry: { factor: 3 } }), { retry: { windowMs: 5_000, factor: 3 } })
  assert.deepEqual(changes({ retryWindowMs: 5_000, retry }), { retryWindowMs: 5_000 }, 'the service rejects this')
})

test('an invalid file is rejected: wrong version, unknown keys, entries without a name or with the same name', () => {
  for (const [value, problem] of [
    [null, /must be a YAML mapping/],
    [{}, /version must be 1/],
    [{ version: 2 }, /version must be 1/],
    [{ version: 1, source: [] }, /unknown key source\./],
    [{ version: 1, sources: {} }, /sources must be a list/],
    [{ version: 1, sources: [{}] }, /must have a name/],
    [{ version: 1, sources: [{ name: 'a' }, { name: 'a' }] }, /the name a is used twice/],
    [JSON.parse('{"version":1,"sources":[{"name":"a","__proto__":{"x":1}}]}'), /__proto__/],
  ] as const) {
    assert.throws(() => parseConfigurationFile(value, 'f'), { name: 'CommandProblem', message: problem })
  }
  const odd = exported()
  Object.assign(odd.sources[0] as object, { colour: 'red' })
  assert.match(differencesOf(odd, installed(), {}, false).problems.join(), /unknown field colour/)
})

const AUTH_SCHEMA = {
  auth: {
    default: null,
    oneOf: [
      { properties: { type: { enum: ['basic'] }, username: {}, password: {} } },
      {
        properties: {
          type: { enum: ['oauth2'] },
          tokenUrl: {},
          clientId: {},
          clientSecret: {},
          scope: { default: null },
          audience: { default: null },
          credentials: { default: 'basic' },
        },
      },
    ],
  },
  tls: { default: null, properties: { certificate: { default: null }, privateKey: {}, ca: { default: null } } },
  deadLetter: { default: null },
}

function withSettings(...destinations: Record<string, unknown>[]): Installed {
  const entries = destinations.map((settings, index) => Object.assign({}, DESTINATION, { id: `dst_${index + 1}`, headers: {} }, settings))
  return {
    schema: { ...schema, destinations: { ...schema.destinations, ...AUTH_SCHEMA } },
    kinds: KIND_SETTINGS,
    entries: { sources: [SOURCE], destinations: entries, oauthApps: [], plans: [] },
  }
}

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

function exportedFrom(now: Installed): ConfigurationFile {
  return structuredClone(configurationOf(now, { withKeys: true }).file)
}

test('the destination for dead letters is given by its name, must exist, and must not lead back', () => {
  const classic = { auth: null, tls: null, deadLetter: null }
  const now = withSettings({ ...classic, name: 'A', deadLetter: 'dst_2' }, { ...classic, name: 'B' })
  const file = exportedFrom(now)
  assert.deepEqual(
    file.destinations.map(({ deadLetter }) => deadLetter),
    ['B', undefined],
  )
  assert.deepEqual([differencesOf(file, now, {}, true).changes, differencesOf(file, now, {}, true).problems], [[], []])
  const set = (name: string, deadLetter: string | null): void => {
    const at = file.destinations.findIndex((entry) => entry.name === name)
    file.destinations[at] = { ...file.destinations[at], name, deadLetter }
  }
  set('A', null)
  const removed = differencesOf(file, now, {}, true).changes
  assert.deepEqual(
    [removed[0]?.settings, removed[0]?.fields],
    [{ deadLetter: null }, [{ field: 'deadLetter', before: '"B"', after: 'null' }]],
  )
  set('A', 'C')
  assert.deepEqual(differencesOf(file, now, {}, true).problems, [
    'destination A: there is no destination C, neither in the file nor in the installation.',
  ])
  set('A', 'B')
  set('B', 'A')
  assert.deepEqual(differencesOf(file, now, {}, true).problems, [
    'destination A: deadLetter must not lead back to the same destination (A → B → A).',
    'destination B: deadLetter must not lead back to the same destination (B → A → B).',
  ])
})

test('a tracking plan is compared rule by rule, with the default mode', () => {
  const rule = { type: 'page', schema: { type: 'object' } }
  const stored = { id: 'pln_1', name: 'Shop', sourceIds: ['src_1'], rules: [{ ...rule, mode: 'observe' }] }
  const plan = (rules: object[]) => {
    const file = configurationOf(installed({ plans: [stored] }), { withKeys: true }).file
    file.plans = [{ name: 'Shop', sources: ['web'], rules }]
    return differencesOf(file, installed({ plans: [stored] }), {}, false)
  }
  assert.deepEqual(plan([rule]).changes, [])
  assert.deepEqual(
    plan([{ ...rule, mode: 'strip' }]).changes.map(({ action, kind, settings }) => [action, kind, Object.keys(settings)]),
    [['update', 'plans', ['rules']]],
  )
})
