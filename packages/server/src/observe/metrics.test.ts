import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Configuration, LedgerRow, Source } from '../store/store.ts'
import { AT_MS, attempted, destination } from './fixtures/events.ts'
import { METRICS, PROCESS_METRICS } from './metric-table.ts'
import { type MetricSources, Metrics } from './metrics.ts'
import { type CountsStore, createStoreCounts, type StoreCounts } from './store-counts.ts'

const EMPTY: StoreCounts = { ledger: [], oldest: [], sources: [], rejections: [], order: [] }

function source(id: string, name = id): Source {
  return { id, name, enabled: true, writeKeys: ['the-write-key'], requireOAuth: false, createdAtMs: 0 }
}

function configuration(sources: Source[], destinations: string[]): Configuration {
  return {
    sources: new Map(sources.map((each) => [each.id, each])),
    destinations: new Map(destinations.map((id) => [id, destination(id)])),
    suppressions: new Map(),
    oauthApps: new Map(),
    tokens: new Map(),
    plans: new Map(),
  }
}

function sourcesOf(counts: StoreCounts | null, known: Configuration): MetricSources {
  return {
    configuration: () => known,
    states: () => [...known.destinations.keys()].map((destinationId) => ({ destinationId, breaker: 'probing', inFlight: 3 })),
    pacing: () => ({ isActive: true, delayed: 5, refused: 2 }),
    counts: async () => counts,
    listeners: () => 2,
    wallMs: () => AT_MS + 90_000,
    version: '1.2.3',
  }
}

function ledger(destinationId: string, change: Partial<LedgerRow> = {}): LedgerRow {
  return { destinationId, owed: 10, delivered: 4, pending: 3, failed: 1, expired: 1, cancelled: 1, ...change }
}

/** The lines without comments, as a map. */
function lines(text: string): Map<string, number> {
  const found = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(found.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
}

test('warnings are counted by source and code', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  for (const messages of [2, 3]) metrics.warned({ sourceId: 's', code: 'timestamp_in_future', messages })
  const found = lines(await metrics.text(sourcesOf(null, configuration([source('s')], []))))
  assert.equal(found.get('switchyard_message_warnings_total{source="s",code="timestamp_in_future"}'), 5)
})

test('counts from the store are served unchanged', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  const counts: StoreCounts = {
    ledger: [ledger('d')],
    oldest: [{ destinationId: 'd', atMs: AT_MS, firstAttemptAtMs: null }],
    sources: [{ sourceId: 's', accepted: 7, duplicates: 2, rejected: 5, suppressed: 1, quarantined: 3, released: 4, deleted: 6 }],
    rejections: [
      { sourceId: 's', code: 'event_required', count: 5, lastAtMs: 0, lastSample: 'never shown' },
      { sourceId: null, code: 'invalid_write_key', count: 6, lastAtMs: 0, lastSample: 'never shown' },
    ],
    order: [{ destinationId: 'd', waitingKeys: 2, heldKeys: 3, waitingMessages: 40 }],
  }
  const text = await metrics.text(sourcesOf(counts, configuration([source('s')], ['d', 'idle'])))
  const found = lines(text)
  for (const [line, value] of [
    ['switchyard_messages_accepted_total{source="s"}', 7],
    ['switchyard_order_waiting_keys{destination="d"}', 2],
    ['switchyard_order_held_keys{destination="d"}', 3],
    ['switchyard_order_waiting_messages{destination="d"}', 40],
    ['switchyard_messages_duplicate_total{source="s"}', 2],
    ['switchyard_messages_suppressed_total{source="s"}', 1],
    ['switchyard_messages_quarantined{source="s"}', 3],
    ['switchyard_messages_released_total{source="s"}', 4],
    ['switchyard_messages_quarantine_deleted_total{source="s"}', 6],
    ['switchyard_messages_rejected_total{source="s",code="event_required"}', 5],
    ['switchyard_messages_rejected_total{source="unknown",code="invalid_write_key"}', 6],
    ['switchyard_deliveries_owed_total{destination="d"}', 10],
    ['switchyard_deliveries_delivered_total{destination="d"}', 4],
    ['switchyard_deliveries_failed_total{destination="d"}', 1],
    ['switchyard_deliveries_expired_total{destination="d"}', 1],
    ['switchyard_deliveries_cancelled_total{destination="d"}', 1],
    ['switchyard_deliveries_pending{destination="d"}', 3],
    ['switchyard_oldest_pending_age_seconds{destination="d"}', 90],
    ['switchyard_requests_in_flight{destination="d"}', 3],
    ['switchyard_breaker_state{destination="d",state="probing"}', 1],
    ['switchyard_breaker_state{destination="d",state="open"}', 0],
    ['switchyard_store_readable', 1],
    ['switchyard_live_listeners', 2],
    ['switchyard_build_info{version="1.2.3"}', 1],
  ] as const) {
    assert.equal(found.get(line), value, line)
  }
  assert.doesNotMatch(text, /secret|never shown|the-write-key/)
})

test('attempts, deliveries, retries and commits are counted, and the latency excludes replays', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  metrics.attempted(attempted('d', 'success'))
  const { outcome } = attempted('d', 'temporary')
  metrics.attempted(attempted('d', 'temporary', { outcome: { ...outcome, timings: { ...outcome.timings, totalMs: 5_000 } } }))
  const { messages } = attempted('d', 'success')
  metrics.delivered({ destination: destination('d'), messages: [...messages, ...messages], replay: false, atMs: AT_MS + 40_000 })
  metrics.delivered({ destination: destination('d'), messages, replay: true, atMs: AT_MS + 40_000 })
  metrics.delivered({ destination: destination('d'), messages, replay: false, atMs: AT_MS - 1_000 })
  metrics.settled({ destination: destination('d'), delivered: 1, failed: 0, expired: 0, cancelled: 0, retried: 4 })
  metrics.committed(3, 12)
  metrics.storeState('disk full')
  const found = lines(await metrics.text(sourcesOf(EMPTY, configuration([], ['d']))))
  for (const [line, value] of [
    ['switchyard_attempt_duration_seconds_bucket{destination="d",outcome="success",le="0.01"}', 0],
    ['switchyard_attempt_duration_seconds_bucket{destination="d",outcome="success",le="0.025"}', 1],
    ['switchyard_attempt_duration_seconds_bucket{destination="d",outcome="temporary",le="5"}', 1],
    ['switchyard_attempt_duration_seconds_sum{destination="d",outcome="temporary"}', 5],
    ['switchyard_delivery_latency_seconds_bucket{destination="d",le="0.01"}', 1],
    ['switchyard_delivery_latency_seconds_bucket{destination="d",le="30"}', 1],
    ['switchyard_delivery_latency_seconds_bucket{destination="d",le="60"}', 3],
    ['switchyard_delivery_latency_seconds_count{destination="d"}', 3],
    ['switchyard_delivery_latency_seconds_sum{destination="d"}', 80],
    ['switchyard_deliveries_retried_total{destination="d"}', 4],
    ['switchyard_store_commit_duration_seconds_bucket{le="0.0025"}', 0],
    ['switchyard_store_commit_duration_seconds_bucket{le="0.005"}', 1],
    ['switchyard_store_commit_commands_bucket{le="8"}', 0],
    ['switchyard_store_commit_commands_bucket{le="16"}', 1],
    ['switchyard_store_writable', 0],
  ] as const) {
    assert.equal(found.get(line), value, line)
  }
})

test('series of deleted destinations disappear, including those counted by this process', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  for (const id of ['kept', 'gone']) metrics.attempted(attempted(id, 'success'))
  const counts: StoreCounts = {
    ledger: [ledger('kept'), ledger('gone')],
    oldest: [],
    sources: [{ sourceId: 'gone', accepted: 1, duplicates: 0, rejected: 0, suppressed: 0, quarantined: 0, released: 0, deleted: 0 }],
    rejections: [{ sourceId: 'gone', code: 'event_required', count: 1, lastAtMs: 0, lastSample: '' }],
    order: [{ destinationId: 'gone', waitingKeys: 1, heldKeys: 0, waitingMessages: 1 }],
  }
  const text = await metrics.text(sourcesOf(counts, configuration([], ['kept'])))
  assert.match(text, /"kept"/)
  assert.doesNotMatch(text, /"gone"/)
})

/** Gives each destination every series that it can have. */
function busy(metrics: Metrics, ids: readonly string[]): void {
  for (const id of ids) {
    for (const verdict of ['success', 'temporary', 'permanent'] as const) metrics.attempted(attempted(id, verdict))
    metrics.delivered({ destination: destination(id), messages: attempted(id, 'success').messages, replay: false, atMs: AT_MS + 40_000 })
  }
}

/** Ids of the same length as those of the store. */
const idsOf = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}_${String(at).padStart(12, '0')}`)

test('requests do not wait while the metrics of many destinations are written', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  const ids = idsOf(70, 'dst')
  busy(metrics, ids)
  let turns = 0
  const count = (): void => {
    turns++
    turning = setImmediate(count)
  }
  let turning = setImmediate(count)
  const text = await metrics.text(sourcesOf(EMPTY, configuration([], ids)))
  clearImmediate(turning)
  assert.ok(turns >= 2, `${turns} turns`)
  assert.equal(text.match(/^switchyard_delivery_latency_seconds_count/gm)?.length, 70)
})

test('the text stays under a megabyte with 10,000 destinations and sources that are all busy and failing', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  const [ids, from] = [idsOf(10_000, 'dst'), idsOf(10_000, 'src')]
  const known = configuration(
    from.map((id) => source(id, 'x'.repeat(100))),
    ids,
  )
  const codes = Array.from({ length: 25 }, (_, at) => `a_code_of_usual_length_${at}`)
  const countsAt = (value: number): StoreCounts => ({
    ledger: ids.map((id) => ledger(id, { owed: 10 * value, delivered: 10 * value - 6 })),
    oldest: ids.map((destinationId) => ({ destinationId, atMs: AT_MS, firstAttemptAtMs: null })),
    sources: from.map((sourceId) => ({
      sourceId,
      accepted: value,
      duplicates: value,
      rejected: value,
      suppressed: value,
      quarantined: value,
      released: value,
      deleted: value,
    })),
    rejections: from.flatMap((sourceId) => codes.map((code) => ({ sourceId, code, count: value, lastAtMs: 0, lastSample: '' }))),
    order: ids.map((destinationId) => ({ destinationId, waitingKeys: value, heldKeys: value, waitingMessages: value })),
  })
  const counted = [10_000, 20_000].map(async (value) => {
    busy(metrics, ids)
    return await metrics.text(sourcesOf(countsAt(value), known))
  })
  for (const text of await Promise.all(counted)) {
    t.diagnostic(`${text.length} bytes`)
    assert.ok(text.length < 1_000_000, `${text.length} bytes`)
  }
  const found = lines((await counted[1]) as string)
  assert.equal(found.get('switchyard_requests_in_flight{destination="other"}'), 3 * 9_700)
  assert.equal(found.get('switchyard_breaker_state{destination="other",state="probing"}'), 9_700)
  assert.equal(found.get('switchyard_oldest_pending_age_seconds{destination="other"}'), 90)
  assert.equal(found.get('switchyard_order_held_keys{destination="other"}'), 9_700 * 20_000)
  assert.equal(found.get('switchyard_ledger{state="owed"}'), 10_000 * 200_000)
  assert.equal(found.get('switchyard_destination_info{destination="other",name="all other destinations"}'), 1)
  // What all others counted since the first scrape.
  assert.equal(found.get('switchyard_deliveries_owed_total{destination="other"}'), 9_700 * 100_000)
  assert.equal(found.get('switchyard_messages_accepted_total{source="other"}'), 9_950 * 10_000)
  assert.equal(found.get('switchyard_messages_rejected_total{source="other",code="a_code_of_usual_length_7"}'), 9_950 * 10_000)
  const ofAll = [...found].filter(([line]) => line.startsWith('switchyard_attempt_duration_seconds_count'))
  assert.equal(
    ofAll.reduce((sum, [, value]) => sum + value, 0),
    2 * 3 * 10_000,
    'every attempt is counted in exactly one series',
  )
})

test('a destination that needs attention gets its own series at the next scrape, and no counter decreases', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  const ids = idsOf(1_000, 'dst')
  const [troubled = ''] = ids.slice(-1)
  const known = configuration([], ids)
  const scrape = async (failed: number, breaker: 'open' | 'closed'): Promise<Map<string, number>> => {
    const counts: StoreCounts = { ...EMPTY, ledger: ids.map((id) => ledger(id, { failed: id === troubled ? failed : 1 })) }
    const states = (): ReturnType<MetricSources['states']> =>
      ids.map((destinationId) => ({ destinationId, breaker: destinationId === troubled ? breaker : 'closed', inFlight: 0 }))
    return lines(await metrics.text({ ...sourcesOf(counts, known), states }))
  }
  busy(metrics, ids.slice(0, 500))
  const failedOf = (id: string): string => `switchyard_deliveries_failed_total{destination="${id}"}`
  const first = await scrape(1, 'closed')
  assert.equal(first.get(failedOf(troubled)), undefined)
  assert.equal(first.get(failedOf('other')), 0)
  const second = await scrape(8, 'open')
  assert.equal(second.get(`switchyard_breaker_state{destination="${troubled}",state="open"}`), 1)
  assert.equal(second.get(failedOf(troubled)), 8)
  assert.equal(second.get(failedOf('other')), 7, 'failures before it had its own series are counted once, under other')
  const third = await scrape(9, 'closed')
  assert.equal(third.get(failedOf(troubled)), 9, 'it keeps its series')
  assert.equal(third.get(failedOf('other')), 7)
})

test('a name cannot break out of its label value', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  const text = await metrics.text(sourcesOf(EMPTY, configuration([source('s', 'a"} 1\nswitchyard_evil 1\\')], [])))
  assert.doesNotMatch(text, /^switchyard_evil/m)
  assert.match(text, /^switchyard_source_info\{source="s",name="a\\"\} 1\\nswitchyard_evil 1\\\\"\} 1$/m)
})

test('without the store, the metrics of the process are still served', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  const text = await metrics.text(sourcesOf(null, configuration([source('s')], ['d'])))
  const found = lines(text)
  assert.equal(found.get('switchyard_store_readable'), 0)
  assert.equal(found.get('switchyard_breaker_state{destination="d",state="probing"}'), 1)
  assert.doesNotMatch(text, /^switchyard_deliveries_(owed|pending)/m)
})

test('the names are exactly those of the table', async (t) => {
  const metrics = new Metrics()
  t.after(() => metrics.close())
  const text = await metrics.text(sourcesOf(EMPTY, configuration([], [])))
  const served = Array.from(text.matchAll(/^# TYPE (\S+) (?:counter|gauge|histogram)$/gm), ([, name]) => name)
  const ofProcess = Object.entries(PROCESS_METRICS).filter(([, { linux }]) => !linux || process.platform === 'linux')
  const table = [...Object.values(METRICS).map(({ name }) => name), ...ofProcess.map(([name]) => name)]
  assert.deepEqual(new Set(served), new Set(table))
  for (const { name, type, help } of Object.values(METRICS)) {
    assert.equal(name.endsWith('_total'), type === 'counter', name)
    assert.match(help, /\.$/)
  }
})

// ── Reading the counts ───────────────────────────────────────────────────────────────────────────────────────────────

function bookStore(read: () => Promise<LedgerRow[]>): { store: CountsStore; asked: () => number } {
  let asked = 0
  return {
    asked: () => asked,
    store: {
      books: {
        ledger: () => {
          asked++
          return read()
        },
        oldestPending: async () => [],
        sourceCounts: async () => [],
        rejections: async () => [],
      },
      order: { allCounts: async () => [] },
    },
  }
}

test('several scrapes within the cache time read the store once', async () => {
  const { store, asked } = bookStore(async () => [ledger('d')])
  const read = createStoreCounts(store, { cacheMs: 60_000 })
  const both = await Promise.all([read(), read()])
  assert.deepEqual([both[0]?.ledger, both[1]?.ledger, (await read())?.ledger], [[ledger('d')], [ledger('d')], [ledger('d')]])
  assert.equal(asked(), 1)
  const readEagerly = createStoreCounts(store, { cacheMs: 0 })
  await readEagerly()
  await readEagerly()
  assert.equal(asked(), 3)
})

test('a store that hangs does not block the scrape, and is not read again in the meantime', async () => {
  let answer: (rows: LedgerRow[]) => void = () => {}
  const { store, asked } = bookStore(
    () =>
      new Promise((resolve) => {
        answer = resolve
      }),
  )
  const read = createStoreCounts(store, { deadlineMs: 20 })
  assert.equal(await read(), null)
  assert.equal(await read(), null)
  assert.equal(asked(), 1)
  const third = read()
  answer([ledger('d')])
  assert.deepEqual((await third)?.ledger, [ledger('d')])
})

test('a store that fails is distinguished from an empty one, and read again the next time', async () => {
  let fails = true
  const { store } = bookStore(async () => {
    if (fails) throw new Error('away')
    return []
  })
  const read = createStoreCounts(store, { cacheMs: 0 })
  assert.equal(await read(), null)
  fails = false
  assert.deepEqual((await read())?.ledger, [])
})
