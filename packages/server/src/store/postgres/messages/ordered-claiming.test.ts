import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { PARTITIONS } from '../../../model/order/order-key.ts'
import { claimOrdered, names, newOrdered, ORDER, settle, usersOfOnePartition } from '../../conformance/delivery/ordering.ts'
import { accept, messageIdsOf, NOW_MS, newDestination, newSource, track, until } from '../../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { PostgresStore } from '../store.ts'
import { UNDIVIDED } from '../tables/ordered-rows.ts'

let database: TestDatabase

before(async () => {
  database = await createDatabase()
})
after(() => database.drop())

const ROUNDS = 60
const OTHERS = 30

async function ownedBy({ membership }: PostgresStore): Promise<number> {
  const sql = 'SELECT count(*)::integer AS count FROM switchyard.order_partitions WHERE owner = $1'
  const [row] = await database.query<{ count: number }>(sql, [membership.holder])
  return row?.count ?? 0
}

/** Waits until each of the nodes owns its share of the partitions. */
async function shared(stores: readonly PostgresStore[]): Promise<void> {
  for (const store of stores)
    await until(
      () => ownedBy(store),
      (count) => count === PARTITIONS / stores.length,
      'the node owns its share of the partitions',
    )
}

/** New shipments that are not divided. */
async function undividedOf(destinationId: string): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM switchyard.shipments s JOIN switchyard.destinations d ON d.num = s.destination
     WHERE d.id = $1 AND s.partition = ${UNDIVIDED}`,
    [destinationId],
  )
  return row?.count ?? 0
}

/** Waits until the node accepts messages as one that delivers all partitions. */
async function claimsAll(store: PostgresStore): Promise<void> {
  const { sourceId, destinationId } = await newOrdered(store)
  let nth = 0
  await until(
    async () => {
      await accept(store, sourceId, [track(`probe:${++nth}`)], [destinationId])
      return undividedOf(destinationId)
    },
    (count) => count > 0,
    'the node delivers all partitions',
  )
}

function userOf(id: string): string {
  return id.split(':')[0] as string
}

/** How many nodes there are before messages are accepted, and whether another one joins when half of them are. */
const CLUSTERS = [
  { title: 'one node', nodes: 1, joins: false },
  { title: 'two nodes', nodes: 2, joins: false },
  { title: 'a second node that joins', nodes: 1, joins: true },
]

for (const { title, nodes, joins } of CLUSTERS) {
  test(`claims keep the order of each user if one partition has more than its share of the work, and behind a failed message: ${title}`, async () => {
    const stores: PostgresStore[] = []
    const join = async (): Promise<void> => {
      stores.push(await openAt(database.url, { nodeName: `node ${stores.length}` }))
    }
    try {
      await join()
      const [store] = stores as [PostgresStore]
      const { sourceId, destinationId } = await newOrdered(store)
      await claimsAll(store)
      if (nodes === 2) await join()
      await shared(stores)
      const users = ['busy', ...Array.from({ length: OTHERS }, (_, at) => `user${at}`)]
      const sent = new Map<string, string[]>(users.map((user) => [user, []]))
      for (let round = 0; round < ROUNDS; round++) {
        if (joins && round === ROUNDS / 2) {
          await join()
          await shared(stores)
        }
        const from = ['busy', users[1 + (round % OTHERS)] as string]
        const ids = from.map((user) => `${user}:${round}`)
        for (const [at, user] of from.entries()) sent.get(user)?.push(ids[at] as string)
        const messages = from.map((userId, at) => track(ids[at] as string, { userId }))
        await accept(store, sourceId, messages, [destinationId])
      }
      const undivided = await undividedOf(destinationId)
      if (nodes === 1) assert.ok(undivided >= ROUNDS / 2, String(undivided))
      else assert.equal(undivided, 0)
      const ended = new Map<string, string[]>(users.map((user) => [user, []]))
      let failed: string | undefined
      await until(
        async () => {
          for (const each of stores) {
            const { shipments } = await claimOrdered(each, destinationId, { maxFresh: 40, maxWaiting: 10, maxHeads: 10 })
            // Behind a message that fails, the others of its shipment's users go back to the store, with what is in their shipments.
            const stopped = new Set<string>()
            for (const claimed of shipments) {
              const ids = messageIdsOf(claimed) as string[]
              if (ids.some((id) => stopped.has(userOf(id)))) {
                for (const id of ids) stopped.add(userOf(id))
                each.delivery.release([claimed.shipment])
                continue
              }
              const failing = failed === undefined ? ids.find((id) => userOf(id) === 'busy') : undefined
              failed ??= failing
              if (failing !== undefined) stopped.add('busy')
              await settle(each, [claimed], (name) => (name === failing ? 'retry' : 'delivered'), { dueAtMs: NOW_MS })
              for (const id of ids) if (id !== failing) ended.get(userOf(id))?.push(id)
            }
          }
          return [...ended.values()].reduce((sum, { length }) => sum + length, 0)
        },
        (count) => count === 2 * ROUNDS,
        'everything was delivered',
      )
      assert.notEqual(failed, undefined)
      assert.deepEqual(ended, sent)
      assert.equal(await undividedOf(destinationId), 0)
    } finally {
      for (const store of stores) await store.close()
    }
  })
}

test('a partition stays with its node as long as that holds a shipment that is not divided', async () => {
  const one = await openAt(database.url, { nodeName: 'one' })
  let two: PostgresStore | undefined
  try {
    const { sourceId, destinationId } = await newOrdered(one)
    await claimsAll(one)
    const users = Array.from({ length: 40 }, (_, at) => `user${at}`)
    const send = (nth: number) =>
      accept(
        one,
        sourceId,
        users.map((userId) => track(`${userId}:${nth}`, { userId })),
        [destinationId],
      )
    await send(1)
    await send(2)
    const { shipments: held } = await claimOrdered(one, destinationId, { maxFresh: 1 })
    assert.deepEqual(
      held.flatMap(messageIdsOf),
      users.map((user) => `${user}:1`),
    )
    const leaving = new Promise<void>((resolve) => {
      one.delivery.attach({
        reserve: () => false,
        deliver: () => assert.fail('nothing was accepted'),
        cancelReservation: () => {},
        dropMessages: () => {},
        wake: () => {},
        partitionsChanged: (change) => {
          if (change === 'leaving') resolve()
        },
      })
    })
    two = await openAt(database.url, { nodeName: 'two' })
    await leaving
    // Each of these divides the shipment that is not held, and takes what is of its partitions. The other node has none yet.
    const claimed = async (store: PostgresStore): Promise<string[]> => {
      const { shipments } = await claimOrdered(store, destinationId)
      if (shipments.length > 0) await settle(store, shipments, 'delivered')
      return shipments.flatMap(messageIdsOf) as string[]
    }
    const ofOne = await claimed(one)
    assert.ok(ofOne.length > 0 && ofOne.length < users.length, String(ofOne.length))
    assert.equal(await ownedBy(one), PARTITIONS)
    await settle(one, held, 'delivered')
    const ofTwo: string[] = []
    await until(
      async () => ofTwo.push(...(await claimed(two as PostgresStore))),
      (count) => count >= users.length - ofOne.length,
      'the other node claims the rest',
    )
    assert.deepEqual([...ofOne, ...ofTwo].sort(), users.map((user) => `${user}:2`).sort())
  } finally {
    await two?.close()
    await one.close()
  }
})

test('a node that delivers all partitions sets apart only the messages that would have to go back at once', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await newOrdered(store)
    await claimsAll(store)
    const users = Array.from({ length: 30 }, (_, at) => `user${at}`)
    const send = (...ids: string[]) =>
      accept(
        store,
        sourceId,
        ids.map((id) => track(id, { userId: userOf(id) })),
        [destinationId],
      )
    await send('user0:1')
    const { shipments: first } = await claimOrdered(store, destinationId)
    const leaving = first.flatMap(({ shipment }) => shipment.parts.flatMap(({ keys = [] }) => keys))
    assert.equal(leaving.length, 1)
    await send(...users.map((user) => `${user}:2`))
    await send('user1:3', 'user2:3')
    await send('user0:4', 'user1:4')
    const { shipments } = await claimOrdered(store, destinationId, { leaving })
    const ids = shipments.map((claimed) => messageIdsOf(claimed) as string[])
    const rest = users.slice(1)
    assert.deepEqual(ids, [rest.map((user) => `${user}:2`), ['user1:3', 'user2:3'], ['user1:4']], 'theirs wait in the store')
    for (const user of ['user1', 'user2']) {
      const own = ids.flat().filter((id) => userOf(id) === user)
      assert.deepEqual(own, [...own].sort(), 'in the order of acceptance')
    }
    await settle(store, first, 'retry', { dueAtMs: NOW_MS * 2 })
    await settle(store, shipments, 'delivered')
    await send(...users.map((user) => `${user}:5`))
    const { shipments: behind } = await claimOrdered(store, destinationId, { leaving })
    const others = users.slice(1).map((user) => `${user}:5`)
    assert.deepEqual(behind.map(messageIdsOf), [others], 'the message of the key that waits is moved')
  } finally {
    await store.close()
  }
})

test('claims of many destinations without order ask together whether there are ordered shipments', async () => {
  const store = await openAt(database.url)
  const locking = new pg.Client({ connectionString: database.url })
  try {
    await claimsAll(store)
    const { id: sourceId } = await newSource(store)
    const destinations = await Promise.all(Array.from({ length: 20 }, () => newDestination(store, sourceId)))
    await locking.connect()
    await locking.query('BEGIN')
    await locking.query('LOCK TABLE switchyard.shipments IN ACCESS EXCLUSIVE MODE')
    const claims = Promise.all(destinations.map(({ id }) => claimOrdered(store, id)))
    const asking = await until(
      () =>
        database.query(
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%s.attempt < 0 AND s.destination = d.destination LIMIT 1%' AND wait_event_type = 'Lock'",
        ),
      ({ length }) => length > 0,
      'the claims ask',
    )
    assert.equal(asking.length, 1)
    await locking.query('ROLLBACK')
    for (const { shipments } of await claims) assert.deepEqual(shipments, [])
  } finally {
    await locking.end()
    await store.close()
  }
})

test('a claim takes as many as it may, also if all messages have one key', async () => {
  const store = await openAt(database.url)
  try {
    await usersOfOnePartition(store)
    const { sourceId, destinationId } = await newOrdered(store, { ...ORDER, by: 'source' })
    const sent = Array.from({ length: 100 }, (_, at) => `m${at}`)
    for (const name of sent) await accept(store, sourceId, [track(`${name}-x`)], [destinationId])
    const first = await claimOrdered(store, destinationId, { maxFresh: 64 })
    const second = await claimOrdered(store, destinationId, { maxFresh: 64 })
    assert.deepEqual([first.more, second.more], [true, false])
    assert.deepEqual([names(first), names(second)], [sent.slice(0, 64), sent.slice(64)])
  } finally {
    await store.close()
  }
})

test('a claim takes as much as fits, in order, whatever the size of the messages before was', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await newOrdered(store, { ...ORDER, by: 'source' })
    await claimsAll(store)
    const sent: string[] = []
    const send = async (count: number, size: number): Promise<void> => {
      for (let at = 0; at < count; at++) {
        const name = `m${sent.length}`
        sent.push(name)
        // Digits that do not compress.
        const text = randomBytes(size).toString('hex')
        await accept(store, sourceId, [track(`${name}-x`, { properties: { text } })], [destinationId])
      }
    }
    const claimed: string[] = []
    const counts: number[] = []
    const claimAll = async (maxBytes: number): Promise<number[]> => {
      for (let more = true; more; ) {
        const claim = await claimOrdered(store, destinationId, { maxBytes, maxFresh: 100 })
        counts.push(claim.shipments.length)
        claimed.push(...names(claim))
        more = claim.more
      }
      return counts.splice(0)
    }
    await send(3, 5_000)
    const { shipments } = await claimOrdered(store, destinationId)
    const bytes = Math.max(...shipments.map((one) => one.bytes))
    claimed.push(...names({ shipments }))
    await send(61, 5_000)
    // 20 fit, and one more is taken.
    const large = await claimAll(bytes * 20.5)
    assert.deepEqual(large, [21, 21, 19])
    await send(120, 10)
    const small = await claimAll(bytes * 20.5)
    assert.ok(small.length > 1 && small.length <= 4, String(small))
    assert.deepEqual(claimed, sent)
  } finally {
    await store.close()
  }
})

test('what waits behind a message that a claim did not read is not claimed before it', async () => {
  const store = await openAt(database.url)
  try {
    const [a, b] = (await usersOfOnePartition(store)) as [string, string]
    const { sourceId, destinationId } = await newOrdered(store)
    const send = (userId: string, name: string) => accept(store, sourceId, [track(`${name}-x`, { userId })], [destinationId])
    for (let at = 0; at < 20; at++) await send(b, `b${at}`)
    await send(a, 'a1')
    await send(a, 'a2')
    const { shipments: held } = await claimOrdered(store, destinationId)
    await send(a, 'a3')
    const first = held.filter((one) => names({ shipments: [one] })[0] === 'a1')
    await settle(store, first, 'retry', { dueAtMs: NOW_MS })
    const { shipments: head } = await claimOrdered(store, destinationId, { maxFresh: 40 })
    assert.deepEqual(names({ shipments: head }), ['a1'], 'a3 was moved behind it')
    // The partition of a has more than a claim reads of it, and the others have so many that it takes no more.
    for (let at = 0; at < 60; at++) await send(`other${at}`, `c${at}`)
    store.delivery.release(held.filter((one) => !first.includes(one)).map(({ shipment }) => shipment))
    await settle(store, head, 'delivered')
    const claimed: string[] = []
    await until(
      async () => {
        const { shipments } = await claimOrdered(store, destinationId, { maxFresh: 40 })
        claimed.push(...names({ shipments }))
        await settle(store, shipments, 'delivered')
        return claimed.length
      },
      (count) => count === 82,
      'everything else is claimed',
    )
    assert.deepEqual(
      claimed.filter((name) => name.startsWith('a')),
      ['a2', 'a3'],
    )
  } finally {
    await store.close()
  }
})
