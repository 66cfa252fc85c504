// Nodes that replay together. What one node does alone is in the conformance suite.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, afterEach, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ReplayRunner } from '../../replaying/replay-runner.ts'
import {
  accept,
  claim,
  counts,
  DAY_MS,
  ledgerOf,
  messageIdsOf,
  newSourceAndDestination,
  settle,
  settleAll,
  tracks,
  until,
} from '../conformance/fixtures.ts'
import { createJob, finish, listed, matching, step } from '../conformance/replays/replay-fixtures.ts'
import { CommonReplayStore } from '../replays/common-replay-store.ts'
import { LEAD_MS } from '../replays/replay-job-row.ts'
import { InvalidCursor, type ReplayJob, type ReplayStepResult } from '../store.ts'
import { openBareNode } from './fixtures/bare-node.ts'
import { createDatabase, type TestDatabase } from './fixtures/postgres-server.ts'
import { openAt } from './fixtures/temp-store.ts'
import { replayJobRows } from './replays/replay-jobs.ts'
import type { PostgresStore } from './store.ts'

const KILLED_NODE = fileURLToPath(new URL('./fixtures/replay-runner-process.ts', import.meta.url))

suite('nodes that replay together', () => {
  let database: TestDatabase
  let a: PostgresStore
  let b: PostgresStore
  let runners: ReplayRunner[] = []
  const errors: unknown[] = []
  let child: ChildProcess | undefined

  before(async () => {
    database = await createDatabase()
    a = await openAt(database.url, { nodeName: 'a' })
    b = await openAt(database.url, { nodeName: 'b' })
  })
  afterEach(async () => {
    await Promise.all(runners.map((runner) => runner.stop()))
    runners = []
    assert.deepEqual(errors.splice(0), [])
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

  /** The results of the runners' steps, and the end of the job. */
  const watch = (): { told: (result: ReplayStepResult) => void; refused: string[]; over: Promise<ReplayJob>; led: Promise<void> } => {
    let finish: (job: ReplayJob) => void = () => {}
    let isLed = (): void => {}
    const refused: string[] = []
    return {
      refused,
      over: new Promise((resolve) => (finish = resolve)),
      led: new Promise((resolve) => (isLed = resolve)),
      told(result) {
        if (!result.ok) refused.push(result.reason)
        if (!result.ok && result.reason === 'led') isLed()
        if (result.ok && result.job.state === 'finished') finish(result.job)
      },
    }
  }

  const start = (store: PostgresStore, told: (result: ReplayStepResult) => void): void => {
    const runner = new ReplayRunner({
      store: {
        list: (...asked) => store.replays.list(...asked),
        async step(asked) {
          const result = await store.replays.step(asked)
          told(result)
          return result
        },
      },
      clock: { scheduleMs: () => performance.now() },
      onError: (error) => errors.push(error),
    })
    runners.push(runner)
    runner.start()
  }

  /** Creates a destination with this many failed deliveries, in calls of ten. */
  const failed = async (count: number): Promise<{ sourceId: string; destinationId: string }> => {
    const way = await newSourceAndDestination(a)
    for (let at = 0; at < count; at += 10) await accept(a, way.sourceId, tracks(Math.min(10, count - at)), [way.destinationId])
    await settleAll(a, way.destinationId, 'failed')
    return way
  }

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

  test('with a runner on each node, every delivery is replayed once, and the rate limit applies to both together', async () => {
    const { destinationId } = await failed(120)
    const { told, refused, over } = watch()
    const job = await createJob(a, matching({ destinationId }), { ratePerSecond: 40 })
    start(a, told)
    start(b, told)
    const done = await over
    assert.deepEqual([done.total, done.replayed, done.skipped], [120, 120, {}])
    await isOwedOnce(destinationId, 120)
    const times = await releasedAt(job)
    assert.ok(mostInASecond(times) <= 44, `${mostInASecond(times)} in one second`)
    const lastedMs = (times.at(-1) as number) - (times[0] as number)
    assert.ok(lastedMs > 2_300, `${lastedMs} ms`)
    assert.ok(refused.length < 20, `${refused.length} refused steps: the runners do not ask all the time`)
  })

  test('if the node that leads a job is killed, another continues, and nothing is sent twice or left out', {
    timeout: 180_000,
  }, async () => {
    const { destinationId } = await failed(240)
    // So slowly that the first node is killed long before it has finished, even on a busy machine.
    const job = await createJob(a, matching({ destinationId }), { ratePerSecond: 10 })
    child = spawn(process.execPath, [KILLED_NODE, database.url], { stdio: ['ignore', 'ignore', 'inherit'] })
    await until(
      () => b.replays.one(job.id),
      (now) => (now?.replayed ?? 0) > 0,
      'the other node has begun',
    )
    const { told, over, led } = watch()
    start(b, told)
    await led
    const killedAtMs = Date.now()
    child.kill('SIGKILL')
    await once(child, 'exit')
    const now = await b.replays.one(job.id)
    assert.ok(now !== undefined && now.state === 'running' && now.replayed < 240)
    assert.ok((await b.replays.update(job.id, { ratePerSecond: 50 })).ok)
    const done = await over
    assert.deepEqual([done.total, done.replayed, done.skipped], [240, 240, {}])
    await isOwedOnce(destinationId, 240)
    const times = await releasedAt(job)
    assert.ok(mostInASecond(times) <= 55, `${mostInASecond(times)} in one second`)
    const [before, later] = [times.filter((at) => at <= killedAtMs), times.filter((at) => at > killedAtMs + LEAD_MS / 2)]
    const gapMs = (later[0] as number) - (before.at(-1) as number)
    assert.ok(gapMs < LEAD_MS + 20_000, `${gapMs} ms until the other node continued`)
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

  test('settling replays waits neither for a step nor for another node, and their outcomes are counted', async () => {
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
      assert.deepEqual((await b.replays.one(job.id))?.ended, { delivered: 20, failed: 20, expired: 0, cancelled: 0 })
    } finally {
      await database.query('ROLLBACK')
    }
    await a.dropExpired(Date.now())
    assert.deepEqual((await b.replays.one(job.id))?.ended, { delivered: 20, failed: 20, expired: 0, cancelled: 0 })
    assert.deepEqual(await database.query('SELECT * FROM switchyard.replay_outcomes'), [], 'added up')
  })

  test('deliveries that were being committed when the job was created belong to it if a step finds them, and the total includes them', async () => {
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

  test('a message that retention drops at the same time is not replayed, and a replayed one is not dropped', async () => {
    for (let times = 0; times < 3; times++) {
      const { destinationId } = await failed(300)
      const job = await createJob(a, matching({ destinationId }))
      const [done] = await Promise.all([finish(b, job, 9), a.dropExpired(Date.now() + 100 * DAY_MS)])
      assert.equal(done.replayed + (done.skipped.message_gone ?? 0), 300)
      assert.deepEqual(await ledgerOf(a, destinationId), counts({ owed: 300 + done.replayed, failed: 300, pending: done.replayed }))
      const { shipments } = await claim(b, destinationId)
      const messages = shipments.flatMap(messageIdsOf)
      assert.equal(messages.length, done.replayed)
      assert.ok(!messages.includes(null), 'each message still exists')
    }
  })

  test('a destination that is deleted on one node while another replays to it ends with nothing pending', async () => {
    const { destinationId } = await failed(60)
    const job = await createJob(a, matching({ destinationId }))
    const isWaiting = (what: string) =>
      until(
        () => database.query(`SELECT 1 FROM pg_locks WHERE NOT granted AND ${what}`),
        (rows) => rows.length > 0 || isDeleted,
        'somebody waits',
      )
    let isDeleted = false
    // A step that has found the destination, and has not committed its replays yet.
    await database.query('BEGIN; LOCK TABLE switchyard.replays IN SHARE MODE')
    const stepping = step(b, job, 20)
    await isWaiting("relation = 'switchyard.replays'::regclass")
    const deleting = a.resources.deleteDestination(destinationId).then(() => (isDeleted = true))
    await isWaiting("locktype = 'transactionid'")
    await database.query('ROLLBACK')
    const stepped = await stepping
    assert.ok(stepped.ok && stepped.replayed === 20)
    await deleting
    assert.deepEqual((await finish(b, job)).skipped, { destination_gone: 40 })
    await until(
      () => a.replays.one(job.id),
      (now) => now?.ended.cancelled === 20,
      'its pending deliveries are cancelled',
    )
    assert.deepEqual(await ledgerOf(a, destinationId), counts({ owed: 80, failed: 60, cancelled: 20 }))
  })

  test('a step needs few queries, however many deliveries it replays', async (t) => {
    const { destinationId } = await failed(250)
    const node = await openBareNode(database.url, 400)
    t.after(() => node.close())
    const replaying = new CommonReplayStore(replayJobRows(node.context), { ...node.context, wake: () => {} })
    const { id } = await replaying.create({ selection: matching({ destinationId }), ratePerSecond: null, createdBy: null })
    const before = node.context.database.roundTrips
    const result = await replaying.step({ id, position: 0, limit: 1_000, maxWaiting: 1_000, runner: 'a runner' })
    assert.ok(result.ok && result.replayed === 250)
    const asked = node.context.database.roundTrips - before
    assert.ok(asked <= 25, `${asked} questions`)
  })

  test('arbitrary ids, cursors and reasons find nothing, and break nothing', async () => {
    const { destinationId } = await failed(1)
    const strange = [
      '\0',
      '\\',
      '\uD800',
      '1',
      '-1',
      '9223372036854775808-0',
      '9223372036854775807-9999',
      `1'; DROP TABLE replays`,
      '__proto__',
    ]
    for (const id of strange) {
      assert.deepEqual(await a.replays.replay(id), { ok: false, reason: 'not_found' })
      assert.equal(await a.replays.one(id), undefined)
      assert.deepEqual(await a.replays.update(id, { state: 'paused' }), { ok: false, reason: 'not_found' })
      const nowhere = { id, position: 0, limit: 1, maxWaiting: 1, runner: 'a runner' }
      assert.deepEqual(await a.replays.step(nowhere), { ok: false, reason: 'not_running' })
      assert.equal((await a.replays.count(matching({ destinationId: id }))).total, 0)
      assert.equal((await a.replays.count(matching({ destinationId, reason: id }))).total, 0)
      await assert.rejects(a.replays.list({}, { limit: 1, cursor: JSON.stringify(['r', id]) }), InvalidCursor)
    }
    const job = await createJob(a, { deliveryIds: strange })
    assert.deepEqual((await finish(a, job)).skipped, { not_found: strange.length })
    const nothing = await createJob(a, matching({ destinationId, reason: '\0', fromMs: 1, toMs: 8_640_000_000_000_000 }))
    assert.deepEqual([nothing.total, (await finish(a, nothing)).replayed], [0, 0])
  })
})
