// This version opens a database of schema 1 that has receivers' credentials in plain text wherever the previous version wrote them.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { createSecretBox } from '../../../secrets/secret-box.ts'
import { accept, newDestination, newSource, settleAll, tracks } from '../../conformance/fixtures.ts'
import type { Destination } from '../../store.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import { MIGRATIONS } from './migrations.ts'

const BOX = createSecretBox('a key for these tests')
const URL = 'https://example.com/hook?code=CREDENTIAL-1'
const SETTINGS = {
  urls: [URL, 'https://example.com/other'],
  headers: { Authorization: 'Bearer CREDENTIAL-2' },
  sharedSecret: 'shared',
  signingSecrets: ['signing'],
  request: { method: 'POST', path: '/CREDENTIAL-8/send', headers: {}, body: { routing_key: 'CREDENTIAL-9' }, format: 'json' },
} as const
const ACTOR = { id: 'tok_1', name: 'somebody' }

let database: TestDatabase
let destination: Destination

beforeEach(async () => {
  database = await createDatabase()
  await makeOld()
})
afterEach(() => database.drop())

/** Restores the state of schema 1, whose docs differed from today's only in what is changed here. */
async function makeOld(): Promise<void> {
  const store = await openAt(database.url)
  const { id: sourceId } = await newSource(store)
  destination = await newDestination(store, sourceId, SETTINGS)
  const deleted = await newDestination(store, sourceId, SETTINGS)
  await accept(store, sourceId, tracks(2), [destination.id])
  await settleAll(store, destination.id, 'retry', { progress: [URL], request: { url: URL } })
  await store.resources.deleteDestination(deleted.id)
  await store.secrets.getOrCreate('session_key', 'a session key')
  await store.history.noteAudit({ actor: ACTOR, action: 'destination.update', subject: destination.id, before: null, after: { name: 'x' } })
  await store.close()
  const secrets = { sharedSecret: BOX.seal('shared', destination.id), signingSecrets: [BOX.seal('signing', destination.id)] }
  const put = (id: string, doc: object): Promise<unknown> =>
    database.query('UPDATE switchyard.destinations SET doc = $2 WHERE id = $1', [id, JSON.stringify(doc)])
  await put(destination.id, { ...destination, ...secrets })
  await put(deleted.id, { ...destination, id: deleted.id, sharedSecret: null, signingSecrets: [] })
  for (const [table, column] of [
    ['attempts', 'doc'],
    ['shipments', 'urls'],
  ]) {
    const text = `replace(${column}, 'code=(hidden)', 'code=CREDENTIAL-1')`
    const rows = await database.query(`UPDATE switchyard.${table} SET ${column} = ${text} RETURNING 1`)
    assert.ok(rows.length > 0, table)
  }
  await database.query("UPDATE switchyard.audit SET after = $1 WHERE action = 'destination.update'", [
    JSON.stringify({ name: 'x', urls: [URL], headers: { 'X-Key': 'CREDENTIAL-3' } }),
  ])
  for (const table of ['destination_versions', 'plans', 'documents', 'quarantine']) await database.query(`DROP TABLE switchyard.${table}`)
  await database.query('ALTER TABLE switchyard.segments DROP COLUMN violations')
  await database.query('ALTER TABLE switchyard.source_counts DROP COLUMN quarantined, DROP COLUMN released, DROP COLUMN deleted')
  await database.query('ALTER TABLE switchyard.tokens DROP COLUMN limits')
  await database.query('ALTER TABLE switchyard.audit DROP COLUMN actor_about, DROP COLUMN sources')
  await database.query('DROP TABLE switchyard.order_keys, switchyard.order_partitions, switchyard.order_waits')
  await database.query('DROP INDEX switchyard.shipments_ordered, switchyard.shipments_ordered_by_first_attempt')
  await database.query('ALTER TABLE switchyard.shipments DROP COLUMN ord, DROP COLUMN partition, DROP COLUMN key')
  await database.query('ALTER TABLE switchyard.replays DROP COLUMN resumed')
  await database.query('DROP SEQUENCE switchyard.order_places')
  await database.query('UPDATE switchyard.schema_version SET step = 1, works_from = 1')
  const bytes = await database.bytes()
  for (const number of [1, 2, 3]) assert.ok(bytes.includes(`CREDENTIAL-${number}`), `CREDENTIAL-${number}`)
}

test('after opening, no row contains the credentials of receivers in plain text, and the credentials are still known', async () => {
  const stores = await Promise.all(['a', 'b'].map((nodeName) => openAt(database.url, { nodeName })))
  try {
    assert.ok(!(await database.bytes()).includes('CREDENTIAL'))
    for (const store of stores) assert.deepEqual(store.configuration().destinations.get(destination.id), destination)
    const [store = assert.fail()] = stores
    const [row] = (await store.history.deliveries({ destinationId: destination.id }, { limit: 1, cursor: null })).data
    assert.equal((await store.history.delivery(row?.id ?? ''))?.history[0]?.url, 'https://example.com/hook?code=(hidden)')
    const [entry] = (await store.history.audit({ action: 'destination.update' }, { limit: 1, cursor: null })).data
    const hidden = { name: 'x', urls: ['https://example.com/hook?code=(hidden)'], headers: { 'X-Key': '(hidden)' } }
    assert.deepEqual(entry?.after, hidden)
    assert.deepEqual(await database.query('SELECT step, works_from FROM switchyard.schema_version'), [
      { step: MIGRATIONS.length, works_from: MIGRATIONS.at(-1)?.worksFrom },
    ])
  } finally {
    await Promise.all(stores.map((store) => store.close()))
  }
})

test('with a key that is not the store’s, nothing is encrypted', async () => {
  await assert.rejects(openAt(database.url, { secretBox: createSecretBox('a wrong key') }), { name: 'SecretBoxError', reason: 'wrong_key' })
  assert.ok((await database.bytes()).includes('CREDENTIAL-1'))
  await (await openAt(database.url)).close()
  assert.ok(!(await database.bytes()).includes('CREDENTIAL'))
})
