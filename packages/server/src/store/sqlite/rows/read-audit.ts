// Who did what, as it is asked for: newest first.

import type { JsonObject } from '@switchyard/protocol'
import { cursorOf, NEWEST, ROWS_PER_PAGE } from '../../history/paging.ts'
import type { AuditEntry, AuditFilter, Page, PageRequest } from '../../store.ts'
import { rowIdAt } from '../schema/ids.ts'
import type { Rows } from './rows.ts'

interface AuditRow {
  id: number
  at: number
  actor: string
  actor_name: string
  action: string
  subject: string | null
  before: string | null
  after: string | null
}

/** Of one page: an entry may hold all of a destination, twice, and a page a thousand of them. */
const CHARACTERS_PER_PAGE = 8 * 1024 * 1024

export class AuditReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  list({ actorId, action, subject, fromMs, toMs }: AuditFilter, { limit, cursor }: PageRequest): Page<AuditEntry> {
    const [start] = cursorOf('a', cursor, [toMs === undefined ? NEWEST : rowIdAt(toMs + 1) - 1])
    const end = fromMs === undefined ? 0 : rowIdAt(fromMs)
    const rows =
      subject === undefined
        ? this.#rows.database.prepare('SELECT * FROM audit WHERE id <= ? AND id >= ? ORDER BY id DESC').iterate(start, end)
        : this.#rows.database
            .prepare('SELECT * FROM audit WHERE subject = ? AND id <= ? AND id >= ? ORDER BY id DESC')
            .iterate(subject, start, end)
    const data: AuditEntry[] = []
    let seen = 0
    let characters = 0
    for (const row of rows as unknown as Iterable<AuditRow>) {
      const isFull = data.length === limit || characters > CHARACTERS_PER_PAGE
      if (++seen > ROWS_PER_PAGE || isFull) return { data, next: JSON.stringify(['a', row.id]) }
      if ((actorId !== undefined && row.actor !== actorId) || (action !== undefined && row.action !== action)) continue
      characters += (row.before?.length ?? 0) + (row.after?.length ?? 0)
      data.push({
        id: String(row.id),
        atMs: row.at,
        actor: { id: row.actor, name: row.actor_name },
        action: row.action,
        subject: row.subject,
        before: parsed(row.before),
        after: parsed(row.after),
      })
    }
    return { data, next: null }
  }
}

function parsed(text: string | null): JsonObject | null {
  return text === null ? null : (JSON.parse(text) as JsonObject)
}
