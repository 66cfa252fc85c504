// Resolves origins, the row ids in ids of deliveries, to the segment and the destination. The row id of a shipment follows that of its segment,
// so the segment is the last one before it. A replay has its own row, and so has the delivery of a message that was released
// from quarantine. No index by delivery is needed.

import type { DatabaseSync } from 'node:sqlite'
import { absentIndexes, owedIndexes, type Routes } from '../../encoding/stored-parts.ts'
import type { Origin } from '../../history/delivery-ids.ts'
import { RELEASED } from '../../replays/replay-job-row.ts'

export function resolveOrigins(database: DatabaseSync, ids: readonly number[]): Map<number, Origin<number>> {
  const replays = database.prepare('SELECT destination, segment, idx, state FROM replays WHERE origin = ? ORDER BY idx')
  const segments = database.prepare('SELECT seq, routes, count, absent FROM segments WHERE seq < ? ORDER BY seq DESC LIMIT 1')
  const found = new Map<number, Origin<number>>()
  for (const id of ids) {
    const rows = replays.all(id) as { destination: number; segment: number; idx: number; state: string | null }[]
    if (rows[0]) {
      const { destination, segment, state } = rows[0]
      found.set(id, { destination, segment, indexes: rows.map(({ idx }) => idx), replay: state !== RELEASED })
      continue
    }
    const row = segments.get(id) as { seq: number; routes: string; count: number; absent: string | null } | undefined
    const route = row && (JSON.parse(row.routes) as Routes<number>).s.find(([, origin]) => origin === id)
    if (!row || !route) continue
    const indexes = owedIndexes(route[2], row.count, absentIndexes(row.absent))
    found.set(id, { destination: route[0], segment: row.seq, indexes, replay: false })
  }
  return found
}
