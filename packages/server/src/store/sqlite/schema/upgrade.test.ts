// A file of the first release, opened by this version: its data is complete, and is listed and delivered as before. The rows are written by hand in
// the format of that release, which no longer changes.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { fingerprint, type Seed, sourceSeed } from '../../encoding/fingerprint.ts'
import { KEY_WORDS } from '../../encoding/segment-keys.ts'
import { NO_FILTER } from '../../store.ts'
import { openAt, tempFolder } from '../fixtures/temp-store.ts'
import { MIGRATIONS } from './migrations.ts'
import { rowIdAt } from './row-ids.ts'

const AT_MS = Date.now() - 60_000
const SEGMENT = rowIdAt(AT_MS)
const [SHIPMENT, ATTEMPT, FAILURE, REPLAY] = [SEGMENT + 1, SEGMENT + 2, SEGMENT + 3, SEGMENT + 4]
const SEED: Seed = [1, 2, 3, 4]

/** A message whose delivery failed, was replayed, and is pending. */
function writeFirstVersion(path: string): void {
  const database = new DatabaseSync(path)
  database.exec(MIGRATIONS[0] as string)
  database.exec('PRAGMA user_version = 1')
  const run = (sql: string, ...values: (string | number | Uint8Array | null)[]): void => void database.prepare(sql).run(...values)
  const source = { id: 'src_old', name: 'Old', enabled: true, writeKeys: ['wk_old'], requireOAuth: false, createdAtMs: 1 }
  const destination = {
    id: 'dst_old',
    type: 'webhook',
    name: 'Hook',
    enabled: true,
    sourceIds: ['src_old'],
    urls: ['https://example.com/hook'],
    headers: {},
    sharedSecret: null,
    signingSecrets: [],
    batch: { size: 1, bytes: 512_000, lingerMs: 1_000 },
    timeoutMs: 5_000,
    retryWindowMs: 14_400_000,
    maxInFlight: 50,
    historical: true,
    createdAtMs: 1,
  }
  run('INSERT INTO settings VALUES (?, ?)', 'dedup_seed', JSON.stringify(SEED))
  run('INSERT INTO sources (num, id, doc) VALUES (1, ?, ?)', 'src_old', JSON.stringify(source))
  run('INSERT INTO destinations (num, id, doc) VALUES (1, ?, ?)', 'dst_old', JSON.stringify(destination))
  const keys = new Uint32Array(KEY_WORDS)
  fingerprint('m-old', sourceSeed('src_old', SEED), keys, 0)
  const body = Buffer.from(JSON.stringify({ batch: [{ type: 'track', event: 'e', userId: 'u', messageId: 'm-old' }] }))
  run(
    'INSERT INTO segments VALUES (?, 1, ?, ?, 0, 1, NULL, ?, ?, ?)',
    SEGMENT,
    AT_MS,
    '192.0.2.7',
    JSON.stringify({ s: [[1, SHIPMENT, 0, 1]] }),
    new Uint8Array(keys.buffer),
    body,
  )
  const request = [0, AT_MS, 400, 5, 4, '192.0.2.1', [0], null, null, null, 'http_400', 'The receiver answered 400.', 'no']
  const doc = { u: ['https://example.com/hook'], r: [request], f: [['failed', 'http_400', [0]]] }
  run('INSERT INTO attempts VALUES (?, ?, 1, ?, ?, 1, 0, 0, 1, 0, 0, ?)', ATTEMPT, SHIPMENT, SEGMENT, AT_MS, JSON.stringify(doc))
  run("INSERT INTO failures VALUES (?, 1, 'failed', 'http_400', ?, 0, ?, 1, 0, ?)", FAILURE, SHIPMENT, SEGMENT, AT_MS)
  run('INSERT INTO replays VALUES (?, 1, ?, 0, ?, ?)', REPLAY, SEGMENT, `${SHIPMENT}-0`, AT_MS + 1)
  run('INSERT INTO shipments VALUES (1, 0, 0, ?, 1, 0, NULL, 0, 1, NULL, ?)', REPLAY, JSON.stringify([[REPLAY, SEGMENT, [0]]]))
  run('INSERT INTO ledger VALUES (1, 2, 0, 1, 1, 0, 0)')
  database.close()
}

test('a file of the first release is migrated without losing data', async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  writeFirstVersion(join(folder, 'old.db'))
  const store = await openAt(join(folder, 'old.db'))
  t.after(() => store.close())

  assert.deepEqual(store.configuration().destinations.get('dst_old')?.filter, NO_FILTER)
  assert.equal(store.configuration().destinations.get('dst_old')?.paused, false)
  assert.deepEqual(await store.books.recount(), await store.books.ledger())
  const [trail, ...others] = await store.history.trails('m-old')
  assert.deepEqual(others, [])
  assert.deepEqual([trail?.content.sourceId, trail?.content.trace, trail?.repeats, trail?.skips], ['src_old', null, null, []])
  assert.deepEqual(
    trail?.deliveries.map(({ id }) => id),
    [`${SHIPMENT}-0`, `${REPLAY}-0`],
  )
  const [first, again] = [await store.history.delivery(`${SHIPMENT}-0`), await store.history.delivery(`${REPLAY}-0`)]
  assert.deepEqual([first?.state, first?.reason, first?.history[0]?.responseStart, first?.gathered], ['failed', 'http_400', 'no', null])
  assert.deepEqual([again?.state, again?.replay, again?.replayOf, again?.owedAtMs], ['pending', true, `${SHIPMENT}-0`, AT_MS + 1])
  const { shipments } = await store.delivery.claim({
    destinationId: 'dst_old',
    nowMs: Date.now(),
    maxFresh: 9,
    maxRetries: 9,
    maxBytes: 1e6,
  })
  assert.deepEqual(
    shipments.map(({ shipment, bodies }) => [shipment.replay, bodies.get(SEGMENT)?.content.items[0]?.['messageId']]),
    [[true, 'm-old']],
  )

  const items = [{ type: 'track', event: 'e', userId: 'u', messageId: 'm-old' }]
  const content = { ...(trail?.content ?? assert.fail()), items }
  const body = Buffer.from(JSON.stringify({ batch: items }))
  const { duplicates } = await store.ingest.accept({ content, body, messageIds: ['m-old'], routing: { shipments: [], skips: [] } })
  assert.deepEqual(duplicates, [0], 'messages that it had accepted are still duplicates')
  assert.equal((await store.history.trails('m-old'))[0]?.repeats?.count, 1)
})

test('tokens and audit entries of a file from before roles and scopes keep their meaning', async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'old.db')
  const database = new DatabaseSync(path)
  const before = MIGRATIONS.length - 1
  for (const step of MIGRATIONS.slice(0, before)) database.exec(step)
  database.exec(`PRAGMA user_version = ${before}`)
  database.exec(
    "INSERT INTO tokens (id, name, role, hash, created_at) VALUES ('tok_a', 'A', 'admin', 'h1', 1), ('tok_v', 'V', 'viewer', 'h2', 2)",
  )
  database.exec("INSERT INTO audit (id, at, actor, actor_name, action, subject) VALUES (7, 1, 'service', 'service', 'a.b', 'src_1')")
  database.close()
  const store = await openAt(path)
  t.after(() => store.close())
  const unlimited = { sources: 'all', expiresAtMs: null, owner: null }
  assert.deepEqual(
    [...store.configuration().tokens.values()],
    [
      { id: 'tok_a', name: 'A', role: 'admin', hash: 'h1', createdAtMs: 1, ...unlimited },
      { id: 'tok_v', name: 'V', role: 'viewer', hash: 'h2', createdAtMs: 2, ...unlimited },
    ],
  )
  const page = { limit: 10, cursor: null }
  const [entry] = (await store.history.audit({}, page)).data
  assert.deepEqual([entry?.actor.type, entry?.actor.owner, entry?.sources], ['service', null, null])
  assert.deepEqual((await store.history.audit({ sourceIds: ['src_1'] }, page)).data, [], 'its sources are not known')
})
