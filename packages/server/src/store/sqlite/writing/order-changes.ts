// What operators do to keys of ordered destinations, inside the writing thread's transaction. Nobody else writes meanwhile, so no locks are needed.

import { keysOf } from '../../delivery/ordered-shipments.ts'
import { recordRow } from '../../encoding/settlement.ts'
import { owedPart, type StoredPart, storedParts } from '../../encoding/stored-parts.ts'
import { type OrderChanges, orderChanges as sharedChanges } from '../../ordering/order-rows.ts'
import { type ShipmentRow, segmentLookups } from '../rows/history-rows.ts'
import { CLASS } from './row-classes.ts'
import type { WriterContext } from './writer-context.ts'

const HEAD = `WHERE destination = ? AND class = ${CLASS.head} AND due = ?`

export function orderChanges({ rows, claims, orderKeys, settler }: WriterContext): OrderChanges<number> {
  return sharedChanges(rows, {
    ...segmentLookups(rows),
    destination: (id) => rows.destinations.num(id),
    head({ destination, due, origin, index }) {
      if (due === null) return undefined
      for (const row of rows.all<ShipmentRow>(`SELECT * FROM shipments ${HEAD}`, [destination, due])) {
        if (claims.isClaimed(row.id)) continue
        const parts = (JSON.parse(row.parts) as StoredPart<number>[]).map((part) => owedPart(part, row.count, null))
        if (parts.some((part) => part.origin === origin && part.indexes.includes(index)))
          return { id: row.id, due, attempts: row.attempt, replay: row.replay === 1, parts }
      }
      return undefined
    },
    keepHead(destination, { id, due }, parts) {
      const count = parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
      if (count === 0) rows.run(`DELETE FROM shipments ${HEAD} AND id = ?`, [destination, due, id])
      else rows.run(`UPDATE shipments SET count = ?, parts = ? ${HEAD} AND id = ?`, [count, storedParts(parts), destination, due, id])
    },
    makeDue(destination, { id, due, parts }) {
      rows.run(`UPDATE shipments SET due = 0 ${HEAD} AND id = ?`, [destination, due, id])
      rows.run(`UPDATE order_keys SET due = 0 WHERE destination = ? AND ${rows.among('key')}`, [destination, rows.list(keysOf(parts))])
    },
    record(destination, records) {
      for (const record of records) settler.insertRecord(destination, recordRow(record))
    },
    change: (destination, change, atMs) => orderKeys.change(destination, [change], atMs),
  })
}
