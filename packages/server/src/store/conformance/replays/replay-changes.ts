// Conformance: replay jobs that operators pause, continue, cancel or list, and how long jobs are kept.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReplayJob, ReplayJobState, Store } from '../../store.ts'
import { allPages, counts, DAY_MS, ledgerOf, type StoreFixture, settleAll } from '../fixtures.ts'
import { createJob, ended, finish, matching, OPERATOR, replayAll, step, testsWithStore } from './replay-fixtures.ts'

const ALL = { limit: 1_000, cursor: null }

export function replayChanges({ store, open }: StoreFixture): void {
  const withStore = testsWithStore(open)

  const MAY: Record<ReplayJobState, Record<'running' | 'paused' | 'cancelled', boolean>> = {
    running: { running: true, paused: true, cancelled: true },
    paused: { running: true, paused: true, cancelled: true },
    finished: { running: false, paused: false, cancelled: false },
    cancelled: { running: false, paused: false, cancelled: true },
  }
  for (const from of Object.keys(MAY) as ReplayJobState[]) {
    for (const to of ['running', 'paused', 'cancelled'] as const) {
      test(`a job that is ${from} ${MAY[from][to] ? 'can be' : 'cannot be'} set to ${to}`, async () => {
        const { destinationId } = await ended(store(), 'failed', 2)
        const job = await createJob(store(), matching({ destinationId }))
        if (from === 'finished') await finish(store(), job)
        else if (from !== 'running') assert.ok((await store().replays.update(job.id, { state: from })).ok)
        const result = await store().replays.update(job.id, { state: to })
        const now = (await store().replays.one(job.id)) as ReplayJob
        if (!MAY[from][to]) {
          assert.deepEqual(result, { ok: false, reason: 'over' })
          assert.equal(now.state, from)
          return
        }
        assert.ok(result.ok)
        assert.deepEqual(result.job, now)
        assert.equal(now.state, to)
        assert.equal(now.finishedAtMs !== null, to === 'cancelled')
        const stepped = await step(store(), job, 1)
        assert.deepEqual(to === 'running' ? stepped.ok : stepped, to === 'running' ? true : { ok: false, reason: 'not_running' })
      })
    }
  }

  test('the rate can be changed until the job has ended; changes are in the audit log, and calls that change nothing are not', async () => {
    const { destinationId } = await ended(store(), 'failed', 2)
    const audit = (after: ReplayJob | null, before: ReplayJob | null) => ({
      actor: OPERATOR,
      action: 'replay.test',
      subject: after?.id ?? null,
      before: before && { state: before.state, ratePerSecond: before.ratePerSecond },
      after: after && { state: after.state, ratePerSecond: after.ratePerSecond },
    })
    const job = await store().replays.create({ selection: matching({ destinationId }), ratePerSecond: 5, createdBy: OPERATOR }, audit)
    const update = (change: Parameters<Store['replays']['update']>[1]) => store().replays.update(job.id, change, audit)
    assert.ok((await update({ ratePerSecond: 9 })).ok)
    assert.ok((await update({ ratePerSecond: 9, state: 'running' })).ok)
    assert.ok((await update({})).ok)
    assert.ok((await update({ ratePerSecond: null, state: 'paused' })).ok)
    assert.ok((await update({ state: 'cancelled' })).ok)
    assert.deepEqual(await update({ ratePerSecond: 1 }), { ok: false, reason: 'over' })
    assert.deepEqual(await update({ state: 'running' }), { ok: false, reason: 'over' })
    assert.deepEqual(await store().replays.update('rpl_none', { state: 'paused' }, audit), { ok: false, reason: 'not_found' })
    const { data } = await store().history.audit({ subject: job.id }, ALL)
    assert.deepEqual(
      data.map(({ before, after }) => [before, after]),
      [
        [
          { state: 'paused', ratePerSecond: null },
          { state: 'cancelled', ratePerSecond: null },
        ],
        [
          { state: 'running', ratePerSecond: 9 },
          { state: 'paused', ratePerSecond: null },
        ],
        [
          { state: 'running', ratePerSecond: 5 },
          { state: 'running', ratePerSecond: 9 },
        ],
        [null, { state: 'running', ratePerSecond: 5 }],
      ],
    )
  })

  test('concurrent changes do not undo each other', async () => {
    const { destinationId } = await ended(store(), 'failed', 1)
    for (let times = 0; times < 5; times++) {
      const { id } = await createJob(store(), matching({ destinationId }))
      const changes = [{ ratePerSecond: 9 }, { state: 'paused' }] as const
      const results = await Promise.all(changes.map((change) => store().replays.update(id, change)))
      assert.ok(results.every(({ ok }) => ok))
      const job = await store().replays.one(id)
      assert.deepEqual([job?.state, job?.ratePerSecond], ['paused', 9])
    }
  })

  withStore('lists, newest first, by state, page by page', async ({ store: own }) => {
    const { destinationId } = await ended(own, 'failed', 1)
    const ids: string[] = []
    for (let at = 0; at < 5; at++) ids.unshift((await createJob(own, matching({ destinationId }))).id)
    await own.replays.update(ids[1] as string, { state: 'paused' })
    await own.replays.update(ids[3] as string, { state: 'paused' })
    const list = (state?: ReplayJobState) => allPages((page) => own.replays.list({ state }, page), 2)
    assert.deepEqual(
      (await list()).map(({ id }) => id),
      ids,
    )
    assert.deepEqual(
      (await list('paused')).map(({ id }) => id),
      [ids[1], ids[3]],
    )
    assert.deepEqual(await list('finished'), [])
    assert.equal(await own.replays.one('rpl_none'), undefined)
  })

  withStore('a job that is over is kept as long as what was changed, and longer only if it is the newest', async (opened) => {
    const { store: own } = opened
    const { destinationId } = await ended(own, 'failed', 2)
    const [done, open, newest] = [
      await replayAll(own, matching({ destinationId })),
      await createJob(own, matching({ destinationId })),
      await replayAll(own, matching({ destinationId })),
    ]
    const kept = async (from: Store): Promise<string[]> => (await allPages((page) => from.replays.list({}, page), 10)).map(({ id }) => id)
    await own.dropExpired(Date.now() + 390 * DAY_MS)
    assert.deepEqual(await kept(own), [newest.id, open.id, done.id])
    await own.dropExpired(Date.now() + 402 * DAY_MS)
    assert.deepEqual(await kept(own), [newest.id, open.id])
    // Its replays are still pending, and end without the job.
    await settleAll(own, destinationId, 'delivered')
    assert.deepEqual(await ledgerOf(own, destinationId), counts({ owed: 4, failed: 2, delivered: 2 }))
    const next = await createJob(await opened.reopen(), matching({ destinationId }))
    assert.deepEqual((await opened.store.replays.one(next.id))?.ended, { delivered: 0, failed: 0, expired: 0, cancelled: 0 })
  })
}
