// Conformance: random sequences of replay jobs and other operations. After every step, each message is pending at most once for a destination, the
// counts of the jobs match the deliveries, and the ledger equals its recount.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { FinalStateName, ReplayJob, Store } from '../../store.ts'
import {
  accept,
  claim,
  DAY_MS,
  deliveriesOf,
  type Fate,
  ledgerOf,
  newDestination,
  newSource,
  type OpenStore,
  type StoreFixture,
  settlementOf,
  tracks,
} from '../fixtures.ts'
import { createJob, doneOf, finish, listed, matching } from './replay-fixtures.ts'

export function replaySequences({ open }: StoreFixture): void {
  test('in any sequence of jobs and other operations, each message is pending at most once, and the ledger equals its recount', {
    timeout: 600_000,
  }, async () => {
    const opened = await open({ retentionDays: 7 })
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(anyStep, { minLength: 10, maxLength: 40, size: 'max' }), (steps) => runModel(opened, steps)),
        {
          numRuns: Number(process.env['CONFORMANCE_RUNS'] ?? 2),
          endOnFailure: true,
        },
      )
    } finally {
      await opened.dispose()
    }
  })
}

type AnyStep =
  | { kind: 'accept'; count: number }
  | { kind: 'settle'; destination: number; fates: Fate[] }
  | { kind: 'create'; states: FinalStateName[]; all: boolean }
  | { kind: 'step'; job: number; limit: number; maxWaiting: number }
  | { kind: 'change'; job: number; state: 'running' | 'paused' | 'cancelled' }
  | { kind: 'drop' }
  | { kind: 'reopen' }

const someDestination = fc.nat(1)
const someJob = fc.nat(100)
const anyStep: fc.Arbitrary<AnyStep> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('accept' as const), count: fc.integer({ min: 1, max: 5 }) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      destination: someDestination,
      fates: fc.array(fc.constantFrom<Fate>('delivered', 'failed', 'failed', 'expired', 'cancelled', 'retry'), {
        minLength: 1,
        maxLength: 5,
      }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      states: fc.uniqueArray(fc.constantFrom<FinalStateName>('failed', 'expired', 'cancelled', 'delivered'), { minLength: 1 }),
      all: fc.boolean(),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('step' as const),
      job: someJob,
      limit: fc.integer({ min: 1, max: 6 }),
      maxWaiting: fc.integer({ min: 1, max: 8 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('change' as const),
      job: someJob,
      state: fc.constantFrom('running' as const, 'running' as const, 'paused' as const, 'cancelled' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
)

async function runModel(opened: OpenStore, steps: readonly AnyStep[]): Promise<void> {
  const { id: sourceId } = await newSource(opened.store)
  const destinations = [(await newDestination(opened.store, sourceId)).id, (await newDestination(opened.store, sourceId)).id]
  const jobs: string[] = []
  const jobAt = (at: number): string | undefined => jobs[at % Math.max(1, jobs.length)]

  for (const one of steps) {
    const { store } = opened
    switch (one.kind) {
      case 'accept':
        await accept(store, sourceId, tracks(one.count), destinations)
        break
      case 'settle': {
        const { shipments } = await claim(store, destinations[one.destination] as string, { maxFresh: 3, maxRetries: 3 })
        for (const { shipment } of shipments) {
          const fateOf = new Map(deliveriesOf(shipment).map((id, at) => [id, one.fates[at % one.fates.length] as Fate]))
          await store.delivery.settle(settlementOf([shipment], (id) => fateOf.get(id) as Fate, { dueAtMs: 1 }))
        }
        break
      }
      case 'create':
        for (const destinationId of one.all ? destinations : destinations.slice(1)) {
          jobs.push((await createJob(store, matching({ destinationId, states: one.states }))).id)
        }
        break
      case 'step': {
        const id = jobAt(one.job)
        const before = id === undefined ? undefined : await store.replays.one(id)
        if (before === undefined) break
        const { id: of, position } = before
        const result = await store.replays.step({ id: of, position, limit: one.limit, maxWaiting: one.maxWaiting })
        assert.equal(result.ok, before.state === 'running')
        if (!result.ok) break
        assert.ok(result.replayed <= one.limit)
        assert.equal(result.job.replayed, before.replayed + result.replayed)
        break
      }
      case 'change': {
        const id = jobAt(one.job)
        if (id !== undefined) await store.replays.update(id, { state: one.state })
        break
      }
      case 'drop':
        await store.dropExpired(Date.now() + 100 * DAY_MS)
        break
      case 'reopen':
        await opened.reopen()
    }
    await holds(opened.store, destinations, jobs)
  }
  // Completes all jobs, and checks the final states.
  for (const id of jobs) {
    await opened.store.replays.update(id, { state: 'running' })
    if ((await opened.store.replays.one(id))?.state !== 'running') continue
    const done = await finish(opened.store, { id })
    assert.equal(doneOf(done), done.total, 'each was replayed or skipped')
  }
  await holds(opened.store, destinations, jobs)
}

async function holds(store: Store, destinations: readonly string[], jobs: readonly string[]): Promise<void> {
  let replayPending = 0
  for (const destinationId of destinations) {
    await ledgerOf(store, destinationId)
    const pending = await listed(store, destinationId, 'pending')
    assert.equal(new Set(pending.map(({ messageId }) => messageId)).size, pending.length, 'no message is pending twice')
    replayPending += pending.filter(({ replay }) => replay).length
  }
  let expected = 0
  for (const id of jobs) {
    const job = (await store.replays.one(id)) as ReplayJob
    assert.ok(doneOf(job) <= job.total)
    const { delivered, failed, expired, cancelled } = job.ended
    expected += job.replayed - delivered - failed - expired - cancelled
  }
  assert.equal(replayPending, expected, 'pending replays according to the jobs')
}
