// Conformance: the inspection of the whole store. Its ledger and its recount are from one snapshot, whatever is being written meanwhile.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accept, claim, newDestination, newSource, newSourceAndDestination, type StoreFixture, settlementOf, tracks } from './fixtures.ts'

const DEADLINE_MS = 60_000

export function inspecting({ store, open }: StoreFixture): void {
  test('an inspection finds no problems, and the ledger equals its recount, while messages are accepted and settled', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    let over = false
    const writing = (async () => {
      // oxlint-disable-next-line eslint/no-unmodified-loop-condition -- it is modified below, while this loop awaits
      while (!over) {
        await accept(store(), sourceId, tracks(5), [destinationId])
        const { shipments } = await claim(store(), destinationId)
        for (const { shipment } of shipments) await store().delivery.settle(settlementOf([shipment], 'delivered'))
      }
    })()
    for (let round = 0; round < 5; round += 1) {
      const inspection = await store().books.inspect(DEADLINE_MS)
      assert.ok(inspection)
      assert.deepEqual(inspection.problems, [])
      assert.deepEqual(inspection.ledger, inspection.recount)
      assert.ok(inspection.storedBytes > 0)
    }
    over = true
    await writing
    const inspection = await store().books.inspect(DEADLINE_MS)
    const row = inspection?.recount.find((known) => known.destinationId === destinationId)
    assert.ok(row !== undefined && row.owed > 0 && row.owed === row.delivered)
    assert.ok((inspection?.oldestMessageAtMs ?? 0) > 0)
  })

  test('an inspection returns the ids of the keys with which secrets are encrypted, and none if there are no secrets', async () => {
    const own = await open({ retentionDays: 7 })
    try {
      const before = await own.store.books.inspect(DEADLINE_MS)
      const source = await newSource(own.store)
      await newDestination(own.store, source.id, { sharedSecret: 'secret' })
      const after = await own.store.books.inspect(DEADLINE_MS)
      assert.equal(after?.secretKeyIds.length, 1)
      assert.match(after?.secretKeyIds[0] ?? '', /^[\w-]{8}$/)
      assert.ok((before?.secretKeyIds.length ?? 2) <= 1)
      assert.equal(before?.oldestMessageAtMs, null)
    } finally {
      await own.dispose()
    }
  })

  test('an inspection that is not complete by its deadline returns undefined', async () => {
    assert.equal(await store().books.inspect(0), undefined)
  })
}
