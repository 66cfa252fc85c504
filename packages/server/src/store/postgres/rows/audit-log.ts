// Who did what, as it is asked for: newest first. What is written in the transaction of a change is in audit-entries.ts.

import { listAudit } from '../../history/audit-log.ts'
import type { AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest } from '../../store.ts'
import { rowIdAt } from '../schema/ids.ts'
import type { Parts } from '../session/parts.ts'
import { writeAudit } from './audit-entries.ts'
import { auditRows } from './audit-rows.ts'
import { byIndexes } from './paging.ts'

const DROPPED_PER_STEP = 1_000

export class AuditLog {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  list(filter: AuditFilter, page: PageRequest): Promise<Page<AuditEntry>> {
    return byIndexes(this.#parts.database, (ask) => listAudit(auditRows(ask), filter, page))
  }

  async note(entry: NewAuditEntry): Promise<void> {
    const { database, ids, nowMs } = this.#parts
    await writeAudit((text, values) => database.query(text, values), ids, entry, nowMs())
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
