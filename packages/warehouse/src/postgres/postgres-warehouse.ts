// The engine `postgres`. Each table of a load is one transaction that also inserts the key of load and table: a repeat, or another node with the same load,
// finds the key and writes nothing. Rows are sent with COPY.

import pg from 'pg'
import { WarehouseProblem } from '../failure.ts'
import { LAYOUT } from '../schema/names.ts'
import { applyCalls } from '../schema/state.ts'
import { parseTimestamp } from '../schema/values.ts'
import type {
  Cell,
  Check,
  Load,
  LoadedTable,
  LoadResult,
  PostgresSettings,
  Progress,
  RowBatch,
  SourceSchema,
  StateRows,
  StoredColumn,
  Upkeep,
  UserDeletion,
  Warehouse,
} from '../warehouse.ts'
import { copyInto, quoted } from './copy.ts'
import { postgresProblem } from './postgres-failures.ts'
import { LOADS_TABLE, PostgresTables } from './postgres-tables.ts'

const CONNECT_MS = 10_000
const STATEMENT_MS = 10 * 60_000
const LOCK_MS = 60_000
const DAY_MS = 86_400_000
/** Keys of loads that are recorded are not needed. Some days are kept for people who look. */
const KEYS_KEPT_DAYS = 14
const TEST_TABLE = '_switchyard_test'
const STATES: ReadonlySet<string> = new Set(['users', 'accounts'])
/** Values come as texts, because a Date has no microseconds. */
const texts = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig

export class PostgresWarehouse implements Warehouse {
  readonly readArchive = null
  readonly archiveSize = null
  readonly #settings: PostgresSettings
  readonly #place: string
  readonly #tables = new Map<string, PostgresTables>()
  #client: pg.Client | null = null
  /** One statement after the other: a transaction belongs to the connection. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(settings: PostgresSettings) {
    this.#settings = settings
    this.#place = placeOf(settings.url)
  }

  async check(): Promise<Check> {
    const steps: Check['steps'] = []
    let version: string | null = null
    const schema = quoted(this.#settings.schema ?? TEST_TABLE)
    const table = `${schema}.${quoted(TEST_TABLE)}`
    return this.#exclusively(async () => {
      let client: pg.Client | null = null
      const work: [string, () => Promise<unknown>][] = [
        [
          'connect',
          async () => {
            client = await this.#connected()
            version =
              (await client.query<{ version: string }>("SELECT split_part(version(), ' on ', 1) AS version")).rows[0]?.version ?? null
          },
        ],
        ['create schema', () => this.#created(client as pg.Client, schema)],
        ['create table', () => (client as pg.Client).query(`CREATE TABLE ${table} (id text)`)],
        ['insert', () => copyInto(client as pg.Client, table, [{ name: 'id', type: 'text', path: '', since: 0 }], [['test']])],
        ['drop table', () => (client as pg.Client).query(`DROP TABLE ${table}`)],
      ]
      try {
        for (const [step, run] of work) {
          try {
            await run()
            steps.push({ step, ok: true })
          } catch (error) {
            const problem = postgresProblem(error, this.#place)
            steps.push({ step, ok: false, error: problem.message })
            return { problem, steps, version }
          }
        }
        return { problem: null, steps, version }
      } finally {
        // The test leaves nothing behind, not even the schema.
        await (client as pg.Client | null)?.query('ROLLBACK').catch(() => {})
      }
    })
  }

  async load(load: Load, batch: RowBatch, signal?: AbortSignal): Promise<LoadResult> {
    const tables = await this.#claimed(load)
    const results: LoadedTable[] = []
    for (const rows of batch.tables) {
      results.push(
        await this.#attempt(rows.table, signal, async (client) => {
          const { recreated } = await tables.prepare(client, rows.table, rows.columns)
          return {
            recreated,
            ...(await this.#commit(client, tables, load, rows.table, rows.rows.length, () =>
              copyInto(client, tables.name(rows.table), rows.columns, rows.rows),
            )),
          }
        }),
      )
    }
    for (const state of batch.states) {
      results.push(
        await this.#attempt(state.table, signal, async (client) => {
          const { recreated } = await tables.prepare(client, state.table, state.columns)
          const ids = new Set(state.calls.map(({ id }) => id))
          return {
            recreated,
            ...(await this.#commit(client, tables, load, state.table, ids.size, () =>
              mergeState(client, tables.name(state.table), state, ids, load.loadedAtMs),
            )),
          }
        }),
      )
    }
    return { tables: results, unfit: [] }
  }

  async deleteUsers({ schema, cursor, userIds }: UserDeletion): Promise<Progress> {
    return this.#step(schema, cursor, async (client, table, name) => {
      if (table === 'accounts' || table === LOADS_TABLE) return 0
      const column = table === 'users' ? 'id' : 'user_id'
      return (await client.query(`DELETE FROM ${name} WHERE ${column} = ANY($1)`, [userIds])).rowCount ?? 0
    })
  }

  async upkeep({ schema, cursor, nowMs, keepDays, openLoads }: Upkeep): Promise<Progress> {
    return this.#step(schema, cursor, async (client, table, name, tables) => {
      if (table === LOADS_TABLE) {
        const before = new Date(nowMs - KEYS_KEPT_DAYS * DAY_MS)
        await client.query(`DELETE FROM ${tables.name(LOADS_TABLE)} WHERE loaded_at < $1 AND "load" <> ALL($2)`, [
          before,
          await openLoads(),
        ])
        return 0
      }
      if (keepDays === null || STATES.has(table)) return 0
      const before = new Date(Math.floor(nowMs / DAY_MS - keepDays) * DAY_MS)
      return (await client.query(`DELETE FROM ${name} WHERE received_at < $1`, [before])).rowCount ?? 0
    })
  }

  async close(): Promise<void> {
    await this.#turn.catch(() => {})
    const client = this.#client
    this.#client = null
    await client?.end().catch(() => {})
  }

  async #created(client: pg.Client, schema: string): Promise<void> {
    await client.query('BEGIN')
    const { rows } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [this.#settings.schema ?? TEST_TABLE])
    if (rows.length === 0) await client.query(`CREATE SCHEMA ${schema}`)
  }

  async #claimed({ schema, owner }: Load): Promise<PostgresTables> {
    const name = this.#settings.schema ?? schema.name
    const key = JSON.stringify([name, owner])
    const known = this.#tables.get(key)
    if (known !== undefined) return known
    const tables = new PostgresTables(name)
    await this.#exclusively(async () => tables.claim(await this.#connected(), owner)).catch((error: unknown) => {
      throw this.#failure(error)
    })
    this.#tables.set(key, tables)
    return tables
  }

  /** Runs `write` and inserts the key in one transaction. Nothing is written if the key is there. */
  async #commit(
    client: pg.Client,
    tables: PostgresTables,
    load: Load,
    table: string,
    rows: number,
    write: () => Promise<number>,
  ): Promise<{ rows: number; bytes: number }> {
    const keys = tables.name(LOADS_TABLE)
    await client.query('BEGIN')
    try {
      // Another node that is writing the same load is waited for here.
      const { rowCount } = await client.query(`INSERT INTO ${keys} ("load", "table", "rows") VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, [
        load.id,
        table,
        rows,
      ])
      if (rowCount === 0) {
        const before = await client.query<{ rows: string }>(`SELECT "rows" FROM ${keys} WHERE "load" = $1 AND "table" = $2`, [
          load.id,
          table,
        ])
        await client.query('ROLLBACK')
        return { rows: Number(before.rows[0]?.rows ?? rows), bytes: 0 }
      }
      const bytes = await write()
      await client.query('COMMIT')
      return { rows, bytes }
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      tables.forget()
      throw error
    }
  }

  async #attempt(
    table: string,
    signal: AbortSignal | undefined,
    write: (client: pg.Client) => Promise<{ rows: number; bytes: number; recreated: boolean }>,
  ): Promise<LoadedTable> {
    try {
      signal?.throwIfAborted()
      const { recreated, ...written } = await this.#exclusively(async () => write(await this.#connected()))
      return { table, ...written, ...(recreated ? { recreated } : {}), error: null }
    } catch (error) {
      return { table, rows: 0, bytes: 0, error: postgresProblem(error, this.#place) }
    }
  }

  /** The cursor is the table that comes next. */
  async #step(
    schema: SourceSchema,
    cursor: string | null,
    work: (client: pg.Client, table: string, name: string, tables: PostgresTables) => Promise<number>,
  ): Promise<Progress> {
    const all = [LOADS_TABLE, ...new Set([...Object.keys(LAYOUT), ...schema.tables.map(({ table }) => table).sort()])]
    const at = cursor === null ? 0 : Math.max(0, all.indexOf(cursor))
    const table = all[at] as string
    const tables = new PostgresTables(this.#settings.schema ?? schema.name)
    try {
      const changed = await this.#exclusively(async () => {
        const client = await this.#connected()
        if (!(await tables.exists(client, table))) return 0
        return work(client, table, tables.name(table), tables)
      })
      return { cursor: all[at + 1] ?? null, changed, problems: [] }
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #failure(error: unknown): WarehouseProblem {
    const { code, message } = postgresProblem(error, this.#place)
    return new WarehouseProblem(code, message, error)
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#turn.then(work, work)
    this.#turn = run.catch(() => {})
    return run
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client !== null) return this.#client
    const client = new pg.Client({
      connectionString: this.#settings.url,
      application_name: 'switchyard warehouse',
      connectionTimeoutMillis: CONNECT_MS,
      statement_timeout: STATEMENT_MS,
      lock_timeout: LOCK_MS,
      keepAlive: true,
      options: '-c TimeZone=UTC -c DateStyle=ISO',
    })
    const forget = (): void => {
      if (this.#client === client) this.#client = null
    }
    client.on('error', forget)
    client.on('end', forget)
    await client.connect()
    this.#client = client
    return client
  }
}

/** Changes the rows of users or accounts that the calls are about. The lock keeps other nodes from changing them between reading and writing. */
async function mergeState(
  client: pg.Client,
  name: string,
  { columns, calls }: StateRows,
  ids: ReadonlySet<string>,
  loadedAtMs: number,
): Promise<number> {
  await client.query(`LOCK TABLE ${name} IN SHARE ROW EXCLUSIVE MODE`)
  const list = columns.map((column) => quoted(column.name)).join(', ')
  const { rows: found } = await client.query<(string | null)[]>({
    text: `SELECT ${list} FROM ${name} WHERE id = ANY($1)`,
    values: [[...ids]],
    rowMode: 'array',
    types: texts,
  })
  const rows = new Map(found.map((row) => [String(row[0]), row.map((text, at) => cellOf(text, columns[at] as StoredColumn))]))
  applyCalls(rows, columns, calls, loadedAtMs)
  if (found.length > 0) await client.query(`DELETE FROM ${name} WHERE id = ANY($1)`, [[...ids]])
  return copyInto(client, name, columns, [...rows.values()])
}

function cellOf(text: string | null, { type }: StoredColumn): Cell {
  if (text === null || type === 'text') return text
  if (type === 'boolean') return text === 't'
  if (type === 'timestamp') return parseTimestamp(text, 'postgres') ?? null
  return Number(text)
}

/** The address without user and password. */
function placeOf(url: string): string {
  const { hostname, port, pathname } = new URL(url)
  return `PostgreSQL at ${hostname}${port === '' ? '' : `:${port}`}${pathname}`
}
