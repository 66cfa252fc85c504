// What is owed, in an order that a row keeps while it is taken, released and taken again: first what was never attempted, by
// destination and name; then what waits for a retry, by destination, due time and name. Each part is walked by its index,
// with what nodes hold put in between.

import { holders } from '../messages/held.ts'
import { afterRowId, msOfRowId, OLDEST } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'
import type { FoundDelivery } from './delivery-replays.ts'
import type { MessageChoice } from './message-choice.ts'
import { isWithin, mayBeWithin, rowCursorOf, type Times, walk } from './paging.ts'
import { owedIndexes, type StoredPart } from './rows.ts'

/** Which part, the row in it, and the place in the row. */
export type PendingCursor = readonly [retries: number, destination: string, due: number, id: string, skip: number]

export type PendingStep =
  | { delivery: FoundDelivery; place: PendingCursor }
  /** A row that begins there, after so many. */
  | { passed: number; place: PendingCursor }

/** What a part does not say of the segment. */
interface OwedSegment {
  count: number
  absent: number[] | null
  received_at: number
}

interface PendingRow {
  destination: string
  due: number
  id: string
  attempt: number
  replay: boolean
  parts: string
  segments: Map<string, OwedSegment>
}

/** Rows hold more than those of other lists: a batch that is retried has the names of a thousand messages. */
const LONGEST_STEP = 300

export async function* walkPending(
  ask: Ask,
  destination: string | null,
  times: Times,
  cursor: string | null,
  choice?: MessageChoice,
): AsyncGenerator<PendingStep> {
  const start = rowCursorOf('p', cursor, [0, destination ?? OLDEST, 0, OLDEST, 0])
  const held = await holders(ask)
  let passed = 0
  for (const retries of [0, 1].slice(start[0])) {
    const from = retries === start[0] ? start : ([retries, destination ?? OLDEST, 0, OLDEST, 0] as const)
    for await (const row of rowsOf(ask, destination, held, times, from, choice)) {
      const [, , , firstId, skip] = from
      const key = [retries, row.destination, row.due, row.id] as const
      yield { passed: passed++, place: [...key, 0] }
      const entries = entriesOf(row)
      for (let place = row.id === firstId ? skip : 0; place < entries.length; place++) {
        const entry = entries[place] as (typeof entries)[number]
        // A replay came to be owed when it was asked for.
        const acceptedMs = row.replay ? undefined : row.segments.get(entry.segment)?.received_at
        if (!isWithin(acceptedMs ?? msOfRowId(entry.origin), times)) continue
        const { attempt: attempts, replay, due } = row
        const atMs = attempts > 0 ? due : null
        const state = { state: 'pending', reason: null } as const
        yield { delivery: { ...entry, ...state, destination: row.destination, attempts, replay, atMs }, place: [...key, place] }
      }
    }
  }
}

/** The rows of one part, from a place on. */
async function* rowsOf(
  ask: Ask,
  destination: string | null,
  held: readonly string[],
  times: Times,
  [retries, fromDestination, fromDue, fromId, skip]: PendingCursor,
  choice: MessageChoice | undefined,
): AsyncGenerator<PendingRow> {
  const condition = retries === 0 ? 'attempt = 0' : 'attempt > 0'
  // One destination is an equation, or the walk would begin at its first row and not at the place.
  const order = [...(destination === null ? ['destination'] : []), ...(retries === 0 ? [] : ['due']), 'id']
  const from = `(${order.join(', ')}) >= (${order.map((_, at) => `$${at + 3}`).join(', ')})`
  const some = (holder: string): string =>
    `(SELECT destination, due, id, attempt, replay, parts FROM shipments
      WHERE ${holder} AND ${condition} AND ${destination === null ? '' : `destination = $${order.length + 3} AND `}${from}
      ORDER BY ${order.join(', ')} LIMIT $1)`
  const sql = `${some('holder = 0')} UNION ALL ${some('holder = ANY($2::bigint[])')} ORDER BY ${order.join(', ')} LIMIT $1`
  const rows = walk<PendingRow, Pick<PendingRow, 'destination' | 'due' | 'id'>>(
    { destination: fromDestination, due: fromDue, id: fromId },
    (row) => ({ ...row, id: afterRowId(row.id) }),
    async (place, count) => {
      const values = [...(destination === null ? [place.destination] : []), ...(retries === 0 ? [] : [place.due]), place.id]
      const step = await ask<PendingRow>(sql, [count, held, ...values, ...(destination === null ? [] : [destination])])
      await addSegments(ask, step.rows, times)
      // Not what is before the place: a page that only looked at that once more would come no further.
      await choice?.look(step.rows.flatMap((row) => entriesOf(row).slice(row.id === fromId ? skip : 0)))
      return step
    },
    LONGEST_STEP,
  )
  yield* rows
}

/** Of those that may be asked for: a walk past a million rows of other times need not know more of them. */
async function addSegments(ask: Ask, rows: readonly PendingRow[], times: Times): Promise<void> {
  const names = new Set<string>()
  for (const { parts } of rows) for (const [origin, segment] of storedParts(parts)) if (mayBeWithin(origin, times)) names.add(segment)
  const segments = new Map<string, OwedSegment>()
  for (const row of rows) row.segments = segments
  if (names.size === 0) return
  const { rows: found } = await ask<OwedSegment & { seq: string }>(
    'SELECT seq, count, absent, received_at FROM segments WHERE seq = ANY($1::bigint[])',
    [[...names]],
  )
  for (const segment of found) segments.set(segment.seq, segment)
}

function entriesOf({ parts, segments }: PendingRow): { origin: string; segment: string; index: number }[] {
  return storedParts(parts).flatMap(([origin, segment, stored]) => {
    const about = segments.get(segment)
    // Of a segment that is no longer there, or of another time, nothing says how many messages are all of it.
    if (about === undefined && stored === 0) return []
    return owedIndexes(stored, about?.count ?? 0, about?.absent ?? null).map((index) => ({ origin, segment, index }))
  })
}

function storedParts(parts: string): StoredPart[] {
  return JSON.parse(parts) as StoredPart[]
}
