// From the name of a delivery to what it stands for. A shipment's number follows its segment's, so the segment is the last
// one before it; replays have rows of their own. Nothing has to be indexed by delivery.

import type { DatabaseSync } from 'node:sqlite'
import type { Routes } from '../../encoding/stored-parts.ts'
import type { Origin } from '../../history/delivery-rows.ts'

export function resolveOrigin(database: DatabaseSync, origin: number): Origin<number> | undefined {
  const replays = database.prepare('SELECT destination, segment, idx FROM replays WHERE origin = ? ORDER BY idx').all(origin) as {
    destination: number
    segment: number
    idx: number
  }[]
  if (replays[0]) {
    const { destination, segment } = replays[0]
    return { destination, segment, indexes: replays.map(({ idx }) => idx), replay: true }
  }
  const row = database.prepare('SELECT seq, routes FROM segments WHERE seq < ? ORDER BY seq DESC LIMIT 1').get(origin) as
    | { seq: number; routes: string }
    | undefined
  const route = row && (JSON.parse(row.routes) as Routes<number>).s.find(([, id]) => id === origin)
  return row && route ? { destination: route[0], segment: row.seq, indexes: route[2], replay: false } : undefined
}
