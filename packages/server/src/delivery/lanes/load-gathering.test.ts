import assert from 'node:assert/strict'
import test from 'node:test'
import type { Destination } from '../../store/store.ts'
import { ManualClock } from '../fixtures/manual-clock.ts'
import { Backlog } from '../recording/backlog.ts'
import { LoadGathering, type LoadGatheringDeps } from './load-gathering.ts'

const EVERY_MS = 60_000

test('what waits is counted again after another node has made the loads', () => {
  const clock = new ManualClock(0)
  const load = { everyMs: EVERY_MS, maxRows: 10, maxBytes: 1_000_000 }
  const destination = { id: 'dst', type: 'warehouse', load } as unknown as Destination
  const deps: Partial<LoadGatheringDeps> = { clock, setTimer: clock.setTimer, destination: () => destination, backlog: new Backlog() }
  const loads = new LoadGathering(deps as LoadGatheringDeps)
  loads.accepted(100, 9)
  const firstDueMs = clock.wallMs() + EVERY_MS
  assert.equal(loads.dueAtMs, firstDueMs)
  loads.forget()
  assert.equal(loads.dueAtMs, null)
  clock.advance(1_000)
  loads.accepted(100, 9)
  assert.equal(loads.dueAtMs, firstDueMs + 1_000, 'there are not enough for a load at once')
  loads.accepted(100, 1)
  assert.equal(loads.dueAtMs, clock.wallMs())
})

test('a request is over when two looks, some time apart, have found nothing more, and is known until then', async () => {
  const clock = new ManualClock(0)
  const load = { everyMs: EVERY_MS, maxRows: 10, maxBytes: 1_000_000 }
  const destination = { id: 'dst', type: 'warehouse', load } as unknown as Destination
  const ended: string[] = []
  let claims = 0
  const deps = {
    clock,
    setTimer: clock.setTimer,
    destination: () => destination,
    backlog: new Backlog(),
    held: { bytes: 0 },
    store: { claim: async () => (claims++, { shipments: [], moreFresh: false, nextRetryAtMs: null }) },
    wake: () => loads.continue(),
    onEnd: () => undefined,
    onError: (error: unknown) => assert.ifError(error),
  } as unknown as LoadGatheringDeps
  const loads: LoadGathering = new LoadGathering(deps)
  const settled = async (): Promise<void> => {
    while (loads.isUnderWay) await new Promise((resolve) => setImmediate(resolve))
  }
  loads.loadNow('one', () => ended.push('one'))
  loads.loadNow('one', () => assert.fail('it is known'))
  // It comes during the run of the first one, whose claim may not have seen what it is about.
  loads.loadNow('two', () => ended.push('two'))
  await settled()
  assert.deepEqual([ended, claims], [[], 2])
  clock.advance(10_000)
  await settled()
  assert.deepEqual(ended.sort(), ['one', 'two'])
  const before = claims
  clock.advance(10 * EVERY_MS)
  await settled()
  assert.equal(claims, before)
  loads.loadNow('three', () => assert.fail('another node makes the loads'))
  loads.forget()
  await settled()
  clock.advance(10_000)
  await settled()
})

test('many requests while nothing can be loaded are not all kept', async () => {
  const clock = new ManualClock(0)
  const load = { everyMs: EVERY_MS, maxRows: 10, maxBytes: 1_000_000 }
  const ended: number[] = []
  const held = { bytes: 1 }
  const deps = {
    clock,
    setTimer: clock.setTimer,
    destination: () => ({ id: 'dst', type: 'warehouse', load }) as unknown as Destination,
    backlog: new Backlog(),
    held,
    store: { claim: async () => ({ shipments: [], moreFresh: false, nextRetryAtMs: null }) },
    wake: () => loads.continue(),
    onEnd: () => undefined,
    onError: (error: unknown) => assert.ifError(error),
  } as unknown as LoadGatheringDeps
  const loads: LoadGathering = new LoadGathering(deps)
  for (let nth = 1; nth <= 1_000; nth++) loads.loadNow(`request ${nth}`, () => ended.push(nth))
  held.bytes = 0
  for (const _ of [1, 2]) {
    loads.continue()
    while (loads.isUnderWay) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(10_000)
  }
  while (loads.isUnderWay) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([ended.length, ended.at(-1)], [100, 1_000])
})
