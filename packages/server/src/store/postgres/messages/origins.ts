// From the name of a delivery to what it stands for. Replays have rows of their own; any other was named by the node that
// accepted its segment, right after it. So the segment is among the last ones before the name that the same node has made, and
// nothing has to be indexed by delivery.

import type { Routes } from '../../encoding/stored-parts.ts'
import type { Origin } from '../../history/delivery-rows.ts'
import type { Ask } from '../session/database.ts'

/** A segment and its shipments are named in one go. */
const NAMED_WITHIN = String(5_000n << 21n)
/** Segments of the same node that may have come in between: of one group, of which a segment of no destination has none. */
export const LOOKED_AT = 64

export async function resolveOrigin(ask: Ask, origin: string): Promise<Origin<string> | undefined> {
  const { rows: replays } = await ask<{ destination: string; segment: string; idx: number }>(
    'SELECT destination, segment, idx FROM replays WHERE origin = $1 ORDER BY idx',
    [origin],
  )
  if (replays[0]) {
    const { destination, segment } = replays[0]
    return { destination, segment, indexes: replays.map(({ idx }) => idx), replay: true }
  }
  const { rows } = await ask<{ seq: string; routes: string }>(
    `SELECT seq, routes FROM segments WHERE seq < $1 AND seq > $1::bigint - ${NAMED_WITHIN} AND (seq >> 12) & 511 = ($1::bigint >> 12) & 511
     ORDER BY seq DESC LIMIT ${LOOKED_AT}`,
    [origin],
  )
  for (const { seq, routes } of rows) {
    const route = (JSON.parse(routes) as Routes<string>).s.find(([, id]) => id === origin)
    if (route) return { destination: route[0], segment: seq, indexes: route[2], replay: false }
  }
  return undefined
}
