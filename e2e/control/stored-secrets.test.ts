// An admin cannot read stored secrets back. Every kind of secret has a value that occurs nowhere else, receivers send back everything they get, and
// then an admin reads all that can be read: every route, previews, tests, attempts, versions, the export, the audit log, a backup, errors, SQL, the
// live view, metrics and the log. No answer has one of the values, in any usual encoding, and nor has the store.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Browser, CLIENT } from '../../packages/server/src/control/people/fixtures/identity-provider.ts'
import { startScriptedProvider } from '../../packages/server/src/control/people/fixtures/scripted-provider.ts'
import { createCertificate } from '../../packages/server/src/delivery/fixtures/certificates.ts'
import { type Service, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { newAddress, startServiceAt } from './single-sign-on/service.ts'

const certificate = createCertificate({ commonName: 'client' })
const SIGNING = Buffer.from('Canary5signing-secret-of-24b').toString('base64')
const SECRETS = {
  'secrets of a webhook': 'Canary1-webhook-secret',
  'shared secret': 'Canary2-shared-secret',
  'password of basic': 'Canary3-basic-password',
  'bearer token': 'Canary4-bearer-token',
  'signing secret': SIGNING,
  'private key': certificate.key.split('\n')[1] ?? '',
  'client secret of oauth2': 'Canary6-client-secret',
  'access token of oauth2': 'Canary7-access-token',
  'secret setting of an integration': 'Canary8-integration-key',
  'password of ClickHouse': 'Canary9-clickhouse-password',
  'password of PostgreSQL': 'Canary10-postgres-password',
  'secret key of a bucket': 'Canary11-bucket-secret',
  'client secret of single sign-on': 'Canary12-oidc-client-secret',
  'access token of a person': 'Canary13-access-token-of-a-person',
  'refresh token of a person': 'Canary14-refresh-token-of-a-person',
  'key of the installation': 'Canary15-secret-key-of-the-installation',
} as const

/** Sends back the request, as an error in the form that ClickHouse uses, or as a token endpoint if it is asked for a token. */
async function startEcho(t: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    void (async () => {
      let body = ''
      for await (const part of request) body += String(part)
      if (request.url?.startsWith('/token') === true) {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ access_token: SECRETS['access token of oauth2'], token_type: 'Bearer', expires_in: 3_600 }))
        return
      }
      const isClickHouse = request.headers['x-clickhouse-user'] !== undefined
      response.writeHead(isClickHouse || request.url?.includes('fail') === true ? 500 : 200)
      const given = `${request.url} ${JSON.stringify(request.headers)}`
      response.end(isClickHouse ? `Code: 1. DB::Exception: ${given}` : `${given} ${body}`)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function destinationsAt(echo: string, folder: string): Record<string, object> {
  const port = Number(new URL(echo).port)
  const request = {
    path: '/{{secrets.token}}',
    headers: { 'X-Own': '{{secrets.token}}' },
    body: { token: { '@path': '$.secrets.token' }, user: { '@template': '{{secrets.token}} {{userId}}' } },
  }
  const secrets = { token: SECRETS['secrets of a webhook'] }
  const load = { everyMs: 1_000 }
  const retry = { initialMs: 100, maxMs: 500 }
  const lake = join(folder, 'lake')
  mkdirSync(lake, { recursive: true })
  return {
    basic: {
      urls: [`${echo}/basic`],
      secrets,
      request,
      sharedSecret: SECRETS['shared secret'],
      signingSecrets: [`whsec_${SIGNING}`],
      auth: { type: 'basic', username: 'user', password: SECRETS['password of basic'] },
    },
    tls: {
      urls: [`${echo.replace('http:', 'https:')}/tls`],
      tls: { certificate: certificate.cert, privateKey: certificate.key },
    },
    bearer: { urls: [`${echo}/fail`], secrets, request, auth: { type: 'bearer', token: SECRETS['bearer token'] }, retry },
    oauth: {
      urls: [`${echo}/oauth`],
      auth: { type: 'oauth2', tokenUrl: `${echo}/token`, clientId: 'client', clientSecret: SECRETS['client secret of oauth2'] },
    },
    integration: {
      type: 'integration',
      integration: 'actions-amplitude',
      enabled: false,
      settings: { apiKey: SECRETS['secret setting of an integration'], secretKey: SECRETS['secret setting of an integration'] },
    },
    clickhouse: {
      type: 'warehouse',
      warehouse: { engine: 'clickhouse', url: echo, database: 'db', user: 'loader', password: SECRETS['password of ClickHouse'] },
      load,
      retry,
    },
    postgres: {
      type: 'warehouse',
      warehouse: { engine: 'postgres', url: `postgres://loader:${SECRETS['password of PostgreSQL']}@127.0.0.1:${port}/db` },
      load,
      retry,
    },
    bucket: {
      type: 'warehouse',
      warehouse: {
        engine: 'parquet',
        url: 's3://bucket/prefix',
        endpoint: echo,
        region: 'eu-west-1',
        accessKeyId: 'AKIDEXAMPLE',
        secretAccessKey: SECRETS['secret key of a bucket'],
        pathStyle: true,
      },
      load,
      retry,
    },
    lake: { type: 'warehouse', warehouse: { engine: 'parquet', url: pathToFileURL(lake).href }, load, retry },
  }
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const withUser = Buffer.from(`user:${secret}`)
  const forms = [
    secret,
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    encodeURIComponent(secret),
  ]
  return [...forms, withUser.toString('base64').replace(/=+$/, ''), JSON.stringify(secret).slice(1, -1)]
}

function assertWithout(text: string, where: string): void {
  for (const [what, secret] of Object.entries(SECRETS))
    for (const form of formsOf(secret)) {
      const at = text.indexOf(form)
      assert.equal(at, -1, `${where} has the ${what}: ${text.slice(Math.max(0, at - 150), at + 100)}`)
    }
}

interface Api {
  paths: Record<string, Record<string, unknown>>
}

test('an admin cannot read stored secrets back, by any way that the service has', async (t) => {
  const echo = await startEcho(t)
  const idp = await startScriptedProvider(t)
  Object.assign(idp, {
    secret: SECRETS['client secret of single sign-on'],
    accessToken: SECRETS['access token of a person'],
    refreshToken: SECRETS['refresh token of a person'],
  })
  await using service = await startServiceAt(await newAddress(), {
    issuer: idp.issuer,
    clientId: CLIENT.id,
    clientSecret: SECRETS['client secret of single sign-on'],
    roles: [{ claim: 'groups', value: 'data-eng', role: 'admin', sources: 'all' }],
    env: { SWITCHYARD_SECRET_KEY: SECRETS['key of the installation'] },
    log: 'debug',
  })
  const browser = new Browser()
  const begun = await browser.get(`${service.url}/api/login/oidc`)
  assert.equal((await browser.get(await browser.follow(begun.headers.get('location') ?? '', idp.issuer))).status, 303)
  const seen: string[] = []
  const call = async (
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; text: string; json: Record<string, unknown> }> => {
    const response = await fetch(`${service.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${service.token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const text = bytes.toString('latin1')
    assertWithout(text, `${method} ${path} → ${response.status}`)
    assertWithout(JSON.stringify([...response.headers]), `the headers of ${method} ${path}`)
    seen.push(`${response.status} ${method} ${path}`)
    const isJson = response.headers.get('content-type')?.includes('json') === true
    return { status: response.status, text, json: isJson ? (JSON.parse(bytes.toString('utf8')) as Record<string, unknown>) : {} }
  }
  const live = await startLive(service)

  const ids: Record<string, string> = {}
  for (const [name, settings] of Object.entries(destinationsAt(echo, service.folder))) {
    const { status, json } = await call('POST', '/api/destinations', { name, sourceIds: [service.sourceId], ...settings })
    assert.equal(status, 201, `${name}: ${JSON.stringify(json)}`)
    ids[name] = String(json['id'])
  }
  await service.send([track('m-1'), track('m-2')])
  const attempted = async (name: string): Promise<string> => {
    const found = await eventually(
      async () => (await service.deliveries(`destinationId=${ids[name]}`)).find(({ attemptCount }) => attemptCount > 0),
      (delivery) => delivery !== undefined,
      { what: `an attempt of ${name}`, state: service.stderr },
    )
    return found?.id ?? ''
  }
  const deliveries = await Promise.all(
    Object.keys(ids)
      .filter((name) => name !== 'integration')
      .map(attempted),
  )
  for (const id of deliveries) await call('GET', `/api/deliveries/${encodeURIComponent(id)}`)

  await alertEverybody(call, service, ids['basic'] ?? '')
  await checkWarehouses(call, destinationsAt(echo, service.folder), service.sourceId)
  await changeEverything(call, ids)
  const backup = (await call('POST', '/api/backups', {})).json
  await readEverything(call, [...Object.values(ids), ...deliveries, service.sourceId, 'm-1', String(backup['id'])])
  for (const query of [
    'select * from duckdb_secrets()',
    "select getenv('SWITCHYARD_SECRET_KEY')",
    "select * from read_text('/proc/self/environ')",
  ])
    await call('POST', '/api/sql', { query, destinationId: ids['lake'] })
  await call('GET', '/metrics')
  assert.ok(seen.filter((line) => line.startsWith('200 GET')).length > 60, seen.join('\n'))

  assertWithout(live.text(), 'the live view')
  live.stop()
  await service.stop()
  assertWithout(service.stderr(), 'the log')
  for (const [place, bytes] of await service.stored()) assertWithout(bytes.toString('latin1'), place)
})

type Call = (method: string, path: string, body?: unknown) => Promise<{ status: number; text: string; json: Record<string, unknown> }>

/** Tests, previews, changes that are refused and changes that move a destination to another server, each without the secrets. */
async function changeEverything(call: Call, ids: Record<string, string>): Promise<void> {
  const message = { type: 'track', userId: 'u', event: 'Tested' }
  const elsewhere = 'http://127.0.0.1:1'
  const changes: Record<string, object> = {
    clickhouse: { warehouse: { engine: 'clickhouse', url: elsewhere, database: 'db', user: 'loader' } },
    postgres: { warehouse: { engine: 'postgres', url: 'postgres://loader:(hidden)@127.0.0.1:1/db' } },
    bucket: { warehouse: { engine: 'parquet', url: 's3://bucket/prefix', endpoint: elsewhere, accessKeyId: 'AKIDEXAMPLE' } },
    integration: { settings: { endpoint: 'europe' } },
  }
  for (const [name, id] of Object.entries(ids)) {
    const path = `/api/destinations/${id}`
    for (const body of [{ message }, { message, changes: { name: 'x' } }, { message, changes: changes[name] ?? { urls: [elsewhere] } }])
      await call('POST', `${path}/preview`, body)
    await call('POST', `${path}/test`, {})
    await call('POST', `${path}/test`, { message })
    if (name !== 'lake') {
      const moved = await call('PATCH', path, changes[name] ?? { urls: [elsewhere] })
      if (!['integration', 'tls'].includes(name)) assert.equal(moved.json['code'], 'secrets_needed', `${name}: ${moved.text}`)
    }
    for (const body of [
      { auth: 7 },
      { auth: null, urls: [elsewhere] },
      { secrets: { token: '(hidden)' } },
      { warehouse: {} },
      { sharedSecret: 1 },
    ])
      await call('PATCH', path, body)
    await call('PATCH', path, { name: `${name} renamed` })
    await call('PATCH', path, { version: 1 })
    await call('POST', `${path}/choices`, { action: 'logEventV2', field: 'event_type' })
    await call('POST', `${path}/load`, {})
    await call('GET', `${path}/versions`)
  }
  const inAddress = { engine: 'clickhouse', url: `${elsewhere}/?password=x`, database: 'db', user: 'u', password: 'p' }
  const refused = await call('PATCH', `/api/destinations/${ids['clickhouse']}`, { warehouse: inAddress })
  assert.equal(refused.json['field'], 'warehouse.url', 'addresses are shown, so they have no credentials')
  const { yaml } = (await call('GET', '/api/configuration')).json
  await call('POST', '/api/configuration/check', { yaml })
  await call('POST', '/api/configuration/check', {
    destinations: Object.values(ids).map((id) => ({ id, settings: { name: 'x', urls: [elsewhere] } })),
  })
}

/** Receivers of alerts are destinations of the source system, and alerts have attempts and answers like other messages. */
async function alertEverybody(call: Call, service: Service, id: string): Promise<void> {
  const attached = await call('PATCH', `/api/destinations/${id}`, { sourceIds: [service.sourceId, 'system'] })
  assert.equal(attached.status, 200, attached.text)
  assert.equal((await call('POST', '/api/alerts/test', {})).status, 200)
  const alert = await eventually(
    async () => (await service.deliveries(`destinationId=${id}&event=Alert%20Test`)).find(({ attemptCount }) => attemptCount > 0),
    (delivery) => delivery !== undefined,
    { what: 'an attempt of the alert', state: service.stderr },
  )
  await call('GET', `/api/deliveries/${alert?.id}`)
}

/** The test of a warehouse that is not created yet: the server sends back the secret in its error. */
async function checkWarehouses(call: Call, destinations: Record<string, object>, sourceId: string): Promise<void> {
  for (const name of ['clickhouse', 'postgres', 'bucket', 'lake']) {
    const { status, text, json } = await call('POST', '/api/warehouse/check', { name, sourceIds: [sourceId], ...destinations[name] })
    assert.equal(status, 200, text)
    assert.equal(json['problem'] === null, name === 'lake', text)
  }
}

/** Every GET route of the API with every id, whether it fits or not. */
async function readEverything(call: Call, ids: readonly string[]): Promise<void> {
  const { paths } = (await call('GET', '/docs/openapi.json')).json as unknown as Api
  for (const [path, methods] of Object.entries(paths)) {
    if (methods['get'] === undefined || path === '/api/live' || path.startsWith('/api/login')) continue
    const places = path.includes('{') ? ids.map((id) => path.replaceAll(/\{\w+\}/g, encodeURIComponent(id))) : [path]
    for (const place of places) await call('GET', place)
  }
}

/** All that the live view shows from now on. */
async function startLive({ url, token }: Service): Promise<{ text: () => string; stop: () => void }> {
  const controller = new AbortController()
  const response = await fetch(`${url}/api/live`, { headers: { authorization: `Bearer ${token}` }, signal: controller.signal })
  assert.equal(response.status, 200)
  let text = ''
  const reading = (async () => {
    for await (const part of response.body ?? []) text += Buffer.from(part as Uint8Array).toString('utf8')
  })().catch(() => {})
  return {
    text: () => text,
    stop() {
      controller.abort()
      void reading
    },
  }
}
