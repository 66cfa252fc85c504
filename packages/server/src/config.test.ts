import assert from 'node:assert/strict'
import test from 'node:test'
import { type Config, readConfig, SETTINGS } from './config.ts'

type Environment = Record<string, string | undefined>

function config(env: Environment = {}, flags: Record<string, string> = {}): Config {
  const result = readConfig(env, flags)
  assert.equal(result.kind, 'config', JSON.stringify(result))
  return (result as { config: Config }).config
}

function problems(env: Environment, flags: Record<string, string> = {}): string[] {
  const result = readConfig(env, flags)
  assert.equal(result.kind, 'problems', JSON.stringify(result))
  return result.kind === 'problems' ? result.problems.map(({ message }) => message) : []
}

const NO_LOGIN = {
  oidcIssuer: null,
  oidcClientId: null,
  oidcClientSecret: null,
  oidcClientSecretFile: null,
  oidcScopes: 'openid email profile',
  oidcRoles: null,
  oidcName: 'single sign-on',
  oidcContact: null,
  oidcGrace: 900,
}

test('without settings, each setting has its documented default', () => {
  assert.deepEqual(config(), {
    host: '127.0.0.1',
    port: 8080,
    store: { kind: 'sqlite', path: './data/switchyard.db' },
    processes: 1,
    adminToken: null,
    allowAddresses: [],
    privateAddresses: 'auto',
    secretKey: null,
    retentionDays: 7,
    quarantineDays: 30,
    log: 'info',
    lenientKeys: false,
    trustedProxies: [],
    publicUrl: null,
    metrics: 'auto',
    eventCatalog: 'on',
    rateLimit: null,
    maxBacklog: null,
    senders: 'auto',
    ingestThreads: 'auto',
    integrationHosts: 'auto',
    integrationsGateway: null,
    integrationsCa: null,
    lakeDir: null,
    warehouseFolder: null,
    integrationsFolder: null,
    ...NO_LOGIN,
  })
})

test('each setting is read from its variable', () => {
  const env = {
    SWITCHYARD_HOST: '[::1]',
    SWITCHYARD_PORT: '0',
    SWITCHYARD_STORE: 'postgres://db.example/switchyard',
    SWITCHYARD_PROCESSES: 'Auto',
    SWITCHYARD_ADMIN_TOKEN: 'admin-token-long-enough',
    SWITCHYARD_ALLOW_ADDRESSES: '10.0.0.0/8, 127.0.0.1,fd00::/8',
    SWITCHYARD_PRIVATE_ADDRESSES: 'refuse',
    SWITCHYARD_SECRET_KEY: 'a key with spaces',
    SWITCHYARD_RETENTION_DAYS: '30',
    SWITCHYARD_QUARANTINE_DAYS: '0',
    SWITCHYARD_LOG: 'DEBUG',
    SWITCHYARD_LENIENT_KEYS: '1',
    SWITCHYARD_TRUSTED_PROXIES: '192.0.2.1',
    SWITCHYARD_PUBLIC_URL: 'https://Events.example:443/',
    SWITCHYARD_METRICS: 'Token',
    SWITCHYARD_EVENT_CATALOG: 'Off',
    SWITCHYARD_RATE_LIMIT: '500',
    SWITCHYARD_MAX_BACKLOG: '2000000',
    SWITCHYARD_SENDERS: '3',
    SWITCHYARD_INGEST_THREADS: '2',
    SWITCHYARD_INTEGRATION_HOSTS: '2',
    SWITCHYARD_INTEGRATIONS_GATEWAY: '[::1]:8443',
    SWITCHYARD_INTEGRATIONS_CA: '/etc/authority.pem',
    SWITCHYARD_LAKE_DIR: '/srv/lake',
    SWITCHYARD_WAREHOUSE_FOLDER: '/opt/warehouse',
    SWITCHYARD_INTEGRATIONS_FOLDER: '/opt/integrations',
    SWITCHYARD_OIDC_ISSUER: 'https://login.example/realms/main',
    SWITCHYARD_OIDC_CLIENT_ID: 'switchyard',
    SWITCHYARD_OIDC_CLIENT_SECRET: 'a client secret',
    SWITCHYARD_OIDC_SCOPES: 'openid  offline_access',
    SWITCHYARD_OIDC_ROLES: '- { claim: groups, value: data-eng, role: editor, sources: [shop] }',
    SWITCHYARD_OIDC_NAME: 'Company login',
    SWITCHYARD_OIDC_CONTACT: 'it@example.com',
    SWITCHYARD_OIDC_GRACE: '60',
  }
  assert.deepEqual(config(env), {
    host: '::1',
    port: 0,
    store: { kind: 'postgres', url: 'postgres://db.example/switchyard' },
    processes: 'auto',
    adminToken: 'admin-token-long-enough',
    allowAddresses: ['10.0.0.0/8', '127.0.0.1/32', 'fd00::/8'],
    privateAddresses: 'refuse',
    secretKey: 'a key with spaces',
    retentionDays: 30,
    quarantineDays: 0,
    log: 'debug',
    lenientKeys: true,
    trustedProxies: ['192.0.2.1/32'],
    publicUrl: 'https://events.example',
    metrics: 'token',
    eventCatalog: 'off',
    rateLimit: 500,
    maxBacklog: 2_000_000,
    senders: 3,
    ingestThreads: 2,
    integrationHosts: 2,
    integrationsGateway: { host: '::1', port: 8443 },
    integrationsCa: '/etc/authority.pem',
    lakeDir: '/srv/lake',
    warehouseFolder: '/opt/warehouse',
    integrationsFolder: '/opt/integrations',
    oidcIssuer: 'https://login.example/realms/main',
    oidcClientId: 'switchyard',
    oidcClientSecret: 'a client secret',
    oidcClientSecretFile: null,
    oidcScopes: 'openid offline_access',
    oidcRoles: [{ claim: 'groups', value: 'data-eng', role: 'editor', sources: ['shop'] }],
    oidcName: 'Company login',
    oidcContact: 'it@example.com',
    oidcGrace: 60,
  })
})

test('several processes require PostgreSQL, and auto is allowed with SQLite', () => {
  const env = { SWITCHYARD_STORE: 'postgres://db.example/switchyard' }
  assert.equal(config({ ...env, SWITCHYARD_PROCESSES: '4' }).processes, 4)
  assert.equal(config({ SWITCHYARD_PROCESSES: 'auto' }).processes, 'auto')
  assert.equal(config({ SWITCHYARD_PROCESSES: '1' }).processes, 1)
  assert.match(problems({ SWITCHYARD_PROCESSES: '4' }).join(), /^SWITCHYARD_PROCESSES is 4, but only one process can use a SQLite file\. /)
  assert.match(problems({}, { processes: '2' }).join(), /^--processes is 2, but .*SWITCHYARD_STORE to postgres:/)
  for (const wrong of ['0', '65', '-1', 'all', '1.5'])
    assert.deepEqual(problems({ ...env, SWITCHYARD_PROCESSES: wrong }), [
      `SWITCHYARD_PROCESSES must be auto or a whole number from 1 to 64, but is "${wrong}".`,
    ])
})

test('an empty variable means not set', () => {
  assert.deepEqual(config(Object.fromEntries(Object.values(SETTINGS).map(({ variable }) => [variable, '']))), config())
})

test('a database URL is validated with the settings, and errors do not contain its password', () => {
  const address = 'postgres://me:SECRET@db1.example.com,db2.example.com:5433/switchyard?target_session_attrs=read-write'
  assert.deepEqual(config({ SWITCHYARD_STORE: address }).store, { kind: 'postgres', url: address })
  const wrong: [address: string, says: RegExp][] = [
    ['postgres://me:SECRET@db:port/x', /invalid host or port/],
    ['postgres://me:SECRET@db/x?sslmode=perhaps', /sslmode in the PostgreSQL URL must be one of/],
    ['postgres://me:SECRET@db/x?pool=5', /unknown parameter: pool/],
    ['postgres://me:SECRET@db/x?target_session_attrs=standby', /target_session_attrs in the PostgreSQL URL must be/],
    ['postgres://me:SECRET%@db/x', /not URL-encoded correctly/],
    ['postgres://me:5/SECRET@db/x', /write \/ as %2F/],
    ['postgres://me:5?SECRET@db/x', /write \/ as %2F/],
    ['postgres://me:5?SECRET&more=SECRET@db/x', /write \/ as %2F/],
    ['postgres://me:SECRET#@db/x', /must have the form/],
  ]
  for (const [text, says] of wrong) {
    const [message = '', ...others] = problems({ SWITCHYARD_STORE: text })
    assert.deepEqual(others, [], text)
    assert.match(message, /^SWITCHYARD_STORE: /)
    assert.match(message, says)
    assert.doesNotMatch(message, /SECRET/)
  }
})

test('a flag overrides the variable', () => {
  const env = { SWITCHYARD_PORT: '1', SWITCHYARD_HOST: '192.0.2.1' }
  const { port, host, lenientKeys } = config(env, { port: '2', host: '0.0.0.0', 'lenient-keys': 'true' })
  assert.deepEqual({ port, host, lenientKeys }, { port: 2, host: '0.0.0.0', lenientKeys: true })
  assert.equal(config({ SWITCHYARD_LENIENT_KEYS: '1' }, { 'lenient-keys': 'off' }).lenientKeys, false)
})

const refused: [variable: string, text: string, expected: RegExp][] = [
  ['SWITCHYARD_INTEGRATIONS_GATEWAY', 'gateway', /a host and a port/],
  ['SWITCHYARD_INTEGRATIONS_GATEWAY', 'gateway:99999', /a host and a port/],
  ['SWITCHYARD_INTEGRATIONS_GATEWAY', 'http://gateway:80', /a host and a port/],
  ['SWITCHYARD_INTEGRATION_HOSTS', '0', /auto or a whole number from 1 to 64/],
  ['SWITCHYARD_METRICS', 'public', /one of auto, open, token, off/],
  ['SWITCHYARD_HOST', 'http://localhost', /an IP address or a host name, but is "http:\/\/localhost"/],
  ['SWITCHYARD_HOST', '300.1.1.1', /an IP address or a host name/],
  ['SWITCHYARD_PORT', 'http', /a whole number from 0 to 65535, but is "http"/],
  ['SWITCHYARD_PORT', '65536', /a whole number from 0 to 65535/],
  ['SWITCHYARD_PORT', '-1', /a whole number/],
  ['SWITCHYARD_PORT', '8080.5', /a whole number/],
  ['SWITCHYARD_PORT', '0x50', /a whole number/],
  ['SWITCHYARD_STORE', 'mysql://db', /sqlite:PATH or postgres:\/\/…/],
  ['SWITCHYARD_STORE', './data/switchyard.db', /sqlite:PATH/],
  ['SWITCHYARD_STORE', 'sqlite:', /where PATH is the path of a file/],
  ['SWITCHYARD_STORE', 'sqlite::memory:', /where PATH is the path of a file/],
  ['SWITCHYARD_STORE', 'sqlite://data/x.db', /write the path without \/\/ before it/],
  ['SWITCHYARD_ALLOW_ADDRESSES', '10.0.0.0/33', /address ranges such as 10\.0\.0\.0\/8/],
  ['SWITCHYARD_ALLOW_ADDRESSES', '10.0.0.0/8,localhost', /address ranges/],
  ['SWITCHYARD_ALLOW_ADDRESSES', '::1/129', /address ranges/],
  ['SWITCHYARD_ALLOW_ADDRESSES', '10.0.0.0/', /address ranges/],
  ['SWITCHYARD_ALLOW_ADDRESSES', 'fe80::1%eth0', /address ranges/],
  ['SWITCHYARD_RETENTION_DAYS', '0', /a whole number from 1 to 3650/],
  ['SWITCHYARD_LOG', 'loud', /one of trace, debug, info, warn, error, fatal, silent/],
  ['SWITCHYARD_LENIENT_KEYS', 'maybe', /1 or 0/],
  ['SWITCHYARD_RATE_LIMIT', 'fast', /a whole number of messages per second, or off/],
]
for (const [variable, text, expected] of refused) {
  test(`rejects ${variable}=${text} with the name of the setting and what is expected`, () => {
    const [message, ...others] = problems({ [variable]: text })
    assert.deepEqual(others, [])
    assert.ok(message?.startsWith(`${variable} must be `), message)
    assert.match(message ?? '', expected)
  })
}

test('an invalid secret is not quoted', () => {
  assert.doesNotMatch(problems({ SWITCHYARD_ADMIN_TOKEN: 'hush hush' }).join(), /hush/)
})

test('all problems are reported together', () => {
  assert.equal(problems({ SWITCHYARD_PORT: 'x', SWITCHYARD_LOG: 'y' }, { 'retention-days': 'z', host: '' }).length, 4)
})

test('a problem with a flag names the flag', () => {
  assert.match(problems({ SWITCHYARD_PORT: '1' }, { port: 'x' })[0] ?? '', /^--port must be /)
})

test('a flag with an empty value is rejected', () => {
  assert.deepEqual(problems({}, { port: '' }), ['--port needs a value: --port PORT.'])
  assert.deepEqual(problems({}, { 'lenient-keys': '' }), ['--lenient-keys needs a value: --lenient-keys=true.'])
})

test('a mistyped variable causes a warning, a variable of another program does not', () => {
  const result = readConfig({ SWITCHYARD_PROT: '1', SWITCHYARD_WRITE_KEY: 'k', SWITCHYARD_URL: 'u', SWITCHYARD_TOKEN: 't', PATH: '/bin' })
  assert.equal(result.kind, 'config')
  const warnings = result.kind === 'config' ? result.warnings : []
  assert.deepEqual(warnings, ['SWITCHYARD_PROT is not a setting and is ignored. Did you mean SWITCHYARD_PORT?'])
})

test('an absolute SQLite path may be written as a URL', () => {
  assert.deepEqual(config({ SWITCHYARD_STORE: 'sqlite:///var/lib/x.db' }).store, { kind: 'sqlite', path: '/var/lib/x.db' })
})

test('a short admin token is rejected if other machines can reach the service, and accepted on loopback', () => {
  assert.equal(config({ SWITCHYARD_ADMIN_TOKEN: 'short' }).adminToken, 'short')
  assert.equal(config({ SWITCHYARD_ADMIN_TOKEN: 'sixteen-letters!', SWITCHYARD_HOST: '0.0.0.0' }).adminToken, 'sixteen-letters!')
  const reachable = [
    { SWITCHYARD_HOST: '0.0.0.0' },
    { SWITCHYARD_HOST: '127.events.example' },
    { SWITCHYARD_PUBLIC_URL: 'https://events.example' },
  ]
  for (const env of reachable) {
    const [message = ''] = problems({ ...env, SWITCHYARD_ADMIN_TOKEN: 'fifteen-letters' })
    assert.match(message, /^SWITCHYARD_ADMIN_TOKEN is too short: .* at least 16 /)
    assert.doesNotMatch(message, /fifteen-letters/)
  }
  assert.match(problems({ SWITCHYARD_HOST: '0.0.0.0' }, { 'admin-token': 'x' })[0] ?? '', /^--admin-token is too short/)
})

test('on loopback behind a proxy, each default that is meant for a single machine causes a warning until it is set', () => {
  const warnings = (env: Environment): string[] => {
    const result = readConfig(env)
    assert.equal(result.kind, 'config', JSON.stringify(result))
    return result.kind === 'config' ? result.warnings : []
  }
  assert.deepEqual(warnings({}), [])
  assert.deepEqual(warnings({ SWITCHYARD_HOST: '0.0.0.0', SWITCHYARD_TRUSTED_PROXIES: '10.0.0.1' }), [])
  const proxied = { SWITCHYARD_TRUSTED_PROXIES: '127.0.0.1' }
  assert.deepEqual(
    warnings({ ...proxied, SWITCHYARD_ADMIN_TOKEN: 'short' }).map((warning) => /SWITCHYARD_[A-Z_]+/.exec(warning)?.[0]),
    ['SWITCHYARD_PRIVATE_ADDRESSES', 'SWITCHYARD_METRICS', 'SWITCHYARD_ADMIN_TOKEN'],
  )
  assert.deepEqual(warnings({ ...proxied, SWITCHYARD_PRIVATE_ADDRESSES: 'refuse', SWITCHYARD_METRICS: 'token' }), [])
})

test('the public URL must be an origin', () => {
  for (const wrong of [
    'events.example',
    'ftp://events.example',
    'https://events.example/path',
    'https://me:pw@events.example',
    'https://e.example?x',
  ]) {
    assert.match(
      problems({ SWITCHYARD_PUBLIC_URL: wrong })[0] ?? '',
      /^SWITCHYARD_PUBLIC_URL must be an http or https address without a path/,
    )
  }
})

const OIDC = {
  SWITCHYARD_PUBLIC_URL: 'http://localhost:8080',
  SWITCHYARD_OIDC_ISSUER: 'http://127.0.0.1:9090/realms/main',
  SWITCHYARD_OIDC_CLIENT_ID: 'switchyard',
  SWITCHYARD_OIDC_CLIENT_SECRET: 'a client secret',
  SWITCHYARD_OIDC_ROLES: '[{ "claim": "groups", "value": "data-eng", "role": "editor", "sources": ["shop"] }]',
}

test('single sign-on that is set up by half is refused, with what is missing', () => {
  assert.equal(readConfig(OIDC).kind, 'config')
  for (const left of Object.keys(OIDC)) {
    const result = readConfig({ ...OIDC, [left]: '' })
    assert.equal(result.kind, 'problems', left)
    assert.match(
      result.kind === 'problems' ? result.problems.map(({ message }) => message).join() : '',
      new RegExp(`${left}.* must be set, because SWITCHYARD_OIDC_`),
    )
  }
  const both = readConfig({ ...OIDC, SWITCHYARD_OIDC_CLIENT_SECRET_FILE: '/run/secret' })
  assert.match(both.kind === 'problems' ? String(both.problems[0]?.message) : '', /are both set/)
})

test('unreadable settings of single sign-on are refused with a sentence that quotes no secret', () => {
  for (const [variable, text, expected] of [
    ['SWITCHYARD_OIDC_ISSUER', 'http://login.example.com', /must be an https address/],
    ['SWITCHYARD_OIDC_ISSUER', 'https://login.example.com/?a=b', /must be an https address/],
    ['SWITCHYARD_OIDC_ISSUER', 'http://127.0.0.1.example.com/', /must be an https address/],
    ['SWITCHYARD_OIDC_SCOPES', 'email', /with openid among them/],
    ['SWITCHYARD_OIDC_GRACE', '-1', /whole number/],
    ['SWITCHYARD_OIDC_ROLES', '{', /must be a list in YAML or JSON/],
    ['SWITCHYARD_OIDC_ROLES', '[]', /must be a list in YAML or JSON/],
    ['SWITCHYARD_OIDC_ROLES', '[{ "claim": "groups", "value": "a", "role": "boss", "sources": "all" }]', /entry 1 needs a role/],
    ['SWITCHYARD_OIDC_ROLES', '[{ "claim": "groups", "value": "a", "role": "viewer" }]', /entry 1 needs sources/],
    [
      'SWITCHYARD_OIDC_ROLES',
      '[{ "claim": "groups", "value": "a", "role": "admin", "sources": ["shop"] }]',
      /role admin, so its sources must be "all"/,
    ],
    ['SWITCHYARD_OIDC_ROLES', '[{ "claim": "groups", "value": 7, "role": "viewer", "sources": "all" }]', /entry 1 needs a value/],
    ['SWITCHYARD_OIDC_ROLES', '[{ "claim": "groups", "value": "a", "role": "viewer", "sources": "all", "x": 1 }]', /unknown field "x"/],
  ] as const) {
    const result = readConfig({ ...OIDC, [variable]: text })
    assert.match(result.kind === 'problems' ? result.problems.map(({ message }) => message).join() : 'no problem', expected, text)
  }
})
