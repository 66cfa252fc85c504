// Drops rows whose row ids are below a cutoff, a few hundred rows per commit. Messages with pending deliveries and messages in quarantine are never dropped,
// however old: their segments are pinned, and are kept together with all rows about their messages. If a segment is kept only because of its
// messages in quarantine, the content of its other messages is removed, with the text of their attempts. The counts of dropped rows
// are added to the ledger's archive in the same transaction, so that the ledger can still be recounted from rows.

import { purgeAttempts } from '../../deletions/purged-attempts.ts'
import { type SegmentToTrim, trimSegment } from '../../deletions/purged-content.ts'
import { absentIndexes, type Routes, type StoredPart } from '../../encoding/stored-parts.ts'
import type { Duplicates } from '../keys/duplicates.ts'
import { attemptTextRows } from '../rows/deletion-rows.ts'
import { overwriting } from '../schema/database.ts'
import { type RowIds, rowIdAt } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import { GroupCounts } from './group-counts.ts'
import { dropRepeats } from './repeats.ts'

const ROWS_PER_STEP = 300
const TRIMMED_BYTES_PER_STEP = 4 * 1024 * 1024

/** In the order in which rows are dropped. */
const TABLES = {
  segments: { key: 'seq', columns: 'seq AS segment, routes', group: '', limit: ROWS_PER_STEP },
  attempts: { key: 'id', columns: 'segment, origin, destination, delivered, failed, expired, cancelled', group: '', limit: ROWS_PER_STEP },
  failures: { key: 'id', columns: 'segment', group: '', limit: ROWS_PER_STEP },
  // Up to a hundred rows have the same origin, and are dropped together. Replays of a pinned segment are kept: they may be pending, and their ids
  // must stay resolvable.
  replays: { key: 'origin', columns: 'segment, destination, count(*) AS count', group: 'GROUP BY origin', limit: 30 },
}

type Table = keyof typeof TABLES

/** A row of one of the tables. It has only the columns that its table lists. */
interface OldRow {
  key: number
  segment: number
  routes: string
  origin: number
  destination: number
  count: number
  delivered: number
  failed: number
  expired: number
  cancelled: number
}

const START: Record<Table, number> = { segments: 0, attempts: 0, failures: 0, replays: 0 }
const ENDS = ['delivered', 'failed', 'expired', 'cancelled'] as const

export class Retention {
  readonly #rows: Rows
  readonly #duplicates: Duplicates
  readonly #ids: RowIds
  readonly #archive: GroupCounts<'owed' | (typeof ENDS)[number]>
  #cutoff = 0
  #pinned: ReadonlySet<number> = new Set()
  /** Those of the pinned segments that have no pending deliveries. */
  #held: ReadonlySet<number> = new Set()
  #isPinned = false
  /** The last row that was read in each table, now and as of the last commit. */
  #read = { ...START }
  #committed = { ...START }

  constructor(rows: Rows, duplicates: Duplicates, ids: RowIds) {
    this.#rows = rows
    this.#duplicates = duplicates
    this.#ids = ids
    this.#archive = new GroupCounts(rows.database, 'ledger_archive', 'destination', ['owed', ...ENDS])
  }

  /** Sets and returns the cutoff. It is never greater than the next row id, so that messages accepted from now on are kept, whatever the clock says. */
  begin(beforeMs: number): number {
    this.#cutoff = Math.min(rowIdAt(beforeMs), this.#ids.last + 1)
    this.#isPinned = false
    return this.#cutoff
  }

  /** Must be read after `begin`, because from then on no older segment can get new deliveries, except of messages that are released from quarantine. */
  pin({ pending, held }: PinnedSegments): void {
    this.#pinned = new Set([...pending, ...held])
    this.#held = new Set(held)
    this.#isPinned = true
    this.#read = { ...START }
    this.#committed = { ...START }
  }

  /** Segments before the cutoff must not get new deliveries, because these would not be pinned. */
  isDropping(segment: number): boolean {
    return segment < this.#cutoff
  }

  /** Returns false if there is nothing more to drop. */
  async step(): Promise<boolean> {
    if (!this.#isPinned) throw new Error('the pinned segments have not been set')
    if (this.#duplicates.saveStep(this.#cutoff)) return true
    for (const table of Object.keys(TABLES) as Table[]) if (await this.#drop(table)) return true
    return dropRepeats(this.#rows, this.#cutoff) || this.#duplicates.dropStep(this.#cutoff)
  }

  committed(): void {
    this.#committed = { ...this.#read }
  }

  rolledBack(): void {
    this.#read = { ...this.#committed }
    this.#archive.rolledBack()
  }

  async #drop(table: Table): Promise<boolean> {
    const { key, columns, group, limit } = TABLES[table]
    const select = `SELECT ${key} AS key, ${columns} FROM ${table} WHERE ${key} > ? AND ${key} < ? ${group} ORDER BY ${key} LIMIT ${limit}`
    const remove = `DELETE FROM ${table} WHERE ${key} = ?`
    const old = this.#rows.all<OldRow>(select, [this.#read[table], this.#cutoff])
    const hasDeletions = table === 'attempts' && old.length > 0 && this.#rows.all('SELECT 1 FROM deletion_targets LIMIT 1').length > 0
    let trimmedBytes = 0
    for (const row of old) {
      this.#read[table] = row.key
      if (this.#pinned.has(row.segment)) {
        if (table === 'segments' && this.#held.has(row.segment)) trimmedBytes += await this.#trim(row.segment)
        if (trimmedBytes > TRIMMED_BYTES_PER_STEP) break
        continue
      }
      this.#count(table, row, hasDeletions)
      this.#rows.run(remove, [row.key])
    }
    this.#archive.write()
    return old.length > 0
  }

  /** Returns the size of what it rewrote. */
  async #trim(segment: number): Promise<number> {
    const { database } = this.#rows
    const row = segmentToTrim(this.#rows, segment)
    const held = this.#rows.all<{ idx: number }>('SELECT idx FROM quarantine WHERE segment = ?', [segment]).map(({ idx }) => idx)
    const left = trimSegment(row, held)
    if (left === undefined) return 0
    overwriting(database, () =>
      database
        .prepare('UPDATE segments SET violations = ?, routes = ?, keys = ?, body = ? WHERE seq = ?')
        .run(left.violations, left.routes, left.keys, left.body, segment),
    )
    // Afterwards no deletion would find it: the hashes of the users are gone.
    await purgeAttempts(attemptTextRows(this.#rows), [{ segment, routes: row.routes, indexes: left.indexes }])
    return row.body.length
  }

  #count(table: Table, row: OldRow, hasDeletions: boolean): void {
    const archive = this.#archive
    if (table === 'segments')
      for (const [destination, , , count] of (JSON.parse(row.routes) as Routes<number>).s) archive.add(destination, 'owed', count)
    if (table === 'replays') archive.add(row.destination, 'owed', row.count)
    if (table !== 'attempts') return
    for (const state of ENDS) {
      if (row[state] === 0) continue
      archive.add(row.destination, state, row[state])
      if (hasDeletions) this.#rows.run('UPDATE deletion_targets SET final = ? WHERE origin = ?', [state, row.origin])
    }
  }
}

/** Everything of a segment that a purge may change. */
export function segmentToTrim(rows: Rows, seq: number): SegmentToTrim {
  const select = 'SELECT absent, violations, routes, keys, body FROM segments WHERE seq = ?'
  const [row] = rows.all<SegmentToTrim>(select, [seq]) as [SegmentToTrim]
  return Object.assign(row, { absent: absentIndexes(row.absent) })
}

export interface PinnedSegments {
  /** Segments with pending deliveries. */
  pending: Float64Array
  /** Segments with messages in quarantine, and without pending deliveries. */
  held: Float64Array
}

/** The segments before a cutoff that must be kept. Runs in the reading thread. */
export function pinnedSegments({ database }: Rows, cutoff: number): PinnedSegments {
  const pending = new Set<number>()
  // Usually nothing that old is stored. Then there is no need to read the shipments, of which there may be a million.
  if (database.prepare('SELECT 1 FROM segments WHERE seq < ? LIMIT 1').get(cutoff) === undefined)
    return { pending: new Float64Array(), held: new Float64Array() }
  const rows = database.prepare('SELECT parts FROM shipments').iterate() as unknown as Iterable<{ parts: string }>
  for (const { parts } of rows)
    for (const [, segment] of JSON.parse(parts) as StoredPart<number>[]) if (segment < cutoff) pending.add(segment)
  const held = database.prepare('SELECT DISTINCT segment FROM quarantine WHERE segment < ?').all(cutoff) as { segment: number }[]
  const onlyHeld = held.map(({ segment }) => segment).filter((segment) => !pending.has(segment))
  return { pending: Float64Array.from(pending), held: Float64Array.from(onlyHeld) }
}
