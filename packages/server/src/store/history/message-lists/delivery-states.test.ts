// What a list of messages reads for the states of deliveries. The test uses a row port that records its calls.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliveryStates, type Ending, MAX_ENDINGS } from './delivery-states.ts'

function rows(endings: readonly Ending<number>[], docs: Record<number, string> = {}) {
  const read: number[] = []
  return {
    read,
    endings: (_origins: readonly number[], limit: number) => endings.slice(0, limit),
    endingDocs(ids: readonly number[]) {
      read.push(...ids)
      return ids.map((id) => ({ id, doc: docs[id] as string }))
    },
  }
}
const docOf = (f: unknown): string => JSON.stringify({ u: [], r: [], f })
const ending = (change: Partial<Ending<number>>): Ending<number> => ({
  id: 100,
  origin: 1,
  delivered: 2,
  isOnlyDelivered: true,
  bytes: 10,
  ...change,
})

test('no doc is read if an attempt delivered all messages', async () => {
  const port = rows([ending({})])
  const states = await deliveryStates(port, [
    { origin: 1, index: 0, planned: 2 },
    { origin: 1, index: 1, planned: 2 },
    { origin: 2, index: 0, planned: 1 },
  ])
  assert.deepEqual(
    states.map((each) => each?.state),
    ['delivered', 'delivered', 'pending'],
  )
  assert.deepEqual(port.read, [])
})

test('the docs of other attempts are read, and a delivery that none of them ended is pending', async () => {
  const port = rows([ending({ delivered: 1, isOnlyDelivered: false })], {
    100: docOf([
      ['failed', 'http_500', [0]],
      ['delivered', null, [2]],
    ]),
  })
  const states = await deliveryStates(
    port,
    [0, 1, 2].map((index) => ({ origin: 1, index, planned: 3 })),
  )
  assert.deepEqual(states, [
    { state: 'failed', reason: 'http_500' },
    { state: 'pending', reason: null },
    { state: 'delivered', reason: null },
  ])
})

test('docs that are too large, and attempts beyond the limit, leave a state unknown', async () => {
  const large = rows([ending({ isOnlyDelivered: false, bytes: 5 * 1024 * 1024 })])
  assert.deepEqual(await deliveryStates(large, [{ origin: 1, index: 0, planned: 1 }]), [undefined])
  assert.deepEqual(large.read, [])
  const many = rows(Array.from({ length: MAX_ENDINGS + 5 }, (_, id) => ending({ id, delivered: 1 })))
  const states = await deliveryStates(many, [
    { origin: 1, index: 0, planned: 10 },
    { origin: 2, index: 0, planned: 1 },
  ])
  assert.deepEqual(states, [{ state: 'delivered', reason: null }, undefined])
})
