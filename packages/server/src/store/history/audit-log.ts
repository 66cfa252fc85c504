// Lists the audit log, newest first.

import type { JsonObject } from '@switchyard/protocol'
import type { AuditEntry, AuditFilter } from '../port/audit.ts'
import type { RowId } from '../port/model.ts'
import type { Page, PageRequest } from '../port/pages.ts'
import type { AuditRow, AuditRows } from './audit-rows.ts'
import { firstRow, isWithin, lastRow, ROWS_PER_PAGE, rowCursorOf, walk } from './paging.ts'

/** The maximum size of one page. An entry may contain a whole destination twice, and a page may have a thousand entries. */
const BYTES_PER_PAGE = 8 * 1024 * 1024

export async function listAudit<Id extends RowId>(
  audit: AuditRows<Id>,
  { actorId, action, subject, ...times }: AuditFilter,
  { limit, cursor }: PageRequest,
): Promise<Page<AuditEntry>> {
  const { order } = audit
  const [start] = rowCursorOf(order, 'a', cursor, [lastRow(order, times)])
  const rows = walk<AuditRow<Id>, Id>(
    start,
    ({ id }) => order.before(id),
    (from, count) => audit.newest(subject, firstRow(order, times), from, count),
  )
  const found: AuditRow<Id>[] = []
  let next: string | null = null
  let seen = 0
  let bytes = 0
  for await (const row of rows) {
    if (++seen > ROWS_PER_PAGE || found.length === limit || bytes > BYTES_PER_PAGE) {
      next = JSON.stringify(['a', row.id])
      break
    }
    if (!isWithin(order, row.atMs, times)) continue
    if ((actorId !== undefined && row.actorId !== actorId) || (action !== undefined && row.action !== action)) continue
    bytes += row.bytes
    found.push(row)
  }
  const texts = new Map((await audit.texts(found.map(({ id }) => id))).map((each) => [each.id, each]))
  const data = found.map(({ id, atMs, actorId: by, actorName: name, action: done, subject: of }) => ({
    id: String(id),
    atMs,
    actor: { id: by, name },
    action: done,
    subject: of,
    before: parsed(texts.get(id)?.before),
    after: parsed(texts.get(id)?.after),
  }))
  return { data, next }
}

function parsed(text: string | null | undefined): JsonObject | null {
  return text == null ? null : (JSON.parse(text) as JsonObject)
}
