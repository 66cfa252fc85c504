import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { createSecretBox } from '../secrets/secret-box.ts'
import { accept, claimOne, newDestination, newSource, settle, tracks } from '../store/conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../store/postgres/fixtures/postgres-server.ts'
import { openAt } from '../store/postgres/fixtures/temp-store.ts'
import { SchemaProblem } from '../store/postgres/schema/migrate.ts'
import { partitionName } from '../store/postgres/schema/partitions.ts'
import { StoreProblem } from '../store/sqlite/schema/database.ts'
import { createSqliteStore } from '../store/sqlite/store.ts'
import { type MoveOptions, MoveProblem, moveStore, undoMove } from './move-store.ts'

const OLD_KEY = 'the key of the file'
/** As the nodes of openAt have it. */
const NEW_KEY = 'a key for tests'
const DAY_MS = 86_400_000
const PER_DAY = DAY_MS * 2_048

let folder: string
let file: string
let held: TestDatabase
let sourceId: string
let destinationId: string

const openFile = (path: string) => createSqliteStore({ path, secretBox: createSecretBox(OLD_KEY), retentionDays: 7 })

before(async () => {
  held = await createDatabase()
  folder = mkdtempSync(join(tmpdir(), 'switchyard-move-'))
  file = join(folder, 'store.db')
  const store = await openFile(file)
  sourceId = (await newSource(store)).id
  destinationId = (await newDestination(store, sourceId, { sharedSecret: 'a secret', signingSecrets: ['another'] })).id
  for (let nth = 0; nth < 6; nth++) await accept(store, sourceId, tracks(3, `call ${nth}`), [destinationId])
  await accept(store, sourceId, [...tracks(2, 'call 0'), ...tracks(2, 'call 6')], [destinationId])
  for (let nth = 0; nth < 3; nth++) await settle(store, await claimOne(store, destinationId), 'delivered')
  await store.secrets.keep('session_key', 'a kept secret')
  await store.close()
})

after(async () => {
  await held.drop()
  rmSync(folder, { recursive: true, force: true })
})

let copies = 0

/** A copy of the file, and an empty database. */
async function prepared(): Promise<{ path: string; database: TestDatabase; options: MoveOptions }> {
  const path = join(folder, `copy-${++copies}.db`)
  cpSync(file, path)
  const database = await createDatabase({ isEmpty: true })
  return { path, database, options: { path, url: database.url, oldKeys: [OLD_KEY], newKey: NEW_KEY } }
}

async function runMover({ path, url, newKey }: MoveOptions, killAt: number): Promise<{ steps: string[]; signal: string | null }> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'fixtures', 'mover.ts'), path, url, OLD_KEY, newKey, String(killAt), '2'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const [, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { steps: text.trim().split('\n'), signal }
}

async function assertWhole(database: TestDatabase): Promise<void> {
  const store = await openAt(database.url)
  try {
    const ledger = await store.books.ledger()
    assert.deepEqual(ledger, [{ destinationId, owed: 20, delivered: 9, pending: 11, failed: 0, expired: 0, cancelled: 0 }])
    assert.deepEqual(await store.books.recount(), ledger)
    assert.deepEqual((await store.history.messages({}, { limit: 100, cursor: null })).data.length, 20)
    const { sharedSecret, signingSecrets } = store.configuration().destinations.get(destinationId) ?? {}
    assert.deepEqual([sharedSecret, signingSecrets], ['a secret', ['another']])
    assert.equal(await store.secrets.keep('session_key', 'another'), 'a kept secret')
    const { duplicates } = await accept(store, sourceId, [...tracks(3, 'call 2'), ...tracks(2, 'call 6')], [destinationId])
    assert.deepEqual(duplicates, [0, 1, 2, 3, 4])
  } finally {
    await store.close()
  }
}

const IS_LONG = process.env['SWITCHYARD_LONG_TESTS'] === '1'

test('killed at any step, the next call goes on, and everything is there once', { timeout: 600_000 }, async () => {
  const first = await prepared()
  let steps: string[]
  try {
    ;({ steps } = await runMover(first.options, 0))
    assert.ok(steps.length > 30, `${steps.length} steps`)
    await assertWhole(first.database)
  } finally {
    await first.database.drop()
  }
  // Each kind of step, where it is met first; with SWITCHYARD_LONG_TESTS=1 also where it is met last.
  const places = new Set(
    [
      'marked',
      'begun',
      'settings written',
      'destinations read',
      'segments read',
      'segments written',
      'shipments written',
      'compared',
      'ended',
    ].flatMap((step) => [steps.indexOf(step) + 1, (IS_LONG ? steps.lastIndexOf(step) : steps.indexOf(step)) + 1]),
  )
  for (const place of places) {
    const { path, database, options } = await prepared()
    try {
      const { signal } = await runMover(options, place)
      assert.equal(signal, 'SIGKILL')
      await assert.rejects(openFile(path), StoreProblem, `no service starts on the file after ${steps[place - 1]}`)
      if (place > steps.indexOf('begun') && steps[place - 1] !== 'ended') await assert.rejects(openAt(database.url), SchemaProblem)
      const { already, before } = await moveStore(options)
      assert.equal(already, steps[place - 1] === 'ended')
      assert.equal(before > 0, place >= steps.indexOf('settings written') + 1, 'it goes on, and does not begin anew')
      await assertWhole(database)
      await assert.rejects(openFile(path), /was moved to PostgreSQL/)
    } finally {
      await database.drop()
    }
  }
})

test('after it was given back and used, a move begins anew', async () => {
  const { path, database, options } = await prepared()
  try {
    const { steps } = await runMover(options, 25)
    assert.ok(steps.includes('segments written'))
    assert.equal(undoMove(path), true)
    const store = await openFile(path)
    await settle(store, await claimOne(store, destinationId), 'delivered')
    await store.close()
    assert.equal((await moveStore(options)).before, 0)
    const moved = await openAt(database.url)
    const [row] = await moved.books.ledger()
    await moved.close()
    assert.deepEqual([row?.owed, row?.delivered, row?.pending], [20, 12, 8])
  } finally {
    await database.drop()
  }
})

test('with another key than before, an interrupted move begins anew', async () => {
  const { database, options } = await prepared()
  try {
    await runMover({ ...options, newKey: 'another key' }, 25)
    assert.equal((await moveStore(options)).before, 0)
    await assertWhole(database)
  } finally {
    await database.drop()
  }
})

test('the file of another installation is refused, and so is one that was moved elsewhere', async () => {
  const [one, other] = [await prepared(), await prepared()]
  try {
    const file = new DatabaseSync(other.path)
    file.prepare("UPDATE settings SET value = '[1,2,3,4]' WHERE name = 'dedup_seed'").run()
    file.close()
    await moveStore(one.options)
    await assert.rejects(
      moveStore({ ...other.options, url: one.database.url }),
      (error: Error) => error instanceof MoveProblem && /another file/.test(error.message),
    )
    await assert.rejects(moveStore({ ...one.options, url: other.database.url }), /was moved to/)
  } finally {
    await one.database.drop()
    await other.database.drop()
  }
})

test('a key that does not open the secrets is told before anything is written', async () => {
  const { path, database, options } = await prepared()
  try {
    await assert.rejects(moveStore({ ...options, oldKeys: ['wrong'] }), /encrypted with a key \(\S+\) that was not given/)
    assert.deepEqual(await database.query("SELECT to_regnamespace('switchyard')::text AS found"), [{ found: null }])
    await (await openFile(path)).close()
  } finally {
    await database.drop()
  }
})

test('rows of past days lie in partitions of their days, so that they are dropped whole', async () => {
  const { path, database, options } = await prepared()
  try {
    const file = new DatabaseSync(path)
    // Three days ago: everything that has a time in its name.
    const ago = 3 * PER_DAY
    const before = file.prepare('SELECT min(seq) AS seq FROM segments').get() as { seq: number }
    file.exec(
      `UPDATE segments SET seq = seq - ${ago}, routes = '{"s":[]}'; DELETE FROM shipments; DELETE FROM attempts; DELETE FROM ledger`,
    )
    file.close()
    await moveStore(options)
    const day = Math.floor(before.seq / PER_DAY) - 3
    for (const table of ['segments', 'message_keys'] as const) {
      const [{ count } = { count: 0 }] = await database.query<{ count: number }>(
        `SELECT count(*)::integer AS count FROM switchyard.${partitionName(table, day)}`,
      )
      assert.ok(count >= 7, `${table}: ${count}`)
    }
    assert.deepEqual(await database.query('SELECT count(*)::integer AS count FROM switchyard.segments_rest'), [{ count: 0 }])
  } finally {
    await database.drop()
  }
})

test('a file that is ahead of the server’s clock is refused', async () => {
  const { path, database, options } = await prepared()
  try {
    const file = new DatabaseSync(path)
    file.exec(`UPDATE attempts SET id = id + ${3_600_000 * 2_048}`)
    file.close()
    await assert.rejects(moveStore(options), /ahead of PostgreSQL's clock/)
  } finally {
    await database.drop()
  }
})
