// Words of purges, and what was purged while it was on its way.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClaimedShipment, Taker } from '../store.ts'
import { readPurged, writePurged } from './purge-words.ts'
import { PurgedLately } from './purged-lately.ts'

const SEGMENT = '3741923123123123123'

test('words of any number of messages are within what a notification may have, and say the same', () => {
  const purged = [
    { segment: SEGMENT, indexes: Array.from({ length: 10_000 }, (_, at) => at) },
    ...Array.from({ length: 3_000 }, (_, at) => ({ segment: String(BigInt(SEGMENT) + BigInt(at + 1)), indexes: [at, at + 1] })),
  ]
  const words = writePurged(purged)
  assert.ok(words.length > 10 && words.every((word) => Buffer.byteLength(word) < 8_000))
  const read = new Map<string, number[]>()
  for (const { segment, indexes } of words.flatMap(readPurged)) read.set(segment, [...(read.get(segment) ?? []), ...indexes])
  assert.deepEqual(read, new Map(purged.map(({ segment, indexes }) => [segment, indexes])))
  assert.deepEqual(writePurged([]), [])
})

test('what is no word of a purge means nothing', () => {
  for (const word of [
    '',
    'x',
    '1:2',
    `${SEGMENT}:`,
    `${SEGMENT}:1,`,
    `${SEGMENT}:-1`,
    `${SEGMENT}:1;`,
    `__proto__:1`,
    `${SEGMENT}:99999`,
  ]) {
    assert.deepEqual(readPurged(word), [], word)
  }
})

test('what was purged while it was on its way to the taker comes without its content', () => {
  const lately = new PurgedLately()
  const content = { sourceId: 's', receivedAtMs: 0, ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
  const claimed = (): ClaimedShipment => ({
    shipment: {} as ClaimedShipment['shipment'],
    contents: new Map([[SEGMENT, { ...content, items: [{ type: 'a' }, { type: 'b' }, { type: 'c' }] }]]),
    bytes: 1,
  })
  const one = claimed()
  assert.equal(lately.without(one), one)
  lately.add([{ segment: SEGMENT, indexes: [0] }])
  lately.add([{ segment: SEGMENT, indexes: [2] }])
  const taken: ClaimedShipment[] = []
  const told: string[] = []
  const taker = { take: (each: ClaimedShipment) => taken.push(each), fenced: () => told.push('fenced') } as unknown as Taker
  const guarded = lately.guard(taker)
  guarded.take(one)
  guarded.reshare?.()
  guarded.fenced?.()
  assert.deepEqual(taken[0]?.contents.get(SEGMENT)?.items, [null, { type: 'b' }, null])
  assert.deepEqual(one.contents, claimed().contents, 'what others hold of it is not changed')
  assert.deepEqual(told, ['fenced'])
})
