// How deliveries ended, from the attempts at them, and whether messages are still stored: read once for many.

import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import { unpackBody } from '../encoding/body-bytes.ts'
import type { FinalStateName, RowId } from '../port/model.ts'
import { readStoredBody } from '../port/stored-messages.ts'
import type { ReplayRows } from './replay-rows.ts'

/** What ended of deliveries with one origin, and what it took to read. */
export interface Ends {
  states: Map<number, FinalStateName>
  bytes: number
}

export async function endsOf<Id extends RowId>(rows: Pick<ReplayRows<Id>, 'docs'>, origins: Iterable<Id>): Promise<Map<Id, Ends>> {
  const ends = new Map<Id, Ends>()
  for (const origin of origins) ends.set(origin, { states: new Map(), bytes: 0 })
  if (ends.size === 0) return ends
  for (const { origin, doc } of await rows.docs([...ends.keys()])) {
    const own = ends.get(origin) as Ends
    own.bytes += doc.length
    for (const [state, , indexes] of (JSON.parse(doc) as AttemptDoc).f) for (const index of indexes) own.states.set(index, state)
  }
  return ends
}

export interface StoredMessages {
  bytes: number
  /** Whether the message is there: neither a duplicate nor purged. */
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
