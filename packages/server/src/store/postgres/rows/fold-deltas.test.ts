// Several nodes fold and read the ledger at the same time. The conformance suite covers what every adapter does.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { accept, claim, NOW_MS, newDestination, newSource, settlementOf, tracks } from '../../conformance/fixtures.ts'
import { type BareNode, openBareNode } from '../fixtures/bare-node.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { Value } from '../session/connection.ts'
import type { Database } from '../session/database.ts'
import type { PostgresStore } from '../store.ts'
import { rowIdAt } from '../tables/ids.ts'
import { addDelta, LEDGER, MARKER, QUARANTINE_COUNTS, SOURCE_COUNTS } from '../tables/ledger-deltas.ts'
import { bookRows } from './book-rows.ts'
import { createDeltaFolder } from './fold-deltas.ts'

suite('folding deltas', () => {
  let database: TestDatabase
  let nodes: [BareNode, BareNode]
  before(async () => {
    database = await createDatabase()
    nodes = [await openBareNode(database.url, 1), await openBareNode(database.url, 2)]
  })
  after(async () => {
    for (const node of nodes) await node.close()
    await database.drop()
  })
  const newName = async (table: 'sources' | 'destinations'): Promise<{ id: string; num: string }> => {
    const num = nodes[0].context.ids.next()
    await database.query(`INSERT INTO switchyard.${table} (num, id, doc) VALUES ($1, $2, '{}')`, [num, `${table}-${num}`])
    return { id: `${table}-${num}`, num }
  }
  const deltas = async (where = 'true'): Promise<number> =>
    (await database.query<{ count: number }>(`SELECT count(*)::integer AS count FROM switchyard.deltas WHERE ${where}`))[0]?.count ?? 0

  test('nodes that fold at the same time while others append lose and double nothing, and readers see consistent sums', async () => {
    const destinations = [await newName('destinations'), await newName('destinations')]
    const source = await newName('sources')
    const rounds = 200
    let isOver = false
    const appending = nodes.map(async ({ context }) => {
      for (let round = 0; round < rounds; round++) {
        await context.database.transaction(async (ask) => {
          for (const { num } of destinations) await addDelta(ask, context.ids.next(), LEDGER, num, [3, 1, 1, 1, 0, 0])
          await addDelta(ask, context.ids.next(), SOURCE_COUNTS, source.num, [5, 1, 0, 2])
          await addDelta(ask, context.ids.next(), QUARANTINE_COUNTS, source.num, [2, 1, 3])
        })
      }
    })
    const [one, other] = nodes.map(({ context }) => createDeltaFolder(context)) as [() => Promise<void>, () => Promise<void>]
    const ledgerRows = bookRows(nodes[1].context)
    const folding = [one, other, one].map(async (each) => {
      // oxlint-disable-next-line eslint/no-unmodified-loop-condition -- modified below while this waits
      while (!isOver) await each()
    })
    const reading = (async () => {
      let before = 0
      // oxlint-disable-next-line eslint/no-unmodified-loop-condition -- modified below while this waits
      while (!isOver) {
        const rows = (await ledgerRows.ledger()).filter(({ destinationId }) => destinations.some(({ id }) => id === destinationId))
        for (const { owed, delivered, pending, failed } of rows) assert.deepEqual([owed, delivered, pending], [3 * failed, failed, failed])
        const sum = rows.reduce((all, { owed }) => all + owed, 0)
        assert.ok(sum >= before, 'the sum never decreases')
        before = sum
      }
    })()
    await Promise.all(appending)
    isOver = true
    await Promise.all([...folding, reading])
    const total = rounds * nodes.length
    const expected = { owed: 3 * total, delivered: total, pending: total, failed: total, expired: 0, cancelled: 0 }
    const check = async (): Promise<void> => {
      for (const { id } of destinations) {
        assert.deepEqual(
          (await ledgerRows.ledger()).find(({ destinationId }) => destinationId === id),
          { destinationId: id, ...expected },
        )
      }
      assert.deepEqual(
        (await ledgerRows.sourceCounts()).find(({ sourceId }) => sourceId === source.id),
        {
          sourceId: source.id,
          accepted: 5 * total,
          duplicates: total,
          rejected: 0,
          suppressed: 2 * total,
          quarantined: 2 * total,
          released: total,
          deleted: 3 * total,
        },
      )
    }
    await check()
    await one()
    await check()
    assert.equal(await deltas(`kind <> ${MARKER}`), 0, 'everything is folded')
  })

  test('a long backlog is folded in steps, and a full scan finds what was committed later than its row id suggests', async () => {
    const { id, num } = await newName('destinations')
    const owed = async (): Promise<number | undefined> =>
      (await bookRows(nodes[0].context).ledger()).find(({ destinationId }) => destinationId === id)?.owed
    const append = (from: string, count: number): Promise<unknown> =>
      database.query(
        `INSERT INTO switchyard.deltas (id, kind, subject, counts) SELECT $1::bigint + n, 0, $2, '{1,0,1,0,0,0}' FROM generate_series(1, $3) n`,
        [from, num, count],
      )
    const fold = createDeltaFolder(nodes[0].context)
    await append(rowIdAt(Date.now() - 1_000), 32_000)
    await fold()
    assert.equal(await deltas(`kind = 0`), 12_000, 'one call folds a limited number')
    await fold()
    assert.equal(await deltas(`kind = 0`), 0)
    await append(rowIdAt(Date.now() - 3_600_000), 10)
    await fold()
    assert.equal(await deltas(`kind = 0`), 10)
    assert.equal(await owed(), 32_010, 'deltas count before they are folded')
    await createDeltaFolder(nodes[1].context)()
    assert.equal(await deltas(`kind = 0`), 0)
    assert.equal(await owed(), 32_010)
  })

  test('a fold starts near the newest rows, so that it does not skip unvacuumed rows again and again', async () => {
    const asked: (readonly Value[])[] = []
    const { context } = nodes[0]
    const listening: Pick<Database, 'query'> = {
      query: (text, values, deadlineMs) => {
        if (values?.length === 1) asked.push(values)
        return context.database.query(text, values, deadlineMs)
      },
    }
    const fold = createDeltaFolder({ ...context, database: listening as Database })
    await fold()
    await fold()
    const [first, second] = asked.map(([from]) => from as string) as [string, string]
    assert.ok(first < rowIdAt(500_000_000_001))
    assert.ok(second > rowIdAt(Date.now() - 70_000))
    for (let nth = 2; nth <= 300; nth++) await fold()
    assert.equal(asked[300]?.[0], first, 'and now and then at the first row')
  })

  test('the marker of a committed group is kept for a quarter of an hour', async () => {
    await database.query('DELETE FROM switchyard.deltas')
    for (const ageMs of [20 * 60_000, 16 * 60_000, 14 * 60_000, 0]) {
      await database.query(`INSERT INTO switchyard.deltas (id, kind, subject, counts) VALUES ($1, ${MARKER}, 0, '{}')`, [
        rowIdAt(Date.now() - ageMs),
      ])
    }
    await createDeltaFolder(nodes[0].context)()
    assert.equal(await deltas(), 2)
  })
})

suite('the ledger of two nodes under load', () => {
  let database: TestDatabase
  let stores: [PostgresStore, PostgresStore]
  before(async () => {
    database = await createDatabase()
    stores = [await openAt(database.url), await openAt(database.url)]
  })
  after(async () => {
    for (const store of stores) await store.close()
    await database.drop()
  })

  test('the ledger always equals its recount, also with duplicates', async () => {
    const source = await newSource(stores[0])
    const [{ id: one }, { id: other }] = [await newDestination(stores[0], source.id), await newDestination(stores[0], source.id)]
    let isOver = false
    const known = tracks(3)
    await accept(stores[0], source.id, known, [one])
    const working = stores.map(async (store, nth) => {
      // oxlint-disable-next-line eslint/no-unmodified-loop-condition -- modified below while this waits
      for (let round = 0; !isOver; round++) {
        const repeated = known[round % 3] ?? assert.fail()
        const shipments = [
          { destinationId: one, indexes: null },
          { destinationId: other, indexes: [0, 2] },
        ]
        await accept(store, source.id, [repeated, ...tracks(1), repeated, ...tracks(2)], { shipments })
        const { shipments: claimed } = await claim(store, one)
        for (const { shipment } of claimed) {
          const fate = round % 3 === 0 ? 'retry' : round % 3 === 1 ? 'failed' : 'delivered'
          await store.delivery.settle(settlementOf([shipment], fate))
        }
        if (nth === 0) await new Promise((resolve) => setImmediate(resolve))
      }
    })
    for (let look = 0; look < 8; look++) {
      const inspection = await stores[look % 2]?.books.inspect(60_000)
      assert.ok(inspection)
      assert.deepEqual(inspection.problems, [])
      assert.deepEqual(inspection.ledger, inspection.recount)
      for (const { owed, delivered, pending, failed, expired, cancelled } of inspection.ledger) {
        assert.equal(owed, delivered + pending + failed + expired + cancelled)
      }
    }
    isOver = true
    await Promise.all(working)
    const [ledger, recount] = [await stores[0].books.ledger(), await stores[1].books.recount()]
    assert.deepEqual(ledger, recount)
    assert.ok((ledger.find(({ destinationId }) => destinationId === one)?.owed ?? 0) > 10)
    assert.deepEqual(ledger.find(({ destinationId }) => destinationId === other)?.owed ?? 0, 0, 'only duplicates were planned for it')
  })

  test('the oldest pending delivery includes what a node holds, and retries count by their first attempt', async () => {
    const source = await newSource(stores[0])
    const { id } = await newDestination(stores[0], source.id)
    const oldest = async () => (await stores[1].books.oldestPendingOf(id))?.atMs
    assert.equal(await oldest(), undefined)
    await accept(stores[0], source.id, tracks(1), [id])
    const first = await oldest()
    assert.ok(first !== undefined)
    await accept(stores[0], source.id, tracks(1), [id])
    const { shipments } = await claim(stores[0], id, { maxFresh: 1 })
    assert.equal(await oldest(), first, 'held')
    assert.equal((await stores[1].books.oldestPending()).find(({ destinationId }) => destinationId === id)?.atMs, first)
    await stores[0].delivery.settle(
      settlementOf(
        shipments.map(({ shipment }) => shipment),
        'retry',
      ),
    )
    assert.equal(await oldest(), first, 'waiting for a retry')
    const rest = await claim(stores[0], id, { nowMs: 2 * NOW_MS })
    await stores[0].delivery.settle(
      settlementOf(
        rest.shipments.map(({ shipment }) => shipment),
        'delivered',
      ),
    )
    assert.equal(await oldest(), undefined)
  })
})
