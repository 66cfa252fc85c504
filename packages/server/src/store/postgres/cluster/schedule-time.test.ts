import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { type Clock, createClock, LONGEST_PAUSE_MS } from '../../../timing/clock.ts'
import { until } from '../../conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import type { PostgresStore } from '../store.ts'

/** Much more than a test takes, and much less than the differences that it looks for. */
const TOLERANCE_MS = 60_000

let database: TestDatabase
const open: PostgresStore[] = []

before(async () => {
  database = await createDatabase()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((store) => store.close()))
})
after(() => database.drop())

async function join(name: string): Promise<PostgresStore> {
  const store = await openAt(database.url, { nodeName: name })
  open.push(store)
  return store
}

/** A node that uses the clock. */
async function run(
  name: string,
  clockFrom: (scheduleStartMs: number) => Clock = createClock,
): Promise<{ store: PostgresStore; clock: Clock }> {
  const store = await join(name)
  const clock = clockFrom(store.scheduleStartMs)
  store.useClock(clock)
  return { store, clock }
}

async function savedMs(): Promise<number> {
  const [row] = await database.query<{ value: string }>("SELECT value FROM switchyard.settings WHERE name = 'schedule_ms'")
  return Number(row?.value ?? 0)
}

/** Changes what is saved, as if the last node had stopped `stoppedMs` ago. To set the server's clock ahead or back has the same effect. */
async function setMark(scheduleMs: number, stoppedMs: number): Promise<void> {
  await database.query("DELETE FROM switchyard.settings WHERE name LIKE 'schedule%'")
  await database.query("INSERT INTO switchyard.settings VALUES ('schedule_ms', $1), ('schedule_wall_ms', $2)", [
    String(scheduleMs),
    String(Date.now() - stoppedMs),
  ])
}

function assertNear(actualMs: number, expectedMs: number, what: string): void {
  assert.ok(Math.abs(actualMs - expectedMs) < TOLERANCE_MS, `${what}: ${actualMs - expectedMs} ms from the expected schedule time`)
}

test("schedule time continues from what was saved, whatever the server's clock is set to", async () => {
  const scheduleMs = Date.now() - 48 * LONGEST_PAUSE_MS
  for (const [stoppedMs, countedMs] of [
    [0, 0],
    [-5 * LONGEST_PAUSE_MS, 0],
    [LONGEST_PAUSE_MS / 2, LONGEST_PAUSE_MS / 2],
    [5 * LONGEST_PAUSE_MS, LONGEST_PAUSE_MS],
  ] as const) {
    await setMark(scheduleMs, stoppedMs)
    const joined = await join('joined')
    assertNear(joined.scheduleStartMs, scheduleMs + countedMs, `after ${stoppedMs} ms`)
    await joined.close()
  }
})

test('a node saves its schedule time at the start, together with the present time of the server', async () => {
  const scheduleMs = Date.now() - 48 * LONGEST_PAUSE_MS
  await setMark(scheduleMs, 5 * LONGEST_PAUSE_MS)
  await join('first')
  assertNear(await savedMs(), scheduleMs + LONGEST_PAUSE_MS, 'saved')
  assertNear((await join('second')).scheduleStartMs, scheduleMs + LONGEST_PAUSE_MS, 'joined')
})

test('a node that joins after a long outage of the server, before the others have saved their schedule time, catches up with them', async () => {
  const scheduleMs = Date.now() - 48 * LONGEST_PAUSE_MS
  const outageMs = 5 * LONGEST_PAUSE_MS
  await setMark(scheduleMs, outageMs)
  const joined = await run('joined')
  assertNear(joined.clock.scheduleMs(), scheduleMs + LONGEST_PAUSE_MS, 'at the start')
  // Ran during the outage.
  await run('running', () => createClock(scheduleMs + outageMs))
  const behindMs = async () => scheduleMs + outageMs - joined.clock.scheduleMs()
  // Schedule time is saved every 5 s.
  await until(behindMs, (ms) => ms < TOLERANCE_MS, 'the node that joined has caught up')
  assertNear(joined.clock.scheduleMs(), scheduleMs + outageMs, 'after it has caught up')
})
