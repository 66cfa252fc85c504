// Conformance: counts over time. New counts are added to existing ones.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { fromName, latencyName, OLDEST_SECONDS, PENDING } from '../port/stat-counts.ts'
import type { StatQuery, StatRow, Store } from '../store.ts'
import { accept, DAY_MS, newDestination, newSourceAndDestination, type StoreFixture, settleAll, tracks } from './fixtures.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** A multiple of every step. */
const AT_MS = 20_000 * DAY_MS

export function counting({ store, reopen, open }: StoreFixture): void {
  const row = (subject: string, atMs: number, counts: StatRow['counts'], kind: StatRow['kind'] = 'source'): StatRow => {
    return { kind, subject, atMs, counts }
  }
  const series = (of: Store, subject: string, change: Partial<StatQuery> = {}) =>
    of.books.stats({ kind: 'source', subject, fromMs: AT_MS, toMs: AT_MS + DAY_MS, stepMs: MINUTE_MS, ...change })

  test('counts of one minute are added up, in whatever order', async () => {
    const subject = randomUUID()
    await Promise.all([
      store().books.addStats([row(subject, AT_MS + 1, { accepted: 3, 'rejected.event_required': 1 })]),
      store().books.addStats([row(subject, AT_MS + 59_999, { accepted: 4, duplicates: 2 })]),
      store().books.addStats([row(subject, AT_MS + MINUTE_MS, { accepted: 100 })]),
    ])
    assert.deepEqual(await series(store(), subject), [
      { atMs: AT_MS, counts: { accepted: 7, duplicates: 2, 'rejected.event_required': 1 } },
      { atMs: AT_MS + MINUTE_MS, counts: { accepted: 100 } },
    ])
  })

  test('counts are added up to the requested step, and the end is exclusive', async () => {
    const subject = randomUUID()
    const minutes = [0, 4, 5, 59, 60, 61, 1_439, 1_440]
    await store().books.addStats(minutes.map((minute) => row(subject, AT_MS + minute * MINUTE_MS, { accepted: 1 })))
    const counted = async (stepMs: number): Promise<[number, number | undefined][]> =>
      (await series(store(), subject, { stepMs })).map(({ atMs, counts }) => [(atMs - AT_MS) / MINUTE_MS, counts['accepted']])
    assert.deepEqual(await counted(5 * MINUTE_MS), [
      [0, 2],
      [5, 1],
      [55, 1],
      [60, 2],
      [1_435, 1],
    ])
    assert.deepEqual(await counted(HOUR_MS), [
      [0, 4],
      [60, 2],
      [1_380, 1],
    ])
    assert.deepEqual(await counted(DAY_MS), [[0, 7]])
  })

  test('sources, destinations and totals are counted separately, also with the same id', async () => {
    const subject = randomUUID()
    await store().books.addStats([
      row(subject, AT_MS, { attempts: 1 }),
      row(subject, AT_MS, { attempts: 2 }, 'destination'),
      row(subject, AT_MS, { attempts: 4 }, 'all'),
      row('__proto__', AT_MS, { attempts: 8 }),
    ])
    for (const [kind, attempts] of [
      ['source', 1],
      ['destination', 2],
      ['all', 4],
    ] as const) {
      assert.deepEqual(await series(store(), subject, { kind }), [{ atMs: AT_MS, counts: { attempts } }])
    }
    assert.deepEqual(await series(store(), randomUUID()), [])
  })

  test('of a backlog, the largest value of a step is kept, and what came from each source only per minute', async () => {
    const subject = randomUUID()
    const seen = (minute: number, pending: number) =>
      row(
        subject,
        AT_MS + minute * MINUTE_MS,
        { [PENDING]: pending, [OLDEST_SECONDS]: pending * 2, owed: 1, [fromName('s')]: 1 },
        'destination',
      )
    await Promise.all([store().books.addStats([seen(0, 5)]), store().books.addStats([seen(0, 7)])])
    await store().books.addStats([seen(0, 6), seen(1, 9), seen(2, 1)])
    const points = async (stepMs: number) => (await series(store(), subject, { kind: 'destination', stepMs })).map(({ counts }) => counts)
    assert.deepEqual((await points(MINUTE_MS))[0], { [PENDING]: 7, [OLDEST_SECONDS]: 14, owed: 3, [fromName('s')]: 3 })
    assert.deepEqual(await points(5 * MINUTE_MS), [{ [PENDING]: 9, [OLDEST_SECONDS]: 18, owed: 5, [fromName('s')]: 5 }])
    assert.deepEqual(await points(HOUR_MS), [{ [PENDING]: 9, [OLDEST_SECONDS]: 18, owed: 5 }])
  })

  test('counts of several subjects are read at once', async () => {
    const subjects = [randomUUID(), randomUUID(), randomUUID()] as const
    await store().books.addStats([
      row(subjects[0], AT_MS, { accepted: 1 }),
      row(subjects[2], AT_MS + MINUTE_MS, { accepted: 2 }),
      row(subjects[2], AT_MS + 2 * MINUTE_MS, { accepted: 3 }),
    ])
    const query = { kind: 'source', fromMs: AT_MS, toMs: AT_MS + 2 * MINUTE_MS, stepMs: MINUTE_MS } as const
    assert.deepEqual(await store().books.statsOf({ ...query, subjects }), [
      { subject: subjects[0], points: [{ atMs: AT_MS, counts: { accepted: 1 } }] },
      { subject: subjects[2], points: [{ atMs: AT_MS + MINUTE_MS, counts: { accepted: 2 } }] },
    ])
    assert.deepEqual(await store().books.statsOf({ ...query, subjects: [] }), [])
  })

  test('counts are kept when the store is reopened, and new ones are added to them', async () => {
    const subject = randomUUID()
    await store().books.addStats([row(subject, AT_MS, { delivered: 5 })])
    await (await reopen()).books.addStats([row(subject, AT_MS, { delivered: 6 })])
    assert.deepEqual(await series(store(), subject), [{ atMs: AT_MS, counts: { delivered: 11 } }])
  })

  test('counts per minute are dropped with the retention time, counts per hour after 90 days', async () => {
    const opened = await open({ retentionDays: 7 })
    try {
      const { books } = opened.store
      const old = Array.from({ length: 600 }, (_, minute) => row('s', AT_MS + minute * MINUTE_MS, { accepted: 1 }))
      await books.addStats([...old, row('s', AT_MS + 5 * DAY_MS, { accepted: 1 })])
      const left = async (stepMs: number): Promise<number> =>
        (await series(opened.store, 's', { stepMs, toMs: AT_MS + 10 * DAY_MS })).reduce(
          (sum, { counts }) => sum + (counts['accepted'] as number),
          0,
        )
      await opened.store.dropExpired(AT_MS + 6 * DAY_MS)
      assert.deepEqual([await left(MINUTE_MS), await left(HOUR_MS)], [601, 601])
      await opened.store.dropExpired(AT_MS + 8 * DAY_MS)
      assert.deepEqual([await left(MINUTE_MS), await left(HOUR_MS)], [1, 601])
      // By whole fortnights, into which they are packed.
      await opened.store.dropExpired(AT_MS + 92 * DAY_MS)
      assert.deepEqual([await left(MINUTE_MS), await left(HOUR_MS)], [0, 601])
      await opened.store.dropExpired(AT_MS + 106 * DAY_MS)
      assert.deepEqual([await left(MINUTE_MS), await left(HOUR_MS)], [0, 0])
    } finally {
      await opened.dispose()
    }
  })

  test('hours that are over are packed, and their counts stay the same, also for those that are added later', async () => {
    const opened = await open({ retentionDays: 30 })
    try {
      const { books } = opened.store
      const [subject, other] = [randomUUID(), 'ünusual \u0000 name']
      const hours = Array.from({ length: 9 * 24 }, (_, hour) => hour)
      const countsOf = (hour: number): Record<string, number> => ({
        attempts: 10 + hour,
        delivered: 9 + (hour % 3),
        owed: 1 + hour,
        retried: 1 + (hour % 7),
        [PENDING]: 1_000 + hour,
        [OLDEST_SECONDS]: 3,
        [latencyName(100)]: 5 + hour,
      })
      const rowsOf = (of: string) => hours.map((hour) => row(of, AT_MS + hour * HOUR_MS, countsOf(hour), 'destination'))
      await books.addStats([...rowsOf(subject), ...rowsOf(other)])
      const read = async (of: string) =>
        await books.stats({ kind: 'destination', subject: of, fromMs: AT_MS, toMs: AT_MS + 9 * DAY_MS, stepMs: HOUR_MS })
      const before = await read(subject)
      assert.equal(before.length, hours.length)
      await opened.store.dropExpired(AT_MS + 9 * DAY_MS)
      assert.deepEqual(await read(subject), before)
      assert.deepEqual(await read(other), before)
      await books.addStats([row(subject, AT_MS + 5 * HOUR_MS, { delivered: 1, [PENDING]: 1, [latencyName(101)]: 2 }, 'destination')])
      const later = before.map((point, hour) =>
        hour === 5
          ? Object.assign({}, point, { counts: { ...point.counts, delivered: 9 + 2 + 1, [latencyName(100)]: 10, [latencyName(101)]: 2 } })
          : point,
      )
      assert.deepEqual(await read(subject), later)
      await opened.store.dropExpired(AT_MS + 9 * DAY_MS)
      // Neighbouring buckets are merged when they are packed.
      const [fifth] = (await read(subject)).slice(5)
      assert.deepEqual(fifth?.counts, { ...countsOf(5), delivered: 12, [latencyName(100)]: 12 })
      // The fortnight goes when its last hour is old enough.
      await opened.store.dropExpired(AT_MS + 120 * DAY_MS)
      assert.deepEqual(await read(subject), [])
    } finally {
      await opened.dispose()
    }
  })

  test('the oldest pending delivery is returned for every destination that has one, and for no other', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: idle } = await newDestination(store(), sourceId)
    const before = Date.now()
    await accept(store(), sourceId, tracks(1), [destinationId])
    const told = async () => new Map((await store().books.oldestPending()).map(({ destinationId: id, atMs }) => [id, atMs]))
    const first = await told()
    assert.equal(first.get(destinationId), (await store().books.oldestPendingOf(destinationId))?.atMs)
    // The clock of a database server is known only to within one round trip.
    assert.ok((first.get(destinationId) as number) >= before - 5_000)
    assert.equal(first.has(idle), false)
    await settleAll(store(), destinationId, 'delivered')
    assert.equal((await told()).has(destinationId), false)
  })
}
