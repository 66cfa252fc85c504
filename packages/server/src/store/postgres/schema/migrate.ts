// Migrates the schema. Nodes that start at the same time wait for each other. Each step is one transaction, which also records its number.
// Running nodes of the previous version keep working: a step states the lowest version whose code can work with its result, and
// steps are designed so that the previous version can. A step that must run alone waits until no node is running.
// A database that is too new for this code is rejected with an explanation.
// Running nodes are not blocked: if a lock is not granted quickly, the whole step is rolled back and retried later.

import { setTimeout as sleep } from 'node:timers/promises'
import type { SecretBox } from '../../../secrets/secret-box.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import { type Connection, isLockTimeout, SCHEMA } from '../session/connection.ts'
import { type Ask, type Database, transact } from '../session/database.ts'
import { MIGRATIONS } from './migrations.ts'
import type { Migration } from './migrations-from-6.ts'

/** A problem with the database that an operator can fix. */
export class SchemaProblem extends Error {
  override name = 'SchemaProblem'
}

const LOWEST_VERSION = 150_000
const STEP_MS = 600_000
/** How long other statements may have to queue behind a lock request of a step. */
const LOCK_TIMEOUT_MS = 200
const PAUSE_MS = 1_000
/** A start must not wait silently for an hour, for example until a backup has finished. */
const LOCKED_MS = 300_000
/** A killed node counts as running until its lease of ten seconds has expired. */
const NODES_GONE_MS = 15_000
const NOT_ALLOWED = '42501'

/** The steps that were applied, and the oldest code that can use the schema. */
interface SchemaState {
  step: number
  worksFrom: number
}

export interface MigrateOptions {
  migrations?: readonly Migration[]
  /** For how long a step is retried after lock timeouts. */
  lockedMs?: number
  /** How long to wait for nodes that must be stopped before a step. */
  nodesGoneMs?: number
  /** The key with which a step encrypts secrets. Not needed for a new database. */
  secretBox?: SecretBox
}

export async function migrate(connection: Connection, options: MigrateOptions = {}): Promise<void> {
  const { rows } = await connection.query<{ version: string }>("SELECT current_setting('server_version_num') AS version")
  if (Number(rows[0]?.version) < LOWEST_VERSION) {
    throw new SchemaProblem('This PostgreSQL server is too old. Switchyard needs version 15 or later.')
  }
  try {
    await bringUp(connection, options)
  } catch (error) {
    throw (error as { code?: string }).code === NOT_ALLOWED ? await notAllowed(connection, error as Error) : error
  }
}

async function bringUp(connection: Connection, options: MigrateOptions): Promise<void> {
  const { migrations = MIGRATIONS } = options
  const ask: Ask = (text, values = []) => connection.query(text, values, STEP_MS)
  // A usual start changes nothing and takes no lock.
  const found = await stateOf(connection)
  refuseNewer(found, migrations.length)
  if (found.step >= migrations.length) return
  await ask('SET statement_timeout = 0')
  await ask('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.schema])
  try {
    // Checked first, because CREATE SCHEMA IF NOT EXISTS requires the privilege to create a schema even if it exists.
    const { rows } = await ask<{ there: boolean }>('SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1) AS there', [SCHEMA])
    if (!rows[0]?.there) await ask(`CREATE SCHEMA ${SCHEMA}`)
    await ask(
      `CREATE TABLE IF NOT EXISTS ${SCHEMA}.schema_version (one boolean PRIMARY KEY DEFAULT true CHECK (one), step integer NOT NULL, works_from integer NOT NULL)`,
    )
    const state = await stateOf(connection)
    refuseNewer(state, migrations.length)
    await ask(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`)
    for (let step = state.step + 1; step <= migrations.length; step++) {
      await applyStep(ask, step, migrations[step - 1] as Migration, options)
    }
  } finally {
    await ask('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.schema]).catch(() => {})
  }
}

async function applyStep(ask: Ask, step: number, migration: Migration, options: MigrateOptions): Promise<void> {
  const { lockedMs = LOCKED_MS, secretBox } = options
  if (migration.alone && step > 1) await waitForNoNodes(ask, step, options)
  for (const untilMs = performance.now() + lockedMs; ; await sleep(PAUSE_MS)) {
    try {
      return await transact(ask, () => applyStepOnce(ask, step, migration, secretBox))
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      if (performance.now() > untilMs) {
        throw new SchemaProblem(
          `The database could not be migrated to schema ${step}, because another session, such as a backup, holds locks on its tables. Start again when it has finished.`,
          { cause: error },
        )
      }
    }
  }
}

async function applyStepOnce(ask: Ask, step: number, { sql, worksFrom, alone, work }: Migration, secretBox?: SecretBox): Promise<void> {
  if (alone && step > 1) {
    // A node of the previous version that starts now cannot join, and finds the new schema when it is started again.
    await ask('LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE')
    const running = await runningNodes(ask)
    if (running.length > 0) throw nodesStillRunning(step, running)
  }
  await ask(sql)
  if (work !== undefined && (await hasDestinations(ask))) {
    if (secretBox === undefined)
      throw new SchemaProblem(
        `The database must first be migrated to schema ${step}, and only a node can do that. Run switchyard serve once, then try again.`,
      )
    await work(ask, secretBox)
  }
  await ask(
    'INSERT INTO schema_version (step, works_from) VALUES ($1, $2) ON CONFLICT (one) DO UPDATE SET step = excluded.step, works_from = excluded.works_from',
    [String(step), String(worksFrom)],
  )
}

/** Nodes of the previous version cannot work with the new schema, and would corrupt its data. */
async function waitForNoNodes(ask: Ask, step: number, { nodesGoneMs = NODES_GONE_MS }: MigrateOptions): Promise<void> {
  for (const untilMs = performance.now() + nodesGoneMs; ; await sleep(PAUSE_MS)) {
    const running = await runningNodes(ask)
    if (running.length === 0) return
    if (performance.now() > untilMs) throw nodesStillRunning(step, running)
  }
}

async function runningNodes(ask: Ask): Promise<string[]> {
  const { rows } = await ask<{ name: string }>('SELECT name FROM nodes WHERE expires_at > clock_timestamp() ORDER BY num')
  return rows.map(({ name }) => name)
}

function nodesStillRunning(step: number, names: readonly string[]): SchemaProblem {
  return new SchemaProblem(
    `Nodes of an earlier version are running on this database: ${names.join(', ')}. They cannot work with schema ${step}. Stop all of them, then start this version.`,
  )
}

/** Only destinations have the data that such a step changes. A database without any is new. */
async function hasDestinations(ask: Ask): Promise<boolean> {
  return (await ask('SELECT 1 FROM destinations LIMIT 1')).rows.length > 0
}

/** The message contains the statement that an administrator has to run. */
async function notAllowed(connection: Connection, cause: Error): Promise<SchemaProblem> {
  const { rows } = await connection.query<{ who: string; where: string; there: boolean }>(
    `SELECT quote_ident(current_user) AS who, quote_ident(current_database()) AS where,
       EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1) AS there`,
    [SCHEMA],
  )
  const { who, where, there } = rows[0] as { who: string; where: string; there: boolean }
  const statement = there ? `ALTER SCHEMA ${SCHEMA} OWNER TO ${who}` : `CREATE SCHEMA ${SCHEMA} AUTHORIZATION ${who}`
  return new SchemaProblem(
    `The user ${who} may not create tables in the schema ${SCHEMA} of the database ${where} (${cause.message}). Ask an administrator to run there: ${statement};`,
    { cause },
  )
}

/** Called by a node that has joined. From then on, a step that it cannot work with waits for it. */
export async function refuseNewerSchema(database: Pick<Database, 'query'>): Promise<void> {
  refuseNewer(await stateOf(database), MIGRATIONS.length)
}

async function stateOf(connection: Pick<Database, 'query'>): Promise<SchemaState> {
  const { rows: tables } = await connection.query<{ there: boolean }>(`SELECT to_regclass('${SCHEMA}.schema_version') IS NOT NULL AS there`)
  if (!tables[0]?.there) return { step: 0, worksFrom: 0 }
  const { rows } = await connection.query<SchemaState>('SELECT step, works_from AS "worksFrom" FROM schema_version')
  return rows[0] ?? { step: 0, worksFrom: 0 }
}

function refuseNewer({ step, worksFrom }: SchemaState, known: number): void {
  if (step > known && worksFrom > known) {
    throw new SchemaProblem(
      `The database has schema ${step}, created by a newer version of Switchyard. This version supports up to schema ${known}. Start the newer version.`,
    )
  }
}
