import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimOrdered, newOrdered, settle } from '../../conformance/delivery/ordering.ts'
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
