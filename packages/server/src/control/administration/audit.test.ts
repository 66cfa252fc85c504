import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { Readable } from 'node:stream'
import test, { type TestContext } from 'node:test'
import { writeStoredBody } from '../../store/port/stored-messages.ts'
import type { Backup } from '../../store/store.ts'
import { controlRoutes } from '../control.ts'
import { waitingKey } from '../fixtures/ordered.ts'
import { SAVED_QUERIES } from '../fixtures/saved-queries.ts'
import { type Answer, accept, type Fixture, settleAll, startControl, TOKEN } from '../fixtures/start-control.ts'
import type { OperatorTools } from '../routes/operator-tools.ts'

const SIGNING = `whsec_${Buffer.from('SECRET-signing-secret-of-a-test').toString('base64')}`
const DESTINATION = {
  name: 'Hook',
  urls: ['https://example.com/hook?key=SECRET-url&plain'],
  headers: { Authorization: 'Bearer SECRET-header', 'X-Api-Key': 'SECRET-key' },
  sharedSecret: 'SECRET-shared',
  signingSecrets: [SIGNING],
}
const PEM = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()

const PLAN = { name: 'Plan', rules: [] }

/** The audit entry that each route writes, and a call that makes it write the entry. */
interface Recipe {
  action: string
  run: (fixture: Fixture) => Promise<Answer>
}

const made = async ({ call }: Fixture, path: string, body: object): Promise<Answer['body']> => {
  const answer = await call('POST', `/api${path}`, body)
  assert.ok(answer.status < 300, `${path}: ${answer.text}`)
  return answer.body
}
const madeLake = (fixture: Fixture, name: string) =>
  made(fixture, '/destinations', { type: 'warehouse', name, warehouse: { engine: 'parquet', url: `file:///${name}` } })
const PLACE = { engine: 'postgres', url: 'postgres://ada:secret-of-ada@db.example/d' }
const NEW_WAREHOUSE = { type: 'warehouse', name: 'New', warehouse: PLACE }
const source = (fixture: Fixture) => made(fixture, '/sources', { name: 'Shop' })
const destination = (fixture: Fixture) => made(fixture, '/destinations', DESTINATION)
const app = (fixture: Fixture, keys: object[] = []) => made(fixture, '/oauth-apps', { name: 'App', keys })

async function openIncident(fixture: Fixture): Promise<string> {
  const subject = { kind: 'node', id: 'n', name: 'n' }
  const times = { sinceMs: 1, openedAtMs: 2, closedAtMs: null, openingToldAtMs: null, closingToldAtMs: null }
  const doc = {
    id: 'inc_1',
    rule: 'node_lost',
    subject,
    state: 'open',
    ...times,
    details: {},
    message: 'm',
    closedMessage: null,
    link: '/',
  }
  await fixture.store.documents.update('incident', [], () => new Map([['current/node_lost/n', { atMs: 2, doc }]]))
  return 'inc_1'
}

async function failedDelivery(fixture: Fixture): Promise<{ destinationId: string; deliveryId: string }> {
  const { id: sourceId } = await source(fixture)
  const { id: destinationId } = await made(fixture, '/destinations', { ...DESTINATION, sourceIds: [sourceId] })
  const shipments = [{ destinationId, indexes: null }]
  await accept(fixture.store, sourceId, [{ type: 'track', event: 'e', userId: 'SECRET-user', messageId: sourceId }], {
    shipments,
    skips: [],
  })
  await settleAll(fixture, destinationId, 'failed', {
    url: 'https://example.com/hook',
    status: 400,
    reason: 'http_400',
    error: null,
    address: null,
    dnsMs: null,
    connectMs: null,
    tlsMs: null,
    firstByteMs: null,
    totalMs: 1,
    responseStart: null,
    version: 1,
    logs: null,
  })
  const { data } = (await fixture.call('GET', `/api/deliveries?destinationId=${destinationId}&state=failed`)).body
  return { destinationId, deliveryId: data[0].id }
}

/** Returns the id of a source with one message in quarantine. */
async function sourceWithQuarantine(fixture: Fixture): Promise<string> {
  const { id: sourceId } = await source(fixture)
  const items = [{ type: 'track', event: 'e', userId: 'SECRET-user', messageId: sourceId }]
  const about = { ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
  await fixture.store.ingest.accept({
    content: { sourceId, receivedAtMs: Date.now(), ...about, items },
    body: writeStoredBody({ batch: items }),
    messageIds: [sourceId],
    routing: { shipments: [], skips: [] },
    quarantined: [{ index: 0, planId: 'pln_1', violations: [] }],
  })
  return sourceId
}

async function session({ call }: Fixture): Promise<string> {
  const { headers } = await call('POST', '/api/login', { token: TOKEN }, { token: null })
  return headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

const RECIPES: Record<string, Recipe> = {
  'POST /sources': { action: 'source.create', run: ({ call }) => call('POST', '/api/sources', { name: 'Shop' }) },
  'PATCH /sources/:id': {
    action: 'source.update',
    run: async (fixture) => fixture.call('PATCH', `/api/sources/${(await source(fixture)).id}`, { enabled: false }),
  },
  'DELETE /sources/:id': {
    action: 'source.delete',
    run: async (fixture) => fixture.call('DELETE', `/api/sources/${(await source(fixture)).id}`),
  },
  'POST /sources/:id/write-keys': {
    action: 'source.add-write-key',
    run: async (fixture) => fixture.call('POST', `/api/sources/${(await source(fixture)).id}/write-keys`, {}),
  },
  'DELETE /sources/:id/write-keys/:key': {
    action: 'source.remove-write-key',
    run: async (fixture) => {
      const { id, writeKeys } = await source(fixture)
      await made(fixture, `/sources/${id}/write-keys`, {})
      return fixture.call('DELETE', `/api/sources/${id}/write-keys/${writeKeys[0]}`)
    },
  },
  'POST /destinations/:id/order/skip': {
    action: 'order.skip',
    run: async (fixture) => {
      const { destinationId } = await waitingKey(fixture, { userId: 'SECRET-user' })
      return fixture.call('POST', `/api/destinations/${destinationId}/order/skip`, { key: 'SECRET-user' })
    },
  },
  'POST /destinations/:id/order/retry': {
    action: 'order.retry',
    run: async (fixture) => {
      const { destinationId } = await waitingKey(fixture, { userId: 'SECRET-user' })
      return fixture.call('POST', `/api/destinations/${destinationId}/order/retry`, { key: 'SECRET-user' })
    },
  },
  'POST /destinations': { action: 'destination.create', run: ({ call }) => call('POST', '/api/destinations', DESTINATION) },
  'PATCH /destinations/:id': {
    action: 'destination.update',
    run: async (fixture) => {
      const change = { sharedSecret: 'SECRET-other', headers: { Authorization: 'SECRET-changed' } }
      return fixture.call('PATCH', `/api/destinations/${(await destination(fixture)).id}`, change)
    },
  },
  'DELETE /destinations/:id': {
    action: 'destination.delete',
    run: async (fixture) => fixture.call('DELETE', `/api/destinations/${(await destination(fixture)).id}`),
  },
  'POST /destinations/:id/test': {
    action: 'destination.test',
    run: async (fixture) => fixture.call('POST', `/api/destinations/${(await destination(fixture)).id}/test`, {}),
  },
  'POST /destinations/:id/retry': {
    action: 'destination.retry',
    run: async (fixture) => fixture.call('POST', `/api/destinations/${(await destination(fixture)).id}/retry`),
  },
  'POST /deliveries/:id/replay': {
    action: 'delivery.replay',
    run: async (fixture) => fixture.call('POST', `/api/deliveries/${(await failedDelivery(fixture)).deliveryId}/replay`),
  },
  'POST /deletions': {
    action: 'deletion.create',
    run: ({ call }) => call('POST', '/api/deletions', { userIds: ['SECRET-user'], suppress: true }),
  },
  'POST /suppressions': {
    action: 'suppression.create',
    run: async (fixture) => {
      await source(fixture)
      return fixture.call('POST', '/api/suppressions', { userIds: ['SECRET-user'] })
    },
  },
  'DELETE /suppressions': {
    action: 'suppression.delete',
    run: async (fixture) => {
      await source(fixture)
      await made(fixture, '/suppressions', { userIds: ['SECRET-user'] })
      return fixture.call('DELETE', '/api/suppressions?userId=SECRET-user')
    },
  },
  'POST /tokens': { action: 'token.create', run: ({ call }) => call('POST', '/api/tokens', { name: 'Ann' }) },
  'DELETE /tokens/:id': {
    action: 'token.delete',
    run: async (fixture) => fixture.call('DELETE', `/api/tokens/${(await made(fixture, '/tokens', { name: 'Ann' })).id}`),
  },
  'POST /login': { action: 'session.login', run: ({ call }) => call('POST', '/api/login', { token: TOKEN }, { token: null }) },
  'POST /logout': {
    action: 'session.logout',
    run: async (fixture) => {
      const headers = { cookie: await session(fixture), 'sec-fetch-site': 'same-origin' }
      return fixture.call('POST', '/api/logout', undefined, { token: null, headers })
    },
  },
  'POST /plans': { action: 'plan.create', run: ({ call }) => call('POST', '/api/plans', PLAN) },
  'PATCH /plans/:id': {
    action: 'plan.update',
    run: async (fixture) => fixture.call('PATCH', `/api/plans/${(await made(fixture, '/plans', PLAN)).id}`, { unplanned: 'observe' }),
  },
  'DELETE /plans/:id': {
    action: 'plan.delete',
    run: async (fixture) => fixture.call('DELETE', `/api/plans/${(await made(fixture, '/plans', PLAN)).id}`),
  },
  'POST /quarantine/release': {
    action: 'quarantine.release',
    run: async (fixture) => fixture.call('POST', '/api/quarantine/release', { sourceId: await sourceWithQuarantine(fixture) }),
  },
  'POST /quarantine/delete': {
    action: 'quarantine.delete',
    run: async (fixture) => fixture.call('POST', '/api/quarantine/delete', { sourceId: await sourceWithQuarantine(fixture) }),
  },
  'POST /oauth-apps': { action: 'oauth-app.create', run: ({ call }) => call('POST', '/api/oauth-apps', { name: 'App' }) },
  'PATCH /oauth-apps/:id': {
    action: 'oauth-app.update',
    run: async (fixture) => fixture.call('PATCH', `/api/oauth-apps/${(await app(fixture)).id}`, { name: 'Other' }),
  },
  'DELETE /oauth-apps/:id': {
    action: 'oauth-app.delete',
    run: async (fixture) => fixture.call('DELETE', `/api/oauth-apps/${(await app(fixture)).id}`),
  },
  'POST /oauth-apps/:id/keys': {
    action: 'oauth-app.add-key',
    run: async (fixture) => fixture.call('POST', `/api/oauth-apps/${(await app(fixture)).id}/keys`, { publicKeyPem: PEM }),
  },
  'DELETE /oauth-apps/:id/keys/:keyId': {
    action: 'oauth-app.remove-key',
    run: async (fixture) => fixture.call('DELETE', `/api/oauth-apps/${(await app(fixture, [{ id: 'k', publicKeyPem: PEM }])).id}/keys/k`),
  },
  'POST /oauth-apps/:id/revoke-tokens': {
    action: 'oauth-app.revoke-tokens',
    run: async (fixture) => fixture.call('POST', `/api/oauth-apps/${(await app(fixture)).id}/revoke-tokens`),
  },
  'PATCH /alerts': {
    action: 'alerts.update',
    run: (fixture) => fixture.call('PATCH', '/api/alerts', { rules: { node_lost: { enabled: false } } }),
  },
  'POST /alerts/mutes': { action: 'mute.create', run: (fixture) => fixture.call('POST', '/api/alerts/mutes', { minutes: 5 }) },
  'DELETE /alerts/mutes/:id': {
    action: 'mute.delete',
    run: async (fixture) => fixture.call('DELETE', `/api/alerts/mutes/${(await made(fixture, '/alerts/mutes', { minutes: 5 })).id}`),
  },
  'POST /incidents/:id/acknowledge': {
    action: 'incident.acknowledge',
    run: async (fixture) => fixture.call('POST', `/api/incidents/${await openIncident(fixture)}/acknowledge`, { note: 'on it' }),
  },
  'DELETE /incidents/:id/acknowledge': {
    action: 'incident.unacknowledge',
    run: async (fixture) => fixture.call('DELETE', `/api/incidents/${await openIncident(fixture)}/acknowledge`),
  },
  'POST /alerts/test': {
    action: 'alerts.test',
    run: async (fixture) => {
      await fixture.store.resources.ensureSystemSource()
      return fixture.call('POST', '/api/alerts/test')
    },
  },
  'POST /replays': {
    action: 'replay.create',
    run: async (fixture) => {
      const { destinationId } = await failedDelivery(fixture)
      return fixture.call('POST', '/api/replays', { destinationId, states: ['failed'] })
    },
  },
  'PATCH /replays/:id': {
    action: 'replay.update',
    run: async (fixture) => {
      const { destinationId } = await failedDelivery(fixture)
      const { id } = await made(fixture, '/replays', { destinationId, states: ['failed'], ratePerSecond: 1 })
      return fixture.call('PATCH', `/api/replays/${id}`, { state: 'paused' })
    },
  },
  'POST /destinations/:id/load': {
    action: 'destination.load',
    run: async (fixture) => fixture.call('POST', `/api/destinations/${(await madeLake(fixture, 'lake')).id}/load`, {}),
  },
  'POST /destinations/:id/upkeep': {
    action: 'destination.upkeep',
    run: async (fixture) => fixture.call('POST', `/api/destinations/${(await madeLake(fixture, 'kept')).id}/upkeep`, {}),
  },
  'POST /sql': {
    action: 'sql.query',
    run: async (fixture) => {
      const { id } = await madeLake(fixture, 'queried')
      return fixture.call('POST', '/api/sql', { query: 'select 1', destinationId: id })
    },
  },
  ...SAVED_QUERIES,
  'POST /warehouse/check': { action: 'warehouse.check', run: ({ call }) => call('POST', '/api/warehouse/check', NEW_WAREHOUSE) },
  'POST /warehouse/install': { action: 'warehouse.install', run: ({ call }) => call('POST', '/api/warehouse/install') },
  'POST /catalog/install': { action: 'catalog.install', run: ({ call }) => call('POST', '/api/catalog/install') },
  'POST /backups': { action: 'backup.create', run: ({ call }) => call('POST', '/api/backups') },
}

/** These routes change nothing that is stored, and send nothing to other services, except for a question to the tool of an integration. */
const NOT_NOTED = new Set([
  'POST /configuration/check',
  'DELETE /backups/:id',
  'POST /sources/:id/privacy/preview',
  'POST /destinations/:id/preview',
  'POST /destinations/:id/choices',
  'POST /catalog/:slug/choices',
  'POST /plans/learn',
])

/** These concern people. Their entries are tested in control/people/, with a provider. */
const OF_PEOPLE = ['POST /login/oidc/backchannel-logout', 'POST /login/cli', 'POST /login/cli/token', 'DELETE /people/:id/sessions']

const BACKUP: Backup = { id: 'b-1', state: 'copying', doneBytes: 0, totalBytes: 1, error: null, createdAtMs: 0 }

function start(t: TestContext): Promise<Fixture> {
  const backups = { start: () => BACKUP, get: () => BACKUP, open: () => Readable.from([]), remove: async () => true }
  const installation = { state: 'installing', done: 0, total: 1, error: null } as const
  const catalogInstaller = { state: () => installation, start: () => installation }
  const installed = { ...installation, state: 'installed' as const }
  const warehouseInstaller = { state: () => installed, start: () => installed }
  const queries = { run: async () => ({ columns: [], rows: [], truncated: false, warnings: [] }), tables: async () => [] }
  return startControl(t, { operatorTools: { backups } as unknown as OperatorTools, catalogInstaller, warehouseInstaller, queries })
}

async function entries({ call }: Fixture, query = ''): Promise<Answer['body'][]> {
  const { status, body, text } = await call('GET', `/api/audit?limit=1000${query}`)
  assert.equal(status, 200, text)
  return body.data
}

test('every route that changes something is in the list of this test', async (t) => {
  const names = controlRoutes((await start(t)).deps)
    .filter(({ method }) => method !== 'GET')
    .map(({ method, path }) => `${method} ${path}`)
  const missing = names.filter((name) => RECIPES[name] === undefined && !NOT_NOTED.has(name) && !OF_PEOPLE.includes(name))
  assert.deepEqual(missing, [], 'add its audit entry and a call to the table of this test')
  assert.deepEqual(
    [...Object.keys(RECIPES), ...NOT_NOTED, ...OF_PEOPLE].filter((name) => !names.includes(name)),
    [],
    'these routes are gone',
  )
})

test('every change has an audit entry with the actor, the action, and the values before and after', { timeout: 120_000 }, async (t) => {
  const fixture = await start(t)
  const routes = new Set(controlRoutes(fixture.deps).map(({ method, path }) => `${method} ${path}`))
  for (const [name, { action, run }] of Object.entries(RECIPES)) {
    if (!routes.has(name)) continue
    const known = new Set((await entries(fixture, `&action=${action}`)).map(({ id }) => id))
    const answer = await run(fixture)
    assert.ok(answer.status < 300, `${name}: ${answer.text}`)
    const added = (await entries(fixture, `&action=${action}`)).filter(({ id }) => !known.has(id))
    assert.equal(added.length, 1, `${name} writes one ${action}`)
    assert.deepEqual(added[0].actor, { id: 'admin', name: 'admin', type: 'token', owner: null }, name)
    assert.ok(Math.abs(Date.parse(added[0].at) - Date.now()) < 60_000)
  }
})

test('the audit log contains no secrets and no user ids', { timeout: 120_000 }, async (t) => {
  const fixture = await start(t)
  const routes = new Set(controlRoutes(fixture.deps).map(({ method, path }) => `${method} ${path}`))
  const secrets = [TOKEN, SIGNING, Buffer.from('SECRET-signing').toString('base64')]
  for (const [name, { run }] of Object.entries(RECIPES)) {
    if (!routes.has(name)) continue
    const { body, headers } = await run(fixture)
    if (typeof body?.token === 'string') secrets.push(body.token)
    for (const cookie of headers.getSetCookie())
      secrets.push(
        ...cookie
          .split(/[=;]/, 2)
          .slice(1)
          .filter((value) => value !== ''),
      )
  }
  for (const { hash } of fixture.store.configuration().tokens.values()) secrets.push(hash)
  assert.ok(secrets.length > 5)
  const text = JSON.stringify(await entries(fixture))
  assert.match(text, /"X-Api-Key":"\(hidden\)"/, 'the name of the header is shown')
  assert.match(text, /https:\/\/example\.com\/hook\?key=\(hidden\)/)
  assert.doesNotMatch(text, /SECRET/)
  for (const secret of secrets) assert.ok(!text.includes(secret))
})

test('the audit entry of a changed secret does not contain the secret', async (t) => {
  const fixture = await start(t)
  const { id } = await destination(fixture)
  const patch = (change: object): Promise<Answer> => fixture.call('PATCH', `/api/destinations/${id}`, change)
  await patch({ sharedSecret: 'SECRET-2', headers: { Authorization: 'SECRET-3', 'X-Api-Key': 'SECRET-key' } })
  await patch({ signingSecrets: [], urls: ['https://example.com/hook?key=SECRET-4&plain'] })
  await patch({ name: 'Renamed', urls: ['https://example.com/other'] })
  const [renamed, second, first] = await entries(fixture, `&subject=${id}&action=destination.update`)
  assert.deepEqual(first.after.changedSecrets, ['sharedSecret', 'headers.Authorization'])
  assert.deepEqual(second.after.changedSecrets, ['signingSecrets', 'urls'])
  assert.deepEqual([second.before.signingSecretCount, second.after.signingSecretCount], [1, 0])
  assert.deepEqual([renamed.before.name, renamed.after.name, renamed.after.changedSecrets], ['Hook', 'Renamed', undefined])
})

test('rejected requests have no audit entry', async (t) => {
  const fixture = await start(t)
  const { id } = await source(fixture)
  const before = (await entries(fixture)).length
  const { token } = (await fixture.call('POST', '/api/tokens', { name: 'Vera', role: 'viewer' })).body
  for (const [method, path, body] of [
    ['POST', '/api/sources', { name: '' }],
    ['PATCH', '/api/sources/nothing', { enabled: false }],
    ['DELETE', '/api/tokens/admin', undefined],
    ['DELETE', '/api/suppressions?userId=nobody', undefined],
    ['POST', '/api/deletions', { userIds: [] }],
  ] as const) {
    await fixture.call(method, path, body)
  }
  await fixture.call('DELETE', `/api/sources/${id}`, undefined, { token })
  await fixture.call('POST', '/api/login', { token: 'wrong' }, { token: null })
  assert.equal((await entries(fixture)).length, before + 1, 'only the entry of the token')
})

test('the audit log can be filtered by actor, action, subject, time and user, and has pages', async (t) => {
  const fixture = await start(t)
  const { call } = fixture
  const ann = (await call('POST', '/api/tokens', { name: 'Ann', role: 'admin' })).body
  const shop = (await call('POST', '/api/sources', { name: 'Shop' }, { token: ann.token })).body
  await call('PATCH', `/api/sources/${shop.id}`, { enabled: false })
  await call('POST', '/api/suppressions', { userIds: ['u-1'] })
  await call('POST', '/api/suppressions', { userIds: ['u-2'] })
  const actions = async (query: string): Promise<string[]> => (await entries(fixture, query)).map(({ action }) => action)
  assert.deepEqual(await actions(`&actor=${ann.id}`), ['source.create'])
  assert.deepEqual(await actions(`&subject=${shop.id}`), ['source.update', 'source.create'])
  assert.deepEqual(await actions('&action=token.create'), ['token.create'])
  assert.deepEqual(await actions('&userId=u-1'), ['suppression.create'])
  assert.deepEqual(await actions('&userId=u-3'), [])
  assert.deepEqual(await actions('&from=2999-01-01T00:00:00.000Z'), [])
  assert.deepEqual(await actions('&to=2001-01-01T00:00:00.000Z'), [])
  assert.equal((await actions('&from=2001-01-01T00:00:00.000Z&to=2999-01-01T00:00:00.000Z')).length, 5)
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const { body }: Answer = await call('GET', `/api/audit?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`)
    seen.push(...body.data.map(({ id }: { id: string }) => id))
    cursor = body.next
  } while (cursor !== null)
  assert.deepEqual(
    seen,
    (await entries(fixture)).map(({ id }) => id),
  )
  const [named] = await entries(fixture, `&actor=${ann.id}`)
  assert.deepEqual(named.actor, { id: ann.id, name: 'Ann', type: 'token', owner: null })
  await call('DELETE', `/api/tokens/${ann.id}`)
  assert.equal((await entries(fixture, `&actor=${ann.id}`))[0].actor.name, 'Ann', 'even after the token was deleted')
})
