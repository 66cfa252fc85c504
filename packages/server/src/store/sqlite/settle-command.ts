// A settlement on its way to the writing thread.

import { recordRows, refuseUneven } from '../encoding/settlement.ts'
import type { Settlement } from '../store.ts'
import type { SettleCommand } from './commands.ts'

export function settleCommand(settlement: Settlement): SettleCommand {
  const { destinationId, done, remaining } = settlement
  refuseUneven(settlement)
  return {
    kind: 'settle',
    destinationId,
    done: done.map(({ id, claim, attempt, dueAtMs }) => ({ id: id as number, claim, attempt, dueAtMs })),
    remaining,
    records: recordRows<number>(settlement),
  }
}
