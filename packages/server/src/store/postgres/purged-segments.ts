// A segment without the messages of some users: its body and its keys. Who they are, and which segments, is told by purging.ts.

import { readStoredBody, writeStoredBody } from '../../stored-messages.ts'
import { packBody, unpackBody } from '../encoding/body-bytes.ts'
import { clearUser, KEY_WORDS } from '../encoding/segment-keys.ts'
import { bools, byteas, int8s } from './binary-arrays.ts'
import type { Ask } from './database.ts'

/** As it is without them. */
export interface PurgedSegment {
  seq: string
  keys: Uint8Array
  body: Uint8Array
  isEmpty: boolean
  /** Without the duplicates. */
  indexes: number[]
}

/** Undefined when none of those that might be theirs is. Duplicates that are in the bytes go with them. */
export function withoutUsers(
  row: { seq: string; absent: number[] | null; keys: Buffer; body: Buffer },
  possible: readonly number[],
  userIds: ReadonlySet<string>,
): PurgedSegment | undefined {
  const absent = row.absent ?? []
  // With the duplicates, whose bytes are there too.
  const content = readStoredBody(unpackBody(row.body), { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null })
  const items = [...content.items]
  const theirs = possible.filter((index) => {
    const { userId, previousId } = items[index] ?? {}
    return (typeof userId === 'string' && userIds.has(userId)) || (typeof previousId === 'string' && userIds.has(previousId))
  })
  if (theirs.length === 0) return undefined
  const words = new Uint32Array(new Uint8Array(row.keys).buffer)
  for (const index of [...theirs, ...absent]) {
    items[index] = null
    // The message's own key stays: a late retry of it is still a duplicate. What points to the user goes.
    clearUser(words, index * KEY_WORDS)
  }
  const isEmpty = items.every((item) => item == null)
  const { sentAt, context, integrations } = content
  const body = writeStoredBody(isEmpty ? { batch: items } : { batch: items, sentAt, context, integrations })
  return {
    seq: row.seq,
    keys: new Uint8Array(words.buffer),
    body: packBody(body),
    isEmpty,
    indexes: theirs.filter((index) => !absent.includes(index)),
  }
}

/** What the rows were before is in the server's files until it vacuums them. */
export async function writePurgedSegments(ask: Ask, segments: readonly PurgedSegment[], range: readonly [string, string]): Promise<void> {
  await ask(
    `UPDATE segments s SET keys = u.keys, body = u.body, ip = CASE WHEN u.is_empty THEN NULL ELSE s.ip END,
       trace = CASE WHEN u.is_empty THEN NULL ELSE s.trace END
     FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::boolean[]) AS u (seq, keys, body, is_empty)
     WHERE s.seq = u.seq AND s.seq BETWEEN $5 AND $6`,
    [
      int8s(segments.map(({ seq }) => seq)),
      byteas(segments.map(({ keys }) => keys)),
      byteas(segments.map(({ body }) => body)),
      bools(segments.map(({ isEmpty }) => isEmpty)),
      ...range,
    ],
  )
}
