// A file of schema 2, with receivers' credentials in plain text wherever earlier versions wrote them, opened by this version.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { createSecretBox } from '../../../secrets/secret-box.ts'
import { accept, newDestination, newSource, settleAll, tracks } from '../../conformance/fixtures.ts'
import type { Destination } from '../../store.ts'
import { openAt, openFor, tempFolder } from '../fixtures/temp-store.ts'
import { MIGRATIONS } from '../schema/migrations.ts'

const BOX = createSecretBox('a key for these tests')
const URL = 'https://example.com/hook?code=CREDENTIAL-1'
const SETTINGS = {
  urls: [URL, 'https://example.com/other'],
  headers: { Authorization: 'Bearer CREDENTIAL-2', 'X-Long': 'CREDENTIAL-3'.padEnd(4_000, '.') },
  sharedSecret: 'shared',
  signingSecrets: ['signing'],
  request: { method: 'POST', path: '/CREDENTIAL-8/send', headers: {}, body: { routing_key: 'CREDENTIAL-9' }, format: 'json' },
} as const
const ACTOR = { id: 'tok_1', name: 'somebody' }

interface Made {
  folder: string
  path: string
  destination: Destination
}

/** Converts the file to schema 2, whose docs differed from the current ones only in what is changed here. */
async function makeOld(t: TestContext): Promise<Made> {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'test.db')
  const store = await openAt(path)
  const { id: sourceId } = await newSource(store)
  const destination = await newDestination(store, sourceId, SETTINGS)
  const deleted = await newDestination(store, sourceId, SETTINGS)
  await accept(store, sourceId, tracks(2), [destination.id])
  await settleAll(store, destination.id, 'retry', { progress: [URL], request: { url: URL } })
  await store.resources.deleteDestination(deleted.id)
  await store.secrets.getOrCreate('session_key', 'a session key')
  await store.history.noteAudit({ actor: ACTOR, action: 'destination.update', subject: destination.id, before: null, after: { name: 'x' } })
  await store.close()

  const database = new DatabaseSync(path)
  database.exec('PRAGMA secure_delete = FAST')
  const secrets = { sharedSecret: BOX.seal('shared', destination.id), signingSecrets: [BOX.seal('signing', destination.id)] }
  const plain = (doc: object): string => JSON.stringify(doc)
  const put = database.prepare('UPDATE destinations SET doc = ? WHERE id = ?')
  // Large docs first. Their pages are freed when smaller ones are written.
  const large = { ...destination, ...secrets, headers: { 'X-Large': 'CREDENTIAL-4'.padEnd(50_000, 'CREDENTIAL-4') } }
  put.run(plain(large), destination.id)
  put.run(plain({ ...destination, ...secrets }), destination.id)
  put.run(plain({ ...destination, id: deleted.id, sharedSecret: null, signingSecrets: [] }), deleted.id)
  const attempts = database.prepare("UPDATE attempts SET doc = replace(doc, 'code=(hidden)', 'code=CREDENTIAL-1')").run()
  const owed = database.prepare("UPDATE shipments SET urls = replace(urls, 'code=(hidden)', 'code=CREDENTIAL-1')").run()
  const audited = database
    .prepare("UPDATE audit SET after = ? WHERE action = 'destination.update'")
    .run(JSON.stringify({ name: 'x', urls: [URL], headers: { 'X-Key': 'CREDENTIAL-5' } }))
  assert.deepEqual([attempts.changes > 0, owed.changes > 0, audited.changes], [true, true, 1])
  removeWhatIsNewer(database)
  database.exec('PRAGMA user_version = 2')
  database.close()
  for (const number of [1, 2, 3, 4, 5]) assert.ok(bytesIn(folder).includes(`CREDENTIAL-${number}`), `CREDENTIAL-${number}`)
  return { folder, path, destination }
}

/** Drops the indexes, tables and columns that later steps add. */
function removeWhatIsNewer(database: DatabaseSync): void {
  const columnsOf = (of: DatabaseSync): { tableName: string; columnName: string }[] =>
    of
      .prepare("SELECT t.name tableName, c.name columnName FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'")
      .all() as never
  const old = new DatabaseSync(':memory:')
  for (const step of MIGRATIONS.slice(0, 2)) old.exec(step)
  const kept = new Set(columnsOf(old).flatMap(({ tableName, columnName }) => [tableName, `${tableName}.${columnName}`]))
  const indexesOf = (of: DatabaseSync): string[] =>
    (of.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").all() as { name: string }[]).map(
      ({ name }) => name,
    )
  const oldIndexes = new Set(indexesOf(old))
  old.close()
  for (const name of indexesOf(database)) if (!oldIndexes.has(name)) database.exec(`DROP INDEX ${name}`)
  const dropped = new Set<string>()
  for (const { tableName, columnName } of columnsOf(database)) {
    if (kept.has(`${tableName}.${columnName}`) || dropped.has(tableName)) continue
    database.exec(kept.has(tableName) ? `ALTER TABLE ${tableName} DROP COLUMN ${columnName}` : `DROP TABLE ${tableName}`)
    if (!kept.has(tableName)) dropped.add(tableName)
  }
}

function bytesIn(folder: string): Buffer {
  return Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))))
}

test('after the file was opened, it contains no credentials in plain text, and they still work', async (t) => {
  const { folder, path, destination } = await makeOld(t)
  const store = await openFor(t, path)
  assert.ok(!bytesIn(folder).includes('CREDENTIAL'), 'already while the service runs')
  assert.deepEqual(store.configuration().destinations.get(destination.id), destination)
  const [row] = (await store.history.deliveries({ destinationId: destination.id }, { limit: 1, cursor: null })).data
  assert.equal((await store.history.delivery(row?.id ?? ''))?.history[0]?.url, 'https://example.com/hook?code=(hidden)')
  const [entry] = (await store.history.audit({ action: 'destination.update' }, { limit: 1, cursor: null })).data
  const hidden = { name: 'x', urls: ['https://example.com/hook?code=(hidden)'], headers: { 'X-Key': '(hidden)' } }
  assert.deepEqual(entry?.after, hidden)
  const request = { destinationId: destination.id, nowMs: 2e12, maxFresh: 10, maxRetries: 10, maxBytes: 1e9 }
  const { shipments } = await store.delivery.claim(request)
  assert.deepEqual(
    shipments.map(({ shipment }) => shipment.progress),
    [null],
    'the retry goes to all URLs',
  )
  await store.close()
  assert.ok(!bytesIn(folder).includes('CREDENTIAL'))
  const database = new DatabaseSync(path, { readOnly: true })
  t.after(() => database.close())
  assert.deepEqual(database.prepare('PRAGMA user_version').get(), { __proto__: null, user_version: MIGRATIONS.length })
  assert.equal(database.prepare("SELECT 1 FROM settings WHERE name = 'plain_credentials'").get(), undefined, 'it is done once')
  assert.deepEqual(database.prepare('PRAGMA integrity_check').all(), [{ __proto__: null, integrity_check: 'ok' }])
})

// Without the lock, another program that opens and closes the file would remove the write-ahead log that the service is using.
test('the service still has its lock on the file afterwards', { skip: process.platform !== 'linux' }, async (t) => {
  const { path } = await makeOld(t)
  await openFor(t, path)
  const ofFile = `:${statSync(path).ino} `
  const locks = readFileSync('/proc/locks', 'utf8').split('\n')
  assert.equal(locks.filter((lock) => lock.includes(ofFile)).length, 1)
})

test('with a wrong key nothing is encrypted, and with the right one everything is', async (t) => {
  const { folder, path, destination } = await makeOld(t)
  await assert.rejects(openAt(path, { secretBox: createSecretBox('a wrong key') }), { name: 'SecretBoxError', reason: 'wrong_key' })
  assert.ok(bytesIn(folder).includes('CREDENTIAL-1'))
  const store = await openFor(t, path)
  assert.deepEqual(store.configuration().destinations.get(destination.id), destination)
  assert.ok(!bytesIn(folder).includes('CREDENTIAL'))
})

test('if a start is interrupted, the next one completes the encryption', async (t) => {
  const { folder, path, destination } = await makeOld(t)
  await (await openAt(path)).close()
  // The state after everything was encrypted, if the process is killed before free pages are overwritten.
  const database = new DatabaseSync(path)
  database.exec("INSERT INTO settings (name, value) VALUES ('plain_credentials', 'true')")
  database.exec('CREATE TABLE overwritten_pages (zeros BLOB NOT NULL) STRICT; INSERT INTO overwritten_pages VALUES (zeroblob(100000))')
  database.close()
  const store = await openFor(t, path)
  assert.deepEqual(store.configuration().destinations.get(destination.id), destination)
  assert.ok(!bytesIn(folder).includes('CREDENTIAL'))
  const looked = new DatabaseSync(path, { readOnly: true })
  t.after(() => looked.close())
  assert.equal(looked.prepare("SELECT 1 FROM sqlite_master WHERE name = 'overwritten_pages'").get(), undefined)
})
