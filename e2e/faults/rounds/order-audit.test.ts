// What the audit of order finds in what a receiver saw of two messages of a key, a before b.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SentOrder } from '../../cluster/sent-order.ts'
import { Sightings } from '../system/sightings.ts'
import type { FaultTime } from './fault.ts'
import { auditOrder } from './order-audit.ts'

/** Requests with one or several messages, and the answers 'accepted' (of the last request with the message) and 'failed'. */
type Step = readonly [atMs: number, request: string] | readonly [atMs: number, accepted: string, ends: true]

function problemsOf(steps: readonly Step[], faults: readonly FaultTime[] = []): string[] {
  const sightings = new Sightings()
  for (const [atMs, ids, ends = false] of steps) {
    if (ends) sightings.ended(ids.split(''), atMs)
    else sightings.arrived(ids.split(''), atMs)
  }
  const order = { isBefore: (first: string, second: string) => first < second }
  return auditOrder({ order, sightings, keyOf: () => 'key', faults }).problems
}

const FAULT: FaultTime = { fromMs: 1_000, toMs: 3_000, sentUntilMs: 2_000 }

const IN_ORDER: readonly (readonly [title: string, steps: readonly Step[], faults?: readonly FaultTime[]])[] = [
  [
    'one after the other',
    [
      [1, 'a'],
      [2, 'a', true],
      [3, 'b'],
      [4, 'b', true],
    ],
  ],
  [
    'in one request',
    [
      [1, 'ab'],
      [2, 'ab', true],
    ],
  ],
  [
    'after several attempts',
    [
      [1, 'a'],
      [2, 'a'],
      [3, 'a', true],
      [4, 'b'],
    ],
  ],
  [
    'in one request, which is repeated',
    [
      [1, 'ab'],
      [2, 'ab'],
      [3, 'ab', true],
    ],
  ],
  [
    'again in one request, after a failure of the second',
    [
      [1, 'ab'],
      [2, 'ab', true],
      [1_500, 'ab'],
    ],
    [FAULT],
  ],
  [
    'again, because a node died before both were recorded',
    [
      [900, 'a'],
      [910, 'a', true],
      [920, 'b'],
      [930, 'b', true],
      [2_500, 'a'],
      [2_510, 'b'],
    ],
    [FAULT],
  ],
  [
    'again without the second, because a node died while both were in one request',
    [
      [990, 'ab'],
      [2_500, 'a'],
      [2_510, 'a', true],
      [2_520, 'b'],
    ],
    [FAULT],
  ],
]

const OUT_OF_ORDER: readonly (readonly [title: string, problem: RegExp, steps: readonly Step[], faults?: readonly FaultTime[]])[] = [
  [
    'the second first',
    /before the first had ended/,
    [
      [1, 'b'],
      [2, 'b', true],
      [3, 'a'],
      [4, 'a', true],
    ],
  ],
  [
    'the second while the first is in flight',
    /before the first had ended/,
    [
      [1, 'a'],
      [2, 'b'],
      [3, 'ab', true],
    ],
  ],
  [
    'the second after a failure of the first',
    /\(never\)/,
    [
      [1, 'a'],
      [2, 'b'],
    ],
  ],
  ['in one request in the wrong order', /in one request in the wrong order/, [[1, 'ba']]],
  [
    'again without a fault',
    /no fault explains/,
    [
      [1, 'a'],
      [2, 'a', true],
      [3, 'b'],
      [4, 'a'],
    ],
  ],
  [
    'again without the second, after a failure of a request with both',
    /no fault explains/,
    [
      [1, 'ab'],
      [20, 'a'],
      [30, 'a', true],
      [40, 'b'],
    ],
    [{ ...FAULT, fromMs: 20_000, toMs: 21_000 }],
  ],
  [
    'again long after the fault',
    /no fault explains/,
    [
      [1, 'a'],
      [2, 'a', true],
      [3, 'b'],
      [60_000, 'a'],
    ],
    [{ ...FAULT, fromMs: 20_000, toMs: 21_000 }],
  ],
  [
    'again, after the second was sent when the node was dead',
    /no fault explains/,
    [
      [900, 'a'],
      [910, 'a', true],
      [2_100, 'b'],
      [2_500, 'a'],
    ],
    [FAULT],
  ],
]

for (const [title, steps, faults] of IN_ORDER) {
  test(`in order: ${title}`, () => assert.deepEqual(problemsOf(steps, faults), []))
}
for (const [title, problem, steps, faults] of OUT_OF_ORDER) {
  test(`out of order: ${title}`, () => assert.match(problemsOf(steps, faults).join(), problem))
}

test('a message is before those that were sent after it was acknowledged, and before those behind it in its request', () => {
  const order = new SentOrder()
  order.sent(['a', 'b'])
  order.sent(['c'])
  order.sent(['a', 'b'])
  order.acknowledged(['a', 'b'])
  // The clock has a limited resolution.
  for (const from = performance.now(); performance.now() === from; );
  order.sent(['d'])
  assert.deepEqual([order.isBefore('a', 'b'), order.isBefore('b', 'a')], [true, false])
  assert.deepEqual([order.isBefore('a', 'c'), order.isBefore('c', 'a')], [false, false])
  assert.deepEqual([order.isBefore('b', 'd'), order.isBefore('c', 'd')], [true, false])
  order.sent(['b', 'a'])
  assert.equal(order.isBefore('a', 'b'), false)
})
