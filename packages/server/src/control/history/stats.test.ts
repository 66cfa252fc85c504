import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fromName, latencyBucket, latencyName, OLDEST_SECONDS, PENDING } from '../../store/port/stat-counts.ts'
import type { StatRow } from '../../store/store.ts'
import { STILL, startControl } from '../fixtures/start-control.ts'

const NOW_MS = Date.parse('2026-11-14T09:30:20.500Z')
const CLOCK = { wallMs: () => NOW_MS, scheduleMs: () => NOW_MS }
const MINUTE_MS = 60_000

async function setUp(t: TestContext, flushStats?: () => Promise<void>) {
  const { call, store } = await startControl(t, { clock: CLOCK, delivery: STILL, flushStats })
  const { body: source } = await call('POST', '/api/sources', { name: 'web' })
  const { body: destination } = await call('POST', '/api/destinations', {
    type: 'webhook',
    name: 'hook',
    sourceIds: [source.id],
    urls: ['https://example.com/'],
  })
  const add = (kind: StatRow['kind'], subject: string, minutesAgo: number, counts: StatRow['counts']): Promise<void> =>
    store.books.addStats([{ kind, subject, atMs: NOW_MS - minutesAgo * MINUTE_MS, counts }])
  return { call, store, sourceId: source.id as string, destinationId: destination.id as string, add }
}

const NO_INCOMING = { accepted: 0, duplicates: 0, rejected: {}, warnings: {}, suppressed: 0, quarantined: 0, skipped: {} }
const NO_OUTGOING = {
  owed: 0,
  attempts: 0,
  delivered: 0,
  failed: 0,
  expired: 0,
  cancelled: 0,
  retried: 0,
  latencyMs: null,
  pending: 0,
  oldestPendingMs: 0,
}

test('the default is the last hour in steps of a minute, with zeros where nothing happened', async (t) => {
  const { call, add } = await setUp(t)
  await add('all', '', 0, { accepted: 3, 'rejected.event_required': 2, 'warning.timestamp_invalid': 4, delivered: 1 })
  await add('all', '', 59, { duplicates: 4 })
  await add('all', '', 60, { accepted: 1_000 })
  const { body } = await call('GET', '/api/stats')
  assert.deepEqual(
    [body.data.length, body.from, body.to, body.step, body.next],
    [60, '2026-11-14T08:31:00.000Z', '2026-11-14T09:31:00.000Z', '1m', null],
  )
  assert.deepEqual(body.data.at(-1), {
    at: '2026-11-14T09:30:00.000Z',
    ...NO_INCOMING,
    ...NO_OUTGOING,
    accepted: 3,
    rejected: { event_required: 2 },
    warnings: { timestamp_invalid: 4 },
    delivered: 1,
  })
  assert.deepEqual(body.data[0], { at: '2026-11-14T08:31:00.000Z', ...NO_INCOMING, ...NO_OUTGOING, duplicates: 4 })
  assert.deepEqual(body.data[30], { at: '2026-11-14T09:01:00.000Z', ...NO_INCOMING, ...NO_OUTGOING })
})

test("a source's series says what came in, a destination's what went out", async (t) => {
  const { call, add, sourceId, destinationId } = await setUp(t)
  await add('source', sourceId, 0, { accepted: 5, 'warning.sent_at_invalid': 2, suppressed: 1 })
  await add('destination', destinationId, 0, {
    attempts: 3,
    delivered: 1,
    failed: 1,
    retried: 1,
    [latencyName(latencyBucket(20))]: 2,
    [latencyName(latencyBucket(900))]: 1,
  })
  const last = async (query: string): Promise<Record<string, unknown>> => (await call('GET', `/api/stats?${query}`)).body.data.at(-1)
  const at = '2026-11-14T09:30:00.000Z'
  assert.deepEqual(await last(`sourceId=${sourceId}`), { at, ...NO_INCOMING, accepted: 5, warnings: { sent_at_invalid: 2 }, suppressed: 1 })
  const { latencyMs, ...counts } = await last(`destinationId=${destinationId}`)
  const { latencyMs: _, ...none } = NO_OUTGOING
  assert.deepEqual(counts, { at, ...none, attempts: 3, delivered: 1, failed: 1, retried: 1 })
  const { p50, p99 } = latencyMs as { p50: number; p99: number }
  assert.ok(p50 > 19 && p50 < 21 && p99 > 855 && p99 < 945, JSON.stringify(latencyMs))
})

test('steps begin at fixed times, whatever the period', async (t) => {
  const { call, add } = await setUp(t)
  for (const minutesAgo of [0, 1, 2, 30, 31, 95]) await add('all', '', minutesAgo, { accepted: 1 })
  const series = async (query: string): Promise<[string, number][]> => {
    const { body } = await call('GET', `/api/stats?${query}`)
    return body.data.filter(({ accepted }: { accepted: number }) => accepted > 0).map(({ at, accepted }: never) => [at, accepted])
  }
  assert.deepEqual(await series('step=5m&from=2026-11-14T08:58:59.999Z&to=2026-11-14T09:30:00.000Z'), [
    ['2026-11-14T08:55:00.000Z', 1],
    ['2026-11-14T09:00:00.000Z', 1],
    ['2026-11-14T09:25:00.000Z', 2],
  ])
  assert.deepEqual(await series('step=1h'), [
    ['2026-11-14T07:00:00.000Z', 1],
    ['2026-11-14T08:00:00.000Z', 1],
    ['2026-11-14T09:00:00.000Z', 4],
  ])
  assert.deepEqual(await series('step=1d&to=2026-11-14T10:00:00.000Z'), [['2026-11-14T00:00:00.000Z', 6]])
  const { body } = await call('GET', '/api/stats?from=2026-11-14T09:00:00.000Z&to=2026-11-14T09:02:00.000Z')
  assert.deepEqual(
    body.data.map(({ at }: { at: string }) => at),
    ['2026-11-14T09:00:00.000Z', '2026-11-14T09:01:00.000Z'],
  )
})

test('counts in memory are written to the store before they are read', async (t) => {
  const { call } = await setUp(t, async () => {
    flushed++
    await more()
  })
  let flushed = 0
  let more = async (): Promise<void> => {}
  await call('GET', '/api/stats')
  assert.equal(flushed, 1)
  more = () => Promise.reject(new Error('a bug'))
  assert.equal((await call('GET', '/api/stats')).status, 500)
})

test('an invalid period, or one with too many points, is rejected with the field', async (t) => {
  const { call, sourceId, destinationId } = await setUp(t)
  for (const [query, code, field] of [
    ['from=2026-11-14T09:31:00.000Z', 'invalid_field', 'from'],
    ['from=2026-11-14T09:00:00.000Z&to=2026-11-14T09:00:00.000Z', 'invalid_field', 'from'],
    ['from=2026-11-13T00:00:00.000Z', 'invalid_field', 'step'],
    ['from=0001-01-01T00:00:00.000Z&step=1d', 'invalid_field', 'step'],
    ['from=yesterday', 'invalid_field', 'from'],
    ['to=9999-12-31T23:59:59.999Z&step=1d', 'invalid_field', 'to'],
    ['to=0000-01-01T00:00:00.000Z', 'invalid_field', 'to'],
    ['step=2m', 'invalid_field', 'step'],
    ['step=__proto__', 'invalid_field', 'step'],
    ['step=1m&step=1h', 'invalid_field', 'step'],
    [`sourceId=${sourceId}&destinationId=${destinationId}`, 'invalid_field', 'destinationId'],
    ['sourceId=nobody', 'source_not_found', undefined],
    [`sourceId=${destinationId}`, 'source_not_found', undefined],
    ['destinationId=nobody', 'destination_not_found', undefined],
    ['limit=1', 'unknown_field', 'limit'],
  ]) {
    const { body } = await call('GET', `/api/stats?${query}`)
    assert.deepEqual([body.code, body.field], [code, field], query)
  }
  assert.equal((await call('GET', '/api/stats?from=2026-11-13T00:15:00.000Z')).body.data.length, 1_996)
})

test('one request returns the totals and a short series of every source or destination with counts', async (t) => {
  const { call, add, sourceId, destinationId } = await setUp(t)
  await add('source', sourceId, 0, { accepted: 5, 'rejected.a': 1, 'rejected.b': 2, quarantined: 1 })
  await add('source', sourceId, 2, { accepted: 1 })
  await add('destination', destinationId, 1, {
    owed: 4,
    delivered: 3,
    retried: 1,
    failed: 2,
    [fromName(sourceId)]: 4,
    [fromName('gone')]: 1,
  })
  const from = encodeURIComponent('2026-11-14T09:28:00.000Z')
  const { body: sources } = await call('GET', `/api/stats/sources?from=${from}`)
  assert.deepEqual(sources, {
    data: [
      {
        sourceId,
        accepted: 6,
        duplicates: 0,
        rejected: 3,
        suppressed: 0,
        quarantined: 1,
        series: { accepted: [1, 0, 5], rejected: [0, 0, 3] },
      },
    ],
    from: '2026-11-14T09:28:00.000Z',
    to: '2026-11-14T09:31:00.000Z',
    step: '1m',
    next: null,
  })
  const { body: destinations } = await call('GET', `/api/stats/destinations?from=${from}`)
  assert.deepEqual(destinations.data, [
    {
      destinationId,
      owed: 4,
      delivered: 3,
      failed: 2,
      expired: 0,
      cancelled: 0,
      retried: 1,
      owedBySource: { [sourceId]: 4 },
      series: { delivered: [0, 3, 0], unsuccessful: [0, 3, 0] },
    },
  ])
  const tooLong = await call('GET', `/api/stats/destinations?from=${encodeURIComponent('2026-11-14T06:00:00.000Z')}`)
  assert.equal(tooLong.status, 400)
})

test('the latency of each step as a histogram, and the backlog', async (t) => {
  const { call, add, destinationId } = await setUp(t)
  await add('destination', destinationId, 0, {
    [latencyName(latencyBucket(3))]: 4,
    [latencyName(latencyBucket(20))]: 2,
    [latencyName(latencyBucket(30))]: 1,
    [PENDING]: 12,
    [OLDEST_SECONDS]: 90,
  })
  const { body } = await call('GET', `/api/stats?destinationId=${destinationId}&latency=histogram`)
  const { latencyHistogram, pending, oldestPendingMs } = body.data.at(-1)
  assert.deepEqual(latencyHistogram, [
    { upToMs: 4, count: 4 },
    { upToMs: 32, count: 3 },
  ])
  assert.deepEqual([pending, oldestPendingMs], [12, 90_000])
})
