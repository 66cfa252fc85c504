// Pending shipments, in an order in which a row keeps its position while it is claimed, released and claimed again. Part 0 are shipments that were
// never attempted, by destination and row id; part 1 are those that wait for a retry, by destination, due time and row id; part 2 are those whose
// messages are delivered in order, by destination and row id. Each part is read by its index, and shipments that nodes hold are merged in.

import type { StoredPart } from '../../encoding/stored-parts.ts'
import type { PendingPlace, PendingRow } from '../../history/delivery-rows.ts'
import { MAX_STEP_OF_PENDING, steps } from '../../history/paging.ts'
import type { Ask } from '../session/database.ts'
import { afterRowId, OLDEST } from '../tables/ids.ts'
import { attemptsOf } from '../tables/ordered-rows.ts'
import { holders } from '../tables/shipment-holders.ts'

interface Shipment {
  destination: string
  due: number
  id: string
  attempt: number
  first_attempt: number | null
  replay: boolean
  parts: string
}

/** A position has four values: the part, and the destination, due time and row id of the shipment. */
export function firstPending(destination: string | null, part = 0): PendingPlace {
  return [part, destination ?? OLDEST, 0, OLDEST]
}

export async function* walkPending(
  ask: Ask,
  destination: string | null,
  from: PendingPlace,
  first: string,
): AsyncGenerator<readonly PendingRow<string>[]> {
  const held = await holders(ask)
  for (const part of [0, 1, 2].slice(from[0] as number)) {
    yield* rowsOf(ask, destination, held, part === from[0] ? from : firstPending(destination, part), first)
  }
}

/** Yields the rows of one part, from a position on. In the first part, skips rows older than `first`. */
function rowsOf(
  ask: Ask,
  destination: string | null,
  held: readonly string[],
  from: PendingPlace,
  first: string,
): AsyncGenerator<readonly PendingRow<string>[]> {
  const isRetry = from[0] === 1
  const which = ['attempt = 0', 'attempt > 0', 'attempt < 0'][from[0] as number] as string
  // A single destination is compared with `=`; in a row comparison, the index scan would start at its first row and not at the position.
  const order = [...(destination === null ? ['destination'] : []), ...(isRetry ? ['due'] : []), 'id']
  const some = (holder: string): string =>
    `(SELECT destination, due, id, attempt, first_attempt, replay, parts FROM shipments
      WHERE ${holder} AND ${which} AND ${destination === null ? '' : `destination = $${order.length + 3} AND `}
        (${order.join(', ')}) >= (${order.map((_, at) => `$${at + 3}`).join(', ')})
      ORDER BY ${order.join(', ')} LIMIT $1)`
  const sql = `${some('holder = 0')} UNION ALL ${some('holder = ANY($2::bigint[])')} ORDER BY ${order.join(', ')} LIMIT $1`
  return steps<PendingRow<string>, PendingPlace>(
    from,
    ({ place: [part, to, due, id] }) => {
      const next = afterRowId(id as string)
      return [part, to, due, !isRetry && BigInt(next) < BigInt(first) ? first : next] as PendingPlace
    },
    async ([part, to, due, id], count) => {
      const values = [...(destination === null ? [to] : []), ...(isRetry ? [due] : []), id] as (number | string)[]
      const { rows } = await ask<Shipment>(sql, [count, held, ...values, ...(destination === null ? [] : [destination])])
      return rows.map((row) => ({
        place: [part as number, row.destination, isRetry ? row.due : 0, row.id],
        destination: row.destination,
        attempts: attemptsOf(row.attempt, row.first_attempt),
        replay: row.replay,
        dueAtMs: row.due,
        firstAttemptAtMs: row.first_attempt,
        parts: JSON.parse(row.parts) as StoredPart<string>[],
      }))
    },
    MAX_STEP_OF_PENDING,
  )
}
