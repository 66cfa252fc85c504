// Counts of messages per source: accepted, duplicates, rejected by code, suppressed, and those that a tracking plan put in quarantine.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { GroupCounts } from './group-counts.ts'

const NAMES = ['accepted', 'duplicates', 'rejected', 'suppressed', 'quarantined', 'released', 'deleted'] as const

export class SourceCounts extends GroupCounts<(typeof NAMES)[number]> {
  readonly #reject: StatementSync

  constructor(database: DatabaseSync) {
    super(database, 'source_counts', 'source', NAMES)
    this.#reject = database.prepare(`
      INSERT INTO rejections (source, code, count, last_at, last_sample) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (source, code) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at, last_sample = excluded.last_sample`)
  }

  reject(source: number, code: string, count: number, atMs: number, sample: string): void {
    this.add(source, 'rejected', count)
    this.#reject.run(source, code, count, atMs, sample)
  }
}
