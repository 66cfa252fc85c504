// Creates and changes the tables of a database, so that they have the columns of the stored schema. As with PostgreSQL, a table is only ever extended, and a
// column that somebody gave another type is an error of its table.

import { WarehouseProblem } from '../failure.ts'
import type { ColumnType, Owner, StoredColumn } from '../warehouse.ts'
import type { ClickHouseHttp } from './clickhouse-http.ts'

export const OWNER_TABLE = '_switchyard_owner'
/** How many inserts a table remembers the keys of. A load that is repeated after so many others is loaded twice. */
const DEDUPLICATION_WINDOW = 10_000

const TYPES: Record<ColumnType, string> = {
  boolean: 'Bool',
  bigint: 'Int64',
  double: 'Float64',
  timestamp: "DateTime64(6, 'UTC')",
  text: 'String',
}
/** Other types that hold every value of ours, for tables that were adopted. */
const ACCEPTED: Record<ColumnType, RegExp> = {
  boolean: /^Bool$/,
  bigint: /^(Int64|Float64)$/,
  double: /^Float64$/,
  timestamp: /^DateTime64\([69](, '.*')?\)$/,
  text: /^String$/,
}

type Known = Map<string, Map<string, string>>

export class ClickHouseTables {
  readonly #http: ClickHouseHttp
  readonly #database: string
  #known: Known | null = null

  constructor(http: ClickHouseHttp, database: string) {
    this.#http = http
    this.#database = database
  }

  forget(): void {
    this.#known = null
  }

  name(table: string): string {
    return `${quoted(this.#database)}.${quoted(table)}`
  }

  /** Creates the database if it is missing, or refuses one that is not ours. */
  async claim({ installation, destinationId, sourceId, adopt = false }: Owner): Promise<void> {
    if (!(await hasDatabase(this.#http, this.#database))) await this.#http.run(`CREATE DATABASE IF NOT EXISTS ${quoted(this.#database)}`)
    const owner = [installation, destinationId, sourceId]
    const known = await this.#read()
    if (!known.has(OWNER_TABLE)) {
      if (known.size > 0 && !adopt) throw this.#taken()
      await this.#http.run(
        `CREATE TABLE IF NOT EXISTS ${this.name(OWNER_TABLE)} (since DateTime64(6, 'UTC') DEFAULT now64(6), installation String, destination String, source String) ENGINE = MergeTree ORDER BY since`,
      )
    }
    for (let isNew = false; ; isNew = true) {
      // The first of two that begin at the same time; with adopt, the last.
      const [found] = await this.#http.rows(
        `SELECT installation, destination, source FROM ${this.name(OWNER_TABLE)} ORDER BY since ${adopt ? 'DESC' : 'ASC'}, source LIMIT 1`,
        {},
        { select_sequential_consistency: '1' },
      )
      if (found !== undefined && owner.every((part, at) => found[at] === part)) break
      if (isNew || (found !== undefined && !adopt)) throw this.#taken()
      await this.#http.insert(`${this.name(OWNER_TABLE)} (installation, destination, source)`, JSON.stringify(owner), {})
    }
    this.forget()
  }

  /** Creates the table, or adds the columns that it lacks. Returns whether it had to be created. */
  async prepare(table: string, columns: readonly StoredColumn[], isState: boolean): Promise<{ created: boolean }> {
    this.#known ??= await this.#read()
    const before = this.#known.get(table)
    if (before === undefined) {
      const list = columns.map(({ name, type }) => `${quoted(name)} ${typeOf(name, type)}`).join(', ')
      // The newest row of a user replaces the others: queries use FINAL until parts are merged.
      const engine = isState
        ? 'ReplacingMergeTree(uuid_ts) ORDER BY id'
        : 'MergeTree PARTITION BY toYYYYMM(received_at) ORDER BY (received_at, id)'
      const settings = `non_replicated_deduplication_window = ${DEDUPLICATION_WINDOW}, replicated_deduplication_window = ${DEDUPLICATION_WINDOW}`
      await this.#http.run(`CREATE TABLE IF NOT EXISTS ${this.name(table)} (${list}) ENGINE = ${engine} SETTINGS ${settings}`)
    }
    const changes = this.#changes(table, before ?? (await this.#read(table)).get(table) ?? new Map(), columns)
    if (changes.length > 0) await this.#http.run(`ALTER TABLE ${this.name(table)} ${changes.join(', ')}`)
    if (before === undefined || changes.length > 0) this.#known.set(table, (await this.#read(table)).get(table) ?? new Map())
    return { created: before === undefined }
  }

  async exists(table: string): Promise<boolean> {
    this.#known ??= await this.#read()
    return this.#known.has(table)
  }

  #changes(table: string, before: ReadonlyMap<string, string>, columns: readonly StoredColumn[]): string[] {
    return columns.flatMap(({ name, type }) => {
      const actual = before.get(name)?.replace(/^Nullable\((.*)\)$/, '$1')
      if (actual === undefined) return [`ADD COLUMN IF NOT EXISTS ${quoted(name)} ${typeOf(name, type)}`]
      if (ACCEPTED[type].test(actual)) return []
      if (type === 'double' && actual === 'Int64') return [`MODIFY COLUMN ${quoted(name)} ${typeOf(name, type)}`]
      throw new WarehouseProblem(
        'table_changed',
        `The column ${name} of ${this.#database}.${table} has the type ${actual}, and the service writes ${TYPES[type]}. Change it back with ALTER TABLE ${this.name(table)} MODIFY COLUMN ${quoted(name)} ${typeOf(name, type)}.`,
      )
    })
  }

  #taken(): WarehouseProblem {
    return new WarehouseProblem(
      'place_taken',
      `The database ${this.#database} has tables of another installation, destination or source. Each source needs a database of its own: write {source} in the name of the database, use another one, or set "adopt": true to continue the tables.`,
    )
  }

  async #read(table: string | null = null): Promise<Known> {
    const rows = await this.#http.rows(
      `SELECT table, name, type FROM system.columns WHERE database = {database:String}${table === null ? '' : ' AND table = {table:String}'}`,
      { database: this.#database, ...(table === null ? {} : { table }) },
    )
    const known: Known = new Map()
    for (const [name, column, type] of rows as string[][])
      known.set(name as string, (known.get(name as string) ?? new Map<string, string>()).set(column as string, type as string))
    return known
  }
}

/** What rows are ordered by cannot be null. */
function typeOf(name: string, type: ColumnType): string {
  return name === 'id' || name === 'received_at' || name === 'uuid_ts' ? TYPES[type] : `Nullable(${TYPES[type]})`
}

export function quoted(name: string): string {
  return `\`${name.replace(/[\\`]/g, '\\$&')}\``
}

export async function hasDatabase(http: ClickHouseHttp, database: string): Promise<boolean> {
  return (await http.rows('SELECT 1 FROM system.databases WHERE name = {database:String}', { database })).length > 0
}
