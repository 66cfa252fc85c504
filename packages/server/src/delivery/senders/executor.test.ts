// The executor with a transformer that the test controls: what waits for it, what is sent, and what is not.

import assert from 'node:assert/strict'
import test from 'node:test'
import { webhookOf } from '../../destinations/fixtures/webhook.ts'
import { writeStoredBody } from '../../store/port/stored-messages.ts'
import type { Destination } from '../../store/store.ts'
import type { HttpClient } from '../sending/attempt.ts'
import type { Outcome } from '../sending/outcome.ts'
import type { TransformInput, TransformResult } from '../transforming/transformer.ts'
import { Executor } from './executor.ts'
import type { Start, Unsent } from './protocol.ts'

const AT_MS = Date.UTC(2026, 10, 14, 9)
const SENT: Outcome = {
  verdict: 'success',
  status: 200,
  reason: null,
  error: null,
  address: null,
  timings: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 1, totalMs: 2 },
  retryAfterMs: null,
  responseStart: null,
}

function destinationOf(given: Partial<Destination> = {}): Destination {
  return webhookOf({ transformation: { code: 'export default (message) => message', timeoutMs: 50, memoryMb: 8 }, ...given })
}

function setUp({ holdRequests = false } = {}) {
  const bodies: string[] = []
  const reports: unknown[] = []
  /** Ends the requests in flight. */
  const pending: (() => void)[] = []
  const calls: { inputs: readonly TransformInput[]; done: (results: readonly TransformResult[]) => void; isCancelled: boolean }[] = []
  const http: HttpClient = {
    inFlight: 0,
    send(request, onOutcome) {
      bodies.push(String(request.body))
      if (holdRequests) pending.push(() => onOutcome(SENT))
      else onOutcome(SENT)
    },
    close: () => Promise.resolve(),
  }
  const transformer = {
    run(_id: string, _transformation: unknown, inputs: readonly TransformInput[], done: (typeof calls)[number]['done']) {
      const call = { inputs, done, isCancelled: false }
      calls.push(call)
      return () => void Object.assign(call, { isCancelled: true })
    },
    close: () => Promise.resolve(),
  }
  const executor = new Executor(http, transformer, {
    outcome: (unit, _url, { reason, logs }) => reports.push([unit, reason, logs ?? null]),
    unsent: (unit, unsent: readonly Unsent[], isOver) => reports.push([unit, unsent, isOver]),
    bug: (unit, message) => reports.push([unit, message]),
  })
  const load = (key: number, count: number): void => {
    const batch = Array.from({ length: count }, (_, at) => ({ type: 'track', event: `e${at}`, userId: 'u', messageId: `m${at}` }))
    executor.load({
      key,
      destination: 1,
      origin: 7,
      about: { sourceId: 's', receivedAtMs: AT_MS, ip: null, browser: false, trace: null },
      body: writeStoredBody({ batch }),
      isText: false,
      parsed: null,
      absent: [],
      indexes: batch.map((_, at) => at),
    })
  }
  const start = (unit: number, messages: number[], given: Partial<Start> = {}): void => {
    const usual = {
      isBatch: messages.length > 2,
      attempt: 1,
      replay: false,
      atMs: AT_MS,
      keepAnswer: false,
      limit: 10,
      urls: [0],
      steps: null,
      isPreview: false,
    }
    executor.start({ unit, destination: 1, messages, ...usual, ...given })
  }
  return { executor, load, start, calls, bodies, reports, pending }
}

const changed = (text: string, logs: string | null = null): TransformResult => ({ kind: 'changed', text, logs })

test('all messages of a load are transformed in one call, and units wait for it in order', () => {
  const { executor, load, start, calls, bodies, reports } = setUp()
  executor.define(1, destinationOf())
  load(5, 3)
  start(11, [5, 0])
  start(12, [5, 2])
  assert.deepEqual([calls.length, bodies, reports], [1, [], []])
  assert.deepEqual(
    calls[0]?.inputs.map(({ messageId, receivedAtMs }) => [messageId, receivedAtMs]),
    [0, 1, 2].map((at) => [`m${at}`, AT_MS]),
  )
  assert.equal(JSON.parse(calls[0]?.inputs[1]?.text ?? '').event, 'e1')
  calls[0]?.done([changed('{"a":0}', 'printed'), changed('{"a":1}'), changed('{"a":2}')])
  start(13, [5, 1])
  assert.deepEqual(bodies, ['{"a":0}', '{"a":2}', '{"a":1}'])
  assert.deepEqual(reports, [
    [11, null, 'printed'],
    [12, null, null],
    [13, null, null],
  ])
})

test('dropped and failed messages are reported, and the rest of their batch is sent', () => {
  const { executor, load, start, calls, bodies, reports } = setUp()
  executor.define(1, destinationOf({ batch: { size: 3, bytes: 500_000, lingerMs: 0 } }))
  load(5, 3)
  start(11, [5, 0, 5, 1, 5, 2])
  calls[0]?.done([{ kind: 'dropped', logs: null }, { kind: 'failed', error: 'line 3: no', logs: 'x' }, changed('{"a":2}')])
  assert.deepEqual(bodies, ['[{"a":2}]'])
  const dropped = { position: 0, why: { reason: 'dropped_by_transformation', error: null, logs: null } }
  const failed = { position: 1, why: { reason: 'transformation_failed', error: 'line 3: no', logs: 'x' } }
  assert.deepEqual(reports, [
    [11, [dropped, failed], false],
    [11, null, null],
  ])
})

test('a unit without a message left is over, and a transformer that is not available fails it temporarily', () => {
  const { executor, load, start, calls, bodies, reports } = setUp()
  executor.define(1, destinationOf())
  load(5, 2)
  start(11, [5, 0])
  start(12, [5, 1])
  calls[0]?.done([
    { kind: 'dropped', logs: null },
    { kind: 'unavailable', error: 'no thread' },
  ])
  assert.deepEqual(bodies, [])
  assert.deepEqual(reports, [
    [11, [{ position: 0, why: { reason: 'dropped_by_transformation', error: null, logs: null } }], true],
    [12, 'no thread'],
    [12, 'internal_error', null],
  ])
})

test('units that are recalled while they wait for their transformation are not sent when it ends', () => {
  const { executor, load, start, calls, bodies, reports } = setUp()
  executor.define(1, destinationOf())
  load(5, 1)
  start(11, [5, 0])
  executor.recall(1)
  calls[0]?.done([changed('{}')])
  assert.deepEqual([bodies, reports], [[], [[11, 'aborted', null]]])
})

test('a transformation is cancelled when none of its messages is needed any more, and not before', () => {
  const { executor, load, start, calls } = setUp()
  executor.define(1, destinationOf())
  load(5, 3)
  load(6, 1)
  start(11, [5, 0])
  executor.drop(5, [2])
  executor.recall(1)
  assert.deepEqual(
    calls.map(({ isCancelled }) => isCancelled),
    [false, false],
  )
  executor.drop(5, [1])
  executor.drop(6, null)
  assert.deepEqual(
    calls.map(({ isCancelled }) => isCancelled),
    [true, true],
  )
})

test('a test request waits for its transformation, whatever the limit', () => {
  const { executor, load, start, calls, bodies } = setUp()
  executor.define(1, destinationOf())
  load(5, 1)
  start(11, [5, 0], { limit: Number.POSITIVE_INFINITY })
  assert.deepEqual(bodies, [])
  calls[0]?.done([changed('{"a":1}')])
  assert.deepEqual(bodies, ['{"a":1}'])
})

test('code that makes messages much longer does not fill the memory: what is held and in flight is limited, and every unit has its turn', () => {
  const { executor, load, start, calls, bodies, pending } = setUp({ holdRequests: true })
  executor.define(1, destinationOf({ batch: { size: 500, bytes: 500_000, lingerMs: 0 } }))
  const long = `{"a":"${'x'.repeat(120_000)}"}`
  const finish = (nth: number, text: string): void => calls[nth]?.done(calls[nth].inputs.map(() => changed(text)))
  for (const key of [1, 2, 3, 4]) {
    load(key, 600)
    start(10 + key, [key, 0, key, 1])
  }
  // A test does not wait for the others.
  load(5, 1)
  start(15, [5, 0], { limit: Number.POSITIVE_INFINITY })
  assert.deepEqual([calls.length, bodies.length], [2, 0])
  finish(1, '{}')
  assert.equal(bodies.length, 1)
  finish(0, long)
  // 598 long messages are left of the first load, so the second waits until the request has ended.
  assert.deepEqual([calls.length, bodies.length], [2, 2])
  for (const end of pending.splice(0)) end()
  assert.equal(calls.length, 3)
  finish(2, '{}')
  executor.drop(1, null)
  // Now there is room: short messages hold nothing back.
  assert.equal(calls.length, 4)
  finish(3, '{}')
  assert.equal(calls.length, 5)
  finish(4, '{}')
  for (const end of pending.splice(0)) end()
  assert.equal(bodies.length, 5)
  // Waiting loads that are dropped are never transformed.
  load(6, 600)
  load(7, 600)
  executor.drop(7, null)
  finish(5, '{}')
  assert.equal(calls.length, 6)
})
