// The order's part of the port for PostgreSQL: its reads, and the transactions of what operators do to keys. They lock the row of the key before that of its
// head, as settlements do.

import { PARTITIONS } from '../../../model/order/order-key.ts'
import { keysOf } from '../../delivery/ordered-shipments.ts'
import { recordRow } from '../../encoding/settlement.ts'
import { owedPart, type StoredPart, storedParts } from '../../encoding/stored-parts.ts'
import { writeAudit } from '../../history/audit-log.ts'
import { retryKeyNow, skipKey } from '../../ordering/change-key.ts'
import { actionAudit, commonOrderStore } from '../../ordering/common-order-store.ts'
import { orderReads } from '../../ordering/order-reads.ts'
import { type OrderChanges, orderReadRows, orderChanges as sharedChanges } from '../../ordering/order-rows.ts'
import type { KeyActionResult, NewAuditEntry, OrderStore } from '../../store.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { appendEnded } from '../messages/cancelling.ts'
import { changeKey } from '../messages/order-keys.ts'
import { type Ask, withIndexScansOnly } from '../session/database.ts'
import { attemptsOf } from '../tables/ordered-rows.ts'
import { sqlOf } from '../tables/sql.ts'
import { deliveryRows, segmentLookups } from './history.ts'

interface HeadShipment {
  id: string
  due: number
  attempt: number
  first_attempt: number | null
  replay: boolean
  parts: string
}

export function createOrder(context: StoreContext): OrderStore {
  const { database, ids, idMap, seed, configuration, nowMs, isClosed } = context
  const reads = orderReads<string>((work) =>
    withIndexScansOnly(database, (ask) =>
      work({ deliveries: deliveryRows(ask, segmentLookups(ask, context), idMap), keys: orderReadRows(sqlOf(ask)) }),
    ),
  )
  const audited = (
    audit: NewAuditEntry | undefined,
    atMs: number,
    act: (rows: OrderChanges<string>) => Promise<KeyActionResult>,
  ): Promise<KeyActionResult> =>
    database.transaction(async (ask) => {
      const result = await act(orderChanges(ask, context))
      await writeAudit(sqlOf(ask), ids, actionAudit(audit, result), atMs)
      return result
    })
  return commonOrderStore({
    ...reads,
    skip: (request, atMs, audit) => audited(audit, atMs, (rows) => skipKey(rows, request, atMs)),
    retryNow: (request, atMs, audit) => audited(audit, atMs, (rows) => retryKeyNow(rows, request)),
    seed,
    configuration,
    nowMs,
    isClosed,
    wake: (destinationId) => context.consumer()?.wake(destinationId),
  })
}

export function orderChanges(ask: Ask, context: StoreContext): OrderChanges<string> {
  const { ids, idMap } = context
  return sharedChanges(sqlOf(ask), {
    ...segmentLookups(ask, context),
    destination: (id) => idMap.find(ask, 'destinations', id),
    async head({ destination, due, origin, index }) {
      if (due === null) return undefined
      const { rows } = await ask<HeadShipment>(
        `SELECT id, due, attempt, first_attempt, replay, parts FROM shipments WHERE holder < 1 AND attempt < -1 AND destination = $1 AND due = $2
           AND partition = ANY (ARRAY(SELECT generate_series(0, ${PARTITIONS - 1}))) AND strpos(parts, $3) > 0 ORDER BY id FOR UPDATE SKIP LOCKED`,
        [destination, due, origin],
      )
      for (const { parts: stored, ...row } of rows) {
        const parts = (JSON.parse(stored) as StoredPart<string>[]).map((part) => owedPart(part, 0, null))
        if (parts.some((part) => part.origin === origin && part.indexes.includes(index)))
          return { ...row, attempts: attemptsOf(row.attempt, row.first_attempt), parts }
      }
      return undefined
    },
    async keepHead(_, { id }, parts) {
      const count = parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
      if (count === 0) await ask('DELETE FROM shipments WHERE holder = 0 AND id = $1', [id])
      else await ask('UPDATE shipments SET count = $2, parts = $3 WHERE holder = 0 AND id = $1', [id, count, storedParts(parts)])
    },
    async makeDue(destination, { id, parts }) {
      await ask('UPDATE shipments SET due = 0 WHERE holder = 0 AND id = $1', [id])
      await ask('UPDATE order_keys SET due = 0 WHERE destination = $1 AND key = ANY ($2::bigint[])', [destination, keysOf(parts)])
    },
    record: (destination, records) => appendEnded(ask, ids, destination, records.map(recordRow<string>)),
    change: (destination, change, atMs) => changeKey(ask, destination, change, atMs),
  })
}
