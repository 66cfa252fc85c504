// The SQLite side of a store migration: reads the rows of a file in pages. The file is locked meanwhile, so that no service can run on
// it, and nothing in it changes except the migration mark. Rows are returned as stored; store-migration translates them.

import type { SQLInputValue } from 'node:sqlite'
import { absentIndexes } from '../../encoding/stored-parts.ts'
import { countedRows } from '../rows/book-rows.ts'
import { lockStore, openProblem, openWriter } from '../schema/database.ts'
import { type MigrationMark, readMigrationMark, writeMigrationMark } from '../schema/migration-mark.ts'
import { msOfRowId, rowIdAt } from '../schema/row-ids.ts'
import { Rows } from '../schema/rows.ts'
import { readSetting } from '../schema/settings.ts'
import { CLASS } from '../writing/row-classes.ts'

/** The sort key of each table. A table comes after the tables that its rows refer to. */
const KEYS = {
  settings: ['name'],
  sources: ['num'],
  destinations: ['num'],
  destination_versions: ['destination', 'version'],
  oauth_apps: ['num'],
  plans: ['num'],
  documents: ['kind', 'key'],
  tokens: ['num'],
  suppressions: ['source', 'user_id'],
  oauth_assertions: ['app', 'jti'],
  segments: ['seq'],
  quarantine: ['segment', 'idx'],
  shipments: ['destination', 'class', 'due', 'id'],
  order_keys: ['destination', 'key'],
  attempts: ['id'],
  failures: ['id'],
  replays: ['origin', 'idx'],
  repeats: ['segment', 'digest'],
  ledger: ['destination'],
  ledger_archive: ['destination'],
  source_counts: ['source'],
  rejections: ['source', 'code'],
  deletions: ['num'],
  deletion_targets: ['deletion', 'user_id', 'source', 'destination'],
  replay_jobs: ['num'],
  replay_parts: ['job', 'destination'],
  audit: ['id'],
  stats: ['kind', 'subject', 'step', 'at'],
} as const satisfies Record<string, readonly string[]>

export type SqliteTable = keyof typeof KEYS
export const SQLITE_TABLES = Object.keys(KEYS) as SqliteTable[]

export type SqliteRow = Record<string, number | string | null | Uint8Array>
/** The sort key of a row. */
export type RowKey = readonly (number | string)[]

/** Tables whose rows are dropped by age, with the row id column that contains their time. */
export const RETENTION_COLUMNS = { segments: 'seq', attempts: 'id', failures: 'id', replays: 'origin', repeats: 'segment' } as const
const DAY_ROWS = rowIdAt(86_400_000)

export class MigrationSource {
  readonly #lock: { release(): void }
  readonly #rows: Rows
  readonly books: ReturnType<typeof countedRows>

  /** Throws StoreProblem if the file cannot be opened or is in use. */
  static open(path: string): MigrationSource {
    const lock = lockStore(path)
    try {
      return new MigrationSource(path, lock)
    } catch (error) {
      lock.release()
      throw openProblem(error, path)
    }
  }

  private constructor(path: string, lock: { release(): void }) {
    this.#lock = lock
    // This also brings the schema up to date.
    this.#rows = new Rows(openWriter(path, { allowMigrated: true }))
    this.books = countedRows(this.#rows)
  }

  get mark(): MigrationMark | undefined {
    return readMigrationMark(this.#rows.database)
  }

  setMark(mark: MigrationMark | null): void {
    writeMigrationMark(this.#rows.database, mark)
  }

  setting(name: string): string | undefined {
    return readSetting(this.#rows.database, name)
  }

  count(table: SqliteTable): number {
    return this.#number(`SELECT count(*) AS value FROM ${table}`)
  }

  /** The shipments of ordered destinations that were never attempted. */
  *orderedShipments(): Iterable<SqliteRow> {
    const { database } = this.#rows
    const shipments = database.prepare(`SELECT * FROM shipments WHERE destination = ? AND class = ${CLASS.fresh}`)
    const destinations = database.prepare('SELECT num FROM destinations').all() as { num: number }[]
    for (const { num } of destinations) yield* shipments.iterate(num) as Iterable<SqliteRow>
  }

  /** The messages of a segment that are duplicates. */
  absentFrom(segment: number): readonly number[] {
    const row = this.#rows.database.prepare('SELECT absent FROM segments WHERE seq = ?').get(segment) as
      | { absent: string | null }
      | undefined
    return absentIndexes(row?.absent ?? null)
  }

  /** The number of messages without duplicates, including purged ones. */
  messages(): number {
    return this.#number('SELECT sum(count - ifnull(json_array_length(absent), 0)) AS value FROM segments')
  }

  /** The next rows after a key, up to the given number of rows or bytes. */
  page(table: SqliteTable, after: RowKey | null, limits: { rows: number; bytes: number }): SqliteRow[] {
    const keys = KEYS[table]
    const where = after === null ? '' : `WHERE (${keys.join(', ')}) > (${keys.map(() => '?').join(', ')})`
    const rows = this.#rows.database
      .prepare(`SELECT * FROM ${table} ${where} ORDER BY ${keys.join(', ')} LIMIT ?`)
      .iterate(...((after ?? []) as SQLInputValue[]), limits.rows) as unknown as Iterable<SqliteRow>
    const page: SqliteRow[] = []
    let bytes = 0
    for (const row of rows) {
      page.push(row)
      for (const value of Object.values(row)) if (value !== null && typeof value !== 'number') bytes += value.length
      if (bytes >= limits.bytes) break
    }
    return page
  }

  keyOf(table: SqliteTable, row: SqliteRow): RowKey {
    return KEYS[table].map((key) => row[key] as number | string)
  }

  /** The size of a segment's body, without reading it; 0 if there is none. */
  bodyBytes(segment: number): number {
    return this.#number('SELECT length(body) AS value FROM segments WHERE seq = ?', segment)
  }

  /** The days that have rows, in days since 1970. */
  days(table: keyof typeof RETENTION_COLUMNS): number[] {
    const column = RETENTION_COLUMNS[table]
    const days: number[] = []
    for (let from = 0; ; ) {
      const first = this.#number(`SELECT min(${column}) AS value FROM ${table} WHERE ${column} >= ?`, from)
      if (first === 0) return days
      const day = Math.floor(first / DAY_ROWS)
      days.push(day)
      from = (day + 1) * DAY_ROWS
    }
  }

  /** The time in the largest row id; 0 if there are no rows. */
  newestMs(): number {
    const columns = Object.entries({ ...RETENTION_COLUMNS, audit: 'id' })
    return msOfRowId(Math.max(...columns.map(([table, column]) => this.#number(`SELECT max(${column}) AS value FROM ${table}`))))
  }

  close(): void {
    this.#rows.database.close()
    this.#lock.release()
  }

  /** 0 if there is no row. */
  #number(sql: string, ...values: number[]): number {
    return this.#rows.all<{ value: number | null }>(sql, values)[0]?.value ?? 0
  }
}
