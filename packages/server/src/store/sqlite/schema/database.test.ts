import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { accept, claim, ledgerOf, newSourceAndDestination, tracks } from '../../conformance/fixtures.ts'
import { openAt, openFor, tempFolder } from '../fixtures/temp-store.ts'
import { openWalIndex } from '../threads/wal-index.ts'
import { lockStore, openReader, openWriter, StoreProblem } from './database.ts'
import { MIGRATIONS } from './migrations.ts'

function pathFor(t: TestContext): string {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'test.db')
}

function child(t: TestContext, ...args: string[]): { process: ChildProcess; line: () => Promise<string> } {
  const started = spawn(process.execPath, [join(import.meta.dirname, '../fixtures/child.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => void started.kill('SIGKILL'))
  const lines = createInterface({ input: started.stdout })[Symbol.asyncIterator]()
  return { process: started, line: async () => (await lines.next()).value as string }
}

test('a second process cannot open the same file and says what to do, and can open it when the first was killed', async (t) => {
  const path = pathFor(t)
  const first = child(t, 'open', path)
  assert.equal(await first.line(), 'open')
  await assert.rejects(openAt(path), (error) => {
    assert.ok(error instanceof StoreProblem)
    assert.match(error.message, /test\.db is in use by another Switchyard process.*SWITCHYARD_STORE/)
    return true
  })
  const exit = once(first.process, 'exit')
  first.process.kill('SIGKILL')
  await exit
  const store = await openFor(t, path)
  const second = child(t, 'open', path)
  assert.match(await second.line(), /^StoreProblem: .*in use by another/)
  assert.deepEqual(await once(second.process, 'exit'), [3, null])
  await store.close()
})

test('a second store on the same file in the same process is rejected too, and other processes still are', async (t) => {
  const path = pathFor(t)
  const store = await openFor(t, path)
  await assert.rejects(openAt(path), StoreProblem)
  assert.match(await child(t, 'open', path).line(), /^StoreProblem: .*in use by another/)
  assert.deepEqual(await store.check(), { ok: true }, 'the first store still works')
  await store.close()
  await (await openAt(path)).close()
})

test('a file of a newer version is rejected, not changed, and not locked', async (t) => {
  const path = pathFor(t)
  await (await openAt(path)).close()
  const raw = new DatabaseSync(path)
  raw.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`)
  raw.close()
  const before = statSync(path).size
  for (let times = 0; times < 2; times++)
    await assert.rejects(openAt(path), /written by a newer version of Switchyard \(schema \d+; this version supports up to \d+\)/)
  assert.equal(statSync(path).size, before)
  lockStore(path).release()
})

test('a file that is not a store is rejected and not locked', async (t) => {
  const path = pathFor(t)
  writeFileSync(path, 'not a database, but long enough to be looked at: '.repeat(20))
  await assert.rejects(openAt(path), /not a database/)
  lockStore(path).release()
})

test('the schema has the number of its last migration, and no migration runs twice', (t) => {
  const path = pathFor(t)
  for (let times = 0; times < 2; times++) {
    const database = openWriter(path)
    assert.deepEqual({ ...(database.prepare('PRAGMA user_version').get() as object) }, { user_version: MIGRATIONS.length })
    database.exec(`INSERT INTO settings (name, value) VALUES ('${times}', 'kept')`)
    assert.equal(database.prepare("SELECT 1 FROM settings WHERE name = '0'").all().length, 1)
    database.close()
  }
})

test('commits are durable, and only the store makes checkpoints', (t) => {
  const path = pathFor(t)
  const database = openWriter(path)
  const pragma = (name: string): unknown => Object.values(database.prepare(`PRAGMA ${name}`).get() as object)[0]
  assert.deepEqual(['journal_mode', 'synchronous', 'wal_autocheckpoint'].map(pragma), ['wal', 2, 0])
  const log = openWalIndex(path)
  const before = log.frames()
  database.exec("INSERT INTO settings (name, value) VALUES ('a', 'b')")
  assert.ok(log.frames() > before)
  const reader = openReader(path)
  assert.throws(() => reader.exec("INSERT INTO settings (name, value) VALUES ('c', 'd')"), /readonly/)
  reader.close()
  database.close()
  log.close()
})

test('the write-ahead log stays small, and after a close only the database file is left', async (t) => {
  const path = pathFor(t)
  const store = await openFor(t, path)
  const { sourceId } = await newSourceAndDestination(store)
  let largest = 0
  for (let at = 0; at < 60; at++) {
    const items = tracks(400).map((item) => Object.assign(item, { properties: { noise: randomBytes(750).toString('base64') } }))
    await accept(store, sourceId, items)
    largest = Math.max(largest, statSync(`${path}-wal`).size)
    // Reads from time to time, because the log does not start again while it is being read.
    if (at % 10 === 0) await store.books.recount()
  }
  assert.ok(statSync(path).size > 20_000_000)
  assert.ok(largest < 20_000_000, `the log was ${largest} bytes at its largest`)
  await store.close()
  assert.deepEqual(
    readdirSync(join(path, '..')).filter((name) => !name.endsWith('.lock')),
    ['test.db'],
  )
})

test('all queries of lists and claims use an index', (t) => {
  const path = pathFor(t)
  const database = openWriter(path)
  const plan = (sql: string): string =>
    database
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...Array.from({ length: sql.split('?').length - 1 }, () => 1))
      .map((row) => (row as { detail: string }).detail)
      .join('; ')
  const searches: [sql: string, by: RegExp][] = [
    [
      'SELECT * FROM shipments WHERE destination = ? AND class = 0 ORDER BY due, id',
      /^SEARCH shipments USING PRIMARY KEY \(destination=\? AND class=\?\)$/,
    ],
    [
      'SELECT * FROM shipments WHERE destination = ? AND class = 1 AND first_attempt <= ? ORDER BY first_attempt',
      /^SEARCH shipments USING INDEX shipments_by_first_attempt \(destination=\? AND first_attempt<\?\)$/,
    ],
    [
      'SELECT parts FROM shipments WHERE destination = ? AND class = 1 AND first_attempt IS NOT NULL ORDER BY first_attempt LIMIT 1',
      /^SEARCH shipments USING INDEX shipments_by_first_attempt \(destination=\? AND first_attempt>\?\)$/,
    ],
    [
      'SELECT * FROM shipments WHERE destination = ? AND (class, due, id) >= (?, ?, ?) ORDER BY class, due, id',
      /^SEARCH shipments USING PRIMARY KEY \(destination=\? AND \(class,due,id\)>\(\?,\?,\?\)\)$/,
    ],
    [
      'SELECT * FROM attempts WHERE destination = ? AND id <= ? AND id >= ? ORDER BY id DESC',
      /^SEARCH attempts USING INDEX attempts_by_destination \(destination=\? AND id>\? AND id<\?\)$/,
    ],
    [
      'SELECT * FROM failures WHERE destination = ? AND state = ? AND id <= ? AND id >= ? ORDER BY id DESC',
      /^SEARCH failures USING INDEX failures_by_state \(destination=\? AND state=\? AND id>\? AND id<\?\)$/,
    ],
    [
      'SELECT origin, destination FROM replays WHERE segment = ? AND idx = ? ORDER BY origin',
      /^SEARCH replays USING COVERING INDEX replays_by_segment \(segment=\? AND idx=\?\); USE TEMP B-TREE FOR ORDER BY$/,
    ],
  ]
  for (const [sql, by] of searches) assert.match(plan(sql), by, sql)
  database.close()
})

test('opening a store creates its folder if it does not exist', async (t) => {
  const path = join(pathFor(t), '..', 'a', 'b', 'test.db')
  const store = await openFor(t, path)
  assert.ok(existsSync(path))
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, tracks(1), [destinationId])
  assert.equal((await claim(store, destinationId)).shipments.length, 1)
  assert.equal((await ledgerOf(store, destinationId)).owed, 1)
  await store.close()
})

test('only the owner can read the files of a new store, whatever the umask is', async (t) => {
  const path = pathFor(t)
  const umask = process.umask(0o000)
  t.after(() => process.umask(umask))
  const store = join(dirname(path), 'new', 'folders', 'store.db')
  const lock = lockStore(store)
  const database = openWriter(store)
  database.exec('CREATE TABLE written (id INTEGER)')
  for (const file of [store, `${store}-wal`, `${store}-shm`, `${store}.lock`]) assert.equal(statSync(file).mode & 0o777, 0o600, file)
  for (const folder of [dirname(store), dirname(dirname(store))]) assert.equal(statSync(folder).mode & 0o777, 0o700, folder)
  database.close()
  lock.release()
})
