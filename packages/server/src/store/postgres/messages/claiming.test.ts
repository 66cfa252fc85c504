import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { accept, claim, newSourceAndDestination, track, until } from '../../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'

let database: TestDatabase

before(async () => {
  database = await createDatabase()
})
after(() => database.drop())

test('a shipment that cannot be read is reported, and the others can still be claimed', async () => {
  const troubles: unknown[] = []
  const store = await openAt(database.url, { onBackgroundError: (error) => troubles.push(error) })
  try {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, [track('good')], [destinationId])
    await accept(store, sourceId, [track('bad')], [destinationId])
    await database.query(`UPDATE switchyard.shipments SET parts = '[["1600000000000000000","1600000000000000000",0]]'
      WHERE id = (SELECT max(id) FROM switchyard.shipments)`)
    const { shipments } = await claim(store, destinationId)
    assert.equal(shipments.length, 1)
    await until(
      async () => troubles.length,
      (count) => count === 1,
      'the error is reported',
    )
    assert.match(String(troubles[0]), /^Error: shipment \d+ cannot be read$/)
    assert.deepEqual((await claim(store, destinationId)).shipments, [], 'it is not claimed again and again')
  } finally {
    await store.close()
  }
})

test('if a body is damaged, a claim returns it as unreadable along with the others, and a purge continues', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    for (const name of ['a', 'b', 'c']) await accept(store, sourceId, [track(name, { userId: 'gone' })], [destinationId])
    await database.query(`UPDATE switchyard.segments SET body = '{"batch":['
      WHERE seq = (SELECT seq FROM switchyard.segments ORDER BY seq DESC LIMIT 1 OFFSET 1)`)
    const { shipments } = await claim(store, destinationId)
    assert.deepEqual(
      shipments.map(({ bodies }) => [...bodies.values()].map(({ content: { isUnreadable } }) => isUnreadable)),
      [[undefined], [true], [undefined]],
    )
    const { data } = await store.history.messages({ sourceId }, { limit: 10, cursor: null })
    assert.deepEqual(
      data.map(({ content, index }) => content.items[index]?.['messageId']),
      ['c', 'a'],
    )
    const { id } = await store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
    await until(
      () => store.deletions.one(id),
      (deletion) => deletion?.purged === 3,
      'purged',
    )
  } finally {
    await store.close()
  }
})
