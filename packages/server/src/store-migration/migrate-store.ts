// Migrates a SQLite installation to PostgreSQL. All rows are copied in pages; each page is written in one transaction together with the
// progress made. Both the file and the database record that a migration has begun, so that no service starts on the file, and no node
// on the database, until it is complete. If the process is killed at any point, running the migration again resumes it, or starts over if
// the file has been released (--undo) in the meantime. At the end the two stores are compared.

import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecretBox } from '../secrets/secret-box.ts'
import type { MigrationState } from '../store/postgres/schema/migration-state.ts'
import { MigrationTarget } from '../store/postgres/schema/migration-target.ts'
import {
  MigrationSource,
  RETENTION_COLUMNS,
  type RowKey,
  SQLITE_TABLES,
  type SqliteRow,
  type SqliteTable,
} from '../store/sqlite/migration/migration-source.ts'
import { type Comparison, compareStores } from './compare-stores.ts'
import { splitByPartition } from './ordered-shipments.ts'
import { createSecretReencryption, type SecretReencryption } from './reencrypt-secrets.ts'
import { createTranslation, messageKeys, type Translate } from './translate-rows.ts'

/** An error that the operator can fix. The message says how. */
export class MigrationProblem extends Error {
  override name = 'MigrationProblem'
}

export interface MigrationOptions {
  /** The path of the SQLite file. */
  path: string
  /** The address of the PostgreSQL database. */
  url: string
  /** The keys that the file's secrets may be encrypted with. */
  oldKeys: readonly string[]
  /** The key that the nodes will use. */
  newKey: string
  /** Leaves no mark in the file when the migration is complete, so that a service can still start on it. */
  keepUsable?: boolean
  /** Inspects both stores and changes neither. */
  dryRun?: boolean
  onProgress?: (done: number, total: number, table: string) => void
  signal?: AbortSignal
  /** For tests. */
  pageRows?: number
  /** For tests: called at each step at which the process could be killed. */
  onStep?: (step: string) => void
}

export interface MigrationResult {
  /** The number of rows in the target, or that a dry run would write. */
  rows: number
  /** How many of these an earlier, interrupted run had already written. */
  earlierRows: number
  counts: Record<SqliteTable, number>
  messages: number
  destinations: number
  to: string
  elapsedMs: number
  /** Whether an earlier run had already completed this migration. */
  wasComplete: boolean
}

const PAGE_ROWS = 4_000
const PAGE_BYTES = 4 * 1024 * 1024
/** Row ids contain a time, and rows that the nodes write later must not have smaller ids than migrated ones: see SKEW in ids.ts. */
const MAX_AHEAD_MS = 30_000

export async function migrateStore(options: MigrationOptions): Promise<MigrationResult> {
  const source = openFile(options.path)
  try {
    return await new Migration(source, options).run()
  } finally {
    source.close()
  }
}

/** Removes the migration mark, so that a service can start on the file again. Returns false if there was no mark. */
export function undoMigration(path: string): boolean {
  const source = openFile(path)
  try {
    const { mark } = source
    source.setMark(null)
    return mark !== undefined
  } finally {
    source.close()
  }
}

function openFile(path: string): MigrationSource {
  if (!existsSync(path)) throw new MigrationProblem(`There is no store at ${path}. Check the path given with --from.`)
  return MigrationSource.open(path)
}

class Migration {
  readonly #source: MigrationSource
  readonly #options: MigrationOptions
  readonly #secrets: SecretReencryption
  readonly #translate: Record<SqliteTable, Translate>
  readonly #installation: string
  readonly #total: number
  /** How many more rows shipments are in PostgreSQL. */
  #splitShipments = 0

  constructor(source: MigrationSource, options: MigrationOptions) {
    this.#source = source
    this.#options = options
    this.#secrets = createSecretReencryption(options.oldKeys, options.newKey)
    const seed = source.setting('dedup_seed')
    if (seed === undefined) throw new MigrationProblem(`${options.path} has never been used by a service, so there is nothing to migrate.`)
    this.#installation = createHash('sha256').update(seed).digest('hex').slice(0, 16)
    this.#translate = createTranslation({
      secrets: this.#secrets,
      bodyBytes: (segment) => source.bodyBytes(segment),
      deletions: this.#all('deletions') as { num: number; created_at: number }[],
      replayJobs: this.#all('replay_jobs') as { num: number; created_at: number }[],
    })
    // A secret that cannot be decrypted must fail before anything is written.
    for (const row of this.#all('destinations')) this.#translate.destinations(row)
    for (const row of source.orderedShipments()) this.#splitShipments += this.#split(row).length - 1
    this.#total = SQLITE_TABLES.reduce((sum, table) => sum + source.count(table), 0) - this.#skippedSettings + this.#splitShipments
  }

  #split(row: SqliteRow): SqliteRow[] {
    return splitByPartition(row, (segment) => this.#source.absentFrom(segment))
  }

  /** The number of settings that are not migrated. A getter because the migration mark becomes one of them. */
  get #skippedSettings(): number {
    return this.#all('settings').filter((row) => this.#translate.settings(row) === undefined).length
  }

  /** All rows at once; only for small tables. */
  #all(table: SqliteTable): SqliteRow[] {
    return this.#source.page(table, null, { rows: -1, bytes: Number.POSITIVE_INFINITY })
  }

  async run(): Promise<MigrationResult> {
    const { url, dryRun = false, keepUsable = false } = this.#options
    const started = performance.now()
    const opened = await MigrationTarget.open(url, { secretBox: createSecretBox(this.#options.newKey), inspectOnly: dryRun })
    try {
      if (dryRun) return await this.#inspect(opened)
      const target = opened as MigrationTarget
      const initial = await this.#begin(target)
      const state = initial.isOver ? initial : await this.#copyTables(target, initial)
      const comparison = initial.isOver ? null : await this.#complete(target, state)
      this.#step('ended')
      this.#source.setMark(keepUsable ? null : { id: state.id, to: target.address, atMs: Date.now(), isOver: true })
      return this.#result(target.address, comparison, {
        rows: state.rows,
        earlierRows: initial.rows,
        wasComplete: initial.isOver,
        elapsedMs: performance.now() - started,
      })
    } finally {
      opened?.close()
    }
  }

  async #inspect(target: MigrationTarget | undefined): Promise<MigrationResult> {
    const { mark } = this.#source
    const state = await target?.state()
    this.#checkState(target?.address ?? '', state)
    const obstacle = state === undefined ? await target?.findObstacle() : undefined
    if (obstacle !== undefined) throw new MigrationProblem(obstacle)
    await this.#checkClock(target)
    const earlierRows = state !== undefined && mark?.id === state.id ? state.rows : 0
    return this.#result(target?.address ?? '', null, { rows: this.#total, earlierRows, wasComplete: state?.isOver ?? false, elapsedMs: 0 })
  }

  /** Starts or resumes the migration and returns the state to continue from. */
  async #begin(target: MigrationTarget): Promise<MigrationState> {
    const { mark } = this.#source
    const found = await target.state()
    this.#checkState(target.address, found)
    // Resume only if the file has not been used since, and the secrets written so far are encrypted with the same key.
    if (found !== undefined && found.id === mark?.id && found.keyId === this.#secrets.keyId) return found
    if (found?.isOver)
      throw new MigrationProblem(
        'This file was already migrated to that database with a different secret key. Use that key, or migrate to an empty database.',
      )
    const obstacle = found === undefined ? await target.findObstacle() : undefined
    if (obstacle !== undefined) throw new MigrationProblem(obstacle)
    await this.#checkClock(target)
    const id = randomBytes(9).toString('base64url')
    const from = resolve(this.#options.path)
    const { keyId } = this.#secrets
    const state: MigrationState = {
      id,
      installation: this.#installation,
      from,
      keyId,
      done: [],
      table: null,
      after: null,
      rows: 0,
      isOver: false,
    }
    this.#source.setMark({ id, to: target.address, atMs: Date.now(), isOver: false })
    this.#step('marked')
    try {
      await target.begin(state, found ?? null)
    } catch (error) {
      this.#source.setMark(null)
      throw error
    }
    this.#step('begun')
    return state
  }

  /** Throws if the file or the database belongs to another migration. */
  #checkState(address: string, found: MigrationState | undefined): void {
    const { mark } = this.#source
    const { path } = this.#options
    const undo = `switchyard migrate-store --from sqlite:${path} --undo`
    if (found !== undefined && found.installation !== this.#installation)
      throw new MigrationProblem(
        `The database ${found.isOver ? 'contains' : 'is receiving'} the rows of another file, ${found.from}. Use an empty database.`,
      )
    if (found?.isOver && found.id !== mark?.id)
      throw new MigrationProblem(
        `This file was already migrated to that database. To migrate it again, use an empty database, or drop the schema first: DROP SCHEMA switchyard CASCADE;`,
      )
    if (found?.id === mark?.id || mark === undefined) return
    if (mark.isOver)
      throw new MigrationProblem(
        `${path} was migrated to ${mark.to} at ${new Date(mark.atMs).toISOString()}. If you no longer need that database, remove the mark from the file first: ${undo}`,
      )
    if (mark.to !== address && address !== '')
      throw new MigrationProblem(`${path} is being migrated to ${mark.to}. Finish that migration, or abandon it first: ${undo}`)
  }

  async #checkClock(target: MigrationTarget | undefined): Promise<void> {
    const aheadMs = (await target?.clockLagMs(this.#source.newestMs())) ?? 0
    if (aheadMs <= MAX_AHEAD_MS) return
    throw new MigrationProblem(
      `The newest row of the file is ${Math.ceil(aheadMs / 1_000)} s ahead of PostgreSQL's clock. Correct the clocks, or wait until PostgreSQL's clock has passed that time.`,
    )
  }

  async #copyTables(target: MigrationTarget, from: MigrationState): Promise<MigrationState> {
    for (const table of Object.keys(RETENTION_COLUMNS) as (keyof typeof RETENTION_COLUMNS)[])
      await target.createPartitions(table, this.#source.days(table))
    await target.createPartitions('message_keys', this.#source.days('segments'))
    let state = from
    for (const table of SQLITE_TABLES) {
      if (state.done.includes(table)) continue
      state = await this.#copyTable(target, table, state)
      const next: MigrationState = { ...state, done: [...state.done, table], table: null, after: null }
      await target.saveState(next, state)
      state = next
    }
    return state
  }

  async #copyTable(target: MigrationTarget, table: SqliteTable, from: MigrationState): Promise<MigrationState> {
    const limits = { rows: this.#options.pageRows ?? PAGE_ROWS, bytes: PAGE_BYTES }
    let state = from
    let page = this.#source.page(table, state.after, limits)
    while (page.length > 0) {
      if (this.#options.signal?.aborted) throw new MigrationProblem('Interrupted. Run the same command again to resume.')
      const pieces = table === 'shipments' ? page.flatMap((row) => this.#split(row)) : page
      const rows = pieces.map((row) => this.#translate[table](row)).filter((row) => row !== undefined)
      const keys = table === 'segments' ? page.flatMap(messageKeys) : []
      const after: RowKey = this.#source.keyOf(table, page.at(-1) as SqliteRow)
      const next: MigrationState = { ...state, table, after, rows: state.rows + rows.length }
      this.#step(`${table} read`)
      const writing = target.write(table, rows, keys, next, state)
      // The next page is read while the server writes this one.
      const nextPage = this.#readAhead(writing, table, after, limits)
      await writing
      this.#step(`${table} written`)
      state = next
      page = nextPage()
      this.#options.onProgress?.(state.rows, this.#total, table)
    }
    return state
  }

  /** Reads the next page. An error is thrown only when the result is used, so that it does not interrupt the write in progress. */
  #readAhead(writing: Promise<void>, ...[table, after, limits]: Parameters<MigrationSource['page']>): () => SqliteRow[] {
    // The caller awaits it and handles the error.
    writing.catch(() => {})
    try {
      const page = this.#source.page(table, after, limits)
      return () => page
    } catch (error) {
      return () => {
        throw error
      }
    }
  }

  async #complete(target: MigrationTarget, state: MigrationState): Promise<Comparison> {
    const comparison = await compareStores(this.#source, target, { settings: -this.#skippedSettings, shipments: this.#splitShipments })
    if (comparison.problems.length > 0)
      throw new MigrationProblem(
        `The database does not match the file, so no node will start on it: ${comparison.problems.join('; ')}. The rows in the file are unchanged. Please report this as a bug.`,
      )
    this.#step('compared')
    await target.complete({ ...state, isOver: true }, state, this.#secrets.keyId)
    return comparison
  }

  #result(
    to: string,
    comparison: Comparison | null,
    facts: Pick<MigrationResult, 'rows' | 'earlierRows' | 'wasComplete' | 'elapsedMs'>,
  ): MigrationResult {
    const counts =
      comparison?.counts ?? (Object.fromEntries(SQLITE_TABLES.map((table) => [table, this.#source.count(table)])) as Comparison['counts'])
    if (comparison === null) {
      counts.settings -= this.#skippedSettings
      counts.shipments += this.#splitShipments
    }
    return {
      ...facts,
      to,
      counts,
      messages: this.#source.messages(),
      destinations: comparison?.destinations ?? this.#source.books.ledger().length,
    }
  }

  #step(step: string): void {
    this.#options.onStep?.(step)
  }
}
