// Lists over many rows: answered from indexes, whatever the server's statistics say, and in an order that is stable while
// nodes claim and release. The conformance suite covers what every adapter does.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { allPages } from '../../conformance/fixtures.ts'
import { type HistoryStore, InvalidCursor, type PageRequest } from '../../store.ts'
import { type BareNode, openBareNode } from '../fixtures/bare-node.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { type PlanRecorder, recordPlans } from '../fixtures/query-plans.ts'
import { preparePartitions } from '../schema/partitions.ts'
import { NEWEST, OLDEST, rowIdAt } from '../tables/ids.ts'
import { createHistory } from './history.ts'

/** Enough rows that a list must not read the whole table, even if the planner would prefer that. */
const PENDING = process.env['SWITCHYARD_LONG_TESTS'] === '1' ? 200_000 : 100_000
const HELD = 500
const LARGE = /Seq Scan on (shipments|segments|attempts|failures|replays|message_keys|repeats|audit)|Bitmap/

suite('lists over many rows', () => {
  let database: TestDatabase
  let node: BareNode
  let plans: PlanRecorder
  let history: HistoryStore
  // Read once: if the clock ticked between two reads, both destinations could get the same row id.
  const nowMs = Date.now()
  const destinations = [0, 1].map((nth) => ({ id: `dst_${nth}`, num: rowIdAt(nowMs - 1_000 - nth) }))
  const [large, small] = destinations as [{ id: string; num: string }, { id: string; num: string }]
  const source = rowIdAt(nowMs - 2_000)
  const first = rowIdAt(nowMs)

  before(async () => {
    database = await createDatabase()
    node = await openBareNode(database.url, 1, {
      wrap: (real) => {
        plans = recordPlans(real)
        return plans.database
      },
    })
    await preparePartitions(node.context.database)
    const run = (sql: string, values: unknown[]): Promise<unknown> => database.query(sql, values)
    for (const { id, num } of destinations) await run(`INSERT INTO switchyard.destinations (num, id, doc) VALUES ($1, $2, '{}')`, [num, id])
    await run(`INSERT INTO switchyard.sources (num, id, doc) VALUES ($1, 'src_0', '{}')`, [source])
    // Every row is a call with one message. One in fifty is for the small destination; three in ten wait for a retry.
    await run(
      `INSERT INTO switchyard.segments (seq, source, received_at, count, browser, routes, keys, body)
       SELECT $1::bigint + 4 * n, $2, 1, 1, false, '{"s":[["' || CASE n % 50 WHEN 0 THEN $4::bigint ELSE $5::bigint END || '","' || $1::bigint + 4 * n + 1 || '",0,1]]}',
              '', convert_to('{"batch":[{"type":"track","messageId":"m-' || n || '"}]}', 'UTF8')
       FROM generate_series(1, $3::bigint) n`,
      [first, source, PENDING, small.num, large.num],
    )
    await run(
      `INSERT INTO switchyard.shipments (id, destination, due, first_attempt, count, attempt, bytes, parts)
       SELECT $1::bigint + 4 * n + 1, CASE n % 50 WHEN 0 THEN $2::bigint ELSE $3::bigint END,
              CASE WHEN n % 10 < 3 THEN (n * 7919) % 100000 + 1 ELSE 0 END, CASE WHEN n % 10 < 3 THEN n END, 1, CASE WHEN n % 10 < 3 THEN 1 ELSE 0 END, 100,
              '[["' || $1::bigint + 4 * n + 1 || '","' || $1::bigint + 4 * n || '",0]]'
       FROM generate_series(1, $4::bigint) n`,
      [first, small.num, large.num, PENDING],
    )
    await run(
      `INSERT INTO switchyard.attempts (id, origin, destination, segment, at, attempt, delivered, failed, expired, cancelled, replay, doc)
       SELECT $1::bigint + 4 * n + 2, $1::bigint + 4 * n + 1, $2, $1::bigint + 4 * n, 1, 1, n % 2, 1 - n % 2, 0, 0, false,
              CASE n % 2 WHEN 1 THEN '{"u":[],"r":[],"f":[["delivered",null,[0]]]}' ELSE '{"u":[],"r":[],"f":[["failed","http_500",[0]]]}' END
       FROM generate_series(1, $3::bigint) n`,
      [first, large.num, PENDING / 4],
    )
    await run(
      `INSERT INTO switchyard.failures (id, destination, origin, segment, at, idx, attempts, replay, state, reason)
       SELECT $1::bigint + 4 * n + 3, $2, $1::bigint + 4 * n + 1, $1::bigint + 4 * n, 1, 0, 1, false, 'failed', 'http_' || n % 100
       FROM generate_series(1, $3::bigint) n`,
      [first, large.num, PENDING / 4],
    )
    history = createHistory(node.context)
  })
  after(async () => {
    await node.close()
    await database.drop()
  })

  const hold = (holder: number, from: number, to: number): Promise<unknown> =>
    database.query(
      'UPDATE switchyard.shipments SET holder = $1, claim = claim + 1 WHERE holder IN (0, 77, 78, 79) AND id > $2::bigint + 4 * $3::bigint AND id < $2::bigint + 4 * $4::bigint',
      [holder, first, from, to],
    )

  for (const isAnalyzed of [false, true]) {
    test(`no page reads a whole table, ${isAnalyzed ? 'with' : 'without'} statistics`, async () => {
      if (isAnalyzed) await database.query('ANALYZE')
      await hold(77, 1_000, 1_000 + HELD)
      const FIRST = { limit: 100, cursor: null }
      plans.take()
      const filters = [
        {},
        { state: 'pending' },
        { state: 'delivered' },
        { state: 'failed' },
        { state: 'expired' },
        { reason: 'http_7' },
        { fromMs: Date.now() + 1e9 },
        { toMs: 1 },
      ] as const
      for (const filter of filters) {
        for (const destinationId of [large.id, small.id, undefined]) {
          let page: PageRequest = FIRST
          for (let nth = 0; nth < (isAnalyzed ? 2 : 1); nth++) {
            const { data, next } = await history.deliveries({ ...filter, destinationId }, page)
            assert.ok(data.length <= 100)
            if (next === null) break
            page = { limit: 100, cursor: next }
          }
        }
      }
      for (const filter of [{}, { userId: 'nobody' }, { type: 'page' }, { messageId: 'm-7' }, { sourceId: 'src_0' }]) {
        await history.messages(filter, FIRST)
      }
      const { data } = await history.deliveries({ destinationId: large.id }, FIRST)
      for (const { id } of data.slice(0, 3)) assert.equal((await history.delivery(id))?.id, id)
      await history.failureCauses({})
      await history.trails(`${String(BigInt(first) + 400n)}-0`)
      const all = plans.take()
      assert.ok(all.length > 50, `${all.length} plans`)
      for (const plan of all) assert.doesNotMatch(plan, LARGE)
      await hold(0, 1_000, 1_000 + HELD)
    })
  }

  test('every pending delivery is on exactly one page, in a stable order, while nodes claim and release what is listed', async () => {
    const order = async (holder: number): Promise<string[]> => {
      await hold(holder, 0, 3_000)
      return (await history.deliveries({ destinationId: small.id, state: 'pending' }, { limit: 4_000, cursor: null })).data.map(
        ({ id }) => id,
      )
    }
    const expected = await order(0)
    assert.equal(expected.length, PENDING / 50)
    assert.deepEqual(await order(78), expected)
    let nth = 0
    const paged = await allPages(
      (page) => history.deliveries({ destinationId: small.id, state: 'pending' }, page),
      333,
      () => hold(nth++ % 2 === 0 ? 0 : 79, nth * 100, 5_000 + nth * 500),
    )
    assert.deepEqual(
      paged.map(({ id }) => id),
      expected,
    )
    // For all destinations, one after the other.
    const retries = JSON.stringify(['p', 1, OLDEST, 0, OLDEST, 0])
    const all = await history.deliveries({ state: 'pending' }, { limit: expected.length + 5, cursor: retries })
    assert.deepEqual(
      all.data.slice(0, -5).map(({ id }) => id),
      expected,
    )
    assert.ok(all.data.slice(-5).every(({ destinationId }) => destinationId === large.id))
    await database.query('UPDATE switchyard.shipments SET holder = 0 WHERE holder > 0')
  })

  test('a filter that finds nothing among many rows returns a cursor, and the next pages have the matches', async () => {
    const filter = { destinationId: large.id, reason: 'http_7' }
    const short = await history.deliveries(filter, { limit: 1_000, cursor: null })
    assert.ok(short.next !== null && short.data.length > 0 && short.data.length < PENDING / 400)
    const all = await allPages((page) => history.deliveries(filter, page), 1_000)
    assert.equal(all.length, PENDING / 400)
    const none = await history.deliveries({ state: 'pending', toMs: 0 }, { limit: 10, cursor: null })
    assert.ok(none.data.length === 0 && none.next !== null)
  })

  test('an arbitrary cursor is a valid position or rejected, and never reaches the server as anything else', async () => {
    const names = [
      '0',
      '1',
      '-1',
      '1e18',
      '9223372036854775808',
      '9999999999999999999',
      '01000000000000000000',
      ` ${OLDEST}`,
      `${OLDEST} `,
      `${OLDEST}\n`,
      `${OLDEST}; DROP TABLE switchyard.shipments`,
      "' OR 1=1 --",
      '\0',
      '\ud800',
      '١٢٣٤٥٦٧٨٩٠١٢٣٤٥٦٧٨٩',
      'x'.repeat(100_000),
    ]
    const odd: unknown[] = [...names, null, true, [], {}, [OLDEST], 1, 1.5, -1, Number(OLDEST), { toString: 'x' }]
    for (const name of odd) {
      const cursor = (...values: unknown[]): PageRequest => ({ limit: 1, cursor: JSON.stringify(values) })
      await assert.rejects(history.messages({}, cursor('m', name, 0)), InvalidCursor)
      await assert.rejects(history.messages({ messageId: 'm-7' }, cursor('m', name, 0)), InvalidCursor)
      await assert.rejects(history.deliveries({ state: 'delivered' }, cursor('s', name, 0)), InvalidCursor)
      await assert.rejects(history.deliveries({}, cursor('s', name, 0)), InvalidCursor)
      await assert.rejects(history.deliveries({ state: 'failed' }, cursor('f', name, 0)), InvalidCursor)
      await assert.rejects(history.deliveries({ destinationId: large.id }, cursor('p', 0, name, 0, OLDEST, 0)), InvalidCursor)
      await assert.rejects(history.deliveries({}, cursor('p', 1, OLDEST, 0, name, 0)), InvalidCursor)
      await assert.rejects(history.audit({}, cursor('a', name)), InvalidCursor)
    }
    for (const number of ['1', -1, 1.5, null, 1e300, []]) {
      const of = (at: number): PageRequest => {
        const values: unknown[] = ['p', 0, OLDEST, 0, OLDEST, 0]
        values[at] = number
        return { limit: 1, cursor: JSON.stringify(values) }
      }
      for (const at of [1, 3, 5]) await assert.rejects(history.deliveries({}, of(at)), InvalidCursor)
    }
    // Whatever could be a position is accepted.
    const far = Number.MAX_SAFE_INTEGER
    for (const values of [
      ['p', far, NEWEST, far, NEWEST, far],
      ['p', 1, OLDEST, far, OLDEST, far],
      ['p', 0, NEWEST, 0, NEWEST, 0],
      ['s', OLDEST, far],
    ]) {
      for (const destinationId of [large.id, undefined]) {
        const { data } = await history.deliveries({ destinationId }, { limit: 5, cursor: JSON.stringify(values) })
        assert.ok(data.length <= 5)
      }
    }
  })

  test('filters may contain any text', async () => {
    const page = { limit: 1, cursor: null }
    for (const text of ['\0', 'a\0b', '\ud800', "'; --", '\\', 'x'.repeat(100_000)]) {
      assert.deepEqual((await history.messages({ sourceId: text }, page)).data, [])
      assert.deepEqual((await history.messages({ userId: text }, page)).data, [])
      assert.deepEqual((await history.messages({ messageId: text }, page)).data, [])
      assert.equal(await history.message(text), undefined)
      assert.deepEqual(await history.trails(text), [])
      assert.deepEqual((await history.deliveries({ destinationId: text }, page)).data, [])
      assert.deepEqual((await history.deliveries({ reason: text, destinationId: small.id }, page)).data, [])
      assert.equal(await history.delivery(text), undefined)
      assert.deepEqual((await history.audit({ subject: text }, page)).data, [])
      await history.noteAudit({ actor: { id: 'tok', name: text }, action: 'x.y', subject: text, before: { text }, after: null })
      const [entry] = (await history.audit({ subject: text }, page)).data
      assert.deepEqual([entry?.subject, entry?.actor.name, entry?.before], [text, text, { text }])
    }
    for (const ms of [0, -1, 1e300, Number.MAX_SAFE_INTEGER, 0.5]) {
      for (const times of [{ fromMs: ms }, { toMs: ms }]) {
        await history.messages(times, page)
        await history.deliveries({ ...times, state: 'failed' }, page)
        await history.deliveries({ ...times, state: 'delivered' }, page)
        await history.audit(times, page)
      }
    }
  })
})
