// Conformance: a deletion also covers what was made from the messages of its users: dead letters, and the text of attempts. Whichever is
// written first, the deletion or the settlement, nothing of them is left.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedShipment, RequestRecord, RowId, Settlement, Store } from '../store.ts'
import { untilPurged } from './deletion-fixtures.ts'
import { withLetters } from './delivery/dead-letters.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  deliveriesOf,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSourceAndDestination,
  requestRecord,
  type StoreFixture,
  settlementOf,
  track,
  until,
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

  for (const order of ['before', 'after']) {
    test(`that a destination did not get a dead letter is kept when another user is deleted ${order} the settlement`, async () => {
      const { claimed, sourceId, target } = await start()
      const settlement = failed([claimed], null)
      const deadLetter = { destinationId: target, prefix: 'dead-letter-', indexes: [], withheld: [1] }
      for (const record of settlement.records) Object.assign(record, { deadLetter })
      if (order === 'after') await store().delivery.settle(settlement)
      const { id } = await erase(sourceId)
      if (order === 'before') await store().delivery.settle(settlement)
      await untilPurged(store(), id, 1)
      const [gone, stays] = deliveriesOf(claimed.shipment) as [string, string]
      assert.deepEqual(await texts(gone), [null, null, null])
      assert.equal((await store().history.delivery(stays))?.withheldFrom, target)
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

  test('a purge removes the text from attempts of the user, and leaves times, statuses and counts', async () => {
    const { claimed, sourceId, destinationId } = await start(['gone', 'stays', 'gone'])
    const [gone, stays, again] = deliveriesOf(claimed.shipment) as [string, string, string]
    const url = 'https://api.example.com/users/gone?id=gone'
    const steps = { url, step: { subscription: 'Post', method: 'POST' } }
    // One request for each message, and then one with all of them.
    const each = settlementOf([claimed.shipment], 'retry').records[0]
    assert.ok(each !== undefined)
    const requests = [0, 1, 2].map((index) => requestRecord({ ...QUOTING, indexes: [index], ...(index === 2 && steps) }))
    const settlement = settlementOf([claimed.shipment], 'retry')
    await store().delivery.settle({ ...settlement, records: [{ ...each, requests }] })
    const retried = await claimOne(store(), destinationId, { nowMs: NOW_MS * 2 })
    await store().delivery.settle(failed([retried], null))
    const before = await Promise.all([gone, stays, again].map((id) => store().history.delivery(id)))
    const { id } = await erase(sourceId)
    await untilPurged(store(), id, 2)
    const after = await Promise.all([gone, stays, again].map((one) => store().history.delivery(one)))
    const withoutText = { error: null, responseStart: null, logs: null }
    assert.deepEqual(
      after.map((delivery) => delivery?.history),
      before.map((delivery, at) =>
        delivery?.history.map((request, nth) => ({
          ...request,
          // The first request of the other user contained only his message.
          ...((at !== 1 || nth === 1) && withoutText),
          ...(at === 2 && nth === 0 && { url: 'https://api.example.com' }),
        })),
      ),
    )
    assert.deepEqual(
      after.map((delivery) => [delivery?.state, delivery?.reason, delivery?.attempts]),
      before.map((delivery) => [delivery?.state, delivery?.reason, delivery?.attempts]),
    )
  })

  test('the text of a request with messages of several calls is removed from the records of all of them', async () => {
    const { claimed: first, sourceId, destinationId } = await start(['stays'])
    const more: ClaimedShipment[] = []
    for (const userId of ['gone', 'stays', 'stays']) {
      await accept(store(), sourceId, [track(`more-${more.length}`, { userId })], [destinationId])
      more.push(await claimOne(store(), destinationId))
    }
    const [second, third, alone] = more as [ClaimedShipment, ClaimedShipment, ClaimedShipment]
    const together = [first, second, third]
    const parts = together.flatMap(({ shipment }) => shipment.parts)
    const lead = parts[0]?.origin as RowId
    const settlement = failed(together, null)
    const records = settlement.records.map((record, at) => ({
      ...record,
      requests: record.requests.map((request) => Object.assign(request, { gathered: { lead, parts: at === 0 ? parts : null } })),
    }))
    await store().delivery.settle({ ...settlement, records })
    await store().delivery.settle(failed([alone], null))
    const { id } = await erase(sourceId)
    await untilPurged(store(), id, 1)
    const deliveries = [...together, alone].map(({ shipment }) => deliveriesOf(shipment)[0] as string)
    const none = [null, null, null]
    assert.deepEqual(await Promise.all(deliveries.map(texts)), [none, none, none, [QUOTING.error, QUOTING.responseStart, QUOTING.logs]])
    const shown = await store().history.delivery(deliveries[2] as string)
    assert.equal(shown?.gathered?.length, 3, 'the messages of the request are still listed')
  })

  test('the text of attempts of replays, and of dead letters, is removed too', async () => {
    const { claimed, sourceId, target, destinationId } = await start(['gone'])
    await store().delivery.settle(failed([claimed], target))
    const letter = await claimOne(store(), target)
    await store().delivery.settle(failed([letter], null))
    const [original] = deliveriesOf(claimed.shipment) as [string]
    const replay = await store().replays.replay(original)
    assert.ok(replay.ok)
    const replayed = await claimOne(store(), destinationId)
    await store().delivery.settle(failed([replayed], null))
    const deliveries = [claimed, letter, replayed].map(({ shipment }) => deliveriesOf(shipment)[0] as string)
    for (const delivery of deliveries) assert.ok((await texts(delivery)).includes(QUOTING.logs as string))
    const { id } = await erase(sourceId)
    await untilPurged(store(), id, 2)
    for (const delivery of deliveries) assert.deepEqual(await texts(delivery), [null, null, null])
  })

  test('a purge removes the last rejected message if it names the user', async () => {
    const { sourceId } = await start()
    const sample = (userId: string): string => JSON.stringify({ userId, event: 7 })
    store().ingest.reject({ sourceId, code: 'event_required', count: 1, atMs: NOW_MS, sample: sample('gone') })
    store().ingest.reject({ sourceId, code: 'message_too_large', count: 1, atMs: NOW_MS, sample: sample('gone too') })
    const samples = async (): Promise<string[]> =>
      (await store().books.rejections()).filter((row) => row.sourceId === sourceId).map(({ lastSample }) => lastSample)
    await until(samples, ({ length }) => length === 2, 'both are recorded')
    const { id } = await erase(sourceId)
    await untilPurged(store(), id, 1)
    assert.deepEqual(await until(samples, (left) => left.includes(''), 'one is removed'), ['', sample('gone too')])
  })
}
