// Cancelling the pending deliveries of deleted destinations on several nodes, checked row by row. The conformance suite covers the basic behaviour.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { destinationOf } from '../../conformance/fixtures.ts'
import { type BareNode, openBareNode } from '../fixtures/bare-node.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { addDelta, LEDGER } from '../tables/ledger-deltas.ts'
import { Cancelling } from './cancelling.ts'

interface Owed {
  /** 0 for all messages of a segment. */
  indexes?: readonly number[] | 0
  count?: number
  absent?: readonly number[] | null
  attempt?: number
  replay?: boolean
  holder?: string
}

suite('cancelling', () => {
  let database: TestDatabase
  let nodes: [BareNode, BareNode]
  let cancellings: [Cancelling, Cancelling]
  before(async () => {
    database = await createDatabase()
    nodes = [await openBareNode(database.url, 1), await openBareNode(database.url, 2)]
    cancellings = [new Cancelling(nodes[0].context), new Cancelling(nodes[1].context)]
  })
  after(async () => {
    for (const node of nodes) await node.close()
    await database.drop()
  })

  const newDestination = async (): Promise<{ id: string; num: string }> => {
    const { configuring, context } = nodes[0]
    const { id } = await configuring.createDestination(destinationOf())
    return { id, num: context.idMap.num('destinations', id) ?? assert.fail() }
  }

  /** Returns the id of the shipment, which is also its origin. */
  const owe = async (destination: string, owed: Owed = {}): Promise<string> => {
    const { database: own, ids } = nodes[0].context
    const { indexes = 0, count = 2, absent = null, attempt = 0, replay = false, holder = '0' } = owed
    const isAbsent = new Set(absent)
    const all = (indexes === 0 ? Array.from({ length: count }, (_, index) => index) : indexes).filter((index) => !isAbsent.has(index))
    return own.transaction(async (ask) => {
      const [seq, id] = [ids.next(), ids.next()]
      await ask(
        `INSERT INTO segments (seq, source, received_at, count, browser, absent, routes, keys, body) VALUES ($1, 1, 1, $2, false, $3, '{"s":[]}', '', '')`,
        [seq, count, absent],
      )
      const parts = JSON.stringify([[id, seq, indexes]])
      await ask(
        `INSERT INTO shipments (id, destination, holder, attempt, first_attempt, due, replay, parts, count, bytes, unit)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, false)`,
        [id, destination, holder, attempt, attempt > 0 ? 1 : null, attempt > 0 ? 5_000 - attempt : 0, replay, parts, all.length],
      )
      await addDelta(ask, ids.next(), LEDGER, destination, [all.length, 0, all.length, 0, 0, 0])
      return id
    })
  }

  const ledgerOf = async (num: string): Promise<number[]> => {
    const [row] = await database.query<{ counts: string }>(
      `SELECT array_to_json(ARRAY(SELECT sum(counts[n]) FROM switchyard.deltas, generate_series(1, 6) n
         WHERE kind = 0 AND subject = $1 GROUP BY n ORDER BY n))::text AS counts`,
      [num],
    )
    return JSON.parse(row?.counts ?? '[]') as number[]
  }
  const ended = (num: string): Promise<{ delivery: string; attempts: number; state: string; reason: string }[]> =>
    database.query(
      `SELECT origin || '-' || idx AS delivery, attempts, state, reason FROM switchyard.failures WHERE destination = $1 ORDER BY origin, idx`,
      [num],
    )
  const left = async (num: string): Promise<string[]> =>
    (await database.query<{ id: string }>('SELECT id::text FROM switchyard.shipments WHERE destination = $1 ORDER BY id', [num])).map(
      ({ id }) => id,
    )

  test('every pending delivery is cancelled once, with its attempts, and duplicates are left out', async () => {
    const { id, num } = await newDestination()
    const fresh = await owe(num, { count: 3, absent: [1] })
    const some = await owe(num, { count: 5, indexes: [0, 2, 4], absent: [4] })
    const retry = await owe(num, { attempt: 2, count: 1 })
    await cancellings[0].cancel(id)
    const cancelled = { state: 'cancelled', reason: 'destination_deleted' }
    assert.deepEqual(await ended(num), [
      { delivery: `${fresh}-0`, attempts: 0, ...cancelled },
      { delivery: `${fresh}-2`, attempts: 0, ...cancelled },
      { delivery: `${some}-0`, attempts: 0, ...cancelled },
      { delivery: `${some}-2`, attempts: 0, ...cancelled },
      { delivery: `${retry}-0`, attempts: 2, ...cancelled },
    ])
    assert.deepEqual(await left(num), [])
    assert.deepEqual(await ledgerOf(num), [5, 0, 0, 0, 0, 5])
    const [attempt] = await database.query<{ cancelled: number; attempt: number; doc: string }>(
      'SELECT cancelled, attempt, doc FROM switchyard.attempts WHERE origin = $1',
      [fresh],
    )
    assert.deepEqual(
      [attempt?.cancelled, attempt?.attempt, JSON.parse(attempt?.doc ?? '')],
      [2, 0, { u: [], r: [], f: [['cancelled', 'destination_deleted', [0, 2]]] }],
    )
    await cancellings[0].cancel(id)
    assert.deepEqual(await ledgerOf(num), [5, 0, 0, 0, 0, 5])
  })

  test('held shipments are left to their holder, and cancelled after they were released', async () => {
    const { id, num } = await newDestination()
    const [held, waiting] = [await owe(num, { holder: '77' }), await owe(num)]
    await nodes[0].configuring.deleteDestination(id)
    await cancellings[0].cancel(id)
    assert.deepEqual(await left(num), [held])
    assert.deepEqual(
      (await ended(num)).map(({ delivery }) => delivery),
      [`${waiting}-0`, `${waiting}-1`],
    )
    await database.query('UPDATE switchyard.shipments SET holder = 0 WHERE id = $1', [held])
    await cancellings[1].resume()
    assert.deepEqual(await left(num), [])
    assert.deepEqual(await ledgerOf(num), [4, 0, 0, 0, 0, 4])
  })

  test('a row that another transaction is claiming is skipped, and the rows after it are cancelled', async () => {
    const { id, num } = await newDestination()
    const ids: string[] = []
    for (let at = 0; at < 3; at++) ids.push(await owe(num, { count: 1_000 }))
    await nodes[1].context.database.transaction(async (ask) => {
      await ask('UPDATE shipments SET holder = 78, claim = claim + 1 WHERE holder = 0 AND id = $1', [ids[0] as string])
      await cancellings[0].cancel(id)
    })
    assert.deepEqual(await left(num), [ids[0]])
    assert.deepEqual(await ledgerOf(num), [3_000, 0, 1_000, 0, 0, 2_000])
  })

  test('nodes that cancel at the same time share the work: nothing is cancelled twice', async () => {
    const { id, num } = await newDestination()
    for (let at = 0; at < 30; at++) await owe(num, { count: 250, attempt: at % 2 })
    await nodes[0].configuring.deleteDestination(id)
    await nodes[1].sees(({ destinations }) => !destinations.has(id))
    await Promise.all([cancellings[0].cancel(id), cancellings[1].cancel(id), cancellings[1].resume()])
    await cancellings[0].resume()
    const all = await ended(num)
    assert.deepEqual([all.length, new Set(all.map(({ delivery }) => delivery)).size], [7_500, 7_500])
    assert.deepEqual(await ledgerOf(num), [7_500, 0, 0, 0, 0, 7_500])
    assert.deepEqual(await left(num), [])
  })

  test('remaining deliveries of any deleted destination are found, and those of other destinations are kept', async () => {
    const [deleted, kept] = [await newDestination(), await newDestination()]
    await owe(deleted.num, { attempt: 1 })
    const stays = await owe(kept.num)
    await nodes[0].configuring.deleteDestination(deleted.id)
    await cancellings[1].resume()
    assert.deepEqual([await left(deleted.num), await left(kept.num)], [[], [stays]])
  })

  test('the outcomes of replays are recorded, and only of those', async () => {
    const { id, num } = await newDestination()
    const [replay, other] = [await owe(num, { replay: true }), await owe(num)]
    for (const origin of [replay, other]) {
      await database.query(
        `INSERT INTO switchyard.replays (origin, idx, destination, segment, at, replay_of) SELECT $1, idx, $2, 1, 1, '' FROM generate_series(0, 1) idx`,
        [origin, num],
      )
    }
    await cancellings[0].cancel(id)
    assert.deepEqual(
      await database.query('SELECT origin::text, idx, state FROM switchyard.replays WHERE destination = $1 ORDER BY origin, idx', [num]),
      [
        { origin: replay, idx: 0, state: 'cancelled' },
        { origin: replay, idx: 1, state: 'cancelled' },
        { origin: other, idx: 0, state: null },
        { origin: other, idx: 1, state: null },
      ],
    )
  })

  test('for a destination that never existed, nothing is cancelled', async () => {
    await cancellings[0].cancel('dst_unknown')
  })
})
