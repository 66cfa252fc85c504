// The engine `clickhouse`. The key of load and table is the deduplication token of the insert: ClickHouse drops an insert whose token the table remembers.
// It remembers the tokens of its last inserts (the deduplication window, which the tables that we create set), so a load that is repeated within them is
// in its tables exactly once.

import { WarehouseProblem } from '../failure.ts'
import { LAYOUT } from '../schema/names.ts'
import { applyCalls } from '../schema/state.ts'
import { parseTimestamp, timestampText } from '../schema/values.ts'
import type {
  Cell,
  Check,
  ClickHouseSettings,
  Load,
  LoadedTable,
  LoadResult,
  Progress,
  RowBatch,
  SourceSchema,
  StateRows,
  StoredColumn,
  TableRows,
  Upkeep,
  UserDeletion,
  Warehouse,
} from '../warehouse.ts'
import { clickHouseProblem } from './clickhouse-failures.ts'
import { ClickHouseHttp } from './clickhouse-http.ts'
import { ClickHouseTables, hasDatabase, quoted } from './clickhouse-tables.ts'

const DAY_MS = 86_400_000
const TEST_TABLE = '_switchyard_test'
const STATES: ReadonlySet<string> = new Set(['users', 'accounts'])
/** Ids of one statement: they are part of its text. */
const IDS_PER_QUERY = 1_000
const INSERT = {
  date_time_input_format: 'best_effort',
  insert_deduplicate: '1',
  // One block per partition, so that the token stands for all rows.
  input_format_parallel_parsing: '0',
  max_insert_block_size: '1048576',
  async_insert: '0',
  // Keys of JSON text are not numbers by guess.
  input_format_json_read_numbers_as_strings: '0',
}

export class ClickHouseWarehouse implements Warehouse {
  readonly readArchive = null
  readonly archiveSize = null
  readonly #settings: ClickHouseSettings
  readonly #http: ClickHouseHttp
  readonly #place: string
  readonly #claimed = new Map<string, ClickHouseTables>()

  constructor(settings: ClickHouseSettings) {
    this.#settings = settings
    this.#http = new ClickHouseHttp(settings)
    this.#place = `ClickHouse at ${new URL(settings.url).host}, database ${settings.database}`
  }

  async check(): Promise<Check> {
    const steps: Check['steps'] = []
    let version: string | null = null
    // A load creates a database that is missing. The test leaves nothing behind, so it creates and drops one with a name of its own.
    let database = this.#settings.database.replaceAll('{source}', TEST_TABLE)
    let isMissing = false
    const table = (): string => `${quoted(database)}.${quoted(TEST_TABLE)}`
    const work: [string, () => Promise<unknown>][] = [
      [
        'connect',
        async () => {
          version = `ClickHouse ${String((await this.#http.rows('SELECT version()'))[0]?.[0])}`
          isMissing = !(await hasDatabase(this.#http, database))
          if (isMissing && database === this.#settings.database) database = TEST_TABLE
        },
      ],
      ['create database', () => (isMissing ? this.#http.run(`CREATE DATABASE IF NOT EXISTS ${quoted(database)}`) : Promise.resolve())],
      ['create table', () => this.#http.run(`CREATE TABLE IF NOT EXISTS ${table()} (id String) ENGINE = MergeTree ORDER BY id`)],
      ['insert', () => this.#http.insert(`${table()} (id)`, '["test"]', INSERT)],
      ['read table', () => this.#http.rows(`SELECT id FROM ${table()} LIMIT 1`)],
      ['delete rows', () => this.#http.run(`ALTER TABLE ${table()} DELETE WHERE id = 'test'`, { mutations_sync: '1' })],
      ['drop table', () => this.#http.run(`DROP TABLE ${table()}`)],
      ['drop database', () => (isMissing ? this.#http.run(`DROP DATABASE ${quoted(database)}`) : Promise.resolve())],
    ]
    for (const [step, run] of work) {
      try {
        await run()
        steps.push({ step, ok: true })
      } catch (error) {
        const problem = clickHouseProblem(error, this.#place)
        steps.push({ step, ok: false, error: problem.message })
        return { problem, steps, version }
      }
    }
    return { problem: null, steps, version }
  }

  async load(load: Load, batch: RowBatch, signal?: AbortSignal): Promise<LoadResult> {
    const tables = await this.#claim(load)
    const results: LoadedTable[] = []
    for (const rows of batch.tables)
      results.push(
        await this.#attempt(tables, load, rows, signal, async () => ({
          rows: rows.rows.length,
          bytes: await this.#insertRows(tables, load, rows, signal),
        })),
      )
    for (const state of batch.states)
      results.push(
        await this.#attempt(tables, load, state, signal, async () => ({
          rows: new Set(state.calls.map(({ id }) => id)).size,
          bytes: await this.#mergeState(tables, load, state, signal),
        })),
      )
    return { tables: results, unfit: [] }
  }

  async deleteUsers({ schema, cursor, userIds }: UserDeletion): Promise<Progress> {
    return this.#step(schema, cursor, async (table, name) => {
      if (table === 'accounts') return 0
      let deleted = 0
      for (let at = 0; at < userIds.length; at += IDS_PER_QUERY) {
        const ids = arrayText(userIds.slice(at, at + IDS_PER_QUERY))
        deleted += await this.#delete(name, `${table === 'users' ? 'id' : 'user_id'} IN ${ids}`)
      }
      return deleted
    })
  }

  async upkeep({ schema, cursor, nowMs, keepDays }: Upkeep): Promise<Progress> {
    return this.#step(schema, cursor, async (table, name) => {
      if (keepDays === null || STATES.has(table)) return 0
      const before = timestampText(Math.floor(nowMs / DAY_MS - keepDays) * DAY_MS)
      return this.#delete(name, `received_at < parseDateTime64BestEffort('${before}', 6, 'UTC')`)
    })
  }

  async close(): Promise<void> {
    this.#http.close()
  }

  async #claim({ schema, owner }: Load): Promise<ClickHouseTables> {
    const database = this.#databaseOf(schema)
    const key = JSON.stringify([database, owner])
    const known = this.#claimed.get(key)
    if (known !== undefined) return known
    const tables = new ClickHouseTables(this.#http, database)
    await tables.claim(owner).catch((error: unknown) => {
      throw this.#failure(error)
    })
    this.#claimed.set(key, tables)
    return tables
  }

  /** ClickHouse has databases where PostgreSQL has schemas. */
  #databaseOf({ name }: SourceSchema): string {
    return this.#settings.database.replaceAll('{source}', name)
  }

  async #attempt(
    tables: ClickHouseTables,
    load: Load,
    { table, columns }: { table: string; columns: readonly StoredColumn[] },
    signal: AbortSignal | undefined,
    write: () => Promise<{ rows: number; bytes: number }>,
  ): Promise<LoadedTable> {
    try {
      signal?.throwIfAborted()
      const { created } = await tables.prepare(table, columns, STATES.has(table))
      // Columns that are older than this load were made by an earlier one.
      const recreated = created && columns.some(({ since }) => since !== 0 && since < load.loadedAtMs)
      return { table, ...(await write()), ...(recreated ? { recreated } : {}), error: null }
    } catch (error) {
      tables.forget()
      return { table, rows: 0, bytes: 0, error: clickHouseProblem(error, this.#place) }
    }
  }

  #insertRows(tables: ClickHouseTables, load: Load, { table, columns, rows }: TableRows, signal?: AbortSignal): Promise<number> {
    const into = `${tables.name(table)} (${columns.map(({ name }) => quoted(name)).join(', ')})`
    return this.#http.insert(into, linesOf(columns, rows, load), { ...INSERT, insert_deduplication_token: `${load.id} ${table}` }, signal)
  }

  /** Writes the rows of users or accounts that the calls are about anew. Applying a call twice changes nothing, so a repeat needs no token. */
  async #mergeState(tables: ClickHouseTables, load: Load, { table, columns, calls }: StateRows, signal?: AbortSignal): Promise<number> {
    const list = columns.map(({ name }) => quoted(name)).join(', ')
    const ids = [...new Set(calls.map(({ id }) => id))]
    const rows = new Map<string, Cell[]>()
    for (let at = 0; at < ids.length; at += IDS_PER_QUERY) {
      const found = await this.#http.rows(
        `SELECT ${list} FROM ${tables.name(table)} FINAL WHERE id IN ${arrayText(ids.slice(at, at + IDS_PER_QUERY))}`,
        {},
        { output_format_json_quote_64bit_integers: '0', date_time_output_format: 'iso', select_sequential_consistency: '1' },
      )
      for (const row of found)
        rows.set(
          String(row[0]),
          row.map((value, index) => cellOf(value, columns[index] as StoredColumn)),
        )
    }
    applyCalls(rows, columns, calls, load.loadedAtMs)
    return this.#http.insert(`${tables.name(table)} (${list})`, linesOf(columns, [...rows.values()], load), INSERT, signal)
  }

  /** Deletes rows for good: a mutation writes the parts that have them anew. */
  async #delete(name: string, condition: string): Promise<number> {
    const [counted] = await this.#http.rows(
      `SELECT count() FROM ${name} WHERE ${condition}`,
      {},
      { output_format_json_quote_64bit_integers: '0' },
    )
    const count = Number(counted?.[0] ?? 0)
    if (count > 0) await this.#http.run(`ALTER TABLE ${name} DELETE WHERE ${condition}`, { mutations_sync: '2' })
    return count
  }

  /** The cursor is the table that comes next. */
  async #step(schema: SourceSchema, cursor: string | null, work: (table: string, name: string) => Promise<number>): Promise<Progress> {
    const all = [...new Set([...Object.keys(LAYOUT), ...schema.tables.map(({ table }) => table).sort()])]
    const at = cursor === null ? 0 : Math.max(0, all.indexOf(cursor))
    const table = all[at] as string
    const tables = new ClickHouseTables(this.#http, this.#databaseOf(schema))
    try {
      const changed = (await tables.exists(table)) ? await work(table, tables.name(table)) : 0
      return { cursor: all[at + 1] ?? null, changed, problems: [] }
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #failure(error: unknown): WarehouseProblem {
    const { code, message } = clickHouseProblem(error, this.#place)
    return new WarehouseProblem(code, message, error)
  }
}

function linesOf(columns: readonly StoredColumn[], rows: Iterable<readonly Cell[]>, { loadedAtMs }: Load): string {
  const times = new Set(columns.flatMap(({ type }, at) => (type === 'timestamp' ? [at] : [])))
  const required = new Set(columns.flatMap(({ name }, at) => (name === 'received_at' || name === 'uuid_ts' ? [at] : [])))
  const lineOf = (row: readonly Cell[]): string =>
    JSON.stringify(
      columns.map((_, at) => {
        const cell = row[at] ?? (required.has(at) ? loadedAtMs : null)
        return times.has(at) && cell !== null ? timestampText(cell as number) : cell
      }),
    )
  return Array.from(rows, lineOf).join('\n')
}

function cellOf(value: unknown, { type }: StoredColumn): Cell {
  if (value === null || value === undefined) return null
  if (type === 'timestamp') return parseTimestamp(value as string, 'clickhouse') ?? null
  return type === 'double' || type === 'bigint' ? Number(value) : (value as Cell)
}

function arrayText(values: readonly string[]): string {
  return `(${values.map((value) => `'${value.replace(/[\\']/g, '\\$&')}'`).join(', ')})`
}
