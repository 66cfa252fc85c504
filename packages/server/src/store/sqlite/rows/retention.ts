// Dropping what is older than a line, a few hundred rows per commit. What is still owed is never dropped, however old: the
// segments that pending shipments refer to are given as pinned, and stay with everything that says how the rest of their
// messages ended. What the dropped rows counted goes to the ledger's archive in the same transaction, so that the books
// can still be counted from rows.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Duplicates } from '../keys/duplicates.ts'
import { dropRepeats } from '../messages/repeats.ts'
import type { StoredPart } from '../messages/stored-parts.ts'
import type { Routes } from '../messages/write-accept.ts'
import { type RowIds, rowIdAt } from '../schema/ids.ts'

const ROWS_PER_STEP = 300

interface Counts {
  owed: number
  delivered: number
  failed: number
  expired: number
  cancelled: number
}

interface AttemptRow extends Omit<Counts, 'owed'> {
  id: number
  origin: number
  destination: number
  segment: number
}

/** Tables in the order they are dropped from, each by its key. */
type Table = 'segments' | 'attempts' | 'failures' | 'replays'

const START = { segments: 0, attempts: 0, failures: 0, replays: 0 }

export class Retention {
  readonly #database: DatabaseSync
  readonly #duplicates: Duplicates
  readonly #ids: RowIds
  readonly #select: Record<Table, StatementSync>
  readonly #delete: Record<Table, StatementSync>
  readonly #archive: StatementSync
  readonly #keepFinal: StatementSync
  readonly #anyDeletion: StatementSync
  #line = 0
  #pinned: ReadonlySet<number> = new Set()
  #isPinned = false
  /** How far each table was read, now and as of the last commit. */
  #read: Record<Table, number> = { ...START }
  #committed: Record<Table, number> = { ...START }

  constructor(database: DatabaseSync, duplicates: Duplicates, ids: RowIds) {
    this.#database = database
    this.#duplicates = duplicates
    this.#ids = ids
    const select = (columns: string, table: Table, key: string): StatementSync =>
      database.prepare(`SELECT ${columns} FROM ${table} WHERE ${key} > ? AND ${key} < ? ORDER BY ${key} LIMIT ${ROWS_PER_STEP}`)
    this.#select = {
      segments: select('seq, routes', 'segments', 'seq'),
      attempts: select('id, origin, destination, segment, delivered, failed, expired, cancelled', 'attempts', 'id'),
      failures: select('id, segment', 'failures', 'id'),
      // Up to a hundred rows have the same origin, and go together.
      replays: database.prepare(
        'SELECT origin, destination, segment, count(*) AS count FROM replays WHERE origin > ? AND origin < ? GROUP BY origin ORDER BY origin LIMIT 30',
      ),
    }
    this.#delete = {
      segments: database.prepare('DELETE FROM segments WHERE seq = ?'),
      attempts: database.prepare('DELETE FROM attempts WHERE id = ?'),
      failures: database.prepare('DELETE FROM failures WHERE id = ?'),
      replays: database.prepare('DELETE FROM replays WHERE origin = ?'),
    }
    this.#archive = database.prepare(`
      INSERT INTO ledger_archive (destination, owed, delivered, failed, expired, cancelled) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (destination) DO UPDATE SET owed = owed + excluded.owed, delivered = delivered + excluded.delivered,
        failed = failed + excluded.failed, expired = expired + excluded.expired, cancelled = cancelled + excluded.cancelled`)
    this.#keepFinal = database.prepare('UPDATE deletion_targets SET final = ? WHERE origin = ?')
    this.#anyDeletion = database.prepare('SELECT 1 FROM deletion_targets LIMIT 1')
  }

  /** The line. Never ahead of what was given out, so that what is accepted from now on lies after it, whatever the clock says. */
  begin(beforeMs: number): number {
    this.#line = Math.min(rowIdAt(beforeMs), this.#ids.last + 1)
    this.#isPinned = false
    return this.#line
  }

  /** The segments before the line that are owed: read after `begin`, since when no older one can have come to be. */
  pin(segments: Float64Array): void {
    this.#pinned = new Set(segments)
    this.#isPinned = true
    this.#read = { ...START }
    this.#committed = { ...START }
  }

  /** Between the reading of the pinned segments and the end, nothing old may be owed anew. */
  isDropping(segment: number): boolean {
    return segment < this.#line
  }

  /** False when there is nothing more to drop. */
  step(): boolean {
    if (!this.#isPinned) throw new Error('what is pinned is not known')
    return (
      this.#dropSegments() ||
      this.#dropAttempts() ||
      this.#dropFailures() ||
      this.#dropReplays() ||
      dropRepeats(this.#database, this.#line) ||
      this.#duplicates.dropStep(this.#line)
    )
  }

  committed(): void {
    this.#committed = { ...this.#read }
  }

  rolledBack(): void {
    this.#read = { ...this.#committed }
  }

  #dropSegments(): boolean {
    const rows = this.#next('segments') as { seq: number; routes: string }[]
    const counts = new Map<number, Counts>()
    for (const { seq, routes } of rows) {
      this.#read.segments = seq
      if (this.#pinned.has(seq)) continue
      for (const [destination, , , count] of (JSON.parse(routes) as Routes).s) of(counts, destination).owed += count
      this.#delete.segments.run(seq)
    }
    this.#write(counts)
    return rows.length > 0
  }

  #dropAttempts(): boolean {
    const rows = this.#next('attempts') as AttemptRow[]
    const ofDeletions = rows.length > 0 && this.#anyDeletion.get() !== undefined
    const counts = new Map<number, Counts>()
    for (const row of rows) {
      this.#read.attempts = row.id
      if (this.#pinned.has(row.segment)) continue
      for (const state of ['delivered', 'failed', 'expired', 'cancelled'] as const) {
        if (row[state] === 0) continue
        of(counts, row.destination)[state] += row[state]
        if (ofDeletions) this.#keepFinal.run(state, row.origin)
      }
      this.#delete.attempts.run(row.id)
    }
    this.#write(counts)
    return rows.length > 0
  }

  #dropFailures(): boolean {
    const rows = this.#next('failures') as { id: number; segment: number }[]
    for (const { id, segment } of rows) {
      this.#read.failures = id
      if (!this.#pinned.has(segment)) this.#delete.failures.run(id)
    }
    return rows.length > 0
  }

  /** A replay of a pinned segment may be what is still owed of it, and its name must stay resolvable. */
  #dropReplays(): boolean {
    const rows = this.#next('replays') as { origin: number; destination: number; segment: number; count: number }[]
    const counts = new Map<number, Counts>()
    for (const { origin, destination, segment, count } of rows) {
      this.#read.replays = origin
      if (this.#pinned.has(segment)) continue
      of(counts, destination).owed += count
      this.#delete.replays.run(origin)
    }
    this.#write(counts)
    return rows.length > 0
  }

  #next(table: Table): unknown[] {
    return this.#select[table].all(this.#read[table], this.#line)
  }

  #write(counts: ReadonlyMap<number, Counts>): void {
    for (const [destination, { owed, delivered, failed, expired, cancelled }] of counts) {
      this.#archive.run(destination, owed, delivered, failed, expired, cancelled)
    }
  }
}

function of(counts: Map<number, Counts>, destination: number): Counts {
  let own = counts.get(destination)
  if (own === undefined) {
    own = { owed: 0, delivered: 0, failed: 0, expired: 0, cancelled: 0 }
    counts.set(destination, own)
  }
  return own
}

/** Segments before a line that are still owed. Read by the reading thread. */
export function pinnedSegments(database: DatabaseSync, line: number): Float64Array {
  const pinned = new Set<number>()
  // Nothing that old is stored, which is so at nearly every asking: no need to read what may be a million shipments.
  if (database.prepare('SELECT 1 FROM segments WHERE seq < ? LIMIT 1').get(line) === undefined) return new Float64Array()
  const rows = database.prepare('SELECT parts FROM shipments').iterate() as unknown as Iterable<{ parts: string }>
  for (const { parts } of rows) for (const [, segment] of JSON.parse(parts) as StoredPart[]) if (segment < line) pinned.add(segment)
  return Float64Array.from(pinned)
}
