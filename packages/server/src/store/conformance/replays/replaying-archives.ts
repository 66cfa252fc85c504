// Conformance: replay jobs with messages from the archive of a lake, which the store does not have.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ArchivedMessage, ArchiveStep, ReplaySkipReason, ReplayStepResult } from '../../store.ts'
import {
  claimOne,
  counts,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newSourceAndDestination,
  type StoreFixture,
  settle,
  tracks,
} from '../fixtures.ts'
import { createJob } from './replay-fixtures.ts'

const ARCHIVE = { destinationId: 'dst_lake', afterMs: 0, beforeMs: NOW_MS }

export function replayingArchives({ store }: StoreFixture): void {
  test('messages of an archive become deliveries, in one commit with the position after them', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const job = await createJob(store(), { destinationId, archive: ARCHIVE }, { expected: 9 })
    assert.deepEqual([job.total, job.archive], [9, { cursor: null, reachedMs: null, problem: null }])
    const receivedAtMs = NOW_MS - 1_000
    const items = tracks(3, 'a')
    const message = (at: number): ArchivedMessage => {
      return { sourceId, receivedAtMs, text: JSON.stringify(items[at]), skip: null, cursor: String(at) }
    }
    const skipped = (skip: ReplaySkipReason): ArchivedMessage => ({ sourceId, receivedAtMs, text: null, skip, cursor: 'skipped' })
    const step = (position: number, archive: ArchiveStep): Promise<ReplayStepResult> =>
      store().replays.step({ id: job.id, position, limit: 100, maxWaiting: 2, archive })

    const first = await step(0, { from: null, messages: [message(0), message(1), message(2)], next: '2' })
    assert.ok(first.ok)
    assert.deepEqual([first.replayed, first.blocked], [2, true], 'there is room for two')
    assert.deepEqual(first.job.archive, { cursor: '1', reachedMs: receivedAtMs, problem: null })
    const { position } = first.job
    const stale = await step(position, { from: null, messages: [message(0)], next: null })
    assert.deepEqual(stale, { ok: false, reason: 'moved' }, 'these messages were replayed already')
    const claimed = await claimOne(store(), destinationId)
    assert.deepEqual([messageIdsOf(claimed), claimed.shipment.replay], [['a-0', 'a-1'], true])
    await settle(store(), claimed, 'delivered')

    const problem = { code: 'warehouse_file_missing', message: 'A file is gone.' }
    const failed = await step(position, { from: '1', problem, pause: true })
    assert.ok(failed.ok)
    assert.deepEqual([failed.job.state, failed.job.archive?.problem, failed.job.archive?.cursor], ['paused', problem, '1'])
    await store().replays.update(job.id, { state: 'running' })
    const last = await step(failed.job.position, { from: '1', messages: [message(2), skipped('filtered')], next: null })
    assert.ok(last.ok)
    const { state, total, replayed, skipped: reasons, archive } = last.job
    assert.deepEqual([state, total, replayed, reasons, archive?.problem], ['finished', 4, 3, { filtered: 1 }, null])
    await settle(store(), await claimOne(store(), destinationId), 'delivered')
    assert.deepEqual((await store().replays.one(job.id))?.ended.delivered, 3)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, delivered: 3 }))
    const source = (await store().books.sourceCounts()).find((each) => each.sourceId === sourceId)
    assert.deepEqual([source?.accepted ?? 0, source?.duplicates ?? 0], [0, 0], 'they were not accepted again')
  })

  test('a job with messages of an archive ends when its destination is deleted', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const job = await createJob(store(), { destinationId, archive: ARCHIVE }, { expected: 5 })
    await store().resources.deleteDestination(destinationId)
    const messages = [{ sourceId, receivedAtMs: NOW_MS, text: JSON.stringify(tracks(1)[0]), skip: null, cursor: '0' }]
    const result = await store().replays.step({
      id: job.id,
      position: 0,
      limit: 100,
      maxWaiting: 100,
      archive: { from: null, messages, next: '0' },
    })
    assert.ok(result.ok)
    assert.deepEqual([result.job.state, result.job.skipped], ['finished', { destination_gone: 5 }])
  })
}
