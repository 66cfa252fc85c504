// Shipments of ordered destinations in the form of PostgreSQL, where each has keys of one partition. In a file, a shipment that was never attempted may
// have keys of all partitions, so it becomes several rows. A head stays one row: it is one request, and belongs to the partition of its first key.

import { type OrderKey, partitionOf } from '../model/order/order-key.ts'
import type { StoredPart } from '../store/encoding/stored-parts.ts'
import { owedIndexes } from '../store/encoding/stored-parts.ts'
import type { SqliteRow } from '../store/sqlite/migration/migration-source.ts'
import { CLASS } from '../store/sqlite/writing/row-classes.ts'

/** The columns that only ordered shipments have in PostgreSQL, and those that have other values there. */
export interface OrderedColumns {
  attempt: number
  due: number
  ord: number | null
  partition: number | null
  key: OrderKey | null
}

/** A row of a file as one row for each partition. `piece`: its number, from 0. Most rows stay as they are. */
export function splitByPartition(row: SqliteRow, absentFrom: (segment: number) => readonly number[]): SqliteRow[] {
  if (row['class'] !== CLASS.fresh) return [row]
  const byPartition = new Map<number, { parts: StoredPart<number>[]; count: number }>()
  for (const [origin, segment, indexes, keys = []] of JSON.parse(row['parts'] as string) as StoredPart<number>[]) {
    const own = new Map<number, { indexes: number[]; keys: OrderKey[] }>()
    for (const [at, index] of (indexes === 0 ? [] : indexes).entries()) {
      const key = keys[at] as OrderKey
      const some = own.get(partitionOf(key)) ?? { indexes: [], keys: [] }
      some.indexes.push(index)
      some.keys.push(key)
      own.set(partitionOf(key), some)
    }
    for (const [partition, some] of own) {
      const { parts, count } = byPartition.get(partition) ?? { parts: [], count: 0 }
      const owed = owedIndexes(some.indexes, 0, absentFrom(segment)).length
      byPartition.set(partition, { parts: [...parts, [origin, segment, some.indexes, some.keys]], count: count + owed })
    }
  }
  return Array.from(byPartition.values(), ({ parts, count }, piece) => ({ ...row, parts: JSON.stringify(parts), count, piece }))
}

export function orderedColumns(row: SqliteRow, keys: readonly OrderKey[]): OrderedColumns {
  const { class: rowClass, due, attempt, ord = null } = row as Record<string, number>
  if (rowClass === CLASS.waiting)
    return { attempt: -1, due: 0, ord: ord ?? null, partition: partitionOf(due as number), key: due as number }
  if (rowClass !== CLASS.fresh && rowClass !== CLASS.head)
    return { attempt: attempt as number, due: due as number, ord: null, partition: null, key: null }
  return { attempt: -1 - (attempt as number), due: due as number, ord: ord ?? null, partition: partitionOf(keys[0] as OrderKey), key: null }
}
