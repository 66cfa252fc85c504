// What came in, per source: accepted, duplicates, rejected by code, suppressed. Added up over a group and written once.

import type { DatabaseSync, StatementSync } from 'node:sqlite'

type Count = 'accepted' | 'duplicates' | 'rejected' | 'suppressed'

export class SourceCounts {
  readonly #upsert: StatementSync
  readonly #reject: StatementSync
  readonly #changes = new Map<number, Record<Count, number>>()

  constructor(database: DatabaseSync) {
    this.#upsert = database.prepare(`
      INSERT INTO source_counts (source, accepted, duplicates, rejected, suppressed) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (source) DO UPDATE SET accepted = accepted + excluded.accepted, duplicates = duplicates + excluded.duplicates,
        rejected = rejected + excluded.rejected, suppressed = suppressed + excluded.suppressed`)
    this.#reject = database.prepare(`
      INSERT INTO rejections (source, code, count, last_at, last_sample) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (source, code) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at, last_sample = excluded.last_sample`)
  }

  add(source: number, count: Count, by: number): void {
    let change = this.#changes.get(source)
    if (change === undefined) {
      change = { accepted: 0, duplicates: 0, rejected: 0, suppressed: 0 }
      this.#changes.set(source, change)
    }
    change[count] += by
  }

  reject(source: number, code: string, count: number, atMs: number, sample: string): void {
    this.add(source, 'rejected', count)
    this.#reject.run(source, code, count, atMs, sample)
  }

  /** In the transaction, before its commit. */
  write(): void {
    for (const [source, c] of this.#changes) this.#upsert.run(source, c.accepted, c.duplicates, c.rejected, c.suppressed)
    this.#changes.clear()
  }

  rolledBack(): void {
    this.#changes.clear()
  }
}
