// Conformance: the steps of a replay job, by one runner at a time, and what they leave to later steps.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEAD_MS } from '../../replays/replay-job-row.ts'
import type { ReplayJob, ReplayStepResult } from '../../store.ts'
import {
  accept,
  claimOne,
  ledgerOf,
  newDestination,
  newSourceAndDestination,
  type StoreFixture,
  settle,
  settleAll,
  tracks,
  until,
} from '../fixtures.ts'
import { createJob, ended, finish, listed, matching, pendingMessages, step, testsWithStore } from './replay-fixtures.ts'

export function replaySteps({ store, open }: StoreFixture): void {
  const withStore = testsWithStore(open)

  test('of concurrent steps from the same position, one succeeds', async () => {
    const { destinationId } = await ended(store(), 'failed', 10)
    const { id, position } = await createJob(store(), matching({ destinationId }))
    const same = { id, position, limit: 3, maxWaiting: 100 }
    const results = await Promise.all(Array.from({ length: 5 }, () => store().replays.step(same)))
    assert.equal(results.filter(({ ok }) => ok).length, 1)
    for (const result of results) if (!result.ok) assert.equal(result.reason, 'moved')
    assert.equal((await ledgerOf(store(), destinationId)).pending, 3)
    assert.deepEqual(await store().replays.step({ ...same, id: 'rpl_none' }), { ok: false, reason: 'not_running' })
  })

  test('one runner leads a job; steps of another are rejected until the first has made no step for a while', async () => {
    const { destinationId } = await ended(store(), 'failed', 6)
    const { id } = await createJob(store(), matching({ destinationId }))
    const stepOf = async (runner: string, position?: number): Promise<ReplayStepResult> => {
      const at = position ?? (await store().replays.one(id))?.position ?? -1
      return store().replays.step({ id, position: at, limit: 1, maxWaiting: 100, runner })
    }
    const steppedAtMs = performance.now()
    assert.ok((await stepOf('first')).ok)
    assert.deepEqual(await stepOf('second'), { ok: false, reason: 'led' })
    assert.deepEqual(await stepOf('second', 0), { ok: false, reason: 'led' }, 'checked before the position')
    assert.deepEqual(await stepOf('first', 0), { ok: false, reason: 'moved' })
    assert.ok((await step(store(), { id }, 1)).ok, 'a step without a runner succeeds')
    const taken = await until(
      () => stepOf('second'),
      ({ ok }) => ok,
      'the second leads',
    )
    assert.ok(taken.ok && taken.replayed === 1)
    assert.ok(performance.now() - steppedAtMs > LEAD_MS - 100)
    assert.deepEqual(await stepOf('first'), { ok: false, reason: 'led' })
    // A job that is blocked is led too, because deliveries that were replayed a moment ago count towards the rate.
    const full = { id, position: (await store().replays.one(id))?.position ?? -1, limit: 1, maxWaiting: 0, runner: 'second' }
    const blocked = await store().replays.step(full)
    assert.ok(blocked.ok && blocked.blocked)
    assert.deepEqual(await stepOf('first'), { ok: false, reason: 'led' })
    assert.equal((await finish(store(), { id })).replayed, 6)
    assert.deepEqual(await stepOf('first'), { ok: false, reason: 'not_running' })
  })

  withStore('opened again after every step, it goes on where it stood', async (opened) => {
    const { destinationId } = await ended(opened.store, 'failed', 11, { together: true })
    const { id } = await createJob(opened.store, matching({ destinationId }), { ratePerSecond: 4 })
    for (let done = 0; done < 11; done += 4) {
      const result = await step(opened.store, { id }, 4)
      assert.ok(result.ok && result.replayed === Math.min(4, 11 - done))
      await opened.reopen()
      assert.equal((await opened.store.replays.one(id))?.ratePerSecond, 4)
    }
    const done = await finish(opened.store, { id })
    assert.deepEqual([done.replayed, done.skipped], [11, {}])
    const pending = await pendingMessages(opened.store, destinationId)
    assert.equal(new Set(pending).size, 11)
    assert.equal(pending.length, 11)
  })

  test('a destination that accepts nothing gets no more replays, and does not block the others', async () => {
    const { sourceId, destinationId: dead } = await newSourceAndDestination(store())
    const { id: well } = await newDestination(store(), sourceId)
    for (const item of tracks(12)) await accept(store(), sourceId, [item], [dead, well])
    for (const id of [dead, well]) await settleAll(store(), id, 'expired')
    const deliveryIds = new Set([...(await listed(store(), dead)), ...(await listed(store(), well))].map(({ id }) => id))
    // The job matches only these two: destinations of other tests have no expired deliveries.
    const fromMs = Math.min(...(await listed(store(), dead)).map(({ atMs }) => atMs as number))
    const job = await createJob(store(), matching({ states: ['expired'], fromMs }))
    assert.equal(job.total, deliveryIds.size)
    const blocked = async (): Promise<number> => {
      const result = await step(store(), job, 100, 5)
      assert.ok(result.ok)
      assert.equal(result.blocked, result.job.state === 'running')
      return result.replayed
    }
    assert.equal(await blocked(), 10)
    const { position } = (await store().replays.one(job.id)) as ReplayJob
    assert.equal(await blocked(), 0)
    assert.equal((await store().replays.one(job.id))?.position, position, 'nothing was done, so the position does not change')
    await settleAll(store(), well, 'delivered')
    assert.equal(await blocked(), 5)
    await settleAll(store(), well, 'retry')
    assert.equal(await blocked(), 2, 'deliveries that wait for a retry no longer count')
    assert.equal((await ledgerOf(store(), dead)).pending, 5)
    const one = await claimOne(store(), dead)
    await settle(store(), one, 'retry', { dueAtMs: 1 })
    assert.equal(await blocked(), 1)
    await settleAll(store(), dead, 'cancelled')
    assert.equal(await blocked(), 5)
    await settleAll(store(), dead, 'failed')
    assert.equal(await blocked(), 1)
    assert.equal((await store().replays.one(job.id))?.state, 'finished')
  })

  test('the part of a disabled destination waits until it is enabled', async () => {
    const { destinationId } = await ended(store(), 'failed', 3)
    await store().resources.updateDestination(destinationId, { enabled: false })
    const job = await createJob(store(), matching({ destinationId }))
    const held = await step(store(), job)
    assert.ok(held.ok && held.blocked && held.replayed === 0 && held.job.state === 'running')
    await store().resources.updateDestination(destinationId, { enabled: true })
    assert.equal((await finish(store(), job)).replayed, 3)
  })

  test('a paused destination gets its part of the job as usual', async () => {
    const { destinationId } = await ended(store(), 'failed', 3)
    await store().resources.updateDestination(destinationId, { paused: true })
    const job = await createJob(store(), matching({ destinationId }))
    assert.equal((await finish(store(), job)).replayed, 3)
    assert.equal((await ledgerOf(store(), destinationId)).pending, 3)
  })

  test('a job without deliveries finishes at its first step', async () => {
    const { destinationId } = await newSourceAndDestination(store())
    const job = await createJob(store(), matching({ destinationId }))
    assert.equal(job.total, 0)
    assert.equal((await finish(store(), job)).state, 'finished')
  })
}
