import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createCertificate } from '../../delivery/fixtures/certificates.ts'
import type { Previewed } from '../../delivery/previews/shown-requests.ts'
import type { DialReport } from '../../delivery/sender/http/dial-check.ts'
import { webhookOf } from '../../destinations/fixtures/webhook.ts'
import { openCatalog } from '../../installation/integrations-catalog.ts'
import { SQLITE_ONLY } from '../../store/fixtures/test-store.ts'
import type { IntegrationDestination } from '../../store/store.ts'
import { accept, STILL, settleAll, startControl } from '../fixtures/start-control.ts'
import type { OperatorTools } from '../routes/operator-tools.ts'
import type { Catalog } from '../routes/route.ts'
import { checkDestination, createUrlChecks, judgeDial } from './diagnose-destinations.ts'
import { checkSecretKey, judgeDisk } from './diagnose-files.ts'
import { checkInspection, checkRetention } from './diagnose-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'switchyard-diagnostics-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const keyPath = join(folder, 'test.db.key')
writeFileSync(keyPath, 'key', { mode: 0o600 })

const REACHED: DialReport = {
  reason: null,
  error: null,
  address: '192.0.2.1',
  dnsMs: 1,
  connectMs: 2,
  tlsMs: 3,
  certificateExpiresAtMs: null,
}
const installation = {
  version: '1.2.3',
  startedAtMs: 1_700_000_000_000,
  storePath: join(folder, 'test.db'),
  storePlace: join(folder, 'test.db'),
  nodeName: 'test',
  command: './switchyard',
  secretKey: { from: 'file', path: keyPath },
  retentionDays: 7,
} as const
const operatorTools: OperatorTools = { installation, dial: async () => REACHED, backups: null }

interface Check {
  name: string
  state: string
  message: string
  destinationId: string | null
  url: string | null
}

test('a healthy installation has only good results: store, ledger, disk, clock, key, and each URL of each destination', {
  skip: SQLITE_ONLY,
}, async (t) => {
  const { call } = await startControl(t, { operatorTools })
  const source = (await call('POST', '/api/sources', { name: 's' })).body
  const urls = ['https://a.example/1', 'https://b.example/2']
  const { id } = (await call('POST', '/api/destinations', { name: 'd', sourceIds: [source.id], urls })).body
  const { status, body } = await call('GET', '/api/diagnostics')
  assert.equal(status, 200)
  assert.deepEqual([body.version, body.startedAt, body.secretKeyPath], ['1.2.3', '2023-11-14T22:13:20.000Z', keyPath])
  const checks = body.checks as Check[]
  assert.deepEqual(
    checks.map(({ name }) => name),
    ['store_writable', 'store_integrity', 'ledger', 'retention', 'disk', 'clock', 'secret_key', 'destination', 'url', 'url'],
  )
  assert.deepEqual(
    checks.filter(({ state }) => state !== 'good'),
    [],
  )
  assert.deepEqual(
    checks.slice(-2).map(({ destinationId, url }) => [destinationId, url]),
    urls.map((url) => [id, url]),
  )
})

test('a URL that cannot be reached and an open circuit breaker are reported, with advice', async (t) => {
  const failing: OperatorTools = {
    ...operatorTools,
    dial: async () => ({
      ...REACHED,
      reason: 'connection_refused',
      error: 'The receiver refused the connection.',
      connectMs: null,
      tlsMs: null,
    }),
  }
  const health = {
    breaker: 'open',
    openSinceMs: 0,
    inFlight: 0,
    nextAttemptAtMs: null,
    held: null,
    failure: null,
    mostFrequentFailure: null,
    success: 0,
    latencyMs: null,
    urls: [],
  } as const
  const { call } = await startControl(t, { operatorTools: failing, delivery: { ...STILL, health: () => health } })
  const source = (await call('POST', '/api/sources', { name: 's' })).body
  await call('POST', '/api/destinations', { name: 'Warehouse', sourceIds: [source.id], urls: ['https://a.example/?token=t'] })
  const checks = (await call('GET', '/api/diagnostics')).body.checks as (Check & { advice: string })[]
  const bad = checks.filter(({ state }) => state === 'bad')
  assert.deepEqual(
    bad.map(({ name }) => name),
    ['destination', 'url'],
  )
  assert.match(bad[0]?.message ?? '', /Warehouse"?: .*\. The circuit breaker is open/)
  assert.match(bad[1]?.message ?? '', /https:\/\/a\.example cannot be reached: The receiver refused the connection\./)
  assert.match(bad[1]?.advice ?? '', /No program listens on this port/)
  assert.equal(bad[1]?.message.includes('token'), false)
})

test('the ledger is compared with its recount after messages were delivered and failed', async (t) => {
  const fixture = await startControl(t, { operatorTools })
  const { call, store } = fixture
  const source = (await call('POST', '/api/sources', { name: 's' })).body
  const { id } = (await call('POST', '/api/destinations', { name: 'd', sourceIds: [source.id], urls: ['https://a.example/'] })).body
  const request = {
    url: 'https://a.example/',
    status: 200,
    reason: null,
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
  }
  await accept(store, source.id, [{ type: 'track', event: 'e', userId: 'u', messageId: 'm-1' }], {
    shipments: [{ destinationId: id, indexes: null }],
  })
  await settleAll(fixture, id, 'delivered', request)
  const { checks } = (await call('GET', '/api/diagnostics')).body as { checks: Check[] }
  assert.deepEqual(
    checks.find(({ name }) => name === 'ledger'),
    {
      ...checks.find(({ name }) => name === 'ledger'),
      state: 'good',
      message: 'The ledger matches a recount of the rows: 1 destination.',
    },
  )
})

test('diagnostics are for admins, because they contain files and addresses of the installation', async (t) => {
  const { call } = await startControl(t, { operatorTools })
  const viewer = (await call('POST', '/api/tokens', { name: 'v', role: 'viewer' })).body
  const { status } = await call('GET', '/api/diagnostics', undefined, { token: viewer.token })
  assert.equal(status, 403)
})

// ── Single checks ──────────────────────────────────────────────────────────────────────────────────────────────────

const ROW = { destinationId: 'dst_1', owed: 3, delivered: 1, pending: 1, failed: 1, expired: 0, cancelled: 0 }
const NO_QUARANTINE = { quarantined: [], quarantineRecount: [] }
const WHOLE = { problems: [], ledger: [ROW], recount: [ROW], ...NO_QUARANTINE, oldestMessageAtMs: null, secretKeyIds: [], storedBytes: 1 }

test('a ledger that differs from its recount is bad, and so is one that does not add up', () => {
  const states = (inspection: Parameters<typeof checkInspection>[0]) =>
    checkInspection(inspection, []).map(({ name, state }) => `${name} ${state}`)
  assert.deepEqual(states(WHOLE), ['store_integrity good', 'ledger good'])
  assert.deepEqual(states({ ...WHOLE, ledger: [{ ...ROW, pending: 2 }] }), ['store_integrity good', 'ledger bad'])
  assert.deepEqual(states({ ...WHOLE, ledger: [] }), ['store_integrity good', 'ledger bad'])
  const odd = { ...ROW, owed: 4 }
  assert.deepEqual(states({ ...WHOLE, ledger: [odd], recount: [odd] }), ['store_integrity good', 'ledger bad'])
  assert.deepEqual(states({ ...WHOLE, quarantined: [{ sourceId: 'src_1', quarantined: 2 }] }), ['store_integrity good', 'ledger bad'])
  assert.deepEqual(states({ ...WHOLE, problems: ['row 1 missing'] }), ['store_integrity bad'])
  assert.deepEqual(states(undefined), ['store_integrity unknown', 'ledger unknown'])
})

test('retention that does not keep up is a warning', () => {
  const days = (count: number) => checkRetention({ ...WHOLE, oldestMessageAtMs: 0 }, 7, count * 86_400_000).state
  assert.deepEqual([days(7), days(8), days(10)], ['good', 'good', 'warning'])
  assert.equal(checkRetention(undefined, 7, 0).state, 'unknown')
})

test('a full disk is bad, and a disk without space for a backup is a warning', () => {
  const GIB = 1024 ** 3
  assert.deepEqual(
    [judgeDisk(100 * GIB, GIB), judgeDisk(GIB, 2 * GIB), judgeDisk(1024, 10)].map(({ state }) => state),
    ['good', 'warning', 'bad'],
  )
})

test('a key that others can read is bad, and so is a missing one', { skip: process.platform === 'win32' }, async () => {
  assert.equal((await checkSecretKey(installation)).state, 'good')
  chmodSync(keyPath, 0o644)
  const open = await checkSecretKey(installation)
  chmodSync(keyPath, 0o600)
  assert.deepEqual([open.state, open.advice], ['bad', `chmod 600 ${keyPath}`])
  assert.equal((await checkSecretKey({ ...installation, secretKey: { from: 'file', path: join(folder, 'gone') } })).state, 'bad')
  assert.equal((await checkSecretKey({ ...installation, secretKey: { from: 'environment' } })).state, 'good')
})

test('a certificate that expires soon is a warning', () => {
  const inDays = (days: number) => judgeDial('https://a.example', { ...REACHED, certificateExpiresAtMs: days * 86_400_000 }, 0).state
  assert.deepEqual([inDays(13), inDays(15)], ['warning', 'good'])
  assert.equal(judgeDial('https://a.example', null, 0).state, 'unknown')
})

test('each origin is dialled once, eight at a time, and none after the deadline', async () => {
  let running = 0
  let most = 0
  const dialled: string[] = []
  const check = createUrlChecks(async (url) => {
    dialled.push(new URL(url).host)
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    return REACHED
  }, 60_000)
  await Promise.all(Array.from({ length: 60 }, (_, index) => check(`https://h${index % 20}.example/${index}`, 5_000, null)))
  assert.equal(dialled.length, 20)
  assert.equal(most, 8)
  assert.equal((await createUrlChecks(async () => REACHED, 0)('https://a.example/', 5_000, null)).state, 'unknown')
})

test('pending deliveries of a disabled or paused destination, or older than an hour, are a warning', () => {
  const destination = webhookOf({ name: 'd' })
  const HOUR = 3_600_000
  assert.equal(checkDestination(destination, undefined, 0, null, HOUR).state, 'good')
  assert.equal(checkDestination(destination, undefined, 5, 0, 2 * HOUR).state, 'warning')
  assert.equal(checkDestination({ ...destination, enabled: false }, undefined, 5, 0, 1).state, 'warning')
  assert.equal(checkDestination({ ...destination, enabled: false }, undefined, 0, null, 1).state, 'good')
  assert.deepEqual(checkDestination({ ...destination, paused: true }, { breaker: 'open', failure: null }, 5, 0, 1), {
    state: 'warning',
    message: 'd is paused; 5 pending, the oldest since 1970-01-01T00:00:00.000Z.',
    advice: 'The backlog grows until the destination is resumed. To resume it, run: switchyard destinations resume dst_1',
  })
  assert.equal(checkDestination({ ...destination, paused: true }, undefined, 0, null, 1).state, 'warning')
  assert.match(checkDestination({ ...destination, enabled: false, paused: true }, undefined, 1, 0, 1).message, /disabled/)
})

test('a destination that fails, or has old deliveries, is reported with the reason of its last attempt and where the others are', () => {
  const destination = webhookOf({ id: 'dst_1', name: 'd' })
  const failure = { reason: 'connection_refused', error: 'The receiver refused the connection.' }
  const advice = 'To see the reason of the last attempt of each delivery, run: switchyard deliveries --destination dst_1 --state pending'
  const open = checkDestination(destination, { breaker: 'open', failure }, 5, null, 1)
  assert.deepEqual([open.state, open.advice], ['bad', advice])
  assert.match(open.message, /: The receiver refused the connection; 5 pending\. The circuit breaker is open, /)
  const old = checkDestination(destination, { breaker: 'closed', failure }, 5, 0, 7_200_000)
  assert.deepEqual([old.state, old.advice], ['warning', advice])
  assert.match(old.message, /: The receiver refused the connection; 5 pending, /)
})

test('a token endpoint that refuses, and a client certificate that expires soon, are reported', () => {
  const destination = webhookOf({ name: 'd' })
  const failure = {
    reason: 'auth_refused',
    error: 'The token endpoint auth.example refused to issue an access token (401, invalid_client).',
  }
  const refused = checkDestination(destination, { breaker: 'open', failure }, 2, null, 1)
  assert.deepEqual([refused.state, refused.message], ['bad', `d: ${failure.error} Nothing is sent without an access token; 2 pending.`])
  assert.match(refused.advice ?? '', /client secret/)
  const { cert, key } = createCertificate({ commonName: 'd', notAfter: '20300115000000Z' })
  const withTls = { ...destination, tls: { certificate: cert, privateKey: key, ca: null } }
  const stateAt = (time: string) => checkDestination(withTls, undefined, 0, null, Date.parse(time))
  assert.equal(stateAt('2029-12-31T00:00:00Z').state, 'good')
  assert.equal(stateAt('2030-01-10T00:00:00Z').message, 'd: the client certificate expires at 2030-01-15T00:00:00.000Z.')
  assert.deepEqual([stateAt('2030-01-10T00:00:00Z').state, stateAt('2030-01-16T00:00:00Z').state], ['warning', 'bad'])
})

test('URLs of destinations with own certificates are checked with them, each by itself', async () => {
  const seen: (object | null | undefined)[] = []
  const check = createUrlChecks(async (_url, _timeoutMs, tls) => {
    seen.push(tls)
    return REACHED
  }, 60_000)
  const own = { certificate: null, privateKey: null, ca: 'x' }
  for (const tls of [null, own, null, own]) await check('https://a.example/', 5_000, tls)
  assert.deepEqual(seen, [null, own, own])
})

test('an integration is not connected to: its settings, its subscriptions and whether it can run are checked', async (t) => {
  const dialled: string[] = []
  const dial: OperatorTools['dial'] = async (url) => {
    dialled.push(url)
    return REACHED
  }
  let isInstalled = true
  let previewed: Previewed[] = []
  const catalog = async (): Promise<Catalog | null> => (isInstalled ? await openCatalog('nowhere') : null)
  const delivery = { ...STILL, preview: async () => previewed }
  const { call, store } = await startControl(t, { operatorTools: { ...operatorTools, dial }, catalog, delivery })
  const settings = { apiKey: 'a', secretKey: 's', endpoint: 'north_america' }
  const body = { type: 'integration', integration: 'actions-amplitude', name: 'Amplitude', settings }
  const { id } = (await call('POST', '/api/destinations', body)).body
  const said = async (): Promise<[state: string | undefined, message: string]> => {
    const checks = (await call('GET', '/api/diagnostics')).body.checks as Check[]
    const found = checks.find(({ name }) => name === 'integration')
    assert.deepEqual([found?.destinationId, found?.url], [id, null])
    assert.ok(!checks.some(({ name }) => name === 'url'))
    return [found?.state, found?.message ?? '']
  }
  assert.deepEqual(await said(), ['good', 'Amplitude (actions-amplitude) can run: its settings are complete, and its code was loaded.'])
  previewed = [{ kind: 'failed', reason: 'not_run', error: 'The host ended.', logs: null }]
  assert.deepEqual(await said(), ['bad', 'Amplitude (actions-amplitude) cannot run: The host ended.'])
  const { subscriptions } = store.configuration().destinations.get(id) as IntegrationDestination
  const disabled = subscriptions.map((subscription) => ({ ...subscription, enabled: false }))
  await store.resources.updateDestination(id, { subscriptions: disabled })
  assert.deepEqual(await said(), ['warning', 'Amplitude (actions-amplitude) has no enabled subscription, so no message is sent to it.'])
  await store.resources.updateDestination(id, { subscriptions })
  // Settings that were complete when they were saved may not be after an upgrade of the catalogue.
  const patched = await store.resources.updateDestination(id, { settings: { secretKey: 's' } })
  assert.ok(patched)
  const [state, message] = await said()
  assert.equal(state, 'bad')
  assert.match(message, /settings\.apiKey is required\./)
  isInstalled = false
  assert.match((await said())[1], /the integrations package is not installed/)
  assert.deepEqual(dialled, [])
})
