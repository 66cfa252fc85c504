// The rows of dead letters: a segment of the source of the original messages, and one shipment with all of them. They are written by the
// transaction that ends the original deliveries. They do not count as accepted messages. Both adapters use this.

import { packBody } from '../encoding/body-bytes.ts'
import { type Seed, sourceSeed } from '../encoding/fingerprint.ts'
import { KEY_WORDS, writeKeys } from '../encoding/segment-keys.ts'
import { writeTrace } from '../encoding/trace-column.ts'
import { writeStoredBody } from '../port/stored-messages.ts'
import type { DeadLetters, RowId } from '../store.ts'

/** The content of the segment, without row ids. */
export interface LetterContent {
  destinationId: string
  sourceId: string
  atMs: number
  trace: string | null
  count: number
  keys: Uint32Array
  body: Uint8Array
}

export function letterContent(letters: DeadLetters, seed: Seed): LetterContent {
  const { destinationId, sourceId, atMs, trace, context, integrations, items } = letters
  const keys = new Uint32Array(items.length * KEY_WORDS)
  writeKeys(
    items.map(({ messageId }) => messageId),
    items,
    sourceSeed(sourceId, seed),
    keys,
    0,
  )
  const body = packBody(writeStoredBody({ batch: items, context, integrations }))
  return { destinationId, sourceId, atMs: Math.floor(atMs), trace: writeTrace(trace), count: items.length, keys, body }
}

/** The row id of the shipment follows right after that of its segment: resolveOrigins relies on this to find the segment. */
export function letterRows<Id extends RowId>(nextId: () => Id, destination: Id, count: number) {
  const segment = nextId()
  const origin = nextId()
  return {
    segment,
    origin,
    parts: JSON.stringify([[origin, segment, 0]]),
    routes: JSON.stringify({ s: [[destination, origin, 0, count]] }),
  }
}
