// Conformance: what integrations keep between messages is written with outcomes, and deleted with its user, its destination or its time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INTEGRATION_STATE, MAX_ENTRIES, readState, type StateChange, stateDocuments } from '../port/integration-state.ts'
import type { ClaimedShipment, Settlement } from '../store.ts'
import { accept, claimOne, DAY_MS, NOW_MS, newSourceAndDestination, type StoreFixture, settlementOf, track } from './fixtures.ts'

export function keepingState({ store, reopen }: StoreFixture): void {
  /** Two messages that are in flight. */
  const start = async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const messages = ['gone', 'stays'].map((userId) => track(`${userId} ${destinationId}`, { userId }))
    await accept(store(), sourceId, messages, [destinationId])
    return { sourceId, destinationId, claimed: await claimOne(store(), destinationId) }
  }
  const entry = (key: string, more: Partial<StateChange> = {}): StateChange => {
    return { subscriptionId: 'sub_1', key, value: `of ${key}`, setAtMs: NOW_MS, expiresAtMs: NOW_MS + DAY_MS, owner: null, ...more }
  }
  const ownerOf = (sourceId: string, { shipment }: ClaimedShipment, userId: string): StateChange['owner'] => {
    return { sourceId, segment: (shipment.parts[0] as { segment: number }).segment, message: { type: 'track', userId } }
  }
  const delivered = ({ shipment }: ClaimedShipment, state: readonly StateChange[]): Settlement => ({
    ...settlementOf([shipment], 'delivered'),
    state,
  })
  const keys = async (destinationId: string, nowMs = NOW_MS): Promise<string[]> =>
    (await readState(store().documents, destinationId, nowMs)).map(({ key }) => key).sort()

  test('it is written with the outcomes, replaces what had the same key, and is there after the store is reopened', async () => {
    const { destinationId, claimed } = await start()
    const later = entry('a', { value: 'later\0\ud800', setAtMs: NOW_MS + 1 })
    await store().delivery.settle(delivered(claimed, [entry('a'), later, entry('a', { subscriptionId: 'sub_2' })]))
    await reopen()
    const stored = await readState(store().documents, destinationId, NOW_MS)
    const { owner: _, ...expected } = later
    assert.deepEqual(
      stored.find(({ subscriptionId }) => subscriptionId === 'sub_1'),
      expected,
    )
    assert.equal(stored.length, 2)
  })

  test('it is not written if the outcomes are not', async () => {
    const { destinationId, claimed } = await start()
    const { shipment } = claimed
    const state = [entry('a')]
    await assert.rejects(store().delivery.settle(delivered({ ...claimed, shipment: { ...shipment, claim: shipment.claim + 1 } }, state)))
    assert.deepEqual(await keys(destinationId), [])
    store().delivery.release([shipment])
  })

  test('it is deleted with its user, whether it was written before the deletion or after it, and others stay', async () => {
    const one = await start()
    const other = await start()
    const state = ({ sourceId, claimed }: typeof one): StateChange[] => [
      entry('gone', { owner: ownerOf(sourceId, claimed, 'gone') }),
      entry('stays', { owner: ownerOf(sourceId, claimed, 'stays') }),
      entry('of a batch'),
    ]
    await store().delivery.settle(delivered(one.claimed, state(one)))
    assert.deepEqual(await keys(one.destinationId), ['gone', 'of a batch', 'stays'])
    await store().deletions.create({ userIds: ['gone'], sourceIds: [one.sourceId, other.sourceId], suppress: false })
    assert.deepEqual(await keys(one.destinationId), ['of a batch', 'stays'])
    await store().delivery.settle(delivered(other.claimed, state(other)))
    assert.deepEqual(await keys(other.destinationId), ['of a batch', 'stays'])
  })

  test('it is deleted with its destination', async () => {
    const { destinationId, claimed } = await start()
    await store().delivery.settle(delivered(claimed, [entry('a')]))
    await store().resources.deleteDestination(destinationId)
    assert.deepEqual(await keys(destinationId), [])
  })

  test('what has expired is not read, and is removed', async () => {
    const { destinationId, claimed } = await start()
    const soon = entry('soon', { expiresAtMs: NOW_MS + 10 })
    await store().delivery.settle(delivered(claimed, [soon, entry('later')]))
    assert.deepEqual(await keys(destinationId, NOW_MS + 9), ['later', 'soon'])
    assert.deepEqual(await keys(destinationId, NOW_MS + 11), ['later'])
    // Read at an earlier time, it is gone nevertheless.
    assert.deepEqual(await keys(destinationId), ['later'])
  })

  test('of too many entries, those that expire first are removed', async () => {
    const { destinationId, claimed } = await start()
    const many = Array.from({ length: MAX_ENTRIES }, (_, at) => entry(`k${at}`, { expiresAtMs: NOW_MS + 1_000 + at }))
    const documents = stateDocuments(destinationId, many)
    for (let at = 0; at < documents.length; at += 2_000) {
      const some = documents.slice(at, at + 2_000).map(({ key, atMs, doc }) => [key, { atMs, doc: JSON.parse(doc) }] as const)
      await store().documents.update(INTEGRATION_STATE, [], () => new Map(some))
    }
    await store().delivery.settle(delivered(claimed, [entry('one more'), entry('another')]))
    const left = await keys(destinationId)
    assert.equal(left.length, MAX_ENTRIES)
    assert.deepEqual(
      ['k0', 'k1', 'k2', 'one more', 'another'].map((key) => left.includes(key)),
      [false, false, true, true, true],
    )
    assert.equal((await keys(destinationId)).length, MAX_ENTRIES)
    await store().documents.drop(INTEGRATION_STATE, {})
  })
}
