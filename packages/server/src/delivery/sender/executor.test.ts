// The executor with a transformer that the test controls: what waits for it, what is sent, and what is not.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { integrationOf } from '../../destinations/fixtures/integration.ts'
import { webhookOf } from '../../destinations/fixtures/webhook.ts'
import { writeStoredBody } from '../../store/port/stored-messages.ts'
import type { Destination, WebhookDestination } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'
import type { SenderReports, Start, Unsent } from '../link/protocol.ts'
import { Executor } from './executor.ts'
import type { HttpClient } from './http/attempt.ts'
import type { IntegrationRuns } from './integration-runs.ts'
import type { TransformInput, TransformResult } from './transforming/transformer.ts'

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

function destinationOf(given: Partial<WebhookDestination> = {}): Destination {
  return webhookOf({ transformation: { code: 'export default (message) => message', timeoutMs: 50, memoryMb: 8 }, ...given })
}

function setUp({ holdRequests = false, runs = null as IntegrationRuns | null } = {}) {
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
  const reported: SenderReports = {
    outcome: (unit, _url, { reason, logs }) => reports.push([unit, reason, logs ?? null]),
    unsent: (unit, unsent: readonly Unsent[], isOver) => reports.push([unit, unsent, isOver]),
    bug: (unit, message) => reports.push([unit, message]),
  }
  const executor = new Executor(http, transformer, reported, runs)
  const load = (key: number, count: number, destination = 1, context: JsonObject = {}): void => {
    const batch = Array.from({ length: count }, (_, at) => ({ type: 'track', event: `e${at}`, userId: 'u', messageId: `m${at}` }))
    executor.load({
      key,
      destination,
      origin: 7,
      about: { sourceId: 's', receivedAtMs: AT_MS, ip: null, browser: false, trace: null },
      body: writeStoredBody({ batch, context }),
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
      notAfterMs: null,
      isLate: false,
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

test('late units start before all others that wait, in the order in which they came', () => {
  const { executor, load, start, calls, bodies, pending } = setUp({ holdRequests: true })
  executor.define(1, destinationOf())
  load(5, 6)
  calls[0]?.done(Array.from({ length: 6 }, (_, at) => changed(String(at))))
  for (const [at, isLate] of [false, false, true, false, true, true].entries()) start(10 + at, [5, at], { limit: 1, isLate })
  for (let ended = 0; ended < 5; ended++) pending.shift()?.()
  assert.deepEqual(bodies, ['0', '2', '4', '5', '1', '3'])
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
  // Four pieces of 64 messages, each of which may result in 128 KB.
  assert.deepEqual([calls.map(({ inputs }) => inputs.length), bodies.length], [[64, 64, 64, 64, 1], 0])
  finish(4, '{}')
  assert.equal(bodies.length, 1)
  for (const nth of [0, 1, 2, 3]) finish(nth, long)
  // There is room for another piece, and then no more: the next unit has its turn when nothing is in flight.
  assert.deepEqual([calls.length, bodies.length], [6, 2])
  finish(5, long)
  assert.deepEqual([calls.length, bodies.length], [6, 2])
  for (const end of pending.splice(0)) end()
  assert.equal(calls.length, 7)
  executor.drop(1, null)
  // Now there is room: short messages hold nothing back.
  for (let nth = 6; nth < calls.length; nth++) finish(nth, '{}')
  assert.equal(bodies.length, 5)
  assert.equal(
    calls.reduce((sum, { inputs }) => sum + inputs.length, 0),
    5 * 64 + 1 + 3 * 600,
  )
})

test('a batch that the settings make too large for one request is sent in several', () => {
  const { executor, load, start, bodies, reports } = setUp()
  const body = { text: 'x'.repeat(60_000), event: { '@path': '$.event' } }
  const request = { method: 'POST' as const, path: '', headers: {}, body, format: 'json' as const }
  executor.define(1, destinationOf({ transformation: null, request, batch: { size: 100, bytes: 200_000, lingerMs: 0 } }))
  load(5, 8)
  start(11, Array.from({ length: 8 }, (_, at) => [5, at]).flat())
  const eventsOf = (text = ''): string[] => (JSON.parse(text) as { event: string }[]).map(({ event }) => event)
  assert.deepEqual(eventsOf(bodies[0]), ['e0', 'e1', 'e2'])
  const leftOut = [3, 4, 5, 6, 7].map((position) => ({ position, why: 'left_out' }))
  assert.deepEqual(reports, [
    [11, leftOut, false],
    [11, null, null],
  ])
  // They are still loaded.
  start(12, [5, 3, 5, 4, 5, 5])
  start(13, [5, 6, 5, 7])
  assert.deepEqual(
    [eventsOf(bodies[1]), eventsOf(bodies[2])],
    [
      ['e3', 'e4', 'e5'],
      ['e6', 'e7'],
    ],
  )
})

test('a transformed batch is sent as soon as enough of it for one request is transformed', () => {
  const { executor, load, start, calls, bodies, reports } = setUp()
  executor.define(1, destinationOf({ batch: { size: 1_000, bytes: 500_000, lingerMs: 0 } }))
  load(5, 1_000)
  start(11, Array.from({ length: 1_000 }, (_, at) => [5, at]).flat())
  calls[0]?.done(calls[0].inputs.map(() => changed(`{"a":"${'x'.repeat(100_000)}"}`)))
  assert.equal((JSON.parse(bodies[0] ?? '[]') as unknown[]).length, 4)
  const [[, unsent] = []] = reports as [number, Unsent[]][]
  assert.deepEqual([unsent?.length, new Set(unsent?.map(({ why }) => why))], [996, new Set(['left_out'])])
})

test('bodies in flight are limited for each destination, and another one has its turn', () => {
  const { executor, load, start, bodies, pending } = setUp({ holdRequests: true })
  const body = { text: 'x'.repeat(500_000) }
  const request = { method: 'POST' as const, path: '', headers: {}, body, format: 'json' as const }
  executor.define(1, destinationOf({ transformation: null, request }))
  executor.define(2, destinationOf({ transformation: null }))
  load(5, 100)
  for (let at = 0; at < 100; at++) start(10 + at, [5, at], { limit: 1_000 })
  const started = bodies.length
  assert.ok(started >= 30 && started <= 40, `${started} in flight`)
  load(6, 1, 2)
  start(200, [6, 0], { destination: 2 })
  assert.equal(bodies.length, started + 1)
  pending.shift()?.()
  assert.equal(bodies.length, started + 2)
  for (let end = pending.shift(); end !== undefined; end = pending.shift()) end()
  assert.equal(bodies.length, 101)
})

test('events that integrations run with are limited in the same way, as they are after merging', () => {
  const ends: (() => void)[] = []
  const runs: IntegrationRuns = {
    run: (_destination, _work, done) => void ends.push(() => done(SENT)),
    close: () => Promise.resolve(),
  }
  const { executor, load, start } = setUp({ runs })
  executor.define(1, integrationOf())
  load(5, 100, 1, { app: 'x'.repeat(500_000) })
  for (let at = 0; at < 100; at++) start(10 + at, [5, at], { limit: 1_000 })
  const started = ends.length
  assert.ok(started >= 10 && started <= 20, `${started} in progress`)
  ends.shift()?.()
  assert.equal(ends.length, started)
  for (let end = ends.shift(); end !== undefined; end = ends.shift()) end()
})

test('results of transformations are limited for all destinations together, and one that waits gets its turn', () => {
  const { executor, load, calls } = setUp()
  for (const number of [1, 2, 3]) executor.define(number, destinationOf())
  for (const number of [1, 2, 3]) load(number, 600, number)
  // Four pieces reach the limit of one destination, and eight the limit of all. Each destination may always have one.
  assert.equal(calls.length, 4 + 4 + 1)
  executor.drop(1, null)
  assert.equal(calls.length, 4 + 4 + 4)
})

test('messages that share a large context are not all built at once, nor transformed at once', () => {
  const { executor, start, bodies, calls } = setUp()
  executor.define(1, destinationOf({ transformation: null }))
  executor.define(2, destinationOf())
  const batch = Array.from({ length: 900 }, (_, at) => ({ type: 'track', event: `e${at}`, userId: 'u', messageId: `m${at}` }))
  const context = { app: 'x'.repeat(400_000) }
  const before = process.memoryUsage().heapUsed
  for (const key of [1, 2, 3, 4, 5, 6]) {
    executor.load({
      key,
      destination: key === 3 ? 2 : 1,
      origin: 7,
      about: { sourceId: 's', receivedAtMs: AT_MS, ip: null, browser: false, trace: null },
      body: writeStoredBody({ batch, context }),
      isText: false,
      parsed: null,
      absent: [3],
      indexes: batch.map((_, at) => at),
    })
  }
  // All together they have 2 GB.
  assert.ok(process.memoryUsage().heapUsed - before < 200_000_000)
  const given = (): number => calls.flatMap(({ inputs }) => inputs).reduce((sum, { text }) => sum + text.length, 0)
  assert.ok(given() < 40_000_000, `${given()} bytes`)
  for (const { inputs } of calls) assert.ok(inputs.length <= 3, `${inputs.length} messages of 400 KB in one call`)
  start(11, [1, 899])
  start(12, [6, 500])
  start(13, [6, 3])
  const sent = bodies.map((text) => JSON.parse(text) as { event: string; context: typeof context })
  assert.deepEqual(
    sent.map(({ event, context: { app } }) => [event, app.length]),
    [
      ['e899', 400_000],
      ['e500', 400_000],
    ],
  )
})
