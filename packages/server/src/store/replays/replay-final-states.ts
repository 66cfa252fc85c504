// Reads the final states of deliveries from their attempts, and whether messages are still stored, for many deliveries at once.

import type { FinalStateName, RowId } from '../../model/messages.ts'
import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import { unpackBody } from '../encoding/body-bytes.ts'
import { readStoredBody } from '../port/stored-messages.ts'
import type { ReplayRows } from './replay-rows.ts'

/** The final states of deliveries with one origin, by index, and how many bytes were read for them. */
export interface FinalStates {
  states: Map<number, FinalStateName>
  bytes: number
}

/** The maximum size of the docs that one call reads. */
const BYTES_AT_ONCE = 1024 * 1024

/** Origins that were not read because of the limit of bytes are missing in the result. */
export async function finalStatesOf<Id extends RowId>(
  rows: Pick<ReplayRows<Id>, 'docs'>,
  origins: Iterable<Id>,
): Promise<Map<Id, FinalStates>> {
  const ends = new Map<Id, FinalStates>()
  const wanted = [...new Set(origins)]
  if (wanted.length === 0) return ends
  let unread: Id | undefined
  let left = BYTES_AT_ONCE
  for await (const { origin, doc } of rows.docs(wanted)) {
    let own = ends.get(origin)
    if (own === undefined) {
      if (left <= 0) {
        unread = origin
        break
      }
      own = { states: new Map(), bytes: 0 }
      ends.set(origin, own)
    }
    left -= doc.length
    own.bytes += doc.length
    for (const [state, , indexes] of (JSON.parse(doc) as AttemptDoc).f) for (const index of indexes) own.states.set(index, state)
  }
  // Origins before `unread` that have no doc: none of their deliveries has ended.
  for (const origin of wanted) {
    if (origin === unread) break
    if (!ends.has(origin)) ends.set(origin, { states: new Map(), bytes: 0 })
  }
  return ends
}

export interface StoredMessages {
  bytes: number
  /** Whether the message is stored, and is neither a duplicate nor purged. */
  has(index: number): boolean
}

export async function storedMessages<Id extends RowId>(
  rows: Pick<ReplayRows<Id>, 'bodies'>,
  segments: readonly Id[],
): Promise<Map<Id, StoredMessages>> {
  const stored = new Map<Id, StoredMessages>()
  if (segments.length === 0) return stored
  const about = { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null }
  for (const { seq, absent, body } of await rows.bodies(segments)) {
    const bytes = unpackBody(body)
    const { items } = readStoredBody(bytes, about, absent)
    stored.set(seq, { bytes: bytes.length, has: (index) => items[index] != null })
  }
  return stored
}
