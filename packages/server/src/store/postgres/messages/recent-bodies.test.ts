import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimOrdered, newOrdered } from '../../conformance/delivery/ordering.ts'
import { accept, messageIdsOf, settlementOf, track, until } from '../../conformance/fixtures.ts'
import type { AcceptBatch, ClaimedShipment } from '../../store.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { PostgresStore } from '../store.ts'
import { ENTRY_BYTES, RecentBodies } from './recent-bodies.ts'

let database: TestDatabase

before(async () => {
  database = await createDatabase()
})
after(() => database.drop())

function batch(bytes: number): AcceptBatch {
  const content = {
    sourceId: 's',
    receivedAtMs: 1,
    ip: null,
    browser: false,
    trace: null,
    sentAt: null,
    context: null,
    integrations: null,
    items: [],
  }
  const routing = { shipments: [], skips: [] }
  return { content, body: Buffer.alloc(bytes), messageIds: ['a', 'b'], routing }
}

/** As soon as this node owns partitions, it claims what it accepts. */
async function untilOwner(store: PostgresStore): Promise<{ sourceId: string; destinationId: string }> {
  const ids = await newOrdered(store)
  const owned = 'SELECT count(*)::integer AS count FROM switchyard.order_partitions WHERE owner = $1'
  await until(
    async () => (await database.query<{ count: number }>(owned, [store.membership.holder]))[0]?.count,
    (count) => count === 16,
    'this node owns all partitions',
  )
  return ids
}

/** Whether the content of each message is there, by message. */
function contents(shipments: readonly ClaimedShipment[]): Record<string, boolean> {
  return Object.fromEntries(
    shipments.flatMap(({ shipment, bodies }) =>
      shipment.parts.flatMap(({ segment, indexes }) =>
        indexes.map((index) => {
          const item = bodies.get(segment)?.content.items[index]
          return [String(item?.['messageId'] ?? `nothing at ${index}`), item != null] as const
        }),
      ),
    ),
  )
}

test('a body is kept until the shipments of this node were claimed', () => {
  const bodies = new RecentBodies(() => 0)
  bodies.add('1', batch(100), [1], 2)
  bodies.add('2', batch(100), [], 0)
  assert.equal(bodies.bytes, ENTRY_BYTES + 100, 'no shipment of the second one is claimed here')
  const found = bodies.take('1', 1)
  assert.deepEqual([found?.count, found?.absent, found?.bytes], [2, [1], 100])
  assert.notEqual(bodies.take('1', 1), undefined)
  assert.deepEqual([bodies.take('1', 1), bodies.take('2', 1), bodies.bytes], [undefined, undefined, 0])
})

test('bodies take no more than 4 MB, and those that are there stay', () => {
  const bodies = new RecentBodies(() => 0)
  for (const segment of ['1', '2', '3', '4', '5']) bodies.add(segment, batch(1024 * 1024 - ENTRY_BYTES), [], 1)
  assert.deepEqual([bodies.bytes, bodies.take('5', 1)], [4 * 1024 * 1024, undefined])
  assert.notEqual(bodies.take('1', 1), undefined)
})

test('a body is given out for five seconds, and then makes room', () => {
  let nowMs = 0
  const bodies = new RecentBodies(() => nowMs)
  bodies.add('1', batch(100), [], 9)
  nowMs = 5_000
  assert.notEqual(bodies.take('1', 1), undefined)
  nowMs = 5_001
  assert.equal(bodies.take('1', 1), undefined)
  bodies.add('2', batch(10), [], 1)
  assert.equal(bodies.bytes, ENTRY_BYTES + 10)
  nowMs = 10_002
  bodies.expire()
  assert.equal(bodies.bytes, 0)
})

test('what a body takes in memory counts: each entry, its violations, and no buffer that it was a part of', () => {
  const bodies = new RecentBodies(() => 0)
  for (let segment = 0; segment < 20_000; segment++) bodies.add(String(segment), batch(80), [], 1)
  assert.ok(bodies.bytes <= 4 * 1024 * 1024)
  assert.notEqual(bodies.take('7000', 1), undefined)
  assert.equal(bodies.take('7500', 1), undefined, 'there was no room for more than about 7,000')

  bodies.clear()
  const one = batch(80)
  const violations = { 0: [{ path: 'x'.repeat(1_000) }] } as unknown as NonNullable<AcceptBatch['content']['violations']>
  bodies.add('a', { ...one, content: { ...one.content, violations } }, [], 1)
  assert.ok(bodies.bytes > ENTRY_BYTES + 80 + 2_000)

  const packet = Buffer.alloc(1024 * 1024)
  bodies.add('b', { ...one, body: packet.subarray(100, 180) }, [], 1)
  assert.equal(bodies.take('b', 1)?.body.bytes.buffer.byteLength, 80)
})

test('a claim takes the bodies of what this node has just accepted from memory, and otherwise reads them', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await untilOwner(store)
    const sent = Array.from({ length: 20 }, (_, at) => track(`message-${at}`, { userId: `user-${at}` }))
    const [repeated] = sent
    await accept(store, sourceId, [...sent, repeated as (typeof sent)[number]], [destinationId])
    const stored = await database.query<{ body: Buffer }>('SELECT body FROM switchyard.segments ORDER BY seq DESC LIMIT 1')
    await database.query(`UPDATE switchyard.segments SET body = '{"batch":['`)
    const { shipments } = await claimOrdered(store, destinationId)
    assert.deepEqual(contents(shipments), Object.fromEntries(sent.map((_, at) => [`message-${at}`, true])))
    await database.query('UPDATE switchyard.segments SET body = $1', [stored[0]?.body as Buffer])
    store.delivery.release(shipments.map(({ shipment }) => shipment))
    const again = await claimOrdered(store, destinationId)
    assert.deepEqual(new Set(again.shipments.flatMap(messageIdsOf)), new Set(shipments.flatMap(messageIdsOf)))
    const bytes = (some: readonly ClaimedShipment[]): number => some.reduce((sum, claimed) => sum + claimed.bytes, 0)
    assert.equal(bytes(again.shipments), bytes(shipments))
  } finally {
    await store.close()
  }
})

test('the bodies of messages for a destination that is paused or disabled are not kept in memory', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await untilOwner(store)
    const claimed = async (name: string, change: { paused?: boolean; enabled?: boolean }): Promise<Record<string, boolean>> => {
      await store.resources.updateDestination(destinationId, change)
      await accept(store, sourceId, [track(`other ${name}`, { userId: 'a' })], [])
      await accept(store, sourceId, [track(name, { userId: 'a' })], [destinationId])
      // What is read from the store has the body of the other message.
      await database.query(
        `WITH last AS (SELECT seq, row_number() OVER (ORDER BY seq DESC) AS nth FROM switchyard.segments)
         UPDATE switchyard.segments SET body = o.body FROM last l, switchyard.segments o JOIN last p ON p.seq = o.seq
         WHERE segments.seq = l.seq AND l.nth = 1 AND p.nth = 2`,
      )
      const { shipments } = await claimOrdered(store, destinationId)
      await store.delivery.settle(
        settlementOf(
          shipments.map(({ shipment }) => shipment),
          'delivered',
        ),
      )
      return contents(shipments)
    }
    assert.deepEqual(await claimed('kept', {}), { kept: true })
    assert.deepEqual(await claimed('paused', { paused: true }), { 'other paused': true })
    assert.deepEqual(await claimed('resumed', { paused: false }), { resumed: true })
    assert.deepEqual(await claimed('disabled', { enabled: false }), { 'other disabled': true })
  } finally {
    await store.close()
  }
})

test('a claim has nothing of users who were deleted, although their messages are in memory', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await untilOwner(store)
    const sent = [track('kept', { userId: 'kept' }), track('purged', { userId: 'deleted' })]
    await accept(store, sourceId, sent, [destinationId])
    const { id } = await store.deletions.create({ userIds: ['deleted'], sourceIds: [sourceId], suppress: false })
    await until(
      () => store.deletions.one(id),
      (deletion) => deletion?.purged === 1,
      'purged',
    )
    const { shipments } = await claimOrdered(store, destinationId)
    const found = contents(shipments.filter(({ shipment }) => shipment.parts.some(({ indexes }) => indexes.length > 0)))
    assert.deepEqual([found['kept'], found['purged'], found['nothing at 1']], [true, undefined, false])
  } finally {
    await store.close()
  }
})
