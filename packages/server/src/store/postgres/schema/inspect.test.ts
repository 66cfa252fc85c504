// Problems that an inspection of the whole database finds. The conformance suite covers its consistency under load.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type BareNode, openBareNode } from '../fixtures/bare-node.ts'
import { createDatabase, type TestDatabase } from '../fixtures/postgres-server.ts'
import { rowIdAt } from '../tables/ids.ts'
import { inspect } from './inspect.ts'
import { partitionName, preparePartitions } from './partitions.ts'

const DEADLINE_MS = 60_000
const DAY_MS = 86_400_000

suite('inspecting the database', () => {
  let database: TestDatabase
  let node: BareNode
  before(async () => {
    database = await createDatabase()
    node = await openBareNode(database.url, 1)
    await preparePartitions(node.context.database)
  })
  after(async () => {
    await node.close()
    await database.drop()
  })
  const problems = async (): Promise<string[] | undefined> => (await inspect(node.context.database, DEADLINE_MS))?.problems

  test('a new schema has no problems', async () => {
    const inspection = await inspect(node.context.database, DEADLINE_MS)
    assert.deepEqual(inspection?.problems, [])
    assert.deepEqual([inspection?.ledger, inspection?.recount, inspection?.oldestMessageAtMs], [[], [], null])
    assert.ok((inspection?.storedBytes ?? 0) > 0)
  })

  test('a missing index or table is reported, and so is an invalid index', async () => {
    await database.query('ALTER INDEX switchyard.shipments_fresh RENAME TO elsewhere')
    assert.deepEqual(await problems(), ['"shipments_fresh" is missing from the schema'])
    await database.query('ALTER INDEX switchyard.elsewhere RENAME TO shipments_fresh')
    await database.query('ALTER TABLE switchyard.rejections RENAME TO refusals')
    assert.deepEqual(await problems(), ['"rejections" is missing from the schema'])
    await database.query('ALTER TABLE switchyard.refusals RENAME TO rejections')
    const set = (isValid: boolean) =>
      database.query("UPDATE pg_index SET indisvalid = $1 WHERE indexrelid = 'switchyard.audit_by_subject'::regclass", [isValid])
    await set(false)
    assert.deepEqual(await problems(), ['the index "audit_by_subject" is invalid'])
    await set(true)
    assert.deepEqual(await problems(), [])
  })

  test('a missing partition of tomorrow is reported, unless the rest table already has rows of that day', async () => {
    const tomorrow = Math.floor(Date.now() / DAY_MS) + 1
    await database.query(`DROP TABLE switchyard.${partitionName('attempts', tomorrow)}`)
    const day = new Date(tomorrow * DAY_MS).toISOString().slice(0, 10)
    assert.deepEqual(await problems(), [`"attempts" has no partition for ${day}`])
    await database.query(
      `INSERT INTO switchyard.attempts (id, origin, destination, segment, at, attempt, delivered, failed, expired, cancelled, replay, doc)
       VALUES ($1, 1, 1, 1, 1, 1, 0, 0, 0, 0, false, '{}')`,
      [rowIdAt((tomorrow + 0.5) * DAY_MS)],
    )
    assert.deepEqual(await problems(), [])
  })

  test('an inspection that waits for a lock ends at its deadline, on the server too', async () => {
    const { database: shared } = node.context
    const locking = await shared.connect()
    try {
      await locking.query({ text: 'BEGIN' })
      await locking.query({ text: 'LOCK TABLE ledger_archive IN ACCESS EXCLUSIVE MODE' })
      // Includes connecting, which takes a while on a busy machine.
      assert.equal(await inspect(shared, 3_000), undefined)
      const waiting = async (): Promise<number> =>
        (
          await database.query<{ count: number }>(
            "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          )
        )[0]?.count ?? 0
      const deadline = Date.now() + 60_000
      while ((await waiting()) > 0) assert.ok(Date.now() < deadline, 'its statement is still running')
    } finally {
      locking.destroy()
    }
    assert.ok(await inspect(shared, DEADLINE_MS))
  })
})
