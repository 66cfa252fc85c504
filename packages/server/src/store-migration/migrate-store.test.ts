import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { asWebhook } from '../destinations/fixtures/webhook.ts'
import { createSecretBox } from '../secrets/secret-box.ts'
import {
  accept,
  claimOne,
  type Fate,
  messageIdsOf,
  newDestination,
  newSource,
  quarantining,
  routingTo,
  settle,
  settlementOf,
  track,
  tracks,
  until,
} from '../store/conformance/fixtures.ts'
import { fastFolder } from '../store/fixtures/fast-folder.ts'
import { createDatabase, type TestDatabase } from '../store/postgres/fixtures/postgres-server.ts'
import { openAt } from '../store/postgres/fixtures/temp-store.ts'
import { SchemaProblem } from '../store/postgres/schema/migrate.ts'
import { partitionName } from '../store/postgres/schema/partitions.ts'
import { StoreProblem } from '../store/sqlite/schema/database.ts'
import { createSqliteStore } from '../store/sqlite/store.ts'
import type { ClaimedShipment, OrderedClaim, Part, Store } from '../store/store.ts'
import { type MigrationOptions, MigrationProblem, migrateStore, undoMigration } from './migrate-store.ts'

const TRANSFORMATION = { code: 'a version', timeoutMs: 50, memoryMb: 8 }

const OLD_KEY = 'the key of the file'
/** The key that openAt uses. */
const NEW_KEY = 'a key for these tests'
const DAY_MS = 86_400_000
const PER_DAY = DAY_MS * 2_048

let folder: string
let file: string
let serverUser: TestDatabase
let sourceId: string
let destinationId: string

const openFile = (path: string) => createSqliteStore({ path, secretBox: createSecretBox(OLD_KEY), retentionDays: 7 })

before(async () => {
  serverUser = await createDatabase()
  folder = mkdtempSync(join(fastFolder(), 'switchyard-move-'))
  file = join(folder, 'store.db')
  const store = await openFile(file)
  sourceId = (await newSource(store)).id
  destinationId = (await newDestination(store, sourceId, { sharedSecret: 'a secret', signingSecrets: ['another'] })).id
  await store.resources.updateDestination(destinationId, { transformation: TRANSFORMATION })
  for (let nth = 0; nth < 6; nth++) await accept(store, sourceId, tracks(3, `call ${nth}`), [destinationId])
  await accept(store, sourceId, [...tracks(2, 'call 0'), ...tracks(2, 'call 6')], [destinationId])
  for (let nth = 0; nth < 3; nth++) await settle(store, await claimOne(store, destinationId), 'delivered')
  // One message is released, and one stays in quarantine.
  const { segment } = await accept(store, sourceId, tracks(3, 'planned'), [], quarantining([0, 1], 'track a\0b'))
  await store.quarantine.release([{ id: `${segment}-0`, routing: routingTo([destinationId]) }])
  await store.secrets.getOrCreate('session_key', 'a kept secret')
  await store.close()
})

after(async () => {
  await serverUser.drop()
  rmSync(folder, { recursive: true, force: true })
})

let copies = 0

/** A copy of the file, and an empty database. */
async function prepare(): Promise<{ path: string; database: TestDatabase; options: MigrationOptions }> {
  const path = join(folder, `copy-${++copies}.db`)
  cpSync(file, path)
  const database = await createDatabase({ isEmpty: true })
  return { path, database, options: { path, url: database.url, oldKeys: [OLD_KEY], newKey: NEW_KEY } }
}

const ORDER = { by: 'user', onFailure: 'hold', maxWaiting: 100 } as const
const USERS = Array.from({ length: 20 }, (_, at) => `u${at}`)
const LATER_MS = Date.now() + 3_600_000

function claimOrdered(store: Pick<Store, 'delivery'>, id: string): Promise<OrderedClaim> {
  const limits = { maxFresh: 1_000, maxHeads: 1_000, maxWaiting: 1_000, maxBytes: 1e9 }
  return store.delivery.claimOrdered({ destinationId: id, nowMs: LATER_MS, ...limits })
}

/** The nth message of each user, in one request. */
const turn = (nth: number): JsonObject[] => USERS.map((userId) => track(`${userId}-${nth}`, { userId }))

test('messages of ordered destinations keep their keys, their order and what waits', async () => {
  const { path, database, options } = await prepare()
  try {
    const store = await openFile(path)
    const { id } = await newDestination(store, sourceId, { order: ORDER })
    await accept(store, sourceId, turn(1), [id])
    const [first] = (await claimOrdered(store, id)).shipments as [ClaimedShipment]
    const [part] = first.shipment.parts as [Part]
    // The first message of u0 is attempted again, and that of u1 holds its key.
    const fateOf = (delivery: string): Fate => (['retry', 'failed'] as const)[Number(delivery.split('-')[1])] ?? 'delivered'
    const settlement = settlementOf([first.shipment], fateOf, { dueAtMs: LATER_MS })
    const held = { key: part.keys?.[1] as number, segment: part.segment, origin: part.origin, index: 1 }
    await store.delivery.settle({ ...settlement, holds: [held] })
    await accept(store, sourceId, turn(2), [id])
    // Moves the next messages of these two behind them.
    await claimOrdered(store, id)
    await accept(store, sourceId, turn(3), [id])
    await store.close()
    await migrateStore(options)

    const moved = await openAt(database.url)
    try {
      const ledger = await moved.books.ledger()
      const own = { destinationId: id, owed: 60, delivered: 18, pending: 41, failed: 1, expired: 0, cancelled: 0 }
      assert.deepEqual(
        ledger.find(({ destinationId }) => destinationId === id),
        own,
      )
      assert.deepEqual(await moved.books.recount(), ledger)
      // Accepted by a node, after what was migrated.
      await accept(moved, sourceId, turn(4), [id])
      const arrived: string[] = []
      await until(
        async () => {
          const { shipments } = await claimOrdered(moved, id)
          arrived.push(...shipments.flatMap(messageIdsOf).map(String))
          for (const claimed of shipments) await settle(moved, claimed, 'delivered')
        },
        () => arrived.length === 19 * 3 + 1,
        'everything has arrived except what is held',
      )
      for (const user of USERS) {
        const expected = user === 'u1' ? [] : user === 'u0' ? [1, 2, 3, 4] : [2, 3, 4]
        const numbers = arrived.filter((messageId) => messageId.startsWith(`${user}-`)).map((messageId) => Number(messageId.split('-')[1]))
        assert.deepEqual(numbers, expected, user)
      }
      const keys = await database.query('SELECT key::float8 AS key, state, waiting::integer AS waiting FROM switchyard.order_keys')
      assert.deepEqual(keys, [{ key: held.key, state: 'held', waiting: 3 }])
    } finally {
      await moved.close()
    }
  } finally {
    await database.drop()
  }
})

async function runMigration({ path, url, newKey }: MigrationOptions, killAt: number): Promise<{ steps: string[]; signal: string | null }> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'fixtures', 'migration-process.ts'), path, url, OLD_KEY, newKey, String(killAt), '2'],
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

async function assertComplete(database: TestDatabase): Promise<void> {
  const store = await openAt(database.url)
  try {
    const ledger = await store.books.ledger()
    assert.deepEqual(ledger, [{ destinationId, owed: 21, delivered: 9, pending: 12, failed: 0, expired: 0, cancelled: 0 }])
    assert.deepEqual(await store.books.recount(), ledger)
    assert.deepEqual((await store.history.messages({}, { limit: 100, cursor: null })).data.length, 23)
    const [held, ...others] = (await store.quarantine.list({}, { limit: 9, cursor: null })).data
    assert.deepEqual([held?.index, held?.rule, held?.content.violations?.[1]?.length, others], [1, 'track a\0b', 1, []])
    const released = await store.history.message('planned-0')
    assert.deepEqual([released?.quarantine?.state, released?.deliveries.length], ['released', 1])
    assert.deepEqual((await store.history.delivery(released?.deliveries[0]?.id ?? ''))?.replay, false)
    const [counted] = await store.books.sourceCounts()
    assert.deepEqual([counted?.quarantined, counted?.released, counted?.deleted], [1, 1, 0])
    assert.deepEqual(await store.books.recountQuarantined(), [{ sourceId, quarantined: 1 }])
    const { sharedSecret, signingSecrets } = asWebhook(store.configuration().destinations.get(destinationId))
    assert.deepEqual([sharedSecret, signingSecrets], ['a secret', ['another']])
    assert.equal(await store.secrets.getOrCreate('session_key', 'another'), 'a kept secret')
    assert.deepEqual((await store.resources.destinationVersion(destinationId, 2))?.content['transformation'], TRANSFORMATION)
    const { duplicates } = await accept(store, sourceId, [...tracks(3, 'call 2'), ...tracks(2, 'call 6')], [destinationId])
    assert.deepEqual(duplicates, [0, 1, 2, 3, 4])
  } finally {
    await store.close()
  }
}

const IS_LONG = process.env['SWITCHYARD_LONG_TESTS'] === '1'

test('a migration that is killed at any step resumes, and every row is migrated exactly once', { timeout: 600_000 }, async () => {
  const first = await prepare()
  let steps: string[]
  try {
    ;({ steps } = await runMigration(first.options, 0))
    assert.ok(steps.length > 30, `${steps.length} steps`)
    await assertComplete(first.database)
  } finally {
    await first.database.drop()
  }
  // The first occurrence of each kind of step; with SWITCHYARD_LONG_TESTS=1 also the last.
  const killAt = new Set(
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
    ].flatMap((name) => [steps.indexOf(name) + 1, (IS_LONG ? steps.lastIndexOf(name) : steps.indexOf(name)) + 1]),
  )
  for (const step of killAt) {
    const { path, database, options } = await prepare()
    try {
      const { signal } = await runMigration(options, step)
      assert.equal(signal, 'SIGKILL')
      await assert.rejects(openFile(path), StoreProblem, `no service starts on the file after ${steps[step - 1]}`)
      if (step > steps.indexOf('begun') && steps[step - 1] !== 'ended') await assert.rejects(openAt(database.url), SchemaProblem)
      const { wasComplete, earlierRows } = await migrateStore(options)
      assert.equal(wasComplete, steps[step - 1] === 'ended')
      assert.equal(earlierRows > 0, step >= steps.indexOf('settings written') + 1, 'it resumes and does not start over')
      await assertComplete(database)
      await assert.rejects(openFile(path), /was migrated to PostgreSQL/)
    } finally {
      await database.drop()
    }
  }
})

test('a migration starts over if the file was used after --undo', async () => {
  const { path, database, options } = await prepare()
  try {
    const { steps } = await runMigration(options, 25)
    assert.ok(steps.includes('segments written'))
    assert.equal(undoMigration(path), true)
    const store = await openFile(path)
    await settle(store, await claimOne(store, destinationId), 'delivered')
    await store.close()
    assert.equal((await migrateStore(options)).earlierRows, 0)
    const moved = await openAt(database.url)
    const [row] = await moved.books.ledger()
    await moved.close()
    assert.deepEqual([row?.owed, row?.delivered, row?.pending], [21, 12, 9])
  } finally {
    await database.drop()
  }
})

test('an interrupted migration starts over if it is run again with another key', async () => {
  const { database, options } = await prepare()
  try {
    await runMigration({ ...options, newKey: 'another key' }, 25)
    assert.equal((await migrateStore(options)).earlierRows, 0)
    await assertComplete(database)
  } finally {
    await database.drop()
  }
})

test('a file of another installation is rejected, and so is one that was migrated to another database', async () => {
  const [one, other] = [await prepare(), await prepare()]
  try {
    const file = new DatabaseSync(other.path)
    file.prepare("UPDATE settings SET value = '[1,2,3,4]' WHERE name = 'dedup_seed'").run()
    file.close()
    await migrateStore(one.options)
    await assert.rejects(
      migrateStore({ ...other.options, url: one.database.url }),
      (error: Error) => error instanceof MigrationProblem && /another file/.test(error.message),
    )
    await assert.rejects(migrateStore({ ...one.options, url: other.database.url }), /was migrated to/)
  } finally {
    await one.database.drop()
    await other.database.drop()
  }
})

test('a key that cannot decrypt the secrets fails before anything is written', async () => {
  const { path, database, options } = await prepare()
  try {
    await assert.rejects(migrateStore({ ...options, oldKeys: ['wrong'] }), /encrypted with a key \(\S+\) that was not given/)
    assert.deepEqual(await database.query("SELECT to_regnamespace('switchyard')::text AS found"), [{ found: null }])
    await (await openFile(path)).close()
  } finally {
    await database.drop()
  }
})

test('rows of past days are written to the partitions of their days, so that they can be dropped by partition', async () => {
  const { path, database, options } = await prepare()
  try {
    const file = new DatabaseSync(path)
    // Shift every row id that contains a time to three days ago.
    const ago = 3 * PER_DAY
    const before = file.prepare('SELECT min(seq) AS seq FROM segments').get() as { seq: number }
    file.exec(
      `UPDATE segments SET seq = seq - ${ago}, routes = '{"s":[]}'; DELETE FROM shipments; DELETE FROM attempts; DELETE FROM ledger`,
    )
    file.close()
    await migrateStore(options)
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

test('a file that is ahead of the server’s clock is rejected', async () => {
  const { path, database, options } = await prepare()
  try {
    const file = new DatabaseSync(path)
    file.exec(`UPDATE attempts SET id = id + ${3_600_000 * 2_048}`)
    file.close()
    await assert.rejects(migrateStore(options), /ahead of PostgreSQL's clock/)
  } finally {
    await database.drop()
  }
})
