// Dropping what is older than a line, a few hundred rows per commit. What is still owed is never dropped, however old: the
// segments that pending shipments refer to are given as pinned. What the dropped rows counted goes to the ledger's archive
// in the same transaction, so that the books can still be counted from rows.

import type { DatabaseSync } from 'node:sqlite'
import type { AttemptDoc } from './attempt-doc.ts'
import type { Duplicates } from './duplicates.ts'
import { rowIdAt } from './ids.ts'
import type { Routes } from './write-accept.ts'

const ROWS_PER_STEP = 300

type Ended = 'owed' | 'delivered' | 'failed' | 'expired' | 'cancelled'

interface AttemptRow {
  id: number
  origin: number
  destination: number
  delivered: number
  failed: number
  expired: number
  cancelled: number
  doc: string
}

export class Retention {
  readonly #database: DatabaseSync
  readonly #duplicates: Duplicates
  #line = 0
  #cursor = 0
  #pinned: ReadonlySet<number> = new Set()
  readonly #keyProgress = { run: 0, chunk: 0 }

  constructor(database: DatabaseSync, duplicates: Duplicates) {
    this.#database = database
    this.#duplicates = duplicates
  }

  begin(beforeMs: number, pinned: Float64Array): void {
    this.#line = rowIdAt(beforeMs)
    this.#cursor = 0
    this.#pinned = new Set(pinned)
  }

  /** Between the reading of the pinned segments and the end, nothing old may be owed anew. */
  isDropping(segment: number): boolean {
    return segment < this.#line
  }

  /** False when there is nothing more to drop. */
  step(): boolean {
    return this.#dropSegments() || this.#dropAttempts() || this.#dropFailures() || this.#dropReplays() || this.#dropKeys()
  }

  #dropSegments(): boolean {
    const rows = this.#database
      .prepare('SELECT seq, routes FROM segments WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ?')
      .all(this.#cursor, this.#line, ROWS_PER_STEP) as { seq: number; routes: string }[]
    const remove = this.#database.prepare('DELETE FROM segments WHERE seq = ?')
    for (const { seq, routes } of rows) {
      this.#cursor = seq
      if (this.#pinned.has(seq)) continue
      for (const [destination, , , count] of (JSON.parse(routes) as Routes).s) this.#archive(destination, 'owed', count)
      remove.run(seq)
    }
    return rows.length > 0
  }

  #dropAttempts(): boolean {
    const rows = this.#database
      .prepare('SELECT id, origin, destination, delivered, failed, expired, cancelled, doc FROM attempts WHERE id < ? ORDER BY id LIMIT ?')
      .all(this.#line, ROWS_PER_STEP) as unknown as AttemptRow[]
    if (rows.length === 0) return false
    const ofDeletions = this.#database.prepare('SELECT 1 FROM deletion_targets LIMIT 1').get() !== undefined
    const keepFinal = this.#database.prepare('UPDATE deletion_targets SET final = ? WHERE origin = ?')
    for (const row of rows) {
      for (const state of ['delivered', 'failed', 'expired', 'cancelled'] as const) {
        if (row[state] > 0) this.#archive(row.destination, state, row[state])
      }
      const final = ofDeletions ? (JSON.parse(row.doc) as AttemptDoc).f[0] : undefined
      if (final) keepFinal.run(final[0], row.origin)
    }
    this.#database.prepare('DELETE FROM attempts WHERE id <= ?').run((rows.at(-1) as AttemptRow).id)
    return true
  }

  #dropFailures(): boolean {
    const sql = 'DELETE FROM failures WHERE id IN (SELECT id FROM failures WHERE id < ? ORDER BY id LIMIT ?)'
    return Number(this.#database.prepare(sql).run(this.#line, ROWS_PER_STEP).changes) > 0
  }

  #dropReplays(): boolean {
    const rows = this.#database
      .prepare('SELECT origin, destination, segment FROM replays WHERE origin < ? ORDER BY origin LIMIT ?')
      .all(this.#line, ROWS_PER_STEP) as { origin: number; destination: number; segment: number }[]
    const remove = this.#database.prepare('DELETE FROM replays WHERE origin = ?')
    let dropped = 0
    for (const { origin, destination, segment } of rows) {
      // Pinned: it may be this replay that is still owed, and its name must stay resolvable.
      if (this.#pinned.has(segment)) continue
      this.#archive(destination, 'owed', 1)
      remove.run(origin)
      dropped++
    }
    return dropped > 0
  }

  #dropKeys(): boolean {
    return this.#duplicates.dropStep(this.#line, this.#keyProgress)
  }

  #archive(destination: number, column: Ended, count: number): void {
    this.#database
      .prepare(
        `INSERT INTO ledger_archive (destination, ${column}) VALUES (?, ?) ON CONFLICT (destination) DO UPDATE SET ${column} = ${column} + excluded.${column}`,
      )
      .run(destination, count)
  }
}
