// Two nodes that release and delete the same quarantined messages at the same time, while a user of some of them is deleted.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { untilPurged } from '../conformance/deletion-fixtures.ts'
import {
  accept,
  allPages,
  claim,
  counts,
  ledgerOf,
  messageIdsOf,
  newSourceAndDestination,
  quarantining,
  routingTo,
  track,
  until,
} from '../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from './fixtures/postgres-server.ts'
import { openAt } from './fixtures/temp-store.ts'
import type { PostgresStore } from './store.ts'

const SEGMENTS = 12
const PER_SEGMENT = 25

suite('the quarantine of two nodes', () => {
  let database: TestDatabase
  let nodes: [PostgresStore, PostgresStore]
  before(async () => {
    database = await createDatabase()
    nodes = [await openAt(database.url), await openAt(database.url)]
  })
  after(async () => {
    for (const node of nodes) await node.close()
    await database.drop()
  })

  /** Messages in quarantine; the first of each segment is of the user `gone`. Returns their ids. */
  async function quarantined(sourceId: string): Promise<string[]> {
    const ids: string[] = []
    for (let nth = 0; nth < SEGMENTS; nth++) {
      const items = Array.from({ length: PER_SEGMENT }, (_, at) => track(`${sourceId} ${nth}-${at}`, at === 0 ? { userId: 'gone' } : {}))
      const { segment } = await accept(nodes[nth % 2 === 0 ? 0 : 1], sourceId, items, [], quarantining([...items.keys()]))
      ids.push(...items.map((_, index) => `${segment}-${index}`))
    }
    return ids
  }

  const untilBothKnow = (destinationId: string) =>
    until(
      async () => nodes[1].configuration().destinations.has(destinationId),
      (isKnown) => isKnown,
      'the other node knows the destination',
    )

  test('each message is released once', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(nodes[0])
    await untilBothKnow(destinationId)
    const ids = await quarantined(sourceId)
    const routing = routingTo([destinationId])
    // Both nodes go through all messages in steps, one of them from the end, so that their steps lock the same segments.
    const released = nodes.map(async (node, nth) => {
      const own = nth === 0 ? ids : ids.map((_id, at) => ids[ids.length - 1 - at] as string)
      const done: string[] = []
      for (let at = 0; at < own.length; at += 40)
        done.push(...(await node.quarantine.release(own.slice(at, at + 40).map((id) => ({ id, routing })))))
      return done
    })
    const done = (await Promise.all(released)).flat()
    assert.deepEqual([done.length, new Set(done).size], [ids.length, ids.length])
    assert.deepEqual(await ledgerOf(nodes[1], destinationId), counts({ owed: ids.length, pending: ids.length }))
    const [own, other] = await Promise.all(nodes.map((node) => claim(node, destinationId)))
    const claimed = [...(own?.shipments ?? []), ...(other?.shipments ?? [])].flatMap(messageIdsOf)
    assert.deepEqual([claimed.length, new Set(claimed).size], [ids.length, ids.length])
  })

  test('releases, deletions and the purge of a user at the same time leave books that match the rows', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(nodes[0])
    await untilBothKnow(destinationId)
    const ids = await quarantined(sourceId)
    const routing = routingTo([destinationId])
    const work = nodes.flatMap((node, nth) =>
      [0, 1].map(async (kind) => {
        for (let at = 0; at < ids.length; at += 30) {
          const own = ids.slice(at, at + 30).filter((_id, index) => (index + nth + kind) % 3 > 0)
          if (kind === 0) await node.quarantine.release(own.map((id) => ({ id, routing })))
          else await node.quarantine.delete(own.filter((_id, index) => index % 4 === 0))
        }
      }),
    )
    const { id } = await nodes[1].deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await Promise.all(work)
    await untilPurged(nodes[0], id, SEGMENTS)
    const books = (await nodes[0].books.sourceCounts()).find((row) => row.sourceId === sourceId)
    assert.ok(books !== undefined)
    assert.equal(books.quarantined + books.released + books.deleted, ids.length)
    const held = await allPages((page) => nodes[1].quarantine.list({ sourceId }, page), 100)
    assert.equal(held.length, books.quarantined)
    assert.ok(held.every(({ content, index }) => content.items[index] !== null))
    const recount = (await nodes[1].books.recountQuarantined()).find((row) => row.sourceId === sourceId)
    assert.equal(recount?.quarantined ?? 0, books.quarantined)
    const { owed } = await ledgerOf(nodes[0], destinationId)
    // The delete message of the request is owed to the destination, too.
    assert.equal(owed, books.released + 1)
    const { shipments } = await claim(nodes[0], destinationId)
    const sent = shipments.flatMap(messageIdsOf).filter((messageId) => messageId?.endsWith('-0') ?? false)
    assert.deepEqual(sent, [], 'no message of the deleted user')
  })
})
