import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { latencyBucket, latencyName } from '../store/port/stat-counts.ts'
import { type Routing, type StatRow, StoreUnavailable } from '../store/store.ts'
import { AT_MS, accepted, attempted, destination } from './fixtures/events.ts'
import { Stats } from './stats.ts'

interface Rig {
  stats: Stats
  /** A store that adds up rows as the real store does. */
  stored: Map<string, Record<string, number>>
  clock: { nowMs: number }
  store: { problem: Error | null; calls: number; most: number }
}

function start(t: TestContext): Rig {
  const stored: Rig['stored'] = new Map()
  const clock = { nowMs: AT_MS }
  const store: Rig['store'] = { problem: null, calls: 0, most: 0 }
  const stats = new Stats({
    wallMs: () => clock.nowMs,
    flushEveryMs: 3_600_000,
    add: async (rows: readonly StatRow[]) => {
      store.calls++
      store.most = Math.max(store.most, rows.length)
      if (store.problem) throw store.problem
      for (const { kind, subject, atMs, counts } of rows) {
        const key = `${kind} ${subject} ${(atMs - AT_MS) / 60_000}`
        const sum = stored.get(key) ?? {}
        for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
        stored.set(key, sum)
      }
    },
  })
  t.after(() => stats.close())
  return { stats, stored, clock, store }
}

const settled = { destination: destination('d'), delivered: 2, failed: 1, expired: 1, cancelled: 1, retried: 3 }

test('messages without a key are counted for their ordered destination', async (t) => {
  const { stats, stored } = start(t)
  stats.accepted({ ...accepted('s', [{}, {}]), keyless: [{ destinationId: 'd', messages: 2 }] })
  await stats.flush()
  assert.equal(stored.get('destination d 0')?.['keyless'], 2)
})

test('messages and deliveries are counted per minute, for each source and destination and in total', async (t) => {
  const { stats, stored, clock } = start(t)
  stats.accepted(accepted('s', [{}, {}, {}], [1]))
  stats.accepted(accepted('other', [{}]))
  stats.rejected({ sourceId: 's', code: 'event_required', messages: 2, sample: '' })
  stats.rejected({ sourceId: null, code: 'invalid_write_key', messages: 1, sample: '' })
  stats.suppressed({ sourceId: 's', messages: 4 })
  stats.warned({ sourceId: 's', code: 'timestamp_invalid', messages: 2 })
  stats.warned({ sourceId: 's', code: 'timestamp_invalid', messages: 3 })
  clock.nowMs += 59_999
  stats.attempted(attempted('d', 'success'))
  clock.nowMs += 1
  stats.attempted(attempted('d', 'temporary'))
  stats.settled(settled)
  await stats.flush()
  const latency = latencyName(latencyBucket(20))
  const incoming = { accepted: 2, duplicates: 1, suppressed: 4, 'rejected.event_required': 2, 'warning.timestamp_invalid': 5 }
  const outgoing = { attempts: 1, delivered: 2, failed: 1, expired: 1, cancelled: 1, retried: 3, [latency]: 1 }
  assert.deepEqual(Object.fromEntries(stored), {
    'source s 0': incoming,
    'source other 0': { accepted: 1 },
    'destination d 0': { attempts: 1, [latency]: 1 },
    'all  0': { ...incoming, accepted: 3, 'rejected.invalid_write_key': 1, attempts: 1, [latency]: 1 },
    'destination d 1': outgoing,
    'all  1': outgoing,
  })
})

test('stored rows are not written again', async (t) => {
  const { stats, stored, store } = start(t)
  stats.accepted(accepted('s', [{}]))
  await stats.flush()
  await stats.flush()
  assert.equal(store.calls, 1)
  stats.accepted(accepted('s', [{}]))
  await stats.close()
  assert.deepEqual(stored.get('source s 0'), { accepted: 2 })
})

test('rows that could not be stored are written again with newer counts, and counted once', async (t) => {
  const { stats, stored, store, clock } = start(t)
  store.problem = new StoreUnavailable('disk full')
  stats.accepted(accepted('s', [{}]))
  await stats.flush()
  stats.accepted(accepted('s', [{}]))
  clock.nowMs += 60_000
  stats.accepted(accepted('s', [{}]))
  await stats.flush()
  assert.equal(stored.size, 0)
  store.problem = null
  await stats.flush()
  assert.deepEqual(stored.get('source s 0'), { accepted: 2 })
  assert.deepEqual(stored.get('source s 1'), { accepted: 1 })
  assert.deepEqual(stored.get('all  0'), { accepted: 2 })
})

test('many rows are written in chunks, so that no commit takes long, and stored chunks are not written again', async (t) => {
  const { stats, stored, store } = start(t)
  for (let at = 0; at < 700; at++) stats.accepted(accepted(`s-${at}`, [{}]))
  Object.defineProperty(store, 'problem', { get: () => (store.calls === 3 ? new StoreUnavailable('away for a moment') : null) })
  await stats.flush()
  assert.ok(store.most <= 200 && stored.size === 400, `${store.most} at once, ${stored.size} stored`)
  await stats.flush()
  assert.deepEqual(
    Array.from({ length: 700 }, (_, at) => stored.get(`source s-${at} 0`)?.['accepted']),
    Array.from({ length: 700 }, () => 1),
  )
  assert.deepEqual(stored.get('all  0'), { accepted: 700 })
})

test('after the wall clock is set back, events count in the minute that it shows', async (t) => {
  const { stats, stored, clock } = start(t)
  stats.accepted(accepted('s', [{}]))
  clock.nowMs -= 3_600_000
  stats.accepted(accepted('s', [{}, {}]))
  await stats.flush()
  assert.deepEqual([stored.get('source s 0'), stored.get('source s -60')], [{ accepted: 1 }, { accepted: 2 }])
})

test('memory use is bounded while the store is unavailable', async (t) => {
  const { stats, stored, store, clock } = start(t)
  store.problem = new StoreUnavailable('away')
  for (let minute = 0; minute < 15_000; minute++) {
    stats.accepted(accepted('s', [{}]))
    clock.nowMs += 60_000
  }
  store.problem = null
  await stats.flush()
  assert.equal(stored.size, 20_000)
  assert.ok(stored.has('all  14999'))
  assert.equal(stored.has('all  0'), false)
})

test('deliveries are counted where messages are routed to, without duplicates and messages in quarantine; skips by their reason', async (t) => {
  const { stats, stored } = start(t)
  const held = { index: 2, planId: 'p', violations: [] }
  const routing: Routing = {
    shipments: [
      { destinationId: 'all-of-them', indexes: null },
      { destinationId: 'some', indexes: [0, 1] },
      { destinationId: 'only-duplicates', indexes: [1] },
    ],
    skips: [
      { destinationId: 'some', reason: 'filtered', rule: 'event_denied', indexes: [2, 3] },
      { destinationId: 'off', reason: 'destination_disabled', indexes: null },
    ],
  }
  const batch = accepted('s', [{}, {}, {}, {}], [1])
  stats.accepted({ ...batch, routing, quarantined: [held, { ...held, index: 1 }] })
  stats.accepted({ ...accepted('s', [{}], [0]), routing })
  stats.accepted({ ...accepted('t', [{}]), routing: { shipments: [{ destinationId: 'some', indexes: null }], skips: [] } })
  await stats.flush()
  assert.deepEqual(Object.fromEntries(stored), {
    'source s 0': { accepted: 3, duplicates: 2, quarantined: 1, 'skipped.filtered': 1, 'skipped.destination_disabled': 2 },
    'source t 0': { accepted: 1 },
    'destination all-of-them 0': { owed: 2, 'from.s': 2 },
    'destination some 0': { owed: 2, 'from.s': 1, 'from.t': 1 },
    'all  0': { accepted: 4, duplicates: 2, quarantined: 1, 'skipped.filtered': 1, 'skipped.destination_disabled': 2, owed: 4 },
  })
})

test('an attempt without an answer has no latency', async (t) => {
  const { stats, stored } = start(t)
  const { outcome } = attempted('d', 'temporary')
  stats.attempted(attempted('d', 'temporary', { outcome: { ...outcome, status: null } }))
  await stats.flush()
  assert.deepEqual(stored.get('destination d 0'), { attempts: 1 })
})

test('backlogs are noted once in each minute; nothing is written while nothing is pending', async (t) => {
  const rows: StatRow[] = []
  let nowMs = AT_MS + 30_000
  let asked = 0
  let ledger = [
    { destinationId: 'a', pending: 3 },
    { destinationId: 'b', pending: 4 },
    { destinationId: 'idle', pending: 0 },
  ]
  const stats = new Stats({
    add: async (added) => void rows.push(...added),
    backlogs: async () => {
      asked += 1
      return { ledger, oldest: [{ destinationId: 'a', atMs: nowMs - 90_000, firstAttemptAtMs: null }] }
    },
    wallMs: () => nowMs,
    flushEveryMs: 3_600_000,
  })
  t.after(() => stats.close())
  await stats.flush()
  await stats.flush()
  assert.equal(asked, 1)
  assert.deepEqual(
    rows.map(({ kind, subject, atMs, counts }) => [kind, subject, atMs - AT_MS, counts]),
    [
      ['destination', 'a', 0, { 'max.pending': 3, 'max.oldest': 90 }],
      ['destination', 'b', 0, { 'max.pending': 4 }],
      ['all', '', 0, { 'max.pending': 7, 'max.oldest': 90 }],
    ],
  )
  ledger = []
  nowMs += 60_000
  await stats.flush()
  assert.deepEqual([asked, rows.length], [2, 3])
})
