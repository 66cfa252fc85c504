// Nodes that replay together. What one node does alone is in the conformance suite.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, afterEach, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createReplayRunner, type ReplayRunner } from '../../control/replay-runner.ts'
import { accept, claim, counts, ledgerOf, newWay, settle, settleAll, tracks, until } from '../conformance/ground.ts'
import { createJob, finish, listed, matching } from '../conformance/replay-ground.ts'
import { LEAD_MS } from '../replay-jobs.ts'
import type { ReplayJob, ReplayStepResult } from '../store.ts'
import { createDatabase, type TestDatabase } from './fixtures/postgres-server.ts'
import { openAt } from './fixtures/temp-store.ts'
import type { PostgresStore } from './store.ts'

const KILLED_NODE = fileURLToPath(new URL('./fixtures/replay-node.ts', import.meta.url))

suite('nodes that replay together', () => {
  let database: TestDatabase
  let a: PostgresStore
  let b: PostgresStore
  let runners: ReplayRunner[] = []
  let child: ChildProcess | undefined

  before(async () => {
    database = await createDatabase()
    a = await openAt(database.url, { nodeName: 'a' })
    b = await openAt(database.url, { nodeName: 'b' })
  })
  afterEach(async () => {
    await Promise.all(runners.map((runner) => runner.stop()))
    runners = []
    if (child?.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    child = undefined
  })
  after(async () => {
    await a.close()
    await b.close()
    await database.drop()
  })

  /** Tells what its steps came to. */
  const start = (store: PostgresStore, told: (result: ReplayStepResult) => void = () => {}): void => {
    const runner = createReplayRunner({
      store: {
        replays: (...asked) => store.control.replays(...asked),
        async replayStep(step) {
          const result = await store.control.replayStep(step)
          told(result)
          return result
        },
      },
      clock: { scheduleMs: () => performance.now() },
      trouble: (error) => assert.ok(false, String(error)),
    })
    runners.push(runner)
    runner.start()
  }

  /** So many failed deliveries of a destination of their own, in calls of ten. */
  const failed = async (count: number): Promise<{ sourceId: string; destinationId: string }> => {
    const way = await newWay(a)
    for (let at = 0; at < count; at += 10) await accept(a, way.sourceId, tracks(Math.min(10, count - at)), [way.destinationId])
    await settleAll(a, way.destinationId, 'failed')
    return way
  }

  const over = (job: ReplayJob): Promise<ReplayJob | undefined> =>
    until(
      async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return b.control.replayJob(job.id)
      },
      (now) => now?.state === 'finished',
      'the job is over',
    )

  const releasedAt = async (job: ReplayJob): Promise<number[]> => {
    const rows = await database.query<{ at: string }>(
      'SELECT at FROM switchyard.replays WHERE job = (SELECT num FROM switchyard.replay_jobs WHERE id = $1) ORDER BY at',
      [job.id],
    )
    return rows.map(({ at }) => Number(at))
  }

  const mostInASecond = (times: readonly number[]): number =>
    Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))

  const isOwedOnce = async (destinationId: string, count: number): Promise<void> => {
    const pending = (await listed(a, destinationId, 'pending')).map(({ messageId }) => messageId)
    assert.equal(pending.length, count)
    assert.equal(new Set(pending).size, count, 'each message once')
    assert.deepEqual(await ledgerOf(a, destinationId), counts({ owed: 2 * count, failed: count, pending: count }))
  }

  test('with a runner each, every delivery is owed again once, and the rate holds for both together', async () => {
    const { destinationId } = await failed(120)
    const refused: string[] = []
    const told = (result: ReplayStepResult): void => void (result.ok || refused.push(result.reason))
    const job = await createJob(a, matching({ destinationId }), { ratePerSecond: 40 })
    start(a, told)
    start(b, told)
    const done = await over(job)
    assert.deepEqual([done?.total, done?.replayed, done?.skipped], [120, 120, {}])
    await isOwedOnce(destinationId, 120)
    const times = await releasedAt(job)
    assert.ok(mostInASecond(times) <= 44, `${mostInASecond(times)} in one second`)
    const lastedMs = (times.at(-1) as number) - (times[0] as number)
    assert.ok(lastedMs > 2_300 && lastedMs < 8_000, `${lastedMs} ms`)
    assert.ok(refused.length < 20, `${refused.length} refusals: nobody asks all the time`)
  })

  test('killed, the node that leads a job is followed by another, and nothing is sent twice or left out', { timeout: 60_000 }, async () => {
    const { destinationId } = await failed(300)
    const job = await createJob(a, matching({ destinationId }), { ratePerSecond: 100 })
    child = spawn(process.execPath, [KILLED_NODE, database.url], { stdio: ['ignore', 'ignore', 'inherit'] })
    await until(
      () => b.control.replayJob(job.id),
      (now) => (now?.replayed ?? 0) > 0,
      'the other node has begun',
    )
    const led = new Promise<void>((resolve) => {
      start(b, (result) => {
        if (!result.ok && result.reason === 'led') resolve()
      })
    })
    await led
    const killedAtMs = Date.now()
    child.kill('SIGKILL')
    await once(child, 'exit')
    const now = await b.control.replayJob(job.id)
    assert.ok(now !== undefined && now.state === 'running' && now.replayed < 300)
    const done = await over(job)
    assert.deepEqual([done?.total, done?.replayed, done?.skipped], [300, 300, {}])
    await isOwedOnce(destinationId, 300)
    const times = await releasedAt(job)
    assert.ok(mostInASecond(times) <= 110, `${mostInASecond(times)} in one second`)
    const [before, later] = [times.filter((at) => at <= killedAtMs), times.filter((at) => at > killedAtMs + LEAD_MS / 2)]
    const gapMs = (later[0] as number) - (before.at(-1) as number)
    assert.ok(gapMs < LEAD_MS + 4_000, `${gapMs} ms until the other went on`)
  })

  test('two jobs for the same deliveries, stepped by two nodes at once, send each message once', async () => {
    const { destinationId } = await failed(200)
    const jobs = await Promise.all([a, b].map((store) => createJob(store, matching({ destinationId }))))
    const done = await Promise.all([a, b].map((store, at) => finish(store, jobs[at] as ReplayJob, 7)))
    assert.equal(
      done.reduce((sum, { replayed }) => sum + replayed, 0),
      200,
    )
    assert.deepEqual(
      done.map(({ replayed, skipped }) => replayed + (skipped.already_replayed ?? 0)),
      [200, 200],
    )
    await isOwedOnce(destinationId, 200)
  })

  test('who settles replays waits neither for a step nor for another node, and what they came to is counted', async () => {
    const { destinationId } = await failed(40)
    const job = await createJob(a, matching({ destinationId }))
    await finish(a, job)
    const shipments = (await claim(a, destinationId, { maxFresh: 2 })).shipments
    const others = (await claim(b, destinationId)).shipments
    assert.ok(shipments.length === 2 && others.length === 2)
    await database.query('BEGIN; SELECT 1 FROM switchyard.replay_jobs FOR UPDATE; SELECT 1 FROM switchyard.replay_parts FOR UPDATE')
    // The pool has two connections, and the one that was used last is used next.
    const { pid } = (await database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid'))[0] as { pid: number }
    const [locked] = await database.query<{ locks: string }>(
      "SELECT count(*) AS locks FROM pg_locks WHERE pid = $1 AND mode = 'RowShareLock'",
      [pid],
    )
    assert.ok(Number(locked?.locks) > 0, 'the rows of the job are held')
    try {
      await Promise.all([
        ...shipments.map((claimed) => settle(a, claimed, 'delivered')),
        ...others.map((claimed) => settle(b, claimed, 'failed')),
      ])
      assert.deepEqual((await b.control.replayJob(job.id))?.ended, { delivered: 20, failed: 20, expired: 0, cancelled: 0 })
    } finally {
      await database.query('ROLLBACK')
    }
    await a.dropExpired(Date.now())
    assert.deepEqual((await b.control.replayJob(job.id))?.ended, { delivered: 20, failed: 20, expired: 0, cancelled: 0 })
    assert.deepEqual(await database.query('SELECT * FROM switchyard.replay_outcomes'), [], 'added up')
  })

  test('what was being committed when the job was made belongs to it if it is come upon, and the total says so', async () => {
    const { destinationId } = await failed(20)
    const late = await database.query<Record<string, unknown>>(
      `DELETE FROM switchyard.failures WHERE id = (SELECT max(id) FROM switchyard.failures
         WHERE destination = (SELECT num FROM switchyard.destinations WHERE id = $1)) RETURNING *`,
      [destinationId],
    )
    const job = await createJob(b, matching({ destinationId }))
    assert.equal(job.total, 19)
    const row = late[0] as Record<string, unknown>
    const columns = Object.keys(row)
    await database.query(
      `INSERT INTO switchyard.failures (${columns.join()}) VALUES (${columns.map((_, at) => `$${at + 1}`).join()})`,
      Object.values(row),
    )
    const done = await finish(a, job)
    assert.deepEqual([done.total, done.replayed, done.skipped], [20, 20, {}])
    await isOwedOnce(destinationId, 20)
  })
})
