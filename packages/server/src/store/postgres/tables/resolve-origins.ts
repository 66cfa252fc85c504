// Resolves origins, the row ids in ids of deliveries, to the segment and the destination. This takes two queries, however many origins there
// are. A replay has its own row, and so has the delivery of a message that was released from quarantine. Any other delivery got its origin from the node that accepted its segment, right after the segment's
// row id. So its segment is among the last ones of the same node before the origin, and no index by delivery is needed.

import { owedIndexes, type Routes } from '../../encoding/stored-parts.ts'
import type { Origin, ResolvedDelivery } from '../../history/delivery-ids.ts'
import { RELEASED } from '../../replays/replay-job-row.ts'
import type { Ask } from '../session/database.ts'
import { Columns } from '../session/row-parameters.ts'

/** The largest difference between the row id of a segment and those of its shipments, which are created together. */
const ID_RANGE = String(5_000n << 21n)
/** The number of segments of the same node to check. Other segments of the same group may be in between if they have no shipments. */
const SEGMENTS_CHECKED = 64

/** The columns by which `replays` identifies a delivery. */
export const DELIVERIES = new Columns<ResolvedDelivery<string>>({
  segment: ['bigint', ({ segment }) => segment],
  idx: ['integer', ({ index }) => index],
  destination: ['bigint', ({ destination }) => destination],
  origin: ['bigint', ({ origin }) => origin],
})

export async function resolveOrigins(ask: Ask, origins: readonly string[]): Promise<Map<string, Origin<string>>> {
  const found = new Map<string, Origin<string>>()
  if (origins.length === 0) return found
  const { rows: replays } = await ask<{ origin: string; destination: string; segment: string; indexes: number[]; replay: boolean }>(
    `SELECT r.origin, r.destination, r.segment, array_agg(r.idx) AS indexes, bool_and(r.state IS DISTINCT FROM '${RELEASED}') AS replay FROM unnest($1::bigint[]) AS n (origin)
     JOIN replays r ON r.origin = n.origin GROUP BY r.origin, r.destination, r.segment`,
    [origins],
  )
  for (const { origin, ...of } of replays) found.set(origin, of)
  const others = origins.filter((origin) => !found.has(origin))
  if (others.length === 0) return found
  const { rows: segments } = await ask<{ origin: string; seq: string; routes: string; count: number; absent: number[] | null }>(
    `SELECT n.origin, g.seq, g.routes, g.count, g.absent FROM unnest($1::bigint[]) AS n (origin) CROSS JOIN LATERAL (
       SELECT * FROM (
         SELECT seq, routes, count, absent FROM segments
         WHERE seq < n.origin AND seq > n.origin - ${ID_RANGE} AND (seq >> 12) & 511 = (n.origin >> 12) & 511
         ORDER BY seq DESC LIMIT ${SEGMENTS_CHECKED}) s
       WHERE strpos(s.routes, '"' || n.origin || '"') > 0 LIMIT 1) g`,
    [others],
  )
  for (const { origin, seq, routes, count, absent } of segments) {
    const route = (JSON.parse(routes) as Routes<string>).s.find(([, id]) => id === origin)
    if (!route) continue
    found.set(origin, { destination: route[0], segment: seq, indexes: owedIndexes(route[2], count, absent), replay: false })
  }
  return found
}
