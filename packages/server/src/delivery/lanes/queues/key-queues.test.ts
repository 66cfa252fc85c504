// Random histories of ordered messages, checked against an oracle that knows only what was accepted, started and ended.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { OrderedLane, type Settings } from '../../fixtures/ordered-lane.ts'
import { KeyQueues } from './key-queues.ts'

const anyKey = fc.nat({ max: 3 })
const nth = fc.nat({ max: 9 })
const limit = fc.nat({ max: 3 })
/** A call of the lane, which a failed test prints. */
type Step = {
  [Name in 'accept' | 'claim' | 'receive' | 'start' | 'finish' | 'record' | 'skip' | 'releaseAll' | 'crash' | 'wait']?: readonly unknown[]
}

function take(lane: OrderedLane, step: Step): void {
  for (const [name, args] of Object.entries(step)) {
    if (name === 'wait') lane.now += args[0] as number
    else (lane[name as Exclude<keyof Step, 'wait'>] as (...given: readonly unknown[]) => void).apply(lane, args as unknown[])
  }
}

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ accept: fc.tuple(fc.array(anyKey, { minLength: 1, maxLength: 5 })) }) },
  { weight: 5, arbitrary: fc.record({ claim: fc.tuple(limit, limit, limit) }) },
  { weight: 5, arbitrary: fc.constant({ receive: [] }) },
  { weight: 8, arbitrary: fc.constant({ start: [] }) },
  { weight: 8, arbitrary: fc.record({ finish: fc.tuple(nth, fc.constantFrom('delivered', 'retry', 'failed')) }) },
  { weight: 3, arbitrary: fc.record({ record: fc.tuple(nth) }) },
  { weight: 2, arbitrary: fc.record({ wait: fc.tuple(fc.integer({ min: 1, max: 9 })) }) },
  { weight: 1, arbitrary: fc.record({ skip: fc.tuple(anyKey) }) },
  { weight: 1, arbitrary: fc.constant({ releaseAll: [] }) },
  { weight: 1, arbitrary: fc.constant({ crash: [] }) },
)
const SETTINGS: Record<string, Settings> = {
  'one message per request': { hold: false, batch: 1, perKey: 1 },
  'one message per request, and failures hold their key': { hold: true, batch: 1, perKey: 1 },
  'batches with several messages of a key': { hold: false, batch: 4, perKey: 4 },
  'batches with one message of a key, and failures hold their key': { hold: true, batch: 4, perKey: 1 },
}

for (const [name, settings] of Object.entries(SETTINGS)) {
  test(`random histories keep the order of every key, and everything ends: ${name}`, () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 150, size: 'max' }), (steps) => {
        const lane = new OrderedLane(settings)
        for (const step of steps) take(lane, step)
        lane.receive()
        while (lane.requests > 0) lane.finish(0, 'delivered')
        lane.finishAll()
        for (const { id, key } of lane.oracle.unended()) assert.equal(lane.book.stateOf(key), 'held', `message ${id} has not ended`)
      }),
      { numRuns: 2_000 },
    )
  })
}

/** K's message behind its head is left in a row that is still in progress, a later one waits in the store, and then the head ends. */
function withLeftMessage(): OrderedLane {
  const lane = new OrderedLane({ hold: false, batch: 1, perKey: 1 })
  const [key, other] = [1, 2]
  for (const keys of [[key], [key, other], [key]]) lane.accept(keys)
  lane.claim(0, 2, 0)
  lane.receive()
  for (let started = 0; started < 2; started++) lane.start()
  lane.finish(0, 'retry')
  lane.record(0)
  lane.claim(0, 1, 0)
  lane.receive()
  lane.now += 9
  lane.claim(1, 0, 0)
  lane.receive()
  lane.start()
  lane.finish(1, 'delivered')
  lane.record(0)
  assert.equal(lane.book.stateOf(key), 'draining')
  return lane
}

test('a message that went back to the store is not overtaken by one that waits there', () => {
  const lane = withLeftMessage()
  lane.finish(0, 'delivered')
  lane.record(0)
  lane.claim(0, 0, 1)
  lane.receive()
  lane.start()
  assert.equal(lane.requests, 0, 'a fresh row before it is left')
  lane.finishAll()
  assert.deepEqual(lane.oracle.unended(), [])
})

test('a message that is left in memory is not overtaken by one that waits in the store', () => {
  const lane = withLeftMessage()
  lane.claim(0, 0, 1)
  lane.receive()
  lane.start()
  assert.equal(lane.requests, 1, 'only the message of the other key is in flight')
  lane.finish(0, 'delivered')
  lane.claim(1, 1, 1)
  lane.receive()
  lane.finishAll()
  assert.deepEqual(lane.oracle.unended(), [])
})

test('only one request of a key is in flight, and the next starts when it has ended', () => {
  const queues = new KeyQueues<{ key: number }>()
  const [a, b, other] = [{ key: 1 }, { key: 1 }, { key: 2 }]
  for (const message of [a, b, other]) assert.equal(queues.add(message, false), true)
  assert.equal(queues.next(), a)
  queues.start([a])
  assert.equal(queues.next(), other)
  queues.start([other])
  assert.equal(queues.next(), undefined)
  queues.end([a])
  assert.equal(queues.next(), b)
})

test('a message is late if one that came after it has started before it', () => {
  const queues = new KeyQueues<{ key: number }>()
  const [a, late, other, last] = [{ key: 1 }, { key: 1 }, { key: 2 }, { key: 3 }]
  for (const message of [a, late, other, last]) queues.add(message, false)
  assert.deepEqual(
    [a, other].map((message) => queues.start([message])),
    [false, false],
  )
  queues.end([a])
  assert.equal(queues.next(), late)
  assert.deepEqual(
    [late, last].map((message) => queues.start([message])),
    [true, false],
  )
  queues.withdraw([late])
  assert.equal(queues.start([late]), true)
})

test('after a message that is to be attempted again, only the head of its key starts', () => {
  const queues = new KeyQueues<{ key: number }>()
  const [a, b, late, head] = [{ key: 1 }, { key: 1 }, { key: 1 }, { key: 1 }]
  for (const message of [a, b]) queues.add(message, false)
  queues.start([a])
  assert.equal(queues.isLeaving(1), false)
  assert.deepEqual(queues.stop([a]), [b])
  assert.equal(queues.isLeaving(1), true)
  queues.claimStarted()
  assert.equal(queues.add(late, false), false, 'it was claimed before the store knew of the retry')
  queues.returned([1, 1])
  queues.claimEnded()
  assert.equal(queues.add(head, true), true)
  assert.equal(queues.next(), head)
  queues.returned([1])
  queues.start([head])
  queues.end([head])
  assert.equal(queues.isLeaving(1), false)
  assert.equal(queues.size, 0)
})

test('messages that did not fit into their request are next again', () => {
  const queues = new KeyQueues<{ key: number }>()
  const messages = [{ key: 1 }, { key: 1 }, { key: 1 }]
  for (const message of messages) queues.add(message, false)
  assert.deepEqual(queues.startable(messages, 2), messages.slice(0, 2))
  queues.start(messages.slice(0, 2))
  queues.withdraw(messages.slice(1, 2))
  assert.equal(queues.next(), undefined, 'the first one is still in flight')
  queues.end(messages.slice(0, 1))
  assert.deepEqual(queues.startable(messages, 9), messages.slice(1))
})
