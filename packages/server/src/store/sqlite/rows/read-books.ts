// The books as they are read: the ledger and its recount, what is oldest, what was refused, what each source sent.

import type { LedgerRow, OldestPending, RejectionRow, SourceCounts } from '../../store.ts'
import { type LedgerCountsRow, recount } from '../messages/ledger.ts'
import type { StoredPart } from '../messages/stored-parts.ts'
import { msOfRowId } from '../schema/ids.ts'
import type { Rows } from './rows.ts'

export class BooksReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  ledger(): LedgerRow[] {
    return this.#named(this.#rows.all('SELECT * FROM ledger ORDER BY destination') as LedgerCountsRow[])
  }

  recount(): LedgerRow[] {
    return this.#named(recount(this.#rows.database))
  }

  oldestPendingAtMs(destinationId: string): number | null {
    const destination = this.#rows.destinations.num(destinationId)
    if (destination === undefined) return null
    const oldest = (condition: string): { parts: string } | undefined =>
      this.#rows.get(`SELECT parts FROM shipments WHERE destination = ? AND ${condition} LIMIT 1`, destination) as
        | { parts: string }
        | undefined
    const rows = [oldest('class = 0 ORDER BY due, id'), oldest('class = 1 AND first_attempt IS NOT NULL ORDER BY first_attempt')]
    const origins = rows.flatMap((row) => (row ? (JSON.parse(row.parts) as StoredPart[]).map(([origin]) => origin) : []))
    return origins.length === 0 ? null : msOfRowId(Math.min(...origins))
  }

  oldestPending(): OldestPending[] {
    return this.ledger()
      .filter(({ pending }) => pending > 0)
      .flatMap(({ destinationId }) => {
        const atMs = this.oldestPendingAtMs(destinationId)
        return atMs === null ? [] : [{ destinationId, atMs }]
      })
  }

  /** Segments that are still owed and lie before a line. */
  pinned(line: number): Float64Array {
    const pinned = new Set<number>()
    // Nothing that old is stored, which is so at nearly every asking: no need to read what may be a million shipments.
    if (this.#rows.get('SELECT 1 FROM segments WHERE seq < ? LIMIT 1', line) === undefined) return new Float64Array()
    const rows = this.#rows.database.prepare('SELECT parts FROM shipments').iterate() as unknown as Iterable<{ parts: string }>
    for (const { parts } of rows) for (const [, segment] of JSON.parse(parts) as StoredPart[]) if (segment < line) pinned.add(segment)
    return Float64Array.from(pinned)
  }

  rejections(): RejectionRow[] {
    const rows = this.#rows.all(`
      SELECT s.id AS sourceId, code, count, last_at AS lastAtMs, last_sample AS lastSample
      FROM rejections LEFT JOIN sources s ON s.num = source ORDER BY last_at DESC`)
    return rows as RejectionRow[]
  }

  sourceCounts(): SourceCounts[] {
    return this.#rows.all(`
      SELECT s.id AS sourceId, accepted, duplicates, rejected, suppressed
      FROM source_counts JOIN sources s ON s.num = source ORDER BY source`) as SourceCounts[]
  }

  #named(rows: readonly LedgerCountsRow[]): LedgerRow[] {
    return rows.map(({ destination, ...counts }) => ({ destinationId: this.#rows.destinations.id(destination), ...counts }))
  }
}
