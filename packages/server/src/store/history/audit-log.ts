// The audit log: lists it, newest first, writes an entry in the transaction of the change, and drops entries when their retention time is over.

import type { JsonObject } from '@switchyard/protocol'
import { type Awaitable, insertRow, type Sql } from '../encoding/sql.ts'
import type { Actor, AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest, RowId } from '../store.ts'
import { firstRow, isWithin, lastRow, ROWS_PER_PAGE, rowCursorOf, walk } from './paging.ts'

/** The maximum size of one page. An entry may contain a whole destination twice, and a page may have a thousand entries. */
const BYTES_PER_PAGE = 8 * 1024 * 1024
const DROPPED_PER_STEP = 1_000
/** Changes that no caller of the API makes. */
const SERVICE_IDS: ReadonlySet<string> = new Set(['service', 'maintenance'])

interface AuditRow<Id extends RowId> {
  id: Id
  atMs: number
  actorId: string
  actorName: string
  action: string
  subject: string | null
  /** What else is known about the actor (ActorAbout), and the ids of the sources, both as JSON. */
  actorAbout: string | null
  sources: string | null
  /** The size of `before` and `after` together, in bytes. */
  bytes: number
}

/** The entry of an older version has none; its actor is a token. */
type ActorAbout = Pick<Actor, 'type' | 'owner' | 'subject' | 'email'>

export async function listAudit<Id extends RowId>(
  sql: Sql<Id>,
  { actorId, action, subject, sourceIds, ...times }: AuditFilter,
  { limit, cursor }: PageRequest,
): Promise<Page<AuditEntry>> {
  const { order } = sql
  const [start] = rowCursorOf(order, 'a', cursor, [lastRow(order, times)])
  const rows = walk<AuditRow<Id>, Id>(
    start,
    ({ id }) => order.before(id),
    (from, count) => newest(sql, subject, firstRow(order, times), from, count),
  )
  const scope = sourceIds && new Set(sourceIds)
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
    if (scope !== undefined && !concernsOnly(scope, row.sources)) continue
    bytes += row.bytes
    found.push(row)
  }
  const stored = await sql.all<{ id: Id; before: string | null; after: string | null }>(
    `SELECT id, before, after FROM audit WHERE ${sql.among('id')}`,
    [sql.list(found.map(({ id }) => id))],
  )
  const texts = new Map(stored.map((each) => [each.id, each]))
  const data = found.map(({ id, atMs, actorId: by, actorName: name, actorAbout, sources, action: done, subject: of }) => ({
    id: String(id),
    atMs,
    actor: { id: by, name, type: SERVICE_IDS.has(by) ? ('service' as const) : ('token' as const), owner: null, ...aboutOf(actorAbout) },
    action: done,
    subject: of,
    sources: sources === null ? null : (JSON.parse(sources) as string[]),
    before: parsed(texts.get(id)?.before),
    after: parsed(texts.get(id)?.after),
  }))
  return { data, next }
}

/** With row ids from `first` to `last`. Reads only the sizes of the texts, which may be large. */
async function newest<Id extends RowId>(sql: Sql<Id>, subject: string | undefined, first: Id, last: Id, limit: number) {
  const rows = await sql.all<AuditRow<Id>>(
    `SELECT id, at AS "atMs", actor AS "actorId", actor_name AS "actorName", action, subject, actor_about AS "actorAbout", sources,
       coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) AS bytes
     FROM audit WHERE ${subject === undefined ? '' : 'subject = ? AND '}id >= ? AND id <= ? ORDER BY id DESC LIMIT ?`,
    [...(subject === undefined ? [] : [sql.text(subject)]), first, last, limit],
  )
  return rows.map((row) => sql.read(row, 'actorName', 'subject'))
}

/** In the transaction of the change. Does nothing without an entry. */
export function writeAudit<Id extends RowId>(
  sql: Sql<Id>,
  ids: { next(): Id },
  entry: NewAuditEntry | undefined,
  atMs: number,
): Awaitable<unknown> {
  if (entry === undefined) return undefined
  const { actor, action, subject, before, after, sources = null } = entry
  const { type, owner, subject: personSubject, email } = actor
  const about: ActorAbout = {
    ...(type && { type }),
    ...(owner && { owner: { subject: owner.subject, email: owner.email } }),
    ...(personSubject !== undefined && { subject: personSubject, email: email ?? null }),
  }
  const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))
  return insertRow(sql, 'audit', {
    id: ids.next(),
    at: atMs,
    actor: actor.id,
    actor_name: sql.text(actor.name),
    actor_about: Object.keys(about).length === 0 ? null : json(about),
    action,
    subject: sql.text(subject),
    sources: json(sources),
    before: json(before),
    after: json(after),
  })
}

/** Drops some of the entries from before `beforeMs`, and returns how many. */
export function dropAudit(sql: Sql, beforeMs: number): Awaitable<number> {
  const old = `SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ${DROPPED_PER_STEP} ${sql.lock('FOR UPDATE SKIP LOCKED')}`
  return sql.run(`DELETE FROM audit WHERE id IN (${old})`, [sql.order.at(beforeMs)])
}

function concernsOnly(scope: ReadonlySet<string>, sources: string | null): boolean {
  const ids = sources === null ? [] : (JSON.parse(sources) as string[])
  return ids.length > 0 && ids.every((id) => scope.has(id))
}

function aboutOf(text: string | null): ActorAbout {
  return text === null ? {} : (JSON.parse(text) as ActorAbout)
}

function parsed(text: string | null | undefined): JsonObject | null {
  return text == null ? null : (JSON.parse(text) as JsonObject)
}
