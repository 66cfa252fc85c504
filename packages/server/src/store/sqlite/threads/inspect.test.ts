import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, copyFileSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { accept, newSourceAndDestination, tracks } from '../../conformance/fixtures.ts'
import { openAt, tempFolder } from '../fixtures/temp-store.ts'
import { inspectSqlite } from './inspect.ts'

const folder = tempFolder()
after(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, 'test.db')
const store = await openAt(path)
const { sourceId, destinationId } = await newSourceAndDestination(store)
for (let batch = 0; batch < 50; batch += 1) await accept(store, sourceId, tracks(100), [destinationId])
await store.close()

test('a modified ledger differs from its recount', async () => {
  const altered = join(folder, 'altered.db')
  copyFileSync(path, altered)
  const database = new DatabaseSync(altered)
  database.exec('UPDATE ledger SET pending = pending + 1')
  database.close()
  const inspection = await inspectSqlite(altered, 60_000)
  assert.deepEqual(inspection?.problems, [])
  assert.equal(inspection?.ledger[0]?.pending, 5_001)
  assert.equal(inspection?.recount[0]?.pending, 5_000)
})

test('the process that inspects stays until its parent has read the result and goes', async () => {
  const inspector = fork(new URL('./inspector-process.ts', import.meta.url), [path], {
    execArgv: [],
    stdio: 'ignore',
    serialization: 'advanced',
  })
  const ended = once(inspector, 'exit')
  const [reply] = await once(inspector, 'message')
  assert.equal(reply.ok, true)
  // An earlier version exited at once after sending, and a busy parent sometimes saw the exit before the result.
  assert.equal(await Promise.race([ended.then(() => 'ended'), setTimeout(500, 'waits')]), 'waits')
  inspector.disconnect()
  assert.deepEqual(await ended, [0, null])
})

test('a file with overwritten pages is reported as damaged', async () => {
  const damaged = join(folder, 'damaged.db')
  copyFileSync(path, damaged)
  const file = openSync(damaged, 'r+')
  const { size } = statSync(damaged)
  for (let at = 16_384; at + 4_096 < size; at += 8_192) writeSync(file, Buffer.alloc(4_096, 0xff), 0, 4_096, at)
  closeSync(file)
  const told = await inspectSqlite(damaged, 60_000).then(
    (inspection) => inspection?.problems ?? [],
    (error: Error) => [error.message],
  )
  assert.ok(told.length > 0)
})

test('a file that is not a SQLite database cannot be inspected', async () => {
  const text = join(folder, 'text.db')
  writeFileSync(text, 'x'.repeat(10_000))
  await assert.rejects(inspectSqlite(text, 60_000), /not a database/)
})
