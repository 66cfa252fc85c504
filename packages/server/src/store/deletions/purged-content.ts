// Removes messages from the content of a segment: those of users, or those that are no longer kept. Both adapters purge with this.

import type { JsonObject } from '@switchyard/protocol'
import type { SegmentContent } from '../../model/messages.ts'
import { packBody, unpackBody } from '../encoding/body-bytes.ts'
import { clearUser, KEY_WORDS } from '../encoding/segment-keys.ts'
import type { Routes } from '../encoding/stored-parts.ts'
import { withoutViolations } from '../encoding/violations-column.ts'
import { readStoredBody, writeStoredBody } from '../port/stored-messages.ts'

export interface PurgedContent {
  keys: Uint8Array
  body: Uint8Array
  /** Whether no message of the call remains, so that fields of the call itself, such as its IP address, are removed too. */
  isEmpty: boolean
  /** The indexes of the purged messages, without duplicates, which were never accepted. */
  indexes: number[]
}

interface StoredRow {
  body: Uint8Array
  keys: Uint8Array
  absent: readonly number[]
}

/** `possible`: the indexes of messages whose keys match one of the users. Returns undefined if none of these messages belongs to one of the users. */
export function withoutUsers(row: StoredRow, possible: readonly number[], userIds: ReadonlySet<string>): PurgedContent | undefined {
  const content = contentOf(row)
  // A damaged body that may contain messages of the users is removed as a whole: it cannot be parsed, and its bytes may still contain those messages.
  const theirs = content.isUnreadable ? possible : possible.filter((index) => isOfUsers(content.items[index] ?? {}, userIds))
  return theirs.length === 0 ? undefined : without(row, content, theirs)
}

/** Undefined if there is nothing else. A damaged body is left as it is. */
export function withOnlyMessages(row: StoredRow, kept: ReadonlySet<number>): PurgedContent | undefined {
  const content = contentOf(row)
  if (content.isUnreadable) return undefined
  const others = content.items.flatMap((item, index) => (item == null || kept.has(index) ? [] : [index]))
  return others.length === 0 ? undefined : without(row, content, others)
}

/** Includes the duplicates, whose bytes are stored too. */
function contentOf({ body }: StoredRow): SegmentContent {
  return readStoredBody(unpackBody(body), { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null })
}

function without(row: StoredRow, content: SegmentContent, theirs: readonly number[]): PurgedContent {
  const count = row.keys.length / (KEY_WORDS * 4)
  const items = content.isUnreadable ? Array.from({ length: count }, () => null) : [...content.items]
  // A copy, because the bytes may be a slice of a larger buffer.
  const words = new Uint32Array(new Uint8Array(row.keys).buffer)
  for (const index of [...theirs, ...row.absent]) {
    items[index] = null
    // The key of the message is kept, so that a late retry of it is still a duplicate. The hashes of the user are removed.
    clearUser(words, index * KEY_WORDS)
  }
  const isEmpty = items.every((item) => item == null)
  const { sentAt, context, integrations } = content
  const body = writeStoredBody(isEmpty ? { batch: items } : { batch: items, sentAt, context, integrations })
  return {
    keys: new Uint8Array(words.buffer),
    body: packBody(body),
    isEmpty,
    indexes: theirs.filter((index) => !row.absent.includes(index)),
  }
}

/** Whether the sample of a rejected message names one of the users. It may be cut off, and need not be valid JSON. */
export function isSampleOf(sample: string, userIds: Iterable<string>): boolean {
  for (const userId of userIds) if (sample.includes(JSON.stringify(userId))) return true
  return false
}

/** A message belongs to its user, and an alias also to the previous user. */
export function isOfUsers({ userId, previousId }: JsonObject, userIds: ReadonlySet<string>): boolean {
  return (typeof userId === 'string' && userIds.has(userId)) || (typeof previousId === 'string' && userIds.has(previousId))
}

export interface TrimmedSegment extends Omit<PurgedContent, 'isEmpty'> {
  violations: string | null
  routes: string
}

export interface SegmentToTrim extends StoredRow {
  violations: string | null
  routes: string
}

/**
 * After the retention time, only the messages in quarantine are kept of a segment, with those that were released and may be pending. The others
 * leave an empty place, as purged messages do, and the text of their attempts is removed by the caller. `held`: the indexes of the messages in
 * quarantine. Undefined if the segment was trimmed before.
 */
export function trimSegment(segment: SegmentToTrim, held: readonly number[]): TrimmedSegment | undefined {
  const routes = JSON.parse(segment.routes) as Routes
  if (routes.t === 1) return undefined
  const released = (routes.q ?? []).flatMap(([outcome, , indexes]) => (outcome === 'released' ? indexes : []))
  const left = withOnlyMessages(segment, new Set([...held, ...released]))
  return {
    body: left?.body ?? segment.body,
    keys: left?.keys ?? segment.keys,
    indexes: left?.indexes ?? [],
    violations: withoutViolations(segment.violations, left?.indexes ?? []),
    routes: JSON.stringify({ ...routes, t: 1 } satisfies Routes),
  }
}
