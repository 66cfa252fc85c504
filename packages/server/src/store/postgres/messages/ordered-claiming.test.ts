import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimOrdered, names, newOrdered, ORDER, settle, usersOfOnePartition } from '../../conformance/delivery/ordering.ts'
import { accept, messageIdsOf, NOW_MS, track, until } from '../../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'

let database: TestDatabase

before(async () => {
  database = await createDatabase()
})
after(() => database.drop())

const ROUNDS = 60
const OTHERS = 30

function userOf(id: string): string {
  return id.split(':')[0] as string
}

test('claims keep the order of each user if one partition has more than its share of the work, also behind a message that failed', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await newOrdered(store)
    const users = ['busy', ...Array.from({ length: OTHERS }, (_, at) => `user${at}`)]
    const sent = new Map<string, string[]>(users.map((user) => [user, []]))
    for (let round = 0; round < ROUNDS; round++) {
      const from = ['busy', users[1 + (round % OTHERS)] as string]
      const ids = from.map((user) => `${user}:${round}`)
      for (const [at, user] of from.entries()) sent.get(user)?.push(ids[at] as string)
      const messages = from.map((userId, at) => track(ids[at] as string, { userId }))
      await accept(store, sourceId, messages, [destinationId])
    }
    const ended = new Map<string, string[]>(users.map((user) => [user, []]))
    let failed: string | undefined
    await until(
      async () => {
        const { shipments } = await claimOrdered(store, destinationId, { maxFresh: 40, maxWaiting: 10, maxHeads: 10 })
        // Behind a message that fails, the others of its shipment's users go back to the store, with what is in their shipments.
        const stopped = new Set<string>()
        for (const claimed of shipments) {
          const ids = messageIdsOf(claimed) as string[]
          if (ids.some((id) => stopped.has(userOf(id)))) {
            for (const id of ids) stopped.add(userOf(id))
            store.delivery.release([claimed.shipment])
            continue
          }
          const failing = failed === undefined ? ids.find((id) => userOf(id) === 'busy') : undefined
          failed ??= failing
          if (failing !== undefined) stopped.add('busy')
          await settle(store, [claimed], (name) => (name === failing ? 'retry' : 'delivered'), { dueAtMs: NOW_MS })
          for (const id of ids) if (id !== failing) ended.get(userOf(id))?.push(id)
        }
        return [...ended.values()].reduce((sum, { length }) => sum + length, 0)
      },
      (count) => count === 2 * ROUNDS,
      'everything was delivered',
    )
    assert.notEqual(failed, undefined)
    assert.deepEqual(ended, sent)
  } finally {
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
