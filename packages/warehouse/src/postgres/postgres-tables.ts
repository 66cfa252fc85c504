// Creates and changes the tables of a schema, so that they have the columns of the stored schema. A table is only ever extended: columns that are missing
// are added, and an integer column becomes a double. A column that somebody gave another type is an error of its table.

import type pg from 'pg'
import { WarehouseProblem } from '../failure.ts'
import type { ColumnType, Owner, StoredColumn } from '../warehouse.ts'
import { quoted } from './copy.ts'

export const LOADS_TABLE = '_switchyard_loads'
export const OWNER_TABLE = '_switchyard_owner'

const TYPES: Record<ColumnType, string> = {
  boolean: 'boolean',
  bigint: 'bigint',
  double: 'double precision',
  timestamp: 'timestamp with time zone',
  text: 'text',
}
/** Other types that hold every value of ours, for tables that were adopted. */
const ACCEPTED: Record<ColumnType, readonly string[]> = {
  boolean: [],
  bigint: ['numeric', 'double precision'],
  double: ['numeric'],
  timestamp: ['timestamp without time zone'],
  text: ['character varying'],
}

/** What is known of the tables of a schema: types of columns by table. */
type Known = Map<string, Map<string, string>>

export class PostgresTables {
  readonly #schema: string
  #known: Known | null = null

  constructor(schema: string) {
    this.#schema = schema
  }

  /** Forgets what is known, because a statement failed: somebody may have changed the tables. */
  forget(): void {
    this.#known = null
  }

  name(table: string): string {
    return `${quoted(this.#schema)}.${quoted(table)}`
  }

  /** Creates the schema and our own tables in it, or refuses a schema that is not ours. */
  async claim(client: pg.ClientBase, { installation, destinationId, sourceId, adopt = false }: Owner): Promise<void> {
    await client.query('BEGIN')
    try {
      await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`switchyard ${this.#schema}`])
      const { rows: existing } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [this.#schema])
      if (existing.length === 0) await client.query(`CREATE SCHEMA ${quoted(this.#schema)}`)
      const known = await this.#read(client)
      const owner = known.has(OWNER_TABLE)
        ? (await client.query<Record<string, string>>(`SELECT installation, destination, source FROM ${this.name(OWNER_TABLE)}`)).rows[0]
        : undefined
      const isOurs = owner?.['installation'] === installation && owner['destination'] === destinationId && owner['source'] === sourceId
      if (!isOurs) {
        if (known.size > 0 && !adopt)
          throw new WarehouseProblem(
            'place_taken',
            `The schema ${this.#schema} has tables of another installation or destination. Choose another schema, or set "adopt": true to continue them.`,
          )
        await client.query(
          `CREATE TABLE IF NOT EXISTS ${this.name(OWNER_TABLE)} (installation text NOT NULL, destination text NOT NULL, source text NOT NULL)`,
        )
        await client.query(`DELETE FROM ${this.name(OWNER_TABLE)}`)
        await client.query(`INSERT INTO ${this.name(OWNER_TABLE)} VALUES ($1, $2, $3)`, [installation, destinationId, sourceId])
      }
      await client.query(
        `CREATE TABLE IF NOT EXISTS ${this.name(LOADS_TABLE)}
         ("load" text, "table" text, "rows" bigint NOT NULL, loaded_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY ("load", "table"))`,
      )
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      throw error
    }
    this.forget()
  }

  /** Returns whether the table had been there before and was dropped. */
  async prepare(client: pg.ClientBase, table: string, columns: readonly StoredColumn[]): Promise<{ recreated: boolean }> {
    this.#known ??= await this.#read(client)
    const before = this.#known.get(table)
    const changes = before === undefined ? [] : this.#changes(table, before, columns)
    if (before !== undefined && changes.length === 0) return { recreated: false }
    await client.query('BEGIN')
    try {
      await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`switchyard ${this.#schema}`])
      // Another node may have done it meanwhile, so all of it is conditional.
      const { rows } = await client.query(`SELECT 1 FROM ${this.name(LOADS_TABLE)} WHERE "table" = $1 LIMIT 1`, [table])
      if (before === undefined) {
        const isState = columns[0]?.name === 'id' && columns.some(({ name }) => name === '_trait_times')
        const list = columns.map(({ name, type }, at) => `${quoted(name)} ${TYPES[type]}${isState && at === 0 ? ' PRIMARY KEY' : ''}`)
        await client.query(`CREATE TABLE IF NOT EXISTS ${this.name(table)} (${list.join(', ')})`)
        const actual = await this.#read(client, table)
        this.#known.set(table, actual.get(table) ?? new Map())
        const missing = this.#changes(table, this.#known.get(table) ?? new Map(), columns)
        if (missing.length > 0) await client.query(`ALTER TABLE ${this.name(table)} ${missing.join(', ')}`)
      } else await client.query(`ALTER TABLE ${this.name(table)} ${changes.join(', ')}`)
      await client.query('COMMIT')
      this.#known.set(
        table,
        new Map([...(this.#known.get(table) ?? []), ...columns.map(({ name, type }): [string, string] => [name, TYPES[type]])]),
      )
      return { recreated: before === undefined && rows.length > 0 }
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      this.forget()
      throw error
    }
  }

  async exists(client: pg.ClientBase, table: string): Promise<boolean> {
    this.#known ??= await this.#read(client)
    return this.#known.has(table)
  }

  #changes(table: string, before: ReadonlyMap<string, string>, columns: readonly StoredColumn[]): string[] {
    return columns.flatMap(({ name, type }) => {
      const actual = before.get(name)
      const wanted = TYPES[type]
      if (actual === undefined) return [`ADD COLUMN IF NOT EXISTS ${quoted(name)} ${wanted}`]
      if (actual === wanted || ACCEPTED[type].includes(actual)) return []
      if (type === 'double' && actual === 'bigint') return [`ALTER COLUMN ${quoted(name)} TYPE ${wanted}`]
      throw new WarehouseProblem(
        'table_changed',
        `The column ${name} of ${this.#schema}.${table} has the type ${actual}, and the service writes ${wanted}. Change it back with ALTER TABLE ${this.name(table)} ALTER COLUMN ${quoted(name)} TYPE ${wanted}.`,
      )
    })
  }

  async #read(client: pg.ClientBase, table: string | null = null): Promise<Known> {
    const { rows } = await client.query<{ table: string; column: string; type: string }>(
      `SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, NULL) AS "type"
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND ($2::text IS NULL OR c.relname = $2)`,
      [this.#schema, table],
    )
    const known: Known = new Map()
    for (const row of rows) known.set(row.table, (known.get(row.table) ?? new Map()).set(row.column, row.type))
    return known
  }
}
