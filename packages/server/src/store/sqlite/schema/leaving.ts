// The rows of a file that another store takes over, in pages, as they lie. The file is locked meanwhile, so that no service
// runs on it, and nothing in it is changed but the mark of the move. What rows become elsewhere is not known here.

import type { SQLInputValue } from 'node:sqlite'
import type { LedgerRow } from '../../store.ts'
import { readLedger, recount } from '../rows/book-rows.ts'
import { Rows } from '../rows/rows.ts'
import { lockStore, openProblem, openWriter } from './database.ts'
import { type MovedMark, readMoved, writeMoved } from './moved-mark.ts'
import { msOfRowId, rowIdAt } from './row-ids.ts'
import { readSetting } from './settings.ts'

/** By what each table is walked. In this order things come before what refers to them. */
const KEYS = {
  settings: ['name'],
  sources: ['num'],
  destinations: ['num'],
  oauth_apps: ['num'],
  tokens: ['num'],
  suppressions: ['source', 'user_id'],
  oauth_assertions: ['app', 'jti'],
  segments: ['seq'],
  shipments: ['destination', 'class', 'due', 'id'],
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

export type LeavingTable = keyof typeof KEYS
export const LEAVING_TABLES = Object.keys(KEYS) as LeavingTable[]

export type LeavingRow = Record<string, number | string | null | Uint8Array>
/** The key of a row. */
export type Place = readonly (number | string)[]

/** Tables whose rows are dropped by age, with the column that tells it. */
export const AGEING = { segments: 'seq', attempts: 'id', failures: 'id', replays: 'origin', repeats: 'segment' } as const
const DAY_ROWS = rowIdAt(86_400_000)

export class Leaving {
  readonly #lock: { release(): void }
  readonly #rows: Rows

  /** Throws StoreProblem. */
  static open(path: string): Leaving {
    const lock = lockStore(path)
    try {
      return new Leaving(path, lock)
    } catch (error) {
      lock.release()
      throw openProblem(error, path)
    }
  }

  private constructor(path: string, lock: { release(): void }) {
    this.#lock = lock
    // Brings its schema up to date, too.
    this.#rows = new Rows(openWriter(path, { evenIfMoved: true }))
  }

  get mark(): MovedMark | undefined {
    return readMoved(this.#rows.database)
  }

  setMark(mark: MovedMark | null): void {
    writeMoved(this.#rows.database, mark)
  }

  setting(name: string): string | undefined {
    return readSetting(this.#rows.database, name)
  }

  count(table: LeavingTable): number {
    return this.#number(`SELECT count(*) AS value FROM ${table}`)
  }

  /** Those that were no duplicates, purged ones among them. */
  messages(): number {
    return this.#number('SELECT sum(count - ifnull(json_array_length(absent), 0)) AS value FROM segments')
  }

  /** The next rows after a place, until there are so many of them or of their bytes. */
  page(table: LeavingTable, after: Place | null, limits: { rows: number; bytes: number }): LeavingRow[] {
    const keys = KEYS[table]
    const where = after === null ? '' : `WHERE (${keys.join(', ')}) > (${keys.map(() => '?').join(', ')})`
    const rows = this.#rows.database
      .prepare(`SELECT * FROM ${table} ${where} ORDER BY ${keys.join(', ')} LIMIT ?`)
      .iterate(...((after ?? []) as SQLInputValue[]), limits.rows) as unknown as Iterable<LeavingRow>
    const page: LeavingRow[] = []
    let bytes = 0
    for (const row of rows) {
      page.push(row)
      for (const value of Object.values(row)) if (value !== null && typeof value !== 'number') bytes += value.length
      if (bytes >= limits.bytes) break
    }
    return page
  }

  placeOf(table: LeavingTable, row: LeavingRow): Place {
    return KEYS[table].map((key) => row[key] as number | string)
  }

  /** How many bytes a segment's body has, without reading it; 0 when it is not there. */
  bodyBytes(segment: number): number {
    return this.#number('SELECT length(body) AS value FROM segments WHERE seq = ?', segment)
  }

  /** The days that have rows, as days since 1970. */
  days(table: keyof typeof AGEING): number[] {
    const column = AGEING[table]
    const days: number[] = []
    for (let from = 0; ; ) {
      const first = this.#number(`SELECT min(${column}) AS value FROM ${table} WHERE ${column} >= ?`, from)
      if (first === 0) return days
      const day = Math.floor(first / DAY_ROWS)
      days.push(day)
      from = (day + 1) * DAY_ROWS
    }
  }

  /** When the newest row was named; 0 when there is none. */
  newestMs(): number {
    const columns = Object.entries({ ...AGEING, audit: 'id' })
    return msOfRowId(Math.max(...columns.map(([table, column]) => this.#number(`SELECT max(${column}) AS value FROM ${table}`))))
  }

  ledger(): LedgerRow[] {
    return readLedger(this.#rows)
  }

  recount(): LedgerRow[] {
    return recount(this.#rows)
  }

  close(): void {
    this.#rows.database.close()
    this.#lock.release()
  }

  /** 0 if there is no row. */
  #number(sql: string, ...values: number[]): number {
    return this.#rows.all<{ value: number | null }>(sql, ...values)[0]?.value ?? 0
  }
}
