// The rows of a file that another store takes over, in pages, as they lie. The file is locked meanwhile, so that no service
// runs on it, and nothing in it is changed but the mark of the move. What rows become elsewhere is not known here.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { LedgerRow } from '../../store.ts'
import { readLedger, recount } from '../rows/book-rows.ts'
import { lockStore, openProblem, openWriter } from './database.ts'
import { type MovedMark, readMoved, writeMoved } from './moved-mark.ts'
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
const DAY_ROWS = 86_400_000 * 2_048

export class Leaving {
  readonly #lock: { release(): void }
  readonly #database: DatabaseSync
  readonly #bodyBytes: StatementSync

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
    this.#database = openWriter(path, { evenIfMoved: true })
    this.#bodyBytes = this.#database.prepare('SELECT length(body) AS bytes FROM segments WHERE seq = ?')
  }

  get mark(): MovedMark | undefined {
    return readMoved(this.#database)
  }

  setMark(mark: MovedMark | null): void {
    writeMoved(this.#database, mark)
  }

  setting(name: string): string | undefined {
    return readSetting(this.#database, name)
  }

  count(table: LeavingTable): number {
    return (this.#database.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number }).count
  }

  /** Those that were no duplicates, purged ones among them. */
  messages(): number {
    const { count } = this.#database
      .prepare('SELECT ifnull(sum(count - ifnull(json_array_length(absent), 0)), 0) AS count FROM segments')
      .get() as { count: number }
    return count
  }

  /** The next rows after a place, until there are so many of them or of their bytes. */
  page(table: LeavingTable, after: Place | null, limits: { rows: number; bytes: number }): LeavingRow[] {
    const keys = KEYS[table]
    const where = after === null ? '' : `WHERE (${keys.join(', ')}) > (${keys.map(() => '?').join(', ')})`
    const rows = this.#database
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
    return (this.#bodyBytes.get(segment) as { bytes: number } | undefined)?.bytes ?? 0
  }

  /** The days that have rows, as days since 1970. */
  days(table: keyof typeof AGEING): number[] {
    const next = this.#database.prepare(`SELECT min(${AGEING[table]}) AS first FROM ${table} WHERE ${AGEING[table]} >= ?`)
    const days: number[] = []
    for (let from = 0; ; ) {
      const { first } = next.get(from) as { first: number | null }
      if (first === null) return days
      const day = Math.floor(first / DAY_ROWS)
      days.push(day)
      from = (day + 1) * DAY_ROWS
    }
  }

  /** When the newest row was named; 0 when there is none. */
  newestMs(): number {
    const newest = (sql: string): number => (this.#database.prepare(sql).get() as { newest: number | null }).newest ?? 0
    const rows = Object.entries(AGEING).map(([table, column]) => newest(`SELECT max(${column}) AS newest FROM ${table}`))
    return Math.floor(Math.max(...rows, newest('SELECT max(id) AS newest FROM audit')) / 2_048)
  }

  ledger(): LedgerRow[] {
    return readLedger(this.#database)
  }

  recount(): LedgerRow[] {
    return recount(this.#database)
  }

  close(): void {
    this.#database.close()
    this.#lock.release()
  }
}
