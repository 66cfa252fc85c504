// Conformance: a deletion also covers what was made from the messages of its users: dead letters, and the text of attempts. Whichever is
// written first, the deletion or the settlement, nothing of them is left.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedShipment, RequestRecord, Settlement, Store } from '../store.ts'
import { withLetters } from './dead-letters.ts'
import { untilPurged } from './deletion-fixtures.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  deliveriesOf,
  messageIdsOf,
  newDestination,
  newSourceAndDestination,
  type StoreFixture,
  settlementOf,
  track,
} from './fixtures.ts'

/** What a request may quote of the message that it sends. */
const QUOTING: Partial<RequestRecord> = {
  status: 410,
  reason: 'http_410',
  error: 'the tool does not know gone',
  responseStart: '{"you sent":"gone"}',
  logs: 'log: gone',
}

/** Failed, with dead letters to `to`, as delivery built it from what it had claimed. */
function failed(claimed: readonly ClaimedShipment[], to: string | null, request = QUOTING): Settlement {
  const settlement = settlementOf(
    claimed.map(({ shipment }) => shipment),
    'failed',
    { reason: 'http_410', request },
  )
  const bodyOf: Settlement['bodyOf'] = (segment) => claimed.flatMap(({ bodies }) => bodies.get(segment) ?? [])[0]
  return { ...(to === null ? settlement : withLetters(settlement, claimed, to)), bodyOf }
}

/** The dead letters of a user that can be read or claimed. */
async function lettersOf(store: Store, { sourceId, target }: { sourceId: string; target: string }, userId: string): Promise<unknown[]> {
  const listed = await allPages((page) => store.history.messages({ sourceId, type: 'dead_letter', userId }, page), 100)
  const { shipments } = await claim(store, target)
  const items = shipments.flatMap(({ bodies }) => [...bodies.values()].flatMap(({ content }) => content.items))
  store.delivery.release(shipments.map(({ shipment }) => shipment))
  return [...listed.map(({ content, index }) => content.items[index]), ...items.filter((item) => item?.['userId'] === userId)]
}

export function erasing({ store }: StoreFixture): void {
  const start = async (users = ['gone', 'stays']) => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: target } = await newDestination(store(), sourceId, { sourceIds: [], name: 'dead letters' })
    await accept(
      store(),
      sourceId,
      users.map((userId, at) => track(`${userId}-${at}`, { userId })),
      [destinationId],
    )
    return { sourceId, destinationId, target, claimed: await claimOne(store(), destinationId) }
  }
  const erase = (sourceId: string, suppress = false) => store().deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress })
  const texts = async (delivery: string): Promise<(string | null)[]> => {
    const found = await store().history.delivery(delivery)
    assert.ok(found !== undefined)
    return found.history.flatMap(({ error, responseStart, logs }) => [error, responseStart, logs])
  }

  for (const suppress of [false, true]) {
    test(`a settlement that was built before a deletion leaves nothing of the user when it is written after it${suppress ? ', with suppression' : ''}`, async () => {
      const { claimed, ...of } = await start()
      const settlement = failed([claimed], of.target)
      const { id } = await erase(of.sourceId, suppress)
      await store().delivery.settle(settlement)
      await untilPurged(store(), id, 1)
      assert.deepEqual(await lettersOf(store(), of, 'gone'), [])
      assert.equal((await lettersOf(store(), of, 'stays')).length, 2, 'listed and claimed')
      const [gone, stays] = deliveriesOf(claimed.shipment) as [string, string]
      assert.deepEqual((await store().history.delivery(gone))?.deadLetter, null)
      assert.notEqual((await store().history.delivery(stays))?.deadLetter, null)
      assert.deepEqual(await texts(gone), [null, null, null])
    })
  }

  test('deletions and settlements that are written at the same time leave no dead letters of the user', async () => {
    for (let round = 0; round < 8; round++) {
      const { claimed, ...of } = await start()
      const settlement = failed([claimed], of.target)
      const settling = round % 2 === 0 ? store().delivery.settle(settlement) : undefined
      const creating = erase(of.sourceId)
      for (let turn = 0; turn < round; turn++) await new Promise(setImmediate)
      const [{ id }] = await Promise.all([creating, settling ?? store().delivery.settle(settlement)])
      // One message, and its dead letter if that was written first.
      await untilPurged(
        store(),
        id,
        (await store().history.delivery(deliveriesOf(claimed.shipment)[0] as string))?.deadLetter === null ? 1 : 2,
      )
      assert.deepEqual(await lettersOf(store(), of, 'gone'), [], `round ${round}`)
    }
  })

  test('dead letters of messages that the user sends after the deletion are kept', async () => {
    const { sourceId, destinationId, target } = await start()
    const { id } = await erase(sourceId)
    await accept(store(), sourceId, [track('later', { userId: 'gone' })], [destinationId])
    const { shipments } = await claim(store(), destinationId)
    const later = shipments.filter((one) => messageIdsOf(one).includes('later'))
    assert.equal(later.length, 1)
    await store().delivery.settle(failed(later, target))
    await untilPurged(store(), id, 1)
    assert.equal((await lettersOf(store(), { sourceId, target }, 'gone')).length, 2, 'listed and claimed')
    assert.deepEqual(await texts(deliveriesOf((later[0] as ClaimedShipment).shipment)[0] as string), [
      QUOTING.error,
      QUOTING.responseStart,
      QUOTING.logs,
    ])
  })
}
