// A segment as it is left when users' messages are taken out of it: the rule of a purge, the same wherever segments are stored.

import type { JsonObject } from '@switchyard/protocol'
import { packBody, unpackBody } from '../encoding/body-bytes.ts'
import { clearUser, KEY_WORDS } from '../encoding/segment-keys.ts'
import { readStoredBody, writeStoredBody } from '../port/stored-messages.ts'

export interface PurgedContent {
  keys: Uint8Array
  body: Uint8Array
  /** Nothing is left of the call: what came with all of its messages goes, too. */
  isEmpty: boolean
  /** Those of the users' messages that were accepted; duplicates among them were owed to nobody. */
  indexes: number[]
}

/** `possible`: the indexes whose keys speak for one of the users. Undefined when none of them is theirs. */
export function withoutUsers(
  row: { body: Uint8Array; keys: Uint8Array; absent: readonly number[] },
  possible: readonly number[],
  userIds: ReadonlySet<string>,
): PurgedContent | undefined {
  // With the duplicates, whose bytes are there too.
  const content = readStoredBody(unpackBody(row.body), { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null })
  const { isUnreadable } = content
  const items = isUnreadable ? Array.from({ length: row.keys.length / (KEY_WORDS * 4) }, () => null) : [...content.items]
  // A damaged body that may contain messages of the users is removed as a whole: the rest cannot be read, and its bytes may still show theirs.
  const theirs = isUnreadable ? possible : possible.filter((index) => isOfUsers(items[index] ?? {}, userIds))
  if (theirs.length === 0) return undefined
  // A copy of its own, whatever kind of bytes came.
  const words = new Uint32Array(new Uint8Array(row.keys).buffer)
  for (const index of [...theirs, ...row.absent]) {
    items[index] = null
    // The message's own key stays: a late retry of it is still a duplicate. What points to the user goes.
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

/** A message belongs to its user, and an alias also to the previous user. */
export function isOfUsers({ userId, previousId }: JsonObject, userIds: ReadonlySet<string>): boolean {
  return (typeof userId === 'string' && userIds.has(userId)) || (typeof previousId === 'string' && userIds.has(previousId))
}
