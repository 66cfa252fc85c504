// Removes text from the stored attempts of purged messages: errors, responses, the output of transformations, and URLs that integrations made. Any
// of them may quote a message. Times, statuses, reasons and counts stay. A request may have contained messages of several users, and of
// several segments; each of its records repeats the text, so it is removed from all of them. Both adapters purge with this.

import type { RequestRecord, RowId } from '../../model/messages.ts'
import { type AttemptDoc, requestsOf, writeAttemptDoc } from '../encoding/attempt-doc.ts'
import type { Awaitable, Sql } from '../encoding/sql.ts'
import type { Routes } from '../encoding/stored-parts.ts'
import { hasText, sharedRequest, withoutText } from '../port/without-deleted.ts'

/** A segment from which messages were purged. */
export interface PurgedSegment<Id extends RowId> {
  segment: Id
  /** As it is stored. */
  routes: string
  /** The indexes of the purged messages. */
  indexes: readonly number[]
}

export interface AttemptTextRows<Id extends RowId> {
  /** The origins of replays of the segments, and of messages that were released from quarantine. */
  replays(segments: readonly Id[]): Awaitable<readonly { segment: Id; origin: Id }[]>
  /** The attempts with these origins, locked if others can change them. */
  attempts(origins: readonly Id[]): Awaitable<readonly { id: Id; origin: Id; doc: string }[]>
  rewrite(attempts: readonly { id: Id; doc: string }[]): Awaitable<void>
}

export function attemptTextRows<Id extends RowId>(sql: Sql<Id>, rewrite: AttemptTextRows<Id>['rewrite']): AttemptTextRows<Id> {
  const { order } = sql
  return {
    rewrite,
    replays: (segments) => sql.all(`SELECT DISTINCT segment, origin FROM replays WHERE ${sql.among('segment')}`, [sql.list(segments)]),
    attempts: (origins) =>
      sql.all(
        // Attempts are later than their origins, so older partitions are not read. Locked, because another purge may be rewriting them.
        `SELECT id, origin, doc FROM attempts WHERE ${sql.among('origin')} AND id >= ? ORDER BY id ${sql.lock('FOR UPDATE')}`,
        [sql.list(origins), order.at(Math.min(...origins.map((origin) => order.msOf(origin))) - order.skewMs)],
      ),
  }
}

/** The attempts of one origin may have docs of several megabytes. */
const ORIGINS_AT_ONCE = 50

export async function purgeAttempts<Id extends RowId>(rows: AttemptTextRows<Id>, purged: readonly PurgedSegment<Id>[]): Promise<void> {
  const indexes = await indexesByOrigin(rows, purged)
  // Requests that also contained messages of other records, by the origin of the record that lists them all.
  const shared = new Set<string>()
  const leads = new Set<Id>()
  await rewriteAttempts(rows, [...indexes.keys()], (request, origin) => {
    if (!hasText(request) || !request.indexes.some((index) => indexes.get(origin)?.has(index))) return false
    const key = sharedRequest(request)
    if (key !== undefined) {
      shared.add(key)
      leads.add(request.gathered?.lead as Id)
    }
    return true
  })
  if (shared.size === 0) return
  const others = new Set<Id>()
  const isShared = (request: RequestRecord): boolean => shared.has(sharedRequest(request) ?? '')
  await rewriteAttempts(rows, [...leads], (request) => {
    if (!isShared(request)) return false
    for (const { origin } of request.gathered?.parts ?? []) others.add(origin as Id)
    return true
  })
  await rewriteAttempts(
    rows,
    [...others].filter((origin) => !leads.has(origin)),
    isShared,
  )
}

async function rewriteAttempts<Id extends RowId>(
  rows: AttemptTextRows<Id>,
  origins: readonly Id[],
  isPurged: (request: RequestRecord, origin: Id) => boolean,
): Promise<void> {
  for (let at = 0; at < origins.length; at += ORIGINS_AT_ONCE) {
    const found = await rows.attempts(origins.slice(at, at + ORIGINS_AT_ONCE))
    const changed = found.flatMap(({ id, origin, doc }) => {
      const left = docWithoutText(doc, (request) => isPurged(request, origin))
      return left === null ? [] : [{ id, doc: left }]
    })
    if (changed.length > 0) await rows.rewrite(changed)
  }
}

/** Returns null if there is nothing to remove. */
function docWithoutText(text: string, isPurged: (request: RequestRecord) => boolean): string | null {
  const doc = JSON.parse(text) as AttemptDoc
  let isChanged = false
  const requests = requestsOf(doc).map((request) => {
    // Asked first, because a request whose text was removed before may still list the other records.
    if (!isPurged(request) || !hasText(request)) return request
    isChanged = true
    return withoutText(request)
  })
  if (!isChanged) return null
  const finals = doc.f.map(([state, reason, indexes]) => ({ state, reason, indexes }))
  const [destinationId, prefix, indexes, withheld] = doc.d ?? []
  const deadLetter =
    destinationId === undefined || prefix === undefined || indexes === undefined ? undefined : { destinationId, prefix, indexes, withheld }
  return writeAttemptDoc({ requests, finals, deadLetter })
}

async function indexesByOrigin<Id extends RowId>(
  rows: AttemptTextRows<Id>,
  purged: readonly PurgedSegment<Id>[],
): Promise<Map<Id, ReadonlySet<number>>> {
  const indexes = new Map<Id, ReadonlySet<number>>()
  const bySegment = new Map(purged.map((each) => [each.segment, new Set(each.indexes)]))
  for (const { segment, routes } of purged)
    for (const [, origin] of (JSON.parse(routes) as Routes<Id>).s) indexes.set(origin, bySegment.get(segment) as Set<number>)
  for (const { segment, origin } of await rows.replays([...bySegment.keys()])) indexes.set(origin, bySegment.get(segment) as Set<number>)
  return indexes
}
