// Who did what, as it is asked for: newest first. What is written in the transaction of a change is in audit-entries.ts.

import type { JsonObject } from '@switchyard/protocol'
import { ROWS_PER_PAGE } from '../../history/paging.ts'
import type { AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest } from '../../store.ts'
import { rowIdAt } from '../schema/ids.ts'
import type { Parts } from '../session/parts.ts'
import { readText, writeText } from '../session/texts.ts'
import { writeAudit } from './audit-entries.ts'
import { beforeRow, byIndexes, firstRow, isWithin, lastRow, rowCursorOf, walk } from './paging.ts'

interface AuditRow {
  id: string
  at: number
  actor: string
  actor_name: string
  action: string
  subject: string | null
  bytes: number
}

/** Of one page: an entry may hold all of a destination, twice, and a page a thousand of them. */
const BYTES_PER_PAGE = 8 * 1024 * 1024
const DROPPED_PER_STEP = 1_000

export class AuditLog {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  list({ actorId, action, subject, ...times }: AuditFilter, { limit, cursor }: PageRequest): Promise<Page<AuditEntry>> {
    const [start] = rowCursorOf('a', cursor, [lastRow(times)])
    const stored = subject === undefined ? null : writeText(subject)
    return byIndexes(this.#parts.database, async (ask) => {
      const rows = walk<AuditRow>(
        start,
        ({ id }) => beforeRow(id),
        (from, count) =>
          // Of the texts, which may be large, only how large they are.
          ask(
            `SELECT id, at, actor, actor_name, action, subject, coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) AS bytes
           FROM audit WHERE id <= $1 AND id >= $2 ${stored === null ? '' : 'AND subject = $4'} ORDER BY id DESC LIMIT $3`,
            [from, firstRow(times), count, ...(stored === null ? [] : [stored])],
          ),
      )
      const found: AuditRow[] = []
      let next: string | null = null
      let seen = 0
      let bytes = 0
      for await (const row of rows) {
        if (++seen > ROWS_PER_PAGE || found.length === limit || bytes > BYTES_PER_PAGE) {
          next = JSON.stringify(['a', row.id])
          break
        }
        if (!isWithin(row.at, times)) continue
        if ((actorId !== undefined && row.actor !== actorId) || (action !== undefined && row.action !== action)) continue
        bytes += row.bytes
        found.push(row)
      }
      const { rows: texts } = await ask<{ id: string; before: string | null; after: string | null }>(
        'SELECT id, before, after FROM audit WHERE id = ANY($1::bigint[])',
        [found.map(({ id }) => id)],
      )
      const changes = new Map(texts.map((row) => [row.id, row]))
      return { data: found.map((row) => entryOf(row, changes.get(row.id))), next }
    })
  }

  async note(entry: NewAuditEntry): Promise<void> {
    const { database, ids, nowMs } = this.#parts
    await writeAudit((text, values) => database.query(text, values), ids, entry, nowMs())
  }

  async drop(beforeMs: number): Promise<void> {
    let count = DROPPED_PER_STEP
    while (count === DROPPED_PER_STEP && !this.#parts.isClosed()) {
      ;({ count } = await this.#parts.database.query(
        `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < $1 ORDER BY id LIMIT ${DROPPED_PER_STEP} FOR UPDATE SKIP LOCKED)`,
        [rowIdAt(beforeMs)],
      ))
    }
  }
}

function entryOf(row: AuditRow, changes: { before: string | null; after: string | null } | undefined): AuditEntry {
  return {
    id: row.id,
    atMs: row.at,
    actor: { id: row.actor, name: readText(row.actor_name) },
    action: row.action,
    subject: row.subject === null ? null : readText(row.subject),
    before: parsed(changes?.before ?? null),
    after: parsed(changes?.after ?? null),
  }
}

function parsed(text: string | null): JsonObject | null {
  return text === null ? null : (JSON.parse(text) as JsonObject)
}
