// Cancels the shipments of a deleted destination, inside the group's transaction.

import { recordRow } from '../../encoding/settlement.ts'
import { absentIndexes, owedIndexes, type StoredPart } from '../../encoding/stored-parts.ts'
import type { ShipmentRow } from '../rows/history-rows.ts'
import type { WriterContext } from './writer-context.ts'

/** The number of deliveries, each of which needs a row: about 5 ms of a commit that others wait for. */
const CANCELLED_PER_STEP = 1_000

/** Cancels some shipments and returns how many; 0 if there are no more. Skips claimed shipments, which their holder settles. */
export function cancelStep(
  { rows, database, destinations, claims, settler, orderKeys }: WriterContext,
  destinationId: string,
  atMs: number,
): number {
  const destination = destinations.num(destinationId)
  if (destination === undefined) return 0
  const allOf = (segment: number): number[] => {
    const [row] = rows.all('SELECT count, absent FROM segments WHERE seq = ?', [segment]) as [{ count: number; absent: string | null }]
    return owedIndexes(0, row.count, absentIndexes(row.absent))
  }
  const all = database.prepare('SELECT * FROM shipments WHERE destination = ?').iterate(destination) as unknown as Iterable<ShipmentRow>
  const cancelled: ShipmentRow[] = []
  let deliveries = 0
  for (const row of all) {
    if (claims.isClaimed(row.id)) continue
    cancelled.push(row)
    deliveries += row.count
    if (deliveries >= CANCELLED_PER_STEP) break
  }
  for (const { class: type, due, id, parts, attempt, replay } of cancelled) {
    rows.run('DELETE FROM shipments WHERE destination = ? AND class = ? AND due = ? AND id = ?', [destination, type, due, id])
    for (const [origin, segment, stored] of JSON.parse(parts) as StoredPart<number>[]) {
      const finals = [{ state: 'cancelled' as const, reason: 'destination_deleted', indexes: stored === 0 ? allOf(segment) : [...stored] }]
      settler.insertRecord(destination, recordRow({ origin, segment, attempt, atMs, replay: replay === 1, requests: [], finals }))
    }
  }
  if (cancelled.length === 0) orderKeys.deleteAll(destination)
  return cancelled.length
}
