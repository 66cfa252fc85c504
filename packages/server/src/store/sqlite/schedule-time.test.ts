import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { createClock, LONGEST_PAUSE_MS } from '../../timing/clock.ts'
import { until } from '../conformance/fixtures.ts'
import { SCHEDULE_SETTING } from '../encoding/schedule-mark.ts'
import { openAt, openFor, tempFolder } from './fixtures/temp-store.ts'

const DAY_MS = 86_400_000

const folder = tempFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

/** A store whose schedule time is a day behind the wall clock, as after a stop of a day, and which was closed `closedMs` ago. */
async function storeBehind(name: string, closedMs = 0): Promise<string> {
  const path = join(folder, name)
  const store = await openAt(path)
  store.useClock({ wallMs: () => Date.now() - closedMs, scheduleMs: () => Date.now() - DAY_MS })
  await store.close()
  return path
}

function assertStillBehind(scheduleStartMs: number): void {
  const behindMs = Date.now() - scheduleStartMs
  assert.ok(Math.abs(behindMs - DAY_MS) < 60_000, `schedule time is ${behindMs} ms behind the wall clock`)
}

test('a tool that opens the store without a clock does not move schedule time to the wall clock', async (t) => {
  const path = await storeBehind('tool.db')
  const tool = await openAt(path)
  assert.deepEqual(await tool.check(), { ok: true })
  await tool.close()
  assertStillBehind((await openFor(t, path)).scheduleStartMs)
})

test('schedule time is saved at the start, so that it also advances if the process crashes every few seconds', async (t) => {
  const path = await storeBehind('crash.db', 2 * LONGEST_PAUSE_MS)
  const store = await openFor(t, path)
  const { scheduleStartMs } = store
  store.useClock(createClock(scheduleStartMs))
  using database = new DatabaseSync(path, { readOnly: true })
  const saved = database.prepare('SELECT value FROM settings WHERE name = ?')
  const firstMs = await until(
    async () => Number(saved.get(SCHEDULE_SETTING)?.['value']),
    (savedMs) => savedMs >= scheduleStartMs,
    'the schedule time of the start is saved',
  )
  // Later it is saved only every five seconds.
  assert.ok(firstMs < scheduleStartMs + 4_000, `saved ${firstMs - scheduleStartMs} ms after the start`)
})
