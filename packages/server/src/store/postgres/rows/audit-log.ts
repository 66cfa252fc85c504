// Drops what was written down of who did what when its time is over.

import { rowIdAt } from '../schema/ids.ts'
import type { Parts } from '../session/parts.ts'

const DROPPED_PER_STEP = 1_000

export class AuditLog {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Some of those from before; how many. */
  async drop(beforeMs: number): Promise<number> {
    const { count } = await this.#parts.database.query(
      `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < $1 ORDER BY id LIMIT ${DROPPED_PER_STEP} FOR UPDATE SKIP LOCKED)`,
      [rowIdAt(beforeMs)],
    )
    return count
  }
}
