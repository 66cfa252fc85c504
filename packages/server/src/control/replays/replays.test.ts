import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { ReplayRunner } from '../../replaying/replay-runner.ts'
import { type Answer, accept, type Fixture, settleAll, startControl } from '../fixtures/start-control.ts'

const REFUSED = {
  url: 'https://example.com/hook',
  status: 404,
  reason: 'http_404',
  error: null,
  address: '203.0.113.9',
  dnsMs: null,
  connectMs: null,
  tlsMs: null,
  firstByteMs: 1,
  totalMs: 2,
  responseStart: 'no',
  version: 1,
  logs: null,
}

interface Bench extends Fixture {
  sourceId: string
  destinationId: string
  woken: () => number
}

async function bench(t: TestContext): Promise<Bench> {
  let woken = 0
  const fixture = await startControl(t, { replays: { wake: () => void woken++ } })
  const sourceId = (await fixture.call('POST', '/api/sources', { name: 'Shop' })).body.id
  const destination = { name: 'Hook', sourceIds: [sourceId], urls: ['https://example.com/hook'] }
  const destinationId = (await fixture.call('POST', '/api/destinations', destination)).body.id
  return { ...fixture, sourceId, destinationId, woken: () => woken }
}

/** Sends messages with these ids, which the destination rejects. */
async function refused(bench: Bench, ...messageIds: string[]): Promise<string[]> {
  const { store, sourceId, destinationId, call } = bench
  const items = messageIds.map((messageId) => ({ type: 'track', event: 'Bought', userId: 'u', messageId }))
  await accept(store, sourceId, items, { shipments: [{ destinationId, indexes: null }] })
  await settleAll(bench, destinationId, 'failed', REFUSED)
  const { data } = (await call('GET', `/api/deliveries?state=failed&destinationId=${destinationId}`)).body
  return data.filter((row: { messageId: string }) => messageIds.includes(row.messageId)).map(({ id }: { id: string }) => id)
}

/** Executes steps until nothing is left to do. */
async function run({ store }: Fixture, id: string, limit = 100): Promise<void> {
  for (;;) {
    const job = await store.replays.one(id)
    if (job?.state !== 'running') return
    await store.replays.step({ id, position: job.position, limit, maxWaiting: 1_000 })
  }
}

function refusal({ status, body }: Answer): unknown[] {
  return [status, body.code, body.field]
}

test('a job replays failed and expired deliveries, and shows its progress and outcomes', async (t) => {
  const b = await bench(t)
  const { call, destinationId } = b
  const ids = await refused(b, 'a', 'b', 'c')
  const { status, body: created } = await call('POST', '/api/replays', { destinationId, ratePerSecond: 20 })
  assert.equal(status, 200)
  assert.equal(b.woken(), 1)
  const { id, createdAt, createdBy, ...rest } = created
  assert.match(id, /^rpl_/)
  assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)
  assert.deepEqual(Object.keys(createdBy), ['id', 'name'])
  const nothing = { pending: 0, delivered: 0, failed: 0, expired: 0, cancelled: 0 }
  assert.deepEqual(rest, {
    state: 'running',
    total: 3,
    done: 0,
    replayed: 0,
    skipped: 0,
    skippedReasons: {},
    outcomes: nothing,
    sourceIds: null,
    includeReplayed: false,
    ratePerSecond: 20,
    destinationId,
    states: ['failed', 'expired'],
    reason: null,
    from: null,
    to: null,
    finishedAt: null,
    deliveryIds: null,
    archive: null,
    reachedAt: null,
    problem: null,
  })
  await run(b, id)
  const { body: done } = await call('GET', `/api/replays/${id}`)
  assert.deepEqual([done.state, done.done, done.replayed, done.outcomes], ['finished', 3, 3, { ...nothing, pending: 3 }])
  assert.ok(done.finishedAt >= createdAt)
  const { deliveryIds: _, ...summary } = done
  assert.deepEqual((await call('GET', '/api/replays')).body, { data: [summary], next: null })

  const { data } = (await call('GET', '/api/deliveries?state=pending')).body
  assert.deepEqual(new Set(data.map((row: { replayOf: string }) => row.replayOf)), new Set(ids))
  for (const row of data) {
    const { body: detail } = await call('GET', `/api/deliveries/${row.id}`)
    assert.deepEqual([detail.replay, detail.replayJobId, detail.replayOf], [true, id, row.replayOf])
    assert.equal((await call('GET', `/api/deliveries/${row.replayOf}`)).body.replayedBy, row.id)
    const { body: message } = await call('GET', `/api/messages/${row.storedMessageId}`)
    assert.deepEqual(
      message.deliveries.map((delivery: { id: string; replayJobId: string | null }) => [delivery.id, delivery.replayJobId]),
      [
        [row.replayOf, null],
        [row.id, id],
      ],
    )
  }
  await settleAll(b, destinationId, 'delivered', { ...REFUSED, status: 200, reason: null })
  assert.deepEqual((await call('GET', `/api/replays/${id}`)).body.outcomes, { ...nothing, delivered: 3 })

  const again = (await call('POST', '/api/replays', { destinationId })).body
  await run(b, again.id)
  const { body: second } = await call('GET', `/api/replays/${again.id}`)
  assert.deepEqual([second.done, second.replayed, second.skipped, second.skippedReasons], [3, 0, 3, { already_replayed: 3 }])

  const dry = (await call('POST', '/api/replays', { destinationId, includeReplayed: true, dryRun: true })).body
  assert.deepEqual([dry.total, dry.alreadyReplayed], [3, 3])
  const third = (await call('POST', '/api/replays', { destinationId, includeReplayed: true })).body
  assert.equal(third.includeReplayed, true)
  await run(b, third.id)
  const { body: sent } = await call('GET', `/api/replays/${third.id}`)
  assert.deepEqual([sent.replayed, sent.skipped, sent.outcomes.pending], [3, 0, 3])
})

test('a dry run counts, and creates nothing', async (t) => {
  const b = await bench(t)
  const { call, destinationId, store } = b
  const [first] = await refused(b, 'a', 'b', 'c')
  assert.ok((await store.replays.replay(first as string)).ok)
  const { status, body } = await call('POST', '/api/replays', { dryRun: true })
  assert.equal(status, 200)
  assert.deepEqual(body, { dryRun: true, total: 3, alreadyReplayed: 1, byDestination: [{ destinationId, total: 3, alreadyReplayed: 1 }] })
  assert.deepEqual((await call('POST', '/api/replays', { dryRun: true, reason: 'http_500' })).body, {
    dryRun: true,
    total: 0,
    alreadyReplayed: 0,
    byDestination: [],
  })
  assert.deepEqual((await call('GET', '/api/replays')).body.data, [])
  assert.equal(b.woken(), 0)
  const { data } = (await call('GET', '/api/audit?action=replay.create')).body
  assert.deepEqual(data, [])
})

test('a job for deliveries selected by id', async (t) => {
  const b = await bench(t)
  const { call, destinationId } = b
  const [first, , third] = (await refused(b, 'a', 'b', 'c')) as [string, string, string]
  const deliveryIds = [third, first, 'nothing']
  const dry = (await call('POST', '/api/replays', { deliveryIds, dryRun: true })).body
  assert.deepEqual([dry.total, dry.byDestination], [3, [{ destinationId, total: 2, alreadyReplayed: 0 }]])
  const { body: job } = await call('POST', '/api/replays', { deliveryIds })
  assert.deepEqual([job.total, job.deliveryIds, job.states, job.destinationId], [3, deliveryIds, null, null])
  await run(b, job.id)
  const { body: done } = await call('GET', `/api/replays/${job.id}`)
  assert.deepEqual([done.replayed, done.skippedReasons], [2, { not_found: 1 }])
  assert.equal((await call('GET', '/api/replays')).body.data[0].deliveryIds, undefined, 'lists do not contain the ids')
})

test('contradictory selections are rejected with the field', async (t) => {
  const { call, destinationId, sourceId } = await bench(t)
  const many = Array.from({ length: 1_001 }, (_, at) => `${at + 1}-0`)
  const bad: [body: object, field: string, code?: string][] = [
    [{ destinationId: 'dst_none' }, 'destinationId'],
    [{ destinationId: sourceId }, 'destinationId'],
    [{ destinationId: '__proto__' }, 'destinationId'],
    [{ destinationId: 7 }, 'destinationId'],
    [{ states: [] }, 'states'],
    [{ states: ['pending'] }, 'states[0]'],
    [{ states: ['failed', 'failed'] }, 'states[1]'],
    [{ states: 'failed' }, 'states'],
    [{ reason: '' }, 'reason'],
    [{ from: 'yesterday' }, 'from'],
    [{ from: '2026-11-14T10:00:00Z', to: '2026-11-14T09:00:00Z' }, 'to'],
    [{ ratePerSecond: 0 }, 'ratePerSecond'],
    [{ ratePerSecond: 0.5 }, 'ratePerSecond'],
    [{ ratePerSecond: '10' }, 'ratePerSecond'],
    [{ ratePerSecond: 1e9 }, 'ratePerSecond'],
    [{ deliveryIds: [] }, 'deliveryIds'],
    [{ deliveryIds: many }, 'deliveryIds'],
    [{ deliveryIds: ['1-0', '1-0'] }, 'deliveryIds[1]'],
    [{ deliveryIds: ['1-0'], destinationId }, 'destinationId'],
    [{ deliveryIds: ['1-0'], states: ['failed'] }, 'states'],
    [{ deliveryIds: ['1-0'], from: '2026-11-14T10:00:00Z' }, 'from'],
    [{ dryRun: 'yes' }, 'dryRun'],
    [{ state: 'failed' }, 'state', 'unknown_field'],
    [JSON.parse('{ "__proto__": { "dryRun": true } }') as object, '__proto__', 'unknown_field'],
  ]
  for (const [body, field, code = 'invalid_field'] of bad) {
    assert.deepEqual(refusal(await call('POST', '/api/replays', body)), [400, code, field], JSON.stringify(body).slice(0, 200))
  }
  assert.deepEqual((await call('GET', '/api/replays')).body.data, [])
})

test('a job is paused, resumed and cancelled; a job that has ended cannot be changed', async (t) => {
  const b = await bench(t)
  const { call, destinationId } = b
  await refused(b, 'a', 'b', 'c')
  const { id } = (await call('POST', '/api/replays', { destinationId })).body
  const change = (body: object): Promise<Answer> => call('PATCH', `/api/replays/${id}`, body)
  for (const state of ['paused', 'paused', 'running', 'paused', 'cancelled', 'cancelled']) {
    const { status, body } = await change({ state })
    assert.deepEqual([status, body.state, body.finishedAt !== null], [200, state, state === 'cancelled'])
  }
  for (const body of [{ state: 'running' }, { state: 'paused' }, { ratePerSecond: 5 }, { state: 'cancelled', ratePerSecond: 5 }]) {
    assert.deepEqual(refusal(await change(body)), [409, 'replay_over', undefined])
  }
  assert.equal((await change({})).status, 200)
  const finished = (await call('POST', '/api/replays', { destinationId })).body.id
  await run(b, finished)
  for (const state of ['running', 'paused', 'cancelled']) {
    assert.deepEqual(refusal(await call('PATCH', `/api/replays/${finished}`, { state })), [409, 'replay_over', undefined])
  }
  assert.deepEqual(refusal(await change({ state: 'finished' })), [400, 'invalid_field', 'state'])
  assert.deepEqual(refusal(await change({ total: 1 })), [400, 'unknown_field', 'total'])
  for (const other of ['rpl_none', destinationId, '1-0', '%00', "'; DROP TABLE replay_jobs; --"]) {
    const path = `/api/replays/${other === '%00' ? other : encodeURIComponent(other)}`
    assert.deepEqual(refusal(await call('GET', path)), [404, 'replay_not_found', undefined])
    assert.deepEqual(refusal(await call('PATCH', path, { state: 'paused' })), [404, 'replay_not_found', undefined])
  }
})

test('the audit log shows who created and changed a job', async (t) => {
  const b = await bench(t)
  const { call, destinationId } = b
  const [first] = await refused(b, 'a', 'b')
  const { id } = (await call('POST', '/api/replays', { destinationId, ratePerSecond: 5 })).body
  await call('PATCH', `/api/replays/${id}`, { state: 'paused' })
  await call('PATCH', `/api/replays/${id}`, { state: 'paused' })
  await call('PATCH', `/api/replays/${id}`, { ratePerSecond: null })
  const { data } = (await call('GET', `/api/audit?subject=${id}`)).body
  assert.deepEqual(
    data.map((entry: { action: string; before: { state: string } | null; after: { state: string; ratePerSecond: number | null } }) => [
      entry.action,
      entry.before?.state ?? null,
      entry.after.state,
      entry.after.ratePerSecond,
    ]),
    [
      ['replay.update', 'paused', 'paused', null],
      ['replay.update', 'running', 'paused', 5],
      ['replay.create', null, 'running', 5],
    ],
  )
  await call('POST', `/api/deliveries/${first}/replay`)
  const single = (await call('GET', `/api/audit?subject=${first}`)).body.data
  assert.deepEqual(
    single.map(({ action }: { action: string }) => action),
    ['delivery.replay'],
  )
})

test('jobs are listed newest first, in pages, and by state', async (t) => {
  const { call, destinationId } = await bench(t)
  const ids: string[] = []
  for (let at = 0; at < 5; at++) ids.unshift((await call('POST', '/api/replays', { destinationId })).body.id)
  await call('PATCH', `/api/replays/${ids[2]}`, { state: 'paused' })
  const seen: string[] = []
  let path = '/api/replays?limit=2'
  for (let pages = 0; pages < 3; pages++) {
    const { data, next } = (await call('GET', path)).body
    seen.push(...data.map(({ id }: { id: string }) => id))
    path = `/api/replays?limit=2&cursor=${encodeURIComponent(next)}`
    if (next === null) break
  }
  assert.deepEqual(seen, ids)
  const paused = (await call('GET', '/api/replays?state=paused')).body.data
  assert.deepEqual(
    paused.map(({ id }: { id: string }) => id),
    [ids[2]],
  )
  assert.deepEqual(refusal(await call('GET', '/api/replays?state=broken')), [400, 'invalid_field', 'state'])
  assert.deepEqual(refusal(await call('GET', '/api/replays?cursor=x')), [400, 'invalid_cursor', 'cursor'])
})

test('the runner executes a job', async (t) => {
  const b = await bench(t)
  const { call, destinationId, store, deps } = b
  await refused(b, 'a', 'b', 'c', 'd')
  const runner = new ReplayRunner({ store: store.replays, clock: deps.clock })
  t.after(() => runner.stop())
  const { id } = (await call('POST', '/api/replays', { destinationId })).body
  runner.start()
  for (;;) {
    const { body } = await call('GET', `/api/replays/${id}`)
    if (body.state === 'finished') return assert.equal(body.replayed, 4)
  }
})
