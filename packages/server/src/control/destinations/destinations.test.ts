import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import test from 'node:test'
import { generateSecret } from '@switchyard/webhook'
import type { DestinationHealth, TestAttempt } from '../../delivery/delivery.ts'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { accept, STILL, startControl } from '../fixtures/start-control.ts'
import type { ControlDelivery } from '../routes/route.ts'

const HOOK = { name: 'Hook', urls: ['https://example.com/hook'] }

test('a destination is created with the documented defaults', async (t) => {
  const { call } = await startControl(t)
  const { status, body } = await call('POST', '/api/destinations', HOOK)
  assert.equal(status, 201)
  const { id, createdAt, ...rest } = body
  assert.deepEqual(rest, {
    type: 'webhook',
    name: 'Hook',
    enabled: true,
    aliases: [],
    origin: null,
    paused: false,
    sourceIds: [],
    urls: ['https://example.com/hook'],
    headers: {},
    hasSharedSecret: false,
    hasSigningSecrets: false,
    signingSecretCount: 0,
    request: null,
    transformation: null,
    secrets: {},
    auth: null,
    tls: null,
    batch: { size: 1, bytes: 512_000, lingerMs: 1_000 },
    timeoutMs: 5_000,
    retry: { windowMs: 14_400_000, initialMs: 5_000, maxMs: 600_000, factor: 2, retryStatuses: [], failStatuses: [] },
    retryWindowMs: 14_400_000,
    deadLetter: null,
    maxInFlight: 50,
    order: null,
    historical: true,
    includeViolations: false,
    filter: { types: { allow: [], deny: [] }, events: { allow: [], deny: [] } },
    conditionalFilters: [],
    subscribe: null,
    version: 1,
  })
  assert.ok(Date.parse(createdAt) > 0)
  assert.deepEqual((await call('GET', `/api/destinations/${id}`)).body, body)
  assert.deepEqual((await call('GET', '/api/destinations')).body, { data: [body], next: null })
})

test('no response contains a secret', async (t) => {
  const { call, store } = await startControl(t)
  const secrets = [generateSecret(), generateSecret()]
  const sent = { ...HOOK, sharedSecret: 'hush', signingSecrets: secrets }
  const created = await call('POST', '/api/destinations', sent)
  const { id } = created.body
  const texts = [created.text]
  for (const [method, path, body] of [
    ['GET', `/api/destinations/${id}`],
    ['GET', '/api/destinations'],
    ['GET', `/api/destinations/${id}/health`],
    ['PATCH', `/api/destinations/${id}`, { name: 'Renamed' }],
    ['PATCH', `/api/destinations/${id}`, { sharedSecret: 'hush', signingSecrets: ['whsec_hush'], urls: [] }],
    ['PATCH', `/api/destinations/${id}`, { signingSecrets: ['hush'] }],
  ] as const) {
    texts.push((await call(method, path, body)).text)
  }
  for (const text of texts) assert.doesNotMatch(text, /hush|whsec_[A-Za-z0-9]/)
  const kept = store.configuration().destinations.get(id)
  assert.deepEqual([asWebhook(kept).sharedSecret, asWebhook(kept).signingSecrets], ['hush', secrets])
  const { body } = await call('GET', `/api/destinations/${id}`)
  assert.deepEqual([body.hasSharedSecret, body.hasSigningSecrets, body.signingSecretCount], [true, true, 2])
})

test('a destination is paused and resumed, and its audit entries say so', async (t) => {
  const { call, store } = await startControl(t)
  const { body: created } = await call('POST', '/api/destinations', { ...HOOK, paused: true })
  const path = `/api/destinations/${created.id}`
  assert.deepEqual([created.paused, created.enabled, store.configuration().destinations.get(created.id)?.paused], [true, true, true])
  assert.deepEqual((await call('PATCH', path, { name: 'Renamed' })).body, { ...created, name: 'Renamed' })
  assert.deepEqual((await call('PATCH', path, { paused: false })).body, { ...created, name: 'Renamed', paused: false })
  assert.equal((await call('PATCH', path, { paused: 'yes' })).status, 400)
  const { body: audit } = await call('GET', '/api/audit')
  const told = audit.data.map((entry: { before: { paused?: boolean } | null; after: { paused?: boolean } | null }) => [
    entry.before?.paused,
    entry.after?.paused,
  ])
  assert.deepEqual(told.slice(0, 3), [
    [true, false],
    [true, true],
    [undefined, true],
  ])
})

test('a change keeps other fields, other batch settings and secrets', async (t) => {
  const { call, store } = await startControl(t)
  const { body: before } = await call('POST', '/api/destinations', { ...HOOK, sharedSecret: 'hush', batch: { size: 10, lingerMs: 5 } })
  const path = `/api/destinations/${before.id}`
  const { body: after } = await call('PATCH', path, { batch: { bytes: 1_000 }, timeoutMs: 100 })
  assert.deepEqual(after, { ...before, timeoutMs: 100, batch: { size: 10, bytes: 1_000, lingerMs: 5 } })
  assert.equal(asWebhook(store.configuration().destinations.get(before.id)).sharedSecret, 'hush')

  assert.equal((await call('PATCH', path, { sharedSecret: null })).body.hasSharedSecret, false)
  assert.equal(asWebhook(store.configuration().destinations.get(before.id)).sharedSecret, null)
  assert.equal((await call('PATCH', path, { signingSecrets: [generateSecret()] })).body.signingSecretCount, 1)
  assert.equal((await call('PATCH', path, { signingSecrets: [] })).body.signingSecretCount, 0)
  assert.deepEqual((await call('PATCH', path, { headers: { 'X-A': 'b' } })).body.headers, { 'X-A': 'b' })
})

test('a filter is set, kept by other changes, replaced as a whole, and removed', async (t) => {
  const { call, store } = await startControl(t)
  const none = { types: { allow: [], deny: [] }, events: { allow: [], deny: [] } }
  const events = { allow: ['Order Completed', 'Ünïcode “quoted”'], deny: ['__proto__'] }
  const { body: created } = await call('POST', '/api/destinations', { ...HOOK, filter: { types: { deny: ['page'] }, events } })
  const path = `/api/destinations/${created.id}`
  assert.deepEqual(created.filter, { types: { allow: [], deny: ['page'] }, events })
  assert.deepEqual(store.configuration().destinations.get(created.id)?.filter, created.filter)
  assert.deepEqual((await call('PATCH', path, { name: 'Renamed' })).body.filter, created.filter)
  const { body: replaced } = await call('PATCH', path, { filter: { types: { allow: ['identify', 'track'] } } })
  assert.deepEqual(replaced.filter, { ...none, types: { allow: ['identify', 'track'], deny: [] } })
  assert.deepEqual((await call('PATCH', path, { filter: {} })).body.filter, none)
  const wide = Array.from({ length: 1_000 }, (_, at) => `Event ${at}`)
  assert.deepEqual((await call('PATCH', path, { filter: { events: { allow: wide } } })).body.filter.events.allow, wide)
})

test('the fields of a retry policy are changed one by one, under both names of its window', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', { ...HOOK, retry: { initialMs: 3_600_000, retryStatuses: [409] } })
  const defaults = { windowMs: 14_400_000, initialMs: 5_000, maxMs: 600_000, factor: 2, retryStatuses: [], failStatuses: [] }
  assert.deepEqual(body.retry, { ...defaults, initialMs: 3_600_000, maxMs: 3_600_000, retryStatuses: [409] }, 'maxMs is raised')
  const change = async (settings: object) => (await call('PATCH', `/api/destinations/${body.id}`, settings)).body
  let changed = await change({ retry: { windowMs: 1_209_600_000, factor: 1.5 } })
  assert.deepEqual(changed.retry, { ...body.retry, windowMs: 1_209_600_000, factor: 1.5 })
  assert.equal(changed.retryWindowMs, 1_209_600_000)
  changed = await change({ retryWindowMs: 60_000 })
  assert.deepEqual(changed.retry, { ...body.retry, windowMs: 60_000, factor: 1.5 })
  // What the stored policy contradicts is refused too.
  const refused = await call('PATCH', `/api/destinations/${body.id}`, { retry: { failStatuses: [409] } })
  assert.deepEqual([refused.status, refused.body.field], [400, 'retry.failStatuses'])
  assert.deepEqual((await change({ retry: null })).retry, defaults)
})

test('a subscribe expression is set, kept by other changes, and removed; a malformed one is refused with its position', async (t) => {
  const { call, store } = await startControl(t)
  const subscribe = 'type = "track" and properties.total > 100'
  const { body: created } = await call('POST', '/api/destinations', { ...HOOK, subscribe })
  const path = `/api/destinations/${created.id}`
  assert.equal(created.subscribe, subscribe)
  assert.equal(store.configuration().destinations.get(created.id)?.subscribe, subscribe)
  assert.equal((await call('PATCH', path, { name: 'Renamed' })).body.subscribe, subscribe)
  const { status, body } = await call('PATCH', path, { subscribe: 'type = "track" and' })
  assert.deepEqual([status, body.code, body.field], [400, 'invalid_field', 'subscribe'])
  assert.equal(body.message, 'subscribe is not a valid expression. At column 19: expected a condition, found the end of the expression.')
  assert.equal((await call('GET', path)).body.subscribe, subscribe)
  assert.equal((await call('PATCH', path, { subscribe: null })).body.subscribe, null)
})

test('a dead-letter destination must exist, and must not lead back', async (t) => {
  const { call } = await startControl(t)
  const create = async (name: string, deadLetter?: string) => (await call('POST', '/api/destinations', { ...HOOK, name, deadLetter })).body
  const c = await create('c')
  const b = await create('b', c.id)
  const a = await create('a', b.id)
  assert.deepEqual([a.deadLetter, b.deadLetter, c.deadLetter], [b.id, c.id, null])
  const refused = async (id: string, deadLetter: unknown): Promise<unknown[]> => {
    const { status, body } = await call('PATCH', `/api/destinations/${id}`, { deadLetter })
    return [status, body.code, body.field]
  }
  for (const [id, deadLetter] of [
    [c.id, a.id],
    [c.id, b.id],
    [b.id, a.id],
    [a.id, a.id],
    [a.id, 'dst_none'],
    [a.id, ''],
    [a.id, 7],
  ]) {
    assert.deepEqual(await refused(id, deadLetter), [400, 'invalid_field', 'deadLetter'])
  }
  const unknown = await call('POST', '/api/destinations', { ...HOOK, deadLetter: 'dst_none' })
  assert.deepEqual([unknown.status, unknown.body.field], [400, 'deadLetter'])
  // Deleting it clears the setting. It is then free to be set again, also the other way round.
  assert.equal((await call('DELETE', `/api/destinations/${b.id}`)).status, 204)
  assert.equal((await call('GET', `/api/destinations/${a.id}`)).body.deadLetter, null)
  assert.equal((await call('PATCH', `/api/destinations/${c.id}`, { deadLetter: a.id })).body.deadLetter, a.id)
  assert.equal((await call('PATCH', `/api/destinations/${c.id}`, { deadLetter: null })).body.deadLetter, null)
})

test('of two changes at the same time that would make a cycle together, one is rejected', async (t) => {
  const { call } = await startControl(t)
  const [a, b] = await Promise.all(['a', 'b'].map(async (name) => (await call('POST', '/api/destinations', { ...HOOK, name })).body))
  const answers = await Promise.all([
    call('PATCH', `/api/destinations/${a.id}`, { deadLetter: b.id }),
    call('PATCH', `/api/destinations/${b.id}`, { deadLetter: a.id }),
  ])
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 400]))
})

test('batch settings that are changed concurrently are all kept', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', HOOK)
  const path = `/api/destinations/${body.id}`
  await Promise.all([
    call('PATCH', path, { batch: { size: 7 } }),
    call('PATCH', path, { batch: { bytes: 8 } }),
    call('PATCH', path, { batch: { lingerMs: 9 } }),
  ])
  assert.deepEqual((await call('GET', path)).body.batch, { size: 7, bytes: 8, lingerMs: 9 })
})

test('a destination is attached to sources that exist', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const { body } = await call('POST', '/api/destinations', { ...HOOK, sourceIds: [source.id] })
  assert.deepEqual(body.sourceIds, [source.id])
  const unknown = await call('POST', '/api/destinations', { ...HOOK, sourceIds: [source.id, 'nobody'] })
  assert.deepEqual([unknown.status, unknown.body.code, unknown.body.field], [400, 'invalid_field', 'sourceIds[1]'])
  const changed = await call('PATCH', `/api/destinations/${body.id}`, { sourceIds: ['nobody'] })
  assert.deepEqual([changed.status, changed.body.field], [400, 'sourceIds[0]'])
})

test('a destination is not attached to a source that is deleted at the same time', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const { body: hook } = await call('POST', '/api/destinations', HOOK)
  const requests = [call('DELETE', `/api/sources/${source.id}`), call('PATCH', `/api/destinations/${hook.id}`, { sourceIds: [source.id] })]
  await Promise.all(requests)
  assert.deepEqual((await call('GET', `/api/destinations/${hook.id}`)).body.sourceIds, [])
})

test('a deleted destination no longer exists', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', HOOK)
  assert.equal((await call('DELETE', `/api/destinations/${body.id}`)).status, 204)
  for (const [method, path, sent] of [
    ['GET', ''],
    ['PATCH', '', {}],
    ['DELETE', ''],
    ['POST', '/test'],
    ['GET', '/health'],
  ] as const) {
    const answer = await call(method, `/api/destinations/${body.id}${path}`, sent)
    assert.deepEqual([answer.status, answer.body.code], [404, 'destination_not_found'], method + path)
  }
})

const ATTEMPT: TestAttempt = {
  url: 'https://example.com/hook',
  startedAtMs: 1_700_000_000_000,
  status: 200,
  reason: null,
  error: null,
  address: '192.0.2.1',
  dnsMs: 1,
  connectMs: 2,
  tlsMs: 3,
  firstByteMs: 4.5,
  totalMs: 5,
  responseStart: null,
  version: 1,
  logs: null,
}

test('a test sends a sample of the requested type and returns its attempts', async (t) => {
  const sent: [string, Record<string, unknown>][] = []
  const delivery: ControlDelivery = {
    ...STILL,
    test: async (destinationId, message) => {
      sent.push([destinationId, message])
      return { request: { headers: { 'X-Attempt': '1' }, body: '{}' }, attempts: [ATTEMPT] }
    },
  }
  const { call } = await startControl(t, { delivery })
  const { body: destination } = await call('POST', '/api/destinations', { ...HOOK, enabled: false })
  for (const type of [undefined, 'track', 'identify', 'page', 'screen', 'group', 'alias', 'delete']) {
    const { body } = await call('POST', `/api/destinations/${destination.id}/test`, type === undefined ? undefined : { type })
    const [id, message] = sent.pop() ?? []
    assert.deepEqual([id, message?.['type']], [destination.id, type ?? 'track'])
    assert.equal(body.success, true)
    assert.deepEqual(body.message, JSON.parse(JSON.stringify(message)))
    assert.deepEqual(body.request, { headers: { 'X-Attempt': '1' }, body: '{}' })
    assert.deepEqual(body.attempts, [
      {
        url: 'https://example.com/hook',
        address: '192.0.2.1',
        startedAt: '2023-11-14T22:13:20.000Z',
        status: 200,
        reason: null,
        error: null,
        timings: { dnsMs: 1, connectMs: 2, tlsMs: 3, firstByteMs: 4.5, totalMs: 5 },
        responseStart: null,
        version: 1,
        logs: null,
        subscription: null,
        method: null,
        load: null,
      },
    ])
  }
  const { status, body } = await call('POST', `/api/destinations/${destination.id}/test`, { type: 'purchase' })
  assert.deepEqual([status, body.field], [400, 'type'])
})

test('a test fails if no URL answered with success', async (t) => {
  const failed: TestAttempt = { ...ATTEMPT, status: 500, reason: 'http_500', error: 'The receiver answered 500.', responseStart: 'oops' }
  const attempts = [[failed], [], [failed, ATTEMPT]]
  const delivery: ControlDelivery = {
    ...STILL,
    test: async () => ({ request: { headers: {}, body: '' }, attempts: attempts.shift() ?? [] }),
  }
  const { call } = await startControl(t, { delivery })
  const { body: destination } = await call('POST', '/api/destinations', HOOK)
  for (const success of [false, false, true]) {
    assert.equal((await call('POST', `/api/destinations/${destination.id}/test`)).body.success, success)
  }
})

test('health combines the state of delivery with the counts of the store', async (t) => {
  let health: DestinationHealth | undefined
  const fixture = await startControl(t, { delivery: { ...STILL, health: () => health } })
  const { call, store, deps } = fixture
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const urls = ['https://example.com/a', 'https://example.com/b']
  const { body: destination } = await call('POST', '/api/destinations', { ...HOOK, urls, sourceIds: [source.id] })
  const path = `/api/destinations/${destination.id}/health`
  const nothing = { inFlight: 0, success: null, latencyMs: null }
  assert.deepEqual((await call('GET', path)).body, {
    breaker: 'closed',
    openSince: null,
    ...nothing,
    held: null,
    pending: 0,
    oldestPendingAt: null,
    nextAttemptAt: null,
    nextExpiryAt: null,
    failure: null,
    mostFrequentFailure: null,
    failingTables: [],
    ledger: { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 },
    content: { version: 1, failing: null },
    urls: urls.map((url) => Object.assign({ url }, nothing)),
  })

  const items = [{ type: 'track', event: 'e', userId: 'u', messageId: 'm' }]
  const { receivedAtMs } = await accept(store, source.id, items, { shipments: [{ destinationId: destination.id, indexes: null }] })
  const recent = { inFlight: 2, success: 0.25, latencyMs: { p50: 1, p95: 2, p99: 3 } }
  const dueMs = deps.clock.scheduleMs() + 60_000
  const failure = { reason: 'auth_refused', error: 'The token endpoint example.com refused to issue an access token (401).' }
  const mostFrequentFailure = { reason: 'http_500', error: 'The receiver answered 500.', attempts: 3, responseStart: 'oops' }
  const openSinceMs = deps.clock.scheduleMs() - 30_000
  health = {
    breaker: 'probing',
    openSinceMs,
    ...recent,
    nextAttemptAtMs: dueMs,
    held: 'An action is gone.',
    failure,
    mostFrequentFailure,
    urls: [{ url: urls[1] as string, ...recent }],
  }
  const { body } = await call('GET', path)
  assert.deepEqual([body.breaker, body.inFlight, body.success, body.latencyMs], ['probing', 2, 0.25, recent.latencyMs])
  assert.deepEqual([body.failure, body.mostFrequentFailure, body.held], [failure, mostFrequentFailure, 'An action is gone.'])
  assert.deepEqual([body.pending, body.ledger.owed, body.ledger.pending], [1, 1, 1])
  assert.ok(Math.abs(Date.parse(body.oldestPendingAt) - receivedAtMs) < 15_000)
  assert.ok(Math.abs(Date.parse(body.nextAttemptAt) - Date.now() - 60_000) < 15_000)
  assert.ok(Math.abs(Date.parse(body.openSince) - Date.now() + 30_000) < 15_000)
  assert.deepEqual(body.urls, [
    { url: urls[0], ...nothing },
    { url: urls[1], ...recent },
  ])

  // The same for all destinations in one response, including one without any deliveries.
  const { body: other } = await call('POST', '/api/destinations', HOOK)
  const all = (await call('GET', '/api/destinations/health')).body
  const { ledger: _, urls: __, content: ___, ...standing } = (await call('GET', path)).body
  const found = all.data.find(({ destinationId }: { destinationId: string }) => destinationId === destination.id)
  // Schedule times are converted to wall time.
  const still = ({ openSince, nextAttemptAt, nextExpiryAt, ...rest }: Record<string, string>) => ({
    ...rest,
    isOpen: openSince !== null,
    isDue: nextAttemptAt !== null,
    expires: nextExpiryAt !== null,
  })
  assert.deepEqual(still(found), still({ destinationId: destination.id, ...standing }))
  assert.deepEqual(
    [all.data.length, all.next, all.data[1].destinationId, all.data[1].pending, all.data[1].oldestPendingAt],
    [2, null, other.id, 0, null],
  )
})

test('all destinations are listed without most settings', async (t) => {
  const { call } = await startControl(t)
  const { body: hook } = await call('POST', '/api/destinations', HOOK)
  const filters = [{ filter: { types: { deny: ['page'] } } }, { subscribe: 'type = "track"' }]
  for (const [at, each] of filters.entries())
    await call('POST', '/api/destinations', { ...HOOK, ...each, name: `Filtered ${at}`, urls: [`https://example.com/${at}`] })
  await call('PATCH', `/api/destinations/${hook.id}`, { paused: true })
  const { body } = await call('GET', '/api/destinations/summary')
  const { id, name, enabled, sourceIds } = hook
  assert.deepEqual(body.data[0], { id, name, enabled, paused: true, filtered: false, sourceIds })
  assert.deepEqual(
    body.data.slice(1).map((each: { name: string; filtered: boolean }) => [each.name, each.filtered]),
    [
      ['Filtered 0', true],
      ['Filtered 1', true],
    ],
  )
})

test('pending deliveries are retried now, unless the destination sends nothing', async (t) => {
  const asked: string[] = []
  const { call } = await startControl(t, { delivery: { ...STILL, retryNow: (id) => asked.push(id) === 1 } })
  const { id } = (await call('POST', '/api/destinations', HOOK)).body
  assert.deepEqual((await call('POST', `/api/destinations/${id}/retry`)).body, { pending: 0 })
  const { status, body } = await call('POST', `/api/destinations/${id}/retry`)
  assert.deepEqual([status, body.code], [409, 'destination_not_sending'])
  assert.deepEqual(asked, [id, id])
})

test('too many tests at the same time are rejected, and others are accepted once they have ended', async (t) => {
  const signals = new EventEmitter()
  const [eight, ended] = [once(signals, 'eight'), once(signals, 'ended')]
  let started = 0
  const delivery: ControlDelivery = {
    ...STILL,
    test: async () => {
      started++
      if (started === 8) signals.emit('eight')
      await ended
      return { request: { headers: {}, body: '' }, attempts: [] }
    },
  }
  const { call } = await startControl(t, { delivery })
  const { body } = await call('POST', '/api/destinations', { name: 'Webhook', urls: ['https://example.com/'] })
  const tested = () => call('POST', `/api/destinations/${body.id}/test`, {})
  const accepted = Promise.all(Array.from({ length: 8 }, tested))
  await eight
  const refused = await tested()
  assert.deepEqual([refused.status, refused.body.code], [429, 'too_many_previews'])
  signals.emit('ended')
  assert.deepEqual(
    (await accepted).map(({ status }) => status),
    Array.from({ length: 8 }, () => 200),
  )
  assert.equal((await tested()).status, 200)
})
