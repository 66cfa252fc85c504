// Helpers for the conformance tests of replay jobs: create jobs and run them to their end, and create deliveries that have ended.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeliveryRow, FinalStateName, NewReplayJob, ReplayJob, ReplaySelection, ReplayStepResult, Store } from '../../store.ts'
import { accept, allPages, newSourceAndDestination, type Open, type OpenStore, settleAll, tracks } from '../fixtures.ts'

export const OPERATOR = { id: 'tok_1', name: 'an operator' }

export type Matching = Exclude<ReplaySelection, { deliveryIds: unknown }>

export function matching(change: Partial<Matching> = {}): Matching {
  return { destinationId: null, states: ['failed', 'expired'], reason: null, fromMs: null, toMs: null, ...change }
}

export function createJob(store: Store, selection: ReplaySelection, change: Partial<NewReplayJob> = {}): Promise<ReplayJob> {
  return store.replays.create({ selection, ratePerSecond: null, createdBy: OPERATOR, ...change })
}

export async function step(store: Store, { id }: { id: string }, limit = 1_000, maxWaiting = 1_000_000): Promise<ReplayStepResult> {
  const job = await store.replays.one(id)
  assert.ok(job !== undefined, 'the job exists')
  return store.replays.step({ id, position: job.position, limit, maxWaiting })
}

/** Makes steps until the job is finished. */
export async function finish(store: Store, job: { id: string }, limit = 1_000): Promise<ReplayJob> {
  for (;;) {
    const now = await store.replays.one(job.id)
    if (now?.state === 'finished') return now
    const result = await step(store, job, limit)
    assert.ok(result.ok && !result.blocked, JSON.stringify(result))
  }
}

export async function replayAll(store: Store, selection: ReplaySelection): Promise<ReplayJob> {
  return finish(store, await createJob(store, selection))
}

export function doneOf({ replayed, skipped }: ReplayJob): number {
  return replayed + Object.values(skipped).reduce((sum, count) => sum + count, 0)
}

/** Creates a destination with `count` deliveries that ended in this state, all of one segment (`together`) or each of a different one. */
export async function ended(store: Store, state: FinalStateName, count: number, { together = false, reason = 'http_404' } = {}) {
  const way = await newSourceAndDestination(store)
  if (together) await accept(store, way.sourceId, tracks(count), [way.destinationId])
  else for (const item of tracks(count)) await accept(store, way.sourceId, [item], [way.destinationId])
  await settleAll(store, way.destinationId, state, { reason })
  return way
}

export async function listed(store: Store, destinationId: string, state?: DeliveryRow['state']): Promise<DeliveryRow[]> {
  return allPages((page) => store.history.deliveries({ destinationId, state }, page), 500)
}

export async function pendingMessages(store: Store, destinationId: string): Promise<(string | null)[]> {
  return (await listed(store, destinationId, 'pending')).map(({ messageId }) => messageId)
}

/** Tests that need a store of their own, because they close it or drop old data. */
export function testsWithStore(open: Open): (title: string, run: (opened: OpenStore) => Promise<void>) => void {
  return (title, run) =>
    void test(title, async () => {
      const opened = await open({ retentionDays: 7 })
      try {
        await run(opened)
      } finally {
        await opened.dispose()
      }
    })
}
