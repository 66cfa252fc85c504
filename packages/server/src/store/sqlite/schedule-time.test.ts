import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openAt, openFor, tempFolder } from './fixtures/temp-store.ts'

const DAY_MS = 86_400_000

const folder = tempFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

/** A store whose schedule time is a day behind the wall clock, as after a stop of a day. */
async function storeBehind(name: string): Promise<string> {
  const path = join(folder, name)
  const store = await openAt(path)
  store.useClock({ wallMs: () => Date.now(), scheduleMs: () => Date.now() - DAY_MS })
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
