// Conformance: lists of messages with the states of their deliveries, and searches in messages.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MessageFilter } from '../store.ts'
import {
  accept,
  allPages,
  claimOne,
  type Fate,
  newDestination,
  newSource,
  newSourceAndDestination,
  type StoreFixture,
  settle,
  settleAll,
  track,
  tracks,
} from './fixtures.ts'

export function searching({ store, reopen }: StoreFixture): void {
  const statesOf = async (sourceId: string): Promise<unknown[][]> => {
    const messages = await allPages((page) => store().history.messages({ sourceId }, page), 2)
    for (const { deliveries } of messages) {
      for (const { id, state, reason } of deliveries) {
        const detail = await store().history.delivery(id)
        assert.deepEqual([state, reason], [detail?.state, detail?.reason], 'the list and the delivery')
      }
    }
    return messages.map(({ deliveries }) => deliveries.map(({ state }) => state))
  }

  test('a list of messages has the state of each delivery', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const other = await newDestination(store(), sourceId)
    await accept(store(), sourceId, tracks(3), [destinationId, other.id])
    const pending = ['pending', 'pending']
    assert.deepEqual(await statesOf(sourceId), [pending, pending, pending])
    await settleAll(store(), other.id, 'delivered')
    const claimed = await claimOne(store(), destinationId)
    const fates: Record<string, Fate> = { 0: 'delivered', 1: 'failed', 2: 'retry' }
    await settle(store(), claimed, (delivery) => fates[delivery.split('-').at(-1) as string] as Fate)
    await reopen()
    assert.deepEqual(await statesOf(sourceId), [
      ['pending', 'delivered'],
      ['failed', 'delivered'],
      ['delivered', 'delivered'],
    ])
  })

  for (const fate of ['expired', 'cancelled'] as const) {
    test(`a list of messages has deliveries that are ${fate}`, async () => {
      const { sourceId, destinationId } = await newSourceAndDestination(store())
      await accept(store(), sourceId, tracks(2), [destinationId])
      await settleAll(store(), destinationId, fate)
      await accept(store(), sourceId, tracks(1), [destinationId])
      assert.deepEqual(await statesOf(sourceId), [['pending'], [fate], [fate]])
    })
  }

  test('messages are found by a part of an id or a name, and by a property', async () => {
    const { id: sourceId } = await newSource(store())
    await accept(store(), sourceId, [
      track('a-1', { userId: 'Ann-7', event: 'Order Completed', properties: { plan: 'Pro', total: 10, items: [{ sku: 'X1' }] } }),
      { type: 'identify', userId: 'bob', messageId: 'a-2', traits: { email: 'bob@EXAMPLE.com', plan: 'free' } },
    ])
    await accept(store(), sourceId, [{ type: 'page', anonymousId: 'anon-9', name: 'Pricing', messageId: 'a-3', properties: {} }])
    const found = async (filter: MessageFilter): Promise<unknown[]> => {
      const messages = await allPages((page) => store().history.messages({ sourceId, ...filter }, page), 1)
      return messages.map(({ content, index }) => content.items[index]?.['messageId'])
    }
    assert.deepEqual(await found({ search: 'order' }), ['a-1'])
    assert.deepEqual(await found({ search: 'ANN' }), ['a-1'])
    assert.deepEqual(await found({ search: 'bob@example' }), ['a-2'])
    assert.deepEqual(await found({ search: 'a-' }), ['a-3', 'a-2', 'a-1'])
    assert.deepEqual(await found({ search: 'a-', type: 'page' }), ['a-3'])
    assert.deepEqual(await found({ search: 'nothing' }), [])
    assert.deepEqual(await found({ property: { path: ['plan'] } }), ['a-2', 'a-1'])
    assert.deepEqual(await found({ property: { path: ['properties', 'items', 'sku'], value: 'x' } }), ['a-1'])
    assert.deepEqual(await found({ property: { path: ['total'], value: '1' } }), [])
    assert.deepEqual(await found({ property: { path: ['total'], value: '10' }, search: 'ann' }), ['a-1'])
  })
}
