import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { accept, counts, ledgerOf, newSourceAndDestination, settleAll, tracks } from '../store/conformance/fixtures.ts'
import { newStoreLocation } from '../store/fixtures/test-store.ts'
import type { ReplayJob, ReplayStep, ReplayStore, Store } from '../store/store.ts'
import { ReplayRunner, type ReplayRunnerDeps } from './replay-runner.ts'

/** A clock that only moves when the test moves it, with timers that follow it. */
class Time {
  nowMs = 1_000_000
  readonly #timers = new Set<{ atMs: number; run: () => void }>()
  readonly #waiting: { condition: () => boolean; resolve: () => void }[] = []

  readonly setTimer = (run: () => void, delayMs: number): (() => void) => {
    const timer = { atMs: this.nowMs + delayMs, run }
    this.#timers.add(timer)
    for (const { condition, resolve } of this.#waiting) if (condition()) resolve()
    return () => void this.#timers.delete(timer)
  }

  scheduleMs(): number {
    return this.nowMs
  }

  /** Resolves when the runner is idle: it has set its timer. */
  async resting(runners = 1): Promise<void> {
    const condition = (): boolean => this.#timers.size >= runners
    if (!condition()) await new Promise<void>((resolve) => this.#waiting.push({ condition, resolve }))
  }

  async later(ms: number, runners = 1): Promise<void> {
    const until = this.nowMs + ms
    for (;;) {
      await this.resting(runners)
      const [next] = [...this.#timers].sort((a, b) => a.atMs - b.atMs)
      if (next === undefined || next.atMs > until) break
      this.nowMs = Math.max(this.nowMs, next.atMs)
      this.#timers.delete(next)
      next.run()
    }
    this.nowMs = until
  }
}

interface Bench {
  store: Store
  time: Time
  /** The steps that replayed something: when, for which job, how many. */
  released: { atMs: number; id: string; count: number }[]
  runner: (deps?: Partial<ReplayRunnerDeps>) => ReplayRunner
  /** Creates this many failed deliveries, with their own destination. */
  failed: (count: number) => Promise<string>
  job: (destinationId: string, ratePerSecond?: number | null) => Promise<ReplayJob>
  state: (job: ReplayJob) => Promise<[state: string, replayed: number]>
}

async function bench(t: TestContext): Promise<Bench> {
  const place = await newStoreLocation()
  const store = await place.open()
  const time = new Time()
  const released: Bench['released'] = []
  const runners: ReplayRunner[] = []
  t.after(async () => {
    for (const runner of runners) await runner.stop()
    await store.close()
    await place.remove()
  })
  const watched: Pick<ReplayStore, 'list' | 'step'> = {
    list: (...asked) => store.replays.list(...asked),
    async step(step) {
      const result = await store.replays.step(step)
      if (result.ok && result.replayed > 0) released.push({ atMs: time.nowMs, id: step.id, count: result.replayed })
      return result
    },
  }
  return {
    store,
    time,
    released,
    runner(deps = {}) {
      const runner = new ReplayRunner({ store: watched, clock: time, setTimer: time.setTimer, ...deps })
      runners.push(runner)
      return runner
    },
    async failed(count) {
      const { sourceId, destinationId } = await newSourceAndDestination(store)
      await accept(store, sourceId, tracks(count), [destinationId])
      await settleAll(store, destinationId, 'failed')
      return destinationId
    },
    job: (destinationId, ratePerSecond = null) =>
      store.replays.create({
        selection: { destinationId, states: ['failed'], reason: null, fromMs: null, toMs: null },
        ratePerSecond,
        createdBy: null,
      }),
    async state({ id }) {
      const job = await store.replays.one(id)
      return [String(job?.state), job?.replayed ?? -1]
    },
  }
}

/** The maximum number of releases in any second of the log. */
function mostInASecond(released: Bench['released']): number {
  const from = ({ atMs }: { atMs: number }): number =>
    released.filter((other) => other.atMs >= atMs && other.atMs < atMs + 1_000).reduce((sum, { count }) => sum + count, 0)
  return Math.max(...released.map(from))
}

for (const [rate, total] of [
  [3, 10],
  [50, 120],
  [400, 1_000],
] as const) {
  test(`with a rate of ${rate}, at most ${rate} deliveries are released in any second, and about ${rate} per second on average`, async (t) => {
    const { time, runner, failed, job, state, released, store } = await bench(t)
    const destinationId = await failed(total)
    const created = await job(destinationId, rate)
    const startedMs = time.nowMs
    runner().start()
    for (let slices = 0; (await state(created))[0] === 'running'; slices++) {
      assert.ok(slices < 200, 'the job ends')
      await time.later(50)
      // Like a receiver that accepts everything.
      await settleAll(store, destinationId, 'delivered')
    }
    assert.deepEqual(await state(created), ['finished', total])
    assert.ok(mostInASecond(released) <= rate, `${mostInASecond(released)} in one second`)
    const lastedMs = (released.at(-1)?.atMs ?? 0) - startedMs
    const expectedMs = ((total - 1) / rate) * 1_000
    assert.ok(lastedMs < expectedMs * 1.2 + 200, `${lastedMs} ms instead of ${expectedMs}`)
    assert.ok(Math.max(...released.map(({ count }) => count)) <= Math.max(1, rate / 10), 'spread over the second')
  })
}

test('without a rate, the number of released deliveries without an attempt is limited, and more are released as they are attempted', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const destinationId = await failed(1_300)
  const created = await job(destinationId)
  runner().start()
  await time.later(5_000)
  assert.deepEqual(await state(created), ['running', 500])
  await settleAll(store, destinationId, 'delivered')
  await time.later(1_000)
  assert.deepEqual(await state(created), ['running', 1_000])
  await settleAll(store, destinationId, 'failed')
  await time.later(1_000)
  assert.deepEqual(await state(created), ['finished', 1_300])
})

test('with a rate, a destination that accepts nothing does not collect more than a few seconds of deliveries', async (t) => {
  const { time, runner, failed, job, state } = await bench(t)
  const created = await job(await failed(100), 4)
  runner().start()
  await time.later(60_000)
  assert.deepEqual(await state(created), ['running', 20])
})

test('jobs take turns', async (t) => {
  const { time, runner, failed, job, released } = await bench(t)
  const jobs = [await job(await failed(20), 10), await job(await failed(20), 10), await job(await failed(20), 10)]
  runner().start()
  await time.later(1_000)
  for (const { id } of jobs) {
    const own = released.filter((step) => step.id === id).reduce((sum, { count }) => sum + count, 0)
    assert.ok(own >= 9 && own <= 11, `${own} of 10`)
  }
})

test('a created or resumed job starts when the runner is woken, and stops when it is paused or cancelled', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const running = runner()
  running.start()
  await time.resting()
  const created = await job(await failed(100), 10)
  assert.deepEqual(await state(created), ['running', 0])
  running.wake()
  await time.later(1_000)
  const [, released] = await state(created)
  assert.ok(released >= 9 && released <= 11, String(released))
  for (const stop of ['paused', 'cancelled'] as const) {
    await store.replays.update(created.id, { state: stop })
    const before = await state(created)
    await time.later(30_000)
    assert.deepEqual(await state(created), before)
    if (stop === 'cancelled') return
    await store.replays.update(created.id, { state: 'running' })
    running.wake()
    await time.later(1_000)
    assert.ok(((await state(created))[1] ?? 0) > released)
  }
})

test('a changed rate applies at once', async (t) => {
  const { store, time, runner, failed, job, state, released } = await bench(t)
  const destinationId = await failed(400)
  const created = await job(destinationId, 1)
  const running = runner()
  running.start()
  await time.later(2_000)
  assert.ok((await state(created))[1] <= 3)
  await store.replays.update(created.id, { ratePerSecond: 100 })
  running.wake()
  await time.later(2_000)
  assert.ok((await state(created))[1] >= 180)
  assert.ok(mostInASecond(released) <= 100)
  await store.replays.update(created.id, { ratePerSecond: null })
  running.wake()
  await time.later(100)
  assert.deepEqual(await state(created), ['finished', 400])
})

test('a rate that was changed on another node applies from the next step on', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const created = await job(await failed(300), 2)
  runner().start()
  await time.later(1_000)
  await store.replays.update(created.id, { ratePerSecond: 100 })
  await time.later(2_000)
  assert.ok((await state(created))[1] >= 100, String(await state(created)))
})

test('a job that another node created is found after a while', async (t) => {
  const { time, runner, failed, job, state } = await bench(t)
  runner().start()
  await time.resting()
  const created = await job(await failed(3))
  await time.later(10_000)
  assert.deepEqual(await state(created), ['finished', 3])
})

test('two concurrent runners send nothing twice', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const destinationId = await failed(300)
  const created = await job(destinationId, 200)
  for (const running of [runner(), runner()]) running.start()
  await time.later(120_000, 2)
  assert.deepEqual(await state(created), ['finished', 300])
  assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: 600, failed: 300, pending: 300 }))
})

test('a step that fails, or whose result is lost, is reported, and the job continues without sending anything twice', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const destinationId = await failed(60)
  const created = await job(destinationId, 20)
  const errors: string[] = []
  let calls = 0
  const failing = async (step: ReplayStep) => {
    calls++
    if (calls === 3) throw new Error('not executed')
    const result = await store.replays.step(step)
    if (calls === 6) throw new Error('executed, but the result was lost')
    return result
  }
  const control = { list: (...asked: Parameters<ReplayStore['list']>) => store.replays.list(...asked), step: failing }
  runner({ store: control, onError: (error) => errors.push((error as Error).message) }).start()
  await time.later(30_000)
  assert.deepEqual(errors, ['not executed', 'executed, but the result was lost'])
  assert.deepEqual(await state(created), ['finished', 60])
  assert.equal((await ledgerOf(store, destinationId)).pending, 60)
})

test('a job whose steps fail does not delay the others, and is retried with backoff', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const broken = await job(await failed(2))
  const sound = await job(await failed(30), 10)
  let tries = 0
  const control = {
    list: (...asked: Parameters<ReplayStore['list']>) => store.replays.list(...asked),
    async step(step: ReplayStep) {
      if (step.id !== broken.id) return store.replays.step(step)
      tries++
      throw new Error('broken')
    },
  }
  runner({ store: control }).start()
  await time.later(4_000)
  assert.deepEqual(await state(sound), ['finished', 30])
  await time.later(600_000)
  assert.ok(tries > 10 && tries < 25, `${tries} tries in ten minutes`)
})

test('if listing the jobs fails, it is retried soon', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const created = await job(await failed(2))
  let looks = 0
  const errors: unknown[] = []
  const control = {
    async list(...asked: Parameters<ReplayStore['list']>) {
      if (++looks < 3) throw new Error('away')
      return store.replays.list(...asked)
    },
    step: (step: ReplayStep) => store.replays.step(step),
  }
  runner({ store: control, onError: (error) => errors.push(error) }).start()
  await time.later(3_000)
  assert.equal(errors.length, 2)
  assert.deepEqual(await state(created), ['finished', 2])
})

test('stopping waits for the step in progress and starts no other', async (t) => {
  const { store, time, runner, failed, job, state } = await bench(t)
  const created = await job(await failed(100), 10)
  let begun = (): void => {}
  const stepping = new Promise<void>((resolve) => {
    begun = resolve
  })
  const control = {
    list: (...asked: Parameters<ReplayStore['list']>) => store.replays.list(...asked),
    async step(step: ReplayStep) {
      begun()
      return store.replays.step(step)
    },
  }
  const running = runner({ store: control })
  running.start()
  await stepping
  await running.stop()
  assert.deepEqual(await state(created), ['running', 1])
  running.wake()
  time.nowMs += 60_000
  assert.deepEqual(await state(created), ['running', 1])
})
