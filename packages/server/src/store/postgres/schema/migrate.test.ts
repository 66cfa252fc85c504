// Migrating the schema: several nodes at once, while nodes of the previous version are running, and when it is not possible.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import pg from 'pg'
import { createSecretBox } from '../../../secrets/secret-box.ts'
import { accept, claim, ledgerOf, newSourceAndDestination, settlementOf, tracks } from '../../conformance/fixtures.ts'
import type { Store } from '../../store.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'
import { parsePostgresAddress } from '../session/address.ts'
import { Database } from '../session/database.ts'
import { type MigrateOptions, migrate, SchemaProblem } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import type { Migration } from './migrations-from-6.ts'

const KNOWN = MIGRATIONS.length

/** What the next version may do to tables in use: add columns with a default, an index, a table. */
const NEXT: Migration = {
  worksFrom: KNOWN,
  sql: `
    ALTER TABLE segments ADD COLUMN colour text NOT NULL DEFAULT 'none';
    ALTER TABLE message_keys ADD COLUMN colour text;
    ALTER TABLE shipments ADD COLUMN colour text NOT NULL DEFAULT 'none';
    ALTER TABLE attempts ADD COLUMN colour text NOT NULL DEFAULT 'none';
    ALTER TABLE deltas ADD COLUMN colour text;
    ALTER TABLE sources ADD COLUMN colour text;
    ALTER TABLE destinations ADD COLUMN colour text;
    ALTER TABLE nodes ADD COLUMN colour text;
    CREATE INDEX shipments_by_colour ON shipments (colour);
    CREATE TABLE colours (name text PRIMARY KEY);`,
}

let database: TestDatabase

beforeEach(async () => {
  database = await createDatabase({ isEmpty: true })
})

afterEach(() => database.drop())

async function migrateAt(url: string, options: MigrateOptions = {}): Promise<void> {
  const connections = new Database({ address: parsePostgresAddress(url), connections: 1 })
  const connection = await connections.connect()
  try {
    await migrate(connection, options)
  } finally {
    connection.destroy()
    connections.close()
  }
}

async function stepsMade(): Promise<unknown> {
  return (await database.query('SELECT step, works_from FROM switchyard.schema_version'))[0]
}

/** Returns every table and column. */
async function schema(): Promise<unknown[]> {
  return database.query(
    "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'switchyard' ORDER BY table_name, column_name",
  )
}

/** Accepts, claims and settles until it is stopped. Returns how long the slowest accept took. */
function load(store: Store, sourceId: string, destinationId: string): { rounds: () => number; stop: () => Promise<number> } {
  const stopping = new AbortController()
  let rounds = 0
  let longestMs = 0
  const work = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const started = performance.now()
      await accept(store, sourceId, tracks(2), [destinationId])
      longestMs = Math.max(longestMs, performance.now() - started)
      const { shipments } = await claim(store, destinationId, { maxFresh: 3 })
      for (const { shipment } of shipments) await store.delivery.settle(settlementOf([shipment], 'delivered'))
      rounds++
    }
  }
  const running = Promise.all([work(), work(), work()])
  // An error is reported by stop(), which awaits it.
  running.catch(() => {})
  return {
    rounds: () => rounds,
    async stop() {
      stopping.abort()
      await running
      return longestMs
    },
  }
}

async function roundsMore(running: ReturnType<typeof load>, more: number): Promise<void> {
  const from = running.rounds()
  const deadline = performance.now() + 60_000
  while (running.rounds() < from + more) {
    assert.ok(performance.now() < deadline, 'the load has not stopped')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test('nodes that start at the same time on an empty database all start, with one schema', async () => {
  const stores = await Promise.all(['a', 'b', 'c'].map((nodeName) => openAt(database.url, { nodeName })))
  try {
    assert.deepEqual(await stepsMade(), { step: KNOWN, works_from: MIGRATIONS.at(-1)?.worksFrom })
    assert.equal(new Set(stores.map(({ membership }) => membership.num)).size, 3)
    const { sourceId, destinationId } = await newSourceAndDestination(stores[0] as Store)
    const other = stores[1] as Store
    const deadline = performance.now() + 60_000
    while (!other.configuration().destinations.has(destinationId)) {
      assert.ok(performance.now() < deadline)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await accept(other, sourceId, tracks(3), [destinationId])
    assert.equal((await ledgerOf(stores[0] as Store, destinationId)).owed, 3)
  } finally {
    await Promise.all(stores.map((store) => store.close()))
  }
})

test('a step that the previous version cannot work with waits until no node is running, and the error lists the running nodes', async () => {
  const alone: Migration = { worksFrom: KNOWN + 1, alone: true, sql: 'CREATE TABLE colours (name text PRIMARY KEY)' }
  const migrations = [...MIGRATIONS, alone]
  const store = await openAt(database.url, { nodeName: 'older' })
  try {
    await assert.rejects(migrateAt(database.url, { migrations, nodesGoneMs: 0 }), {
      name: 'SchemaProblem',
      message: /^Nodes of an earlier version are running on this database: older\. .* Stop all of them, then start this version\.$/,
    })
    assert.deepEqual(await stepsMade(), { step: KNOWN, works_from: MIGRATIONS.at(-1)?.worksFrom })
    const waiting = migrateAt(database.url, { migrations, nodesGoneMs: 60_000 })
    await store.close()
    await waiting
    assert.deepEqual(await stepsMade(), { step: KNOWN + 1, works_from: KNOWN + 1 })
    await assert.rejects(openAt(database.url), { name: 'SchemaProblem', message: /Start the newer version/ })
  } finally {
    await store.close()
  }
})

test('a node of the previous version that starts during a step that it cannot work with does not join', async () => {
  const before = await openAt(database.url)
  await newSourceAndDestination(before)
  await before.close()
  let joining: Promise<unknown> | undefined
  const alone: Migration = {
    worksFrom: KNOWN + 1,
    alone: true,
    sql: '',
    async work() {
      const node = openAt(database.url, { nodeName: 'older' }).then((store) => store.close())
      joining = node.then(
        () => 'joined',
        (error: Error) => error.message,
      )
      // Waits until the node waits for the step, or has joined.
      for (let isWaiting = false; !isWaiting; ) {
        const [row] = await database.query<{ waiting: boolean; joined: boolean }>(
          `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()) AS waiting,
             EXISTS (SELECT FROM switchyard.nodes) AS joined`,
        )
        assert.equal(row?.joined, false)
        isWaiting = row?.waiting ?? false
      }
    },
  }
  await migrateAt(database.url, { migrations: [...MIGRATIONS, alone], secretBox: createSecretBox('a key for these tests') })
  assert.deepEqual(await stepsMade(), { step: KNOWN + 1, works_from: KNOWN + 1 })
  assert.match(String(await joining), /Start the newer version/)
  assert.deepEqual(await database.query('SELECT FROM switchyard.nodes'), [])
})

test('a node keeps running while the next version migrates the schema, and can be restarted', async () => {
  const store = await openAt(database.url)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const running = load(store, sourceId, destinationId)
  await roundsMore(running, 20)
  await migrateAt(database.url, { migrations: [...MIGRATIONS, NEXT] })
  await roundsMore(running, 20)
  await running.stop()
  const { owed, delivered } = await ledgerOf(store, destinationId)
  assert.ok(owed >= 80 && delivered <= owed)
  await store.resources.createSource({ name: 'after', enabled: true, writeKeys: ['after'], requireOAuth: false })
  await store.dropExpired(Date.now())
  await store.close()
  const again = await openAt(database.url)
  await accept(again, sourceId, tracks(1), [destinationId])
  await again.close()
  assert.deepEqual(await stepsMade(), { step: KNOWN + 1, works_from: KNOWN })
})

test('two nodes of the next version that start at the same time apply the step once', async () => {
  await migrateAt(database.url)
  await Promise.all([0, 1, 2].map(() => migrateAt(database.url, { migrations: [...MIGRATIONS, NEXT] })))
  assert.deepEqual(await stepsMade(), { step: KNOWN + 1, works_from: KNOWN })
})

test('a schema that this version cannot work with stops new nodes from starting, but not running nodes from working', async () => {
  const store = await openAt(database.url)
  try {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await migrateAt(database.url, { migrations: [...MIGRATIONS, { ...NEXT, worksFrom: KNOWN + 1 }] })
    await assert.rejects(openAt(database.url), (error: Error) => {
      assert.ok(error instanceof SchemaProblem)
      assert.match(
        error.message,
        new RegExp(`has schema ${KNOWN + 1}, created by a newer version .* supports up to schema ${KNOWN}\\. Start the newer version`),
      )
      return true
    })
    await accept(store, sourceId, tracks(2), [destinationId])
    assert.equal((await ledgerOf(store, destinationId)).pending, 2)
  } finally {
    await store.close()
  }
})

test('a step that fails halfway leaves the schema unchanged', async () => {
  await migrateAt(database.url)
  const before = await schema()
  const broken: Migration = { worksFrom: KNOWN, sql: `${NEXT.sql} ALTER TABLE no_such_table ADD COLUMN colour text;` }
  await assert.rejects(migrateAt(database.url, { migrations: [...MIGRATIONS, broken] }), /no_such_table/)
  assert.deepEqual(await schema(), before)
  assert.deepEqual(await stepsMade(), { step: KNOWN, works_from: MIGRATIONS.at(-1)?.worksFrom })
  await migrateAt(database.url, { migrations: [...MIGRATIONS, NEXT] })
  assert.deepEqual(await stepsMade(), { step: KNOWN + 1, works_from: KNOWN })
})

test('a lock that is held for long delays only the step', async () => {
  const store = await openAt(database.url)
  const reader = new pg.Client({ connectionString: database.url })
  await reader.connect()
  try {
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await reader.query('BEGIN')
    await reader.query('SELECT count(*) FROM switchyard.segments')
    const running = load(store, sourceId, destinationId)
    const migrations = [...MIGRATIONS, NEXT]
    await assert.rejects(migrateAt(database.url, { migrations, lockedMs: 0 }), (error: Error) => {
      assert.ok(error instanceof SchemaProblem)
      assert.match(error.message, /another session, such as a backup, holds locks on its tables/)
      return true
    })
    const migrating = migrateAt(database.url, { migrations })
    await roundsMore(running, 50)
    assert.deepEqual(await stepsMade(), { step: KNOWN, works_from: MIGRATIONS.at(-1)?.worksFrom })
    await reader.query('COMMIT')
    await migrating
    await roundsMore(running, 10)
    const longestMs = await running.stop()
    assert.ok(longestMs < 10_000, `an accept waited for the reader: ${longestMs} ms`)
    assert.deepEqual(await stepsMade(), { step: KNOWN + 1, works_from: KNOWN })
  } finally {
    await reader.end()
    await store.close()
  }
})

test('a user who may not create a schema gets an error with the statement that an administrator must run, and that statement suffices', async () => {
  const user = `limited_${process.pid}`
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`CREATE ROLE "${user}" LOGIN PASSWORD 'limited'`)
  try {
    const url = new URL(database.url)
    url.username = user
    url.password = 'limited'
    let message = ''
    await assert.rejects(openAt(url.href), (error: Error) => {
      assert.ok(error instanceof SchemaProblem)
      message = error.message
      return true
    })
    assert.match(message, new RegExp(`The user ${user} may not create tables in the schema switchyard of the database ${name}`))
    assert.doesNotMatch(message, /limited'|:limited@/)
    const statement = /to run there: (.*;)$/.exec(message)?.[1] as string
    assert.equal(statement, `CREATE SCHEMA switchyard AUTHORIZATION ${user};`)
    // A schema that belongs to another user does not help.
    await database.query('CREATE SCHEMA switchyard')
    await assert.rejects(openAt(url.href), new RegExp(`to run there: ALTER SCHEMA switchyard OWNER TO ${user};`))
    await database.query('DROP SCHEMA switchyard')
    await database.query(statement)
    const store = await openAt(url.href)
    const { sourceId, destinationId } = await newSourceAndDestination(store)
    await accept(store, sourceId, tracks(1), [destinationId])
    await store.dropExpired(Date.now() + 100 * 86_400_000)
    await store.close()
  } finally {
    await database.query(`DROP OWNED BY "${user}"`)
    await database.query(`DROP ROLE "${user}"`)
  }
})

test('tokens and audit entries from before roles and scopes keep their meaning, and nodes of that version can still write theirs', async () => {
  await migrateAt(database.url, { migrations: MIGRATIONS.slice(0, 5) })
  const writeAsBefore = async (id: string): Promise<void> => {
    await database.query(
      `INSERT INTO switchyard.tokens (num, id, name, role, hash, created_at) VALUES (${id.length}, '${id}', 'A', 'admin', '${id}', 1)`,
    )
    await database.query(
      `INSERT INTO switchyard.audit (id, at, actor, actor_name, action, subject) VALUES (376440088016873062${id.length}, 1, 'tok_a', 'A', 'a.b', 'src_1')`,
    )
  }
  await writeAsBefore('tok')
  await migrateAt(database.url, { migrations: MIGRATIONS.slice(0, 6) })
  await writeAsBefore('token')
  const store = await openAt(database.url)
  try {
    const unlimited = { name: 'A', role: 'admin', sources: 'all', expiresAtMs: null, owner: null, createdAtMs: 1 }
    assert.deepEqual(
      [...store.configuration().tokens.values()],
      [
        { id: 'tok', hash: 'tok', ...unlimited },
        { id: 'token', hash: 'token', ...unlimited },
      ],
    )
    const page = { limit: 10, cursor: null }
    const { data } = await store.history.audit({}, page)
    assert.deepEqual(
      data.map(({ actor, sources }) => [actor.type, sources]),
      [
        ['token', null],
        ['token', null],
      ],
    )
    assert.deepEqual((await store.history.audit({ sourceIds: ['src_1'] }, page)).data, [])
  } finally {
    await store.close()
  }
})
