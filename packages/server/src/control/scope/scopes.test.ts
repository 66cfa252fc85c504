// What editors and limited callers can do, and what they cannot: shared destinations, dead letters, requests with messages of several sources, and
// tokens with a scope and an expiry. every-route.test.ts walks all routes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LiveFeed } from '../../observe/live.ts'
import type { DeliveryDetail, HistoryStore } from '../../store/store.ts'
import { createClock } from '../../timing/clock.ts'
import { STILL, startControl } from '../fixtures/start-control.ts'
import { startTwoWorlds } from '../fixtures/two-worlds.ts'
import type { ControlDelivery } from '../routes/route.ts'
import { limitedHistory } from './limited-history.ts'
import { createScope } from './scope.ts'

const HOOK = { name: 'x', urls: ['https://example.com/x'] }

test('an editor changes what belongs to its sources, and its changes are in its audit log', async (t) => {
  const preview: ControlDelivery['preview'] = async (_, contents) => contents.map(() => ({ kind: 'dropped', logs: null }))
  const { own, call, tokenFor } = await startTwoWorlds(t, { delivery: { ...STILL, preview } })
  const token = await tokenFor('editor', [own.source])
  const as = (method: string, path: string, body?: unknown) => call(method, `/api${path}`, body, { token })
  const created = await as('POST', '/destinations', { ...HOOK, sourceIds: [own.source], headers: { Authorization: 'mine' } })
  assert.equal(created.status, 201, created.text)
  const { id } = created.body
  const changed = await as('PATCH', `/destinations/${id}`, { paused: true })
  assert.deepEqual([changed.status, changed.body.headers], [200, { Authorization: 'mine' }])
  assert.equal((await as('POST', `/destinations/${id}/test`, {})).status, 200)
  assert.equal((await as('GET', `/destinations/${id}/health`)).status, 200)
  assert.equal((await as('POST', `/destinations/${id}/preview`, { changes: { timeoutMs: 1_000 } })).status, 200)
  assert.equal((await as('PATCH', `/plans/${own.plan}`, { description: 'x' })).status, 200)
  assert.equal((await as('PATCH', `/sources/${own.source}`, { privacy: [{ path: 'context.ip', action: 'drop' }] })).status, 200)
  assert.equal((await as('POST', `/sources/${own.source}/privacy/preview`, {})).status, 200)
  assert.equal((await as('POST', `/deliveries/${own.delivery}/replay`)).status, 202)
  const job = await as('POST', '/replays', {})
  assert.deepEqual([job.status, job.body.sourceIds], [200, [own.source]])
  assert.equal((await as('PATCH', `/replays/${job.body.id}`, { state: 'cancelled' })).status, 200)
  assert.equal((await as('POST', '/suppressions', { userIds: ['u'] })).body.added, 1, 'only for its own source')
  assert.equal((await as('DELETE', '/suppressions?userId=u')).body.removed, 1)
  assert.equal((await as('POST', '/quarantine/release', { sourceId: own.source })).body.released, 1)
  assert.equal((await as('DELETE', `/alerts/mutes/${own.mute}`)).status, 204)
  assert.equal((await as('POST', '/alerts/mutes', { sourceId: own.source, minutes: 5 })).status, 201)
  assert.match((await as('GET', `/sources/${own.source}`)).body.writeKeys[0], /^[\w-]{20,}$/, 'editors see write keys')
  assert.equal((await as('DELETE', `/destinations/${id}`)).status, 204)
  const { body } = await as('GET', '/audit?limit=100')
  const actions = new Set((body.data as { action: string }[]).map(({ action }) => action))
  const expected = ['destination.create', 'destination.test', 'destination.delete', 'plan.update', 'source.update', 'delivery.replay']
  for (const action of [...expected, 'replay.create', 'suppression.create', 'suppression.delete', 'quarantine.release', 'mute.create'])
    assert.ok(actions.has(action), action)
  assert.ok(!actions.has('token.create'), 'tokens belong to no source')
})

test('an editor can change the privacy rules of a source, and nothing else of it', async (t) => {
  const { own, other, call, tokenFor } = await startTwoWorlds(t)
  const token = await tokenFor('editor', [own.source])
  const patch = (id: string, body: object) => call('PATCH', `/api/sources/${id}`, body, { token })
  for (const body of [{ name: 'x' }, { enabled: false }, { writeKeys: [] }, { privacy: [], name: 'x' }]) {
    assert.deepEqual((await patch(own.source, body)).status, 403, JSON.stringify(body))
    assert.deepEqual((await patch(other.source, body)).status, 403, 'the role is judged before the scope')
  }
  assert.equal((await patch(other.source, { privacy: [] })).status, 404)
  assert.equal((await patch(own.source, { surprise: 1 })).status, 400)
})

test('a shared destination shows only sources in scope, hides what viewers do not see, and cannot be changed', async (t) => {
  const { own, sharedId, store, call, tokenFor } = await startTwoWorlds(t)
  const token = await tokenFor('editor', [own.source])
  const as = (method: string, path: string, body?: unknown) => call(method, `/api${path}`, body, { token })
  const shown = await as('GET', `/destinations/${sharedId}`)
  assert.deepEqual([shown.body.sourceIds, shown.body.headers, shown.body.shared], [[own.source], { Authorization: '(hidden)' }, true])
  assert.equal((await as('GET', `/destinations/${own.destination}`)).body.shared, undefined)
  for (const [method, path, body] of [
    ['PATCH', '', { name: 'x' }],
    ['PATCH', '', { surprise: 1 }],
    ['DELETE', ''],
    ['POST', '/test', {}],
    ['GET', '/health'],
    ['POST', '/preview', { changes: { name: 'x' } }],
  ] as const) {
    const answer = await as(method, `/destinations/${sharedId}${path}`, body)
    assert.deepEqual([answer.status, answer.body.code], [403, 'shared_destination'], `${method} ${path}`)
  }
  assert.equal((await as('GET', `/stats?destinationId=${sharedId}`)).status, 403)
  assert.equal((await as('POST', '/alerts/mutes', { destinationId: sharedId, minutes: 5 })).status, 403)
  for (const list of ['/ledger', '/destinations/health']) {
    const ids = new Set(((await as('GET', list)).body.data as { destinationId: string }[]).map(({ destinationId }) => destinationId))
    assert.ok(ids.has(own.destination) && !ids.has(sharedId), list)
  }
  const summaries = (await as('GET', '/destinations/summary')).body.data as { id: string; shared?: boolean; sourceIds: string[] }[]
  const listed = (await as('GET', '/destinations?limit=1000')).body.data as typeof summaries
  assert.deepEqual(
    summaries.map(({ id, shared, sourceIds }) => ({ id, shared, sourceIds })),
    listed.map(({ id, shared, sourceIds }) => ({ id, shared, sourceIds })),
  )
  assert.equal(summaries.find(({ id }) => id === sharedId)?.shared, true)
  const deliveries = (await as('GET', `/deliveries?destinationId=${sharedId}`)).body.data as { messageId: string | null }[]
  assert.ok(deliveries.length > 0 && deliveries.every(({ messageId }) => messageId === null || messageId.startsWith('lion')))
  // Another node may have attached the other source a moment ago: the change is judged by what is stored.
  await store.resources.updateDestination(sharedId, { sourceIds: [own.source] })
  assert.equal((await as('PATCH', `/destinations/${sharedId}`, { name: 'mine' })).status, 200)
})

test('a destination that gets dead letters of another source cannot be changed, so that nobody can redirect them', async (t) => {
  const { own, other, lettersId, call, tokenFor } = await startTwoWorlds(t)
  const token = await tokenFor('editor', [own.source])
  const as = (method: string, path: string, body?: unknown) => call(method, `/api${path}`, body, { token })
  const answer = await as('PATCH', `/destinations/${lettersId}`, { urls: ['https://example.net/mine'] })
  assert.deepEqual([answer.status, answer.body.code], [403, 'shared_destination'])
  assert.equal((await as('DELETE', `/destinations/${lettersId}`)).status, 403)
  // The other destination has it as its dead-letter destination, and is not shown because of that.
  assert.equal((await as('GET', `/destinations/${other.destination}`)).status, 404)
  const theirs = await tokenFor('viewer', [other.source])
  const seen = await call('GET', `/api/destinations/${lettersId}`, undefined, { token: theirs })
  assert.deepEqual([seen.status, seen.body.sourceIds], [200, []], 'who sends dead letters there sees that it exists')
  const refused = await as('PATCH', `/destinations/${own.destination}`, { deadLetter: other.destination })
  const unknown = await as('PATCH', `/destinations/${own.destination}`, { deadLetter: 'dst_000000000000' })
  assert.deepEqual([refused.status, refused.text], [unknown.status, unknown.text])
  assert.equal((await as('PATCH', `/destinations/${own.destination}`, { deadLetter: lettersId })).status, 200)
})

test('a limited editor cannot create or leave behind what belongs to no source, and cannot learn names of others', async (t) => {
  const { own, call, tokenFor } = await startTwoWorlds(t)
  const token = await tokenFor('editor', [own.source])
  const as = (method: string, path: string, body?: unknown) => call(method, `/api${path}`, body, { token })
  for (const [method, path, body] of [
    ['POST', '/destinations', { ...HOOK, sourceIds: [] }],
    ['PATCH', `/destinations/${own.destination}`, { sourceIds: [] }],
    ['POST', '/plans', { name: 'x', rules: [], sourceIds: [] }],
    ['PATCH', `/plans/${own.plan}`, { sourceIds: [] }],
    ['POST', '/alerts/mutes', { minutes: 5 }],
  ] as const) {
    assert.equal((await as(method, path, body)).status, 400, `${method} ${path}`)
  }
  const created = await as('POST', '/destinations?uniqueName=true', { ...HOOK, name: 'zebra', sourceIds: [own.source] })
  assert.equal(created.status, 201, 'a name that only others use is free')
})

test('a request that contained messages of other sources is shown without them, and without what the receiver said about them', async () => {
  const request = { url: 'http://tool/zebra', step: 'Send', error: 'a zebra', responseStart: 'about zebras', logs: 'zebra', indexes: [0] }
  const part = (sourceId: string) => ({ origin: 1, segment: 1, indexes: [0], content: { sourceId, items: [{}] } })
  const detail = (parts: readonly string[] | null) =>
    ({
      sourceId: 'src_own',
      waitingFor: null,
      history: [{ ...request, gathered: { lead: 1, parts: null } }, request, { ...request, gathered: { lead: 1, parts: null } }],
      gathered: parts?.map(part) ?? null,
    }) as unknown as DeliveryDetail
  const read = async (parts: readonly string[] | null) => {
    const history = { delivery: async () => detail(parts) } as unknown as HistoryStore
    const found = await limitedHistory(history, createScope(['src_own'])).delivery('1-0')
    return [found?.gathered?.length ?? null, found?.history.map(({ url, error, responseStart, logs }) => [url, error, responseStart, logs])]
  }
  const [hidden, whole] = [
    ['http://tool', null, null, null],
    [request.url, request.error, request.responseStart, request.logs],
  ]
  assert.deepEqual(await read(['src_own', 'src_other']), [null, [hidden, whole, hidden]])
  assert.deepEqual(await read(null), [null, [hidden, whole, hidden]])
  assert.deepEqual(await read(['src_own', 'src_own']), [2, [hidden, whole, whole]])
})

test('the live view of a limited caller has only events of its sources', async () => {
  const live = new LiveFeed({ wallMs: Date.now })
  const events = live.listen({ sourceIds: ['src_own'] }, 'tok')
  assert.ok(events !== null)
  const accepted = (sourceId: string, messageId: string) =>
    live.accepted({ content: { sourceId, receivedAtMs: 0, context: null, items: [{ type: 'track', messageId }] }, repeated: [] } as never)
  const attempted = (...sources: string[]) =>
    live.attempted({
      destination: { id: 'dst' },
      outcome: { verdict: 'success' },
      messages: sources.map((sourceId) => ({ sourceId, type: 'track', messageId: sourceId, json: null })),
    } as never)
  accepted('src_other', 'zebra')
  live.rejected({ sourceId: 'src_other', code: 'x', messages: 1, sample: 'zebra' })
  live.rejected({ sourceId: null, code: 'x', messages: 1, sample: 'zebra' })
  attempted('src_other')
  attempted('src_own', 'src_other')
  const [key] = [...live.wanted.keys()] as [string]
  live.receive([key], { event: 'accepted', json: '{"sourceId":"src_other","messageId":"zebra"}' })
  live.receive([key], { event: 'rejected', json: '{"sourceId":null,"sample":"zebra"}' })
  // The sentinel: what came before it was not meant for this listener.
  accepted('src_own', 'last')
  const { value } = await events[Symbol.asyncIterator]().next()
  assert.equal(JSON.parse(value.json).messageId, 'last')
})

test('tokens have a role, sources and an expiry, and an admin always has all sources', async (t) => {
  const late = { ms: 0 }
  const real = createClock(0)
  const clock = { wallMs: () => real.wallMs() + late.ms, scheduleMs: () => real.scheduleMs() }
  const { call, deps } = await startControl(t, { clock }, { clock })
  const source = (await call('POST', '/api/sources', { name: 'Shop' })).body.id
  const create = (body: object) => call('POST', '/api/tokens', { name: 'x', ...body })
  for (const body of [
    { role: 'admin', sources: [source] },
    { sources: [] },
    { sources: ['src_unknown'] },
    { sources: ['system'] },
    { sources: 'some' },
    { expiresAt: '2020-01-01T00:00:00Z' },
    { role: 'owner' },
  ])
    assert.equal((await create(body)).status, 400, JSON.stringify(body))
  const expiresAt = new Date(clock.wallMs() + 60_000).toISOString()
  const { body } = await create({ role: 'editor', sources: [source], expiresAt })
  assert.deepEqual([body.role, body.sources, body.expiresAt, body.owner], ['editor', [source], expiresAt, null])
  const session = () => call('GET', '/api/session', undefined, { token: body.token })
  const { dataSince, ...rest } = (await session()).body
  assert.deepEqual(rest, { actor: { id: body.id, name: 'x', type: 'token' }, role: 'editor', sources: [source], expiresAt: null })
  assert.ok(Number.isFinite(Date.parse(dataSince)), 'when the oldest of its sources was created')
  const listed = await call('GET', '/api/tokens', undefined, { token: body.token })
  assert.deepEqual(
    listed.body.data.map(({ id }: { id: string }) => id),
    [body.id],
    'a limited caller sees its own token',
  )
  const login = await call('POST', '/api/login', { token: body.token }, { token: null, headers: { 'sec-fetch-site': 'same-origin' } })
  assert.equal(login.body.expiresAt, expiresAt, 'a session does not outlive its token')
  const cookie = (login.headers.get('set-cookie') ?? '').split(';')[0] as string
  const bySession = () => call('GET', '/api/session', undefined, { token: null, headers: { cookie, 'sec-fetch-site': 'same-origin' } })
  assert.equal((await bySession()).status, 200)
  const request = (token: string) => ({ headers: { authorization: `Bearer ${token}` }, socket: {} }) as never
  assert.equal(await deps.access.allows(request(body.token)), false, 'metrics are for callers with all sources')
  assert.equal(await deps.access.allows(request((await create({})).body.token)), true)
  const caller = await deps.access.authorize(request(body.token))
  late.ms = 61_000
  assert.equal((await session()).status, 401)
  assert.equal((await bySession()).status, 401)
  assert.equal(await deps.access.isStillValid(caller), false, 'open streams end')
})
