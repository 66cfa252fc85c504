// A settlement on its way to the writing thread.

import { countOf, recordRow, refuseUneven } from '../../encoding/settlement.ts'
import { storedParts } from '../../encoding/stored-parts.ts'
import type { Settlement } from '../../store.ts'
import type { SettleCommand } from './write-settle.ts'

export function settleCommand(settlement: Settlement): SettleCommand {
  const { destinationId, done, kept, remaining } = settlement
  refuseUneven(settlement)
  return {
    destinationId,
    done: done.map(({ id, claim, attempt, dueAtMs }) => ({ id: id as number, claim, attempt, dueAtMs })),
    kept: kept.map(({ shipment, parts }) => {
      const { id, claim, attempt, dueAtMs } = shipment
      return { id: id as number, claim, attempt, dueAtMs, before: countOf(shipment), count: countOf({ parts }), parts: storedParts(parts) }
    }),
    remaining,
    records: settlement.records.map(recordRow<number>),
  }
}
