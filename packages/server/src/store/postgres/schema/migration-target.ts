// The PostgreSQL side of a store migration: an empty database that receives the rows of a SQLite file. Rows are written in transactions
// of some thousand, each together with the progress made, so that a migration that was killed can resume. No node starts on the database
// meanwhile: see migration-state.ts. The rows are passed in their PostgreSQL form: see store-migration.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import { writeAudit } from '../../history/audit-log.ts'
import { describeAddress, parsePostgresAddress } from '../session/address.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Connection } from '../session/connection.ts'
import { type Ask, Database } from '../session/database.ts'
import { arrayOf, plainColumns, statement } from '../session/row-parameters.ts'
import { RowIds } from '../tables/ids.ts'
import { countedRows } from '../tables/recount.ts'
import { sqlOf } from '../tables/sql.ts'
import { migrate } from './migrate.ts'
import { deleteMigrationState, type MigrationState, readMigrationState, writeMigrationState } from './migration-state.ts'
import type { PartitionedTable } from './migrations.ts'
import { createPartitions, preparePartitions } from './partitions.ts'

const STATEMENT_MS = 600_000

/** An error that the operator can fix. The message says how. */
export class MigrationTargetProblem extends Error {
  override name = 'MigrationTargetProblem'
}

export interface MessageKey {
  day: number
  key: Uint8Array
  segment: string
}

export class MigrationTarget {
  /** The address without credentials. */
  readonly address: string
  readonly #database: Database
  /** Holds the advisory lock. */
  readonly #guard: Connection
  readonly books: ReturnType<typeof countedRows>

  private constructor(address: string, database: Database, guard: Connection) {
    this.address = address
    this.#database = database
    this.#guard = guard
    this.books = countedRows(database.ask)
  }

  /** Opens the database and brings its schema up to date. With `inspectOnly` it changes nothing, and returns undefined if there is no schema. */
  static async open(
    url: string,
    { secretBox, inspectOnly = false }: { secretBox: SecretBox; inspectOnly?: boolean },
  ): Promise<MigrationTarget | undefined> {
    const address = parsePostgresAddress(url)
    const database = new Database({ address, connections: 2, statementMs: STATEMENT_MS })
    let guard: Connection | undefined
    let target: MigrationTarget | undefined
    try {
      guard = await database.connect(STATEMENT_MS)
      if (!inspectOnly) await migrate(guard, { secretBox })
      const { rows: schema } = await guard.query("SELECT 1 WHERE to_regclass('switchyard.stats') IS NOT NULL")
      if (schema.length === 0) return undefined
      const lock = 'SELECT pg_try_advisory_lock($1) AS locked'
      const { rows } = await guard.query<{ locked: boolean }>(lock, [ADVISORY_LOCKS.storeMigration])
      if (!rows[0]?.locked)
        throw new MigrationTargetProblem('Another switchyard migrate-store is running on this database. Wait for it to finish, or stop it.')
      target = new MigrationTarget(describeAddress(address), database, guard)
      return target
    } finally {
      if (target === undefined) {
        guard?.destroy()
        database.close()
      }
    }
  }

  state(): Promise<MigrationState | undefined> {
    return readMigrationState(this.#database.ask)
  }

  /** How many milliseconds the server's clock is behind the given time. */
  async clockLagMs(ms: number): Promise<number> {
    const { rows } = await this.#database.query<{ now_ms: number }>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms',
    )
    return ms - (rows[0]?.now_ms ?? 0)
  }

  /** Returns a sentence that says why a migration cannot start, or undefined if it can. */
  async findObstacle(): Promise<string | undefined> {
    const { rows } = await this.#database.query<{ name: string }>('SELECT name FROM nodes WHERE expires_at > now() ORDER BY num')
    if (rows.length > 0) {
      return `Nodes are running on this database: ${rows.map(({ name }) => name).join(', ')}. Stop all of them first. A node that was killed counts as running for ten seconds.`
    }
    for (const table of Object.keys(POSTGRES_COLUMNS)) {
      const { rows: found } = await this.#database.query(
        `SELECT 1 FROM ${table} WHERE ${table === 'settings' ? "name <> 'moved_from_sqlite'" : 'true'} LIMIT 1`,
      )
      if (found.length > 0) {
        return 'The database already contains a Switchyard store. Use an empty database, or, if you do not need its contents, drop the schema first: DROP SCHEMA switchyard CASCADE;'
      }
    }
    return undefined
  }

  /** Starts from an empty store. Removes what an earlier migration left behind. */
  async begin(state: MigrationState, before: MigrationState | null): Promise<void> {
    await this.#database.transaction(async (ask) => {
      if (before !== null) await truncateTables(ask)
      await deleteMigrationState(ask)
      if (!(await writeMigrationState(ask, state, null))) throw new MigrationTargetProblem(CONCURRENT_RUN)
    })
    // Checked after the state is written: a starting node checks for that state after it has registered itself, so one of the two notices.
    const obstacle = await this.findObstacle()
    if (obstacle === undefined) return
    await this.#database.transaction(deleteMigrationState)
    throw new MigrationTargetProblem(obstacle)
  }

  /** Creates the partitions of past days, so that the retention can drop migrated rows by partition. */
  async createPartitions(table: PartitionedTable, days: readonly number[]): Promise<void> {
    if (days.length > 0) await createPartitions(this.#database, table, days)
  }

  async write(
    table: PostgresTable,
    rows: readonly PostgresRow[],
    keys: readonly MessageKey[],
    state: MigrationState,
    before: MigrationState,
  ): Promise<void> {
    const { text, values } = insertStatement(table, rows)
    await this.#database.transaction(async (ask) => {
      if (!(await writeMigrationState(ask, state, before))) throw new MigrationTargetProblem(CONCURRENT_RUN)
      await ask(text, values)
      if (keys.length > 0) await ask(INSERT_KEYS, INSERT_KEYS.values({ keys }))
    })
  }

  async saveState(state: MigrationState, before: MigrationState): Promise<void> {
    if (!(await writeMigrationState(this.#database.ask, state, before))) throw new MigrationTargetProblem(CONCURRENT_RUN)
  }

  async count(table: PostgresTable): Promise<number> {
    const { rows } = await this.#database.query<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)
    return rows[0]?.count ?? 0
  }

  /** Marks the migration as complete. From now on nodes may start, with the key of this id. */
  async complete(state: MigrationState, before: MigrationState, secretKeyId: string): Promise<void> {
    await preparePartitions(this.#database)
    // Without statistics on the new rows, the query planner would guess.
    await this.#database.query(`ANALYZE ${[...Object.keys(POSTGRES_COLUMNS), 'message_keys'].join(', ')}`)
    // What nodes accept comes after what was migrated.
    await this.#database.query("SELECT setval('order_places', greatest((SELECT max(ord) FROM shipments), 1))")
    const ids = new RowIds(0, () => Date.now())
    await this.#database.transaction(async (ask) => {
      if (!(await writeMigrationState(ask, state, before))) throw new MigrationTargetProblem(CONCURRENT_RUN)
      await ask('UPDATE configuration SET secret_key = $1', [secretKeyId])
      const after = { from: state.from, rows: state.rows }
      await writeAudit(
        sqlOf(ask),
        ids,
        { actor: { id: 'maintenance', name: 'maintenance' }, action: 'store.migrate', subject: null, before: null, after },
        Date.now(),
      )
    })
  }

  close(): void {
    this.#guard.destroy()
    this.#database.close()
  }
}

const CONCURRENT_RUN =
  'Another switchyard migrate-store has continued this migration in the meantime. Run the command again to see its state.'

/** A message that was accepted again, after the deduplication window, has a key on both days. */
const INSERT_KEYS = statement({
  parameters: { keys: plainColumns({ day: 'integer', key: 'uuid', segment: 'bigint' }) },
  text: ({ keys }) => `INSERT INTO message_keys (${keys.names}) SELECT * FROM ${keys.unnest} ON CONFLICT DO NOTHING`,
})

async function truncateTables(ask: Ask): Promise<void> {
  await ask(`TRUNCATE ${[...Object.keys(POSTGRES_COLUMNS), 'message_keys', 'deltas', 'replay_outcomes'].join(', ')}`)
}

/** `int`: any integer or null. `ints`: an array of integers in PostgreSQL's text form. */
type ColumnType = 'int' | 'text' | 'bool' | 'bytes' | 'ints'

export type PostgresRow = Record<string, unknown>

/** The columns that a store migration writes: their names, by table and type. */
export const POSTGRES_COLUMNS = {
  settings: { text: 'name value' },
  sources: { int: 'num', text: 'id doc', bool: 'deleted' },
  destinations: { int: 'num', text: 'id doc', bool: 'deleted' },
  destination_versions: { int: 'version at', text: 'destination actor actor_name content' },
  oauth_apps: { int: 'num', text: 'id doc' },
  plans: { int: 'num', text: 'id doc', bool: 'deleted' },
  documents: { int: 'at', text: 'kind key doc' },
  tokens: { int: 'num created_at last_used_at', text: 'id name role hash limits' },
  suppressions: { int: 'source since version', text: 'user_id' },
  oauth_assertions: { text: 'app jti', int: 'expires_at' },
  segments: {
    int: 'seq source received_at count',
    bool: 'browser',
    ints: 'absent',
    text: 'ip trace violations routes',
    bytes: 'keys body',
  },
  quarantine: { int: 'segment idx source', text: 'plan rule' },
  shipments: { int: 'id destination due first_attempt count attempt bytes ord partition key', bool: 'unit replay', text: 'urls parts' },
  order_keys: { int: 'destination key since segment origin idx due waiting', text: 'state', bool: 'skip' },
  attempts: { int: 'id origin destination segment at attempt delivered failed expired cancelled', bool: 'replay', text: 'doc' },
  failures: { int: 'id destination origin segment at idx attempts', bool: 'replay', text: 'state reason' },
  replays: { int: 'origin idx destination segment at job', text: 'replay_of state', bool: 'resumed' },
  repeats: { int: 'segment digest count last_at', bytes: 'fingerprints' },
  ledger: { int: 'destination owed delivered pending failed expired cancelled' },
  ledger_archive: { int: 'destination owed delivered failed expired cancelled' },
  source_counts: { int: 'source accepted duplicates rejected suppressed quarantined released deleted' },
  rejections: { int: 'source count last_at', text: 'code last_sample' },
  deletions: {
    int: 'num created_at purged purge_cursor purge_end',
    text: 'id user_ids sources ended',
    bool: 'suppress every_source pseudonyms',
  },
  deletion_targets: { int: 'deletion source destination origin', text: 'user_id final' },
  replay_jobs: {
    int: 'num created_at finished_at rate bound total position replayed delivered failed expired cancelled',
    text: 'id state doc skipped',
  },
  replay_parts: { int: 'job destination state next place waiting turn', bool: 'over' },
  audit: { int: 'id at', text: 'actor actor_name actor_about action subject sources before after' },
  stats: { text: 'kind subject doc', int: 'step at' },
} as const satisfies Record<string, Partial<Record<ColumnType, string>>>

export type PostgresTable = keyof typeof POSTGRES_COLUMNS

const SQL_TYPES = { int: 'bigint', text: 'text', bool: 'boolean', bytes: 'bytea', ints: 'text' } as const satisfies Record<
  ColumnType,
  string
>

/** Builds one INSERT for all rows. Throws if a row lacks a column. */
export function insertStatement(table: PostgresTable, rows: readonly PostgresRow[]): { text: string; values: Buffer[] } {
  const byType = Object.entries(POSTGRES_COLUMNS[table]) as [ColumnType, string][]
  const columns = byType.flatMap(([type, names]) => names.split(' ').map((name) => [name, type] as const))
  const names = columns.map(([name]) => name)
  const selected = columns.map(([name, type]) => (type === 'ints' ? `r.${name}::integer[]` : `r.${name}`))
  const arrays = columns.map(([, type], at) => `$${at + 1}::${SQL_TYPES[type]}[]`)
  const values = columns.map(([name, type]) =>
    arrayOf(
      SQL_TYPES[type],
      rows.map((row) => {
        if (row[name] === undefined) throw new Error(`a row of ${table} has no ${name}`)
        return row[name]
      }),
    ),
  )
  return {
    text: `INSERT INTO ${table} (${names.join(', ')}) SELECT ${selected.join(', ')} FROM unnest(${arrays.join(', ')}) AS r (${names.join(', ')})`,
    values,
  }
}
