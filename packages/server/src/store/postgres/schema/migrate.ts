// Brings the schema up to date. Nodes that start at once wait for each other; each step is a transaction with its number.
// A node of the version before that is still running goes on: a step says from which version on code can work with it, and
// steps are made so that the version before can. A step that must be made alone waits until no node runs.
// A database that is too new for this code is refused with an explanation.
// Nodes that run meanwhile are not made to wait: a lock that is not to be had is asked for again later, the whole step with it.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import { type Connection, SCHEMA } from '../session/connection.ts'
import { type Ask, type Database, transact } from '../session/database.ts'
import { isLockTimeout, pause } from '../session/lock-timeouts.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'

/** What cannot be opened for a reason that a person can mend. */
export class SchemaProblem extends Error {
  override name = 'SchemaProblem'
}

const LOWEST_VERSION = 150_000
const STEP_MS = 600_000
/** How long others may have to wait behind a step for a lock that is not to be had. */
const LOCK_TIMEOUT_MS = 200
const PAUSE_MS = 1_000
/** A backup that takes an hour is better not waited for in a start that nobody is told of. */
const LOCKED_MS = 300_000
/** A node that was killed counts as running for its lease of ten seconds. */
const NODES_GONE_MS = 15_000
const NOT_ALLOWED = '42501'

/** How far the schema is: the steps made, and the oldest code that can use it. */
interface SchemaState {
  step: number
  worksFrom: number
}

export interface MigrateOptions {
  migrations?: readonly Migration[]
  /** For how long a lock is asked for again. */
  lockedMs?: number
  /** How long to wait for nodes that must be stopped before a step. */
  nodesGoneMs?: number
  /** What a step seals with. Not needed for a database that is new. */
  secretBox?: SecretBox
}

export async function migrate(connection: Connection, options: MigrateOptions = {}): Promise<void> {
  const { rows } = await connection.query<{ version: string }>("SELECT current_setting('server_version_num') AS version")
  if (Number(rows[0]?.version) < LOWEST_VERSION) {
    throw new SchemaProblem('PostgreSQL is too old: version 15 or later is needed.')
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
  // The usual start changes nothing and takes no lock.
  const found = await stateOf(connection)
  refuseNewer(found, migrations.length)
  if (found.step >= migrations.length) return
  await ask('SET statement_timeout = 0')
  await ask('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.schema])
  try {
    // Asked first: to say IF NOT EXISTS takes the right to make one, even where there is one.
    const { rows } = await ask<{ there: boolean }>('SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1) AS there', [SCHEMA])
    if (!rows[0]?.there) await ask(`CREATE SCHEMA ${SCHEMA}`)
    await ask(
      `CREATE TABLE IF NOT EXISTS ${SCHEMA}.schema_version (one boolean PRIMARY KEY DEFAULT true CHECK (one), step integer NOT NULL, works_from integer NOT NULL)`,
    )
    const state = await stateOf(connection)
    refuseNewer(state, migrations.length)
    await ask(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`)
    for (let step = state.step + 1; step <= migrations.length; step++) {
      await take(ask, step, migrations[step - 1] as Migration, options)
    }
  } finally {
    await ask('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCKS.schema]).catch(() => {})
  }
}

async function take(ask: Ask, step: number, migration: Migration, options: MigrateOptions): Promise<void> {
  const { lockedMs = LOCKED_MS, secretBox } = options
  if (migration.alone && step > 1) await nodesGone(ask, step, options)
  for (const untilMs = performance.now() + lockedMs; ; await pause(PAUSE_MS)) {
    try {
      return await transact(ask, () => takeNow(ask, step, migration, secretBox))
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      if (performance.now() > untilMs) {
        throw new SchemaProblem(
          `The database could not be brought to schema ${step}: somebody, such as a backup, has its tables locked. Start again when that is over.`,
          { cause: error },
        )
      }
    }
  }
}

async function takeNow(ask: Ask, step: number, { sql, worksFrom, alone, work }: Migration, secretBox?: SecretBox): Promise<void> {
  if (alone && step > 1) {
    // One of the version before that starts now cannot join, and finds the new schema when it is started again.
    await ask('LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE')
    const running = await runningNodes(ask)
    if (running.length > 0) throw nodesRun(step, running)
  }
  await ask(sql)
  if (work !== undefined && (await hasDestinations(ask))) {
    if (secretBox === undefined)
      throw new SchemaProblem(
        `This database has to be migrated to schema ${step} first, and only a node can do that: run switchyard serve once.`,
      )
    await work(ask, secretBox)
  }
  await ask(
    'INSERT INTO schema_version (step, works_from) VALUES ($1, $2) ON CONFLICT (one) DO UPDATE SET step = excluded.step, works_from = excluded.works_from',
    [String(step), String(worksFrom)],
  )
}

/** Nodes of the previous version cannot work with the new schema, and would corrupt its data. */
async function nodesGone(ask: Ask, step: number, { nodesGoneMs = NODES_GONE_MS }: MigrateOptions): Promise<void> {
  for (const untilMs = performance.now() + nodesGoneMs; ; await pause(PAUSE_MS)) {
    const running = await runningNodes(ask)
    if (running.length === 0) return
    if (performance.now() > untilMs) throw nodesRun(step, running)
  }
}

async function runningNodes(ask: Ask): Promise<string[]> {
  const { rows } = await ask<{ name: string }>('SELECT name FROM nodes WHERE expires_at > clock_timestamp() ORDER BY num')
  return rows.map(({ name }) => name)
}

function nodesRun(step: number, names: readonly string[]): SchemaProblem {
  return new SchemaProblem(
    `Nodes of an earlier version run on this database: ${names.join(', ')}. They cannot work with schema ${step}: stop all of them, then start this version.`,
  )
}

/** Only they have what a step's work is about; a database without any is new. */
async function hasDestinations(ask: Ask): Promise<boolean> {
  return (await ask('SELECT 1 FROM destinations LIMIT 1')).rows.length > 0
}

/** What an administrator has to do about it, in one statement. */
async function notAllowed(connection: Connection, cause: Error): Promise<SchemaProblem> {
  const { rows } = await connection.query<{ who: string; where: string; there: boolean }>(
    `SELECT quote_ident(current_user) AS who, quote_ident(current_database()) AS where,
       EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1) AS there`,
    [SCHEMA],
  )
  const { who, where, there } = rows[0] as { who: string; where: string; there: boolean }
  const statement = there ? `ALTER SCHEMA ${SCHEMA} OWNER TO ${who}` : `CREATE SCHEMA ${SCHEMA} AUTHORIZATION ${who}`
  return new SchemaProblem(
    `The user ${who} may not make tables in the schema ${SCHEMA} of the database ${where} (${cause.message}). An administrator must run there: ${statement};`,
    { cause },
  )
}

/** To be asked by a node that has joined: from then on, a step that it cannot work with waits for it. */
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
      `The database was brought to schema ${step} by a newer version of Switchyard, and this one knows ${known}. Start the newer version.`,
    )
  }
}
