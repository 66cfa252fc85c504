// What actions of integrations keep between messages, such as when a user was last called: entries with a time at which they expire, by
// destination and subscription. Stored as documents; settlements write them with the outcomes of the messages that they are from.

import { createHash } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import type { RowId } from '../../model/messages.ts'
import type { DocumentStore, StoredDocument } from './documents.ts'

export interface StateEntry {
  subscriptionId: string
  key: string
  value: string
  /** In wall time. */
  setAtMs: number
  expiresAtMs: number
}

/** An entry that is written with a settlement. */
export interface StateChange extends StateEntry {
  /** The message whose run left it; null if it was a batch of several. It is deleted with the user of the message. */
  owner: { sourceId: string; segment: RowId; message: JsonObject } | null
}

/** The kind of the documents. */
export const INTEGRATION_STATE = 'integration-state'

/** The entries of one destination. If there are more, those that expire first are removed. */
export const MAX_ENTRIES = 10_000
const PAGE = 2_000
/** Longer keys and values are not kept. */
export const MAX_KEY_CHARS = 500
export const MAX_VALUE_CHARS = 2_000
export const MAX_TTL_MS = 30 * 24 * 3_600_000

/** The prefix of the keys of a destination's documents. */
export function statePrefix(destinationId: string): string {
  return `${destinationId} `
}

/** The suffix of the keys of a user's documents. */
export function stateSuffix(userId: string): string {
  return hashOf(userId)
}
export const SUFFIX_CHARS = 40

/** Ordered by key and each key once, so that nodes that write at the same time do not deadlock. */
export function stateDocuments(destinationId: string, changes: readonly StateChange[]): { key: string; atMs: number; doc: string }[] {
  const documents = new Map<string, { key: string; atMs: number; doc: string }>()
  for (const { owner, subscriptionId, key, value, setAtMs, expiresAtMs } of changes) {
    const userId = owner?.message['userId']
    const user = typeof userId === 'string' && userId !== '' ? stateSuffix(userId) : '-'
    const place = `${statePrefix(destinationId)}${hashOf(`${subscriptionId} ${key}`)} ${user}`
    documents.set(place, { key: place, atMs: Math.floor(expiresAtMs), doc: JSON.stringify({ subscriptionId, key, value, setAtMs }) })
  }
  return [...documents.values()].sort((one, other) => (one.key < other.key ? -1 : 1))
}

/** Returns the entries of a destination that have not expired, and removes those that have, or are too many. */
export async function readState(documents: DocumentStore, destinationId: string, nowMs: number): Promise<StateEntry[]> {
  const prefix = statePrefix(destinationId)
  const stored: StoredDocument[] = []
  for (let page: StoredDocument[] = []; ; ) {
    page = await documents.list(INTEGRATION_STATE, { prefix, order: 'key', after: page.at(-1), limit: PAGE })
    stored.push(...page)
    if (page.length < PAGE) break
  }
  const latest = stored.filter(({ atMs }) => atMs > nowMs).sort((one, other) => other.atMs - one.atMs)
  const beforeMs = latest.length > MAX_ENTRIES ? (latest[MAX_ENTRIES - 1] as StoredDocument).atMs : nowMs
  if (stored.some(({ atMs }) => atMs < beforeMs)) await documents.drop(INTEGRATION_STATE, { prefix, beforeMs })
  return latest.slice(0, MAX_ENTRIES).map(({ atMs: expiresAtMs, doc }) => Object.assign(doc as unknown as StateEntry, { expiresAtMs }))
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, SUFFIX_CHARS)
}
