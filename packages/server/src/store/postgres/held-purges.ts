// What this node holds and was purged without its knowing: asked for when word of purges may have been lost. Reads what is held
// from the store once more, so it is not for every day.

import { readStoredBody } from '../../stored-messages.ts'
import { unpackBody } from '../encoding/body-bytes.ts'
import { int8s } from './binary-arrays.ts'
import type { Database } from './database.ts'
import type { PurgedMessages } from './purge-words.ts'
import { owedIndexes, type StoredPart } from './rows.ts'

const SEGMENTS_AT_ONCE = 50

/** `own` is any name that this node gave: it tells the node. */
export async function purgedOfHeld(database: Database, own: string, onPurged: (purged: PurgedMessages[]) => void): Promise<void> {
  const { rows: held } = await database.query<{ parts: string }>(
    'SELECT parts FROM shipments WHERE holder = (SELECT holder FROM nodes WHERE num = ($1::bigint >> 12) & 511)',
    [own],
  )
  const bySegment = new Map<string, StoredPart[]>()
  for (const part of held.flatMap(({ parts }) => JSON.parse(parts) as StoredPart[])) {
    const parts = bySegment.get(part[1])
    if (parts === undefined) bySegment.set(part[1], [part])
    else parts.push(part)
  }
  const segments = [...bySegment.keys()].sort()
  for (let at = 0; at < segments.length; at += SEGMENTS_AT_ONCE) {
    const { rows } = await database.query<{ seq: string; count: number; absent: number[] | null; body: Buffer }>(
      'SELECT seq, count, absent, body FROM segments WHERE seq = ANY($1::bigint[])',
      [int8s(segments.slice(at, at + SEGMENTS_AT_ONCE))],
    )
    const purged = rows.map(({ seq, count, absent, body }) => {
      const { items } = readStoredBody(unpackBody(body), { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null })
      const owed = new Set((bySegment.get(seq) ?? []).flatMap(([, , indexes]) => owedIndexes(indexes, count, absent)))
      return { segment: seq, indexes: [...owed].filter((index) => items[index] == null) }
    })
    onPurged(purged.filter(({ indexes }) => indexes.length > 0))
  }
}
