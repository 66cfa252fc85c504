// The row port of the quarantine, for SQLite. Nobody else writes during the writing thread's transaction, so no locks are needed.

import type {
  HeldQuery,
  LockedSegment,
  Place,
  QuarantineChanges,
  QuarantineReadRows,
  QuarantineRow,
} from '../../quarantine/quarantine-rows.ts'
import type { NewQuarantined } from '../../store.ts'
import { rowAndIndex } from '../schema/row-ids.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import { owe } from './replay-rows.ts'
import type { Rows } from './rows.ts'
import { segmentRows } from './segment-rows.ts'

const COLUMNS = 'segment, idx AS "index", plan AS planId, rule'

export function quarantineReadRows(rows: Rows): QuarantineReadRows<number> {
  return {
    ...segmentRows(rows),
    source: (id) => rows.sources.num(id),
    held({ source, planId, rule, from, oldestFirst, limit }: HeldQuery<number>) {
      const values: (number | string)[] = [from.segment, from.index]
      const conditions = [`(segment, idx) ${oldestFirst ? '>=' : '<='} (?, ?)`]
      for (const [column, value] of Object.entries({ source, plan: planId, rule })) {
        if (value === undefined) continue
        conditions.push(`${column} = ?`)
        values.push(value)
      }
      const direction = oldestFirst ? 'ASC' : 'DESC'
      return rows.all<QuarantineRow<number>>(
        `SELECT ${COLUMNS} FROM quarantine WHERE ${conditions.join(' AND ')} ORDER BY segment ${direction}, idx ${direction} LIMIT ?`,
        ...values,
        limit,
      )
    },
    heldAt: (places) =>
      places.flatMap(({ segment, index }) =>
        rows.all<QuarantineRow<number>>(`SELECT ${COLUMNS} FROM quarantine WHERE segment = ? AND idx = ?`, segment, index),
      ),
  }
}

export function quarantineChanges(context: WriterContext): QuarantineChanges<number> {
  const { rows, destinations } = context
  return {
    parseId: rowAndIndex,
    lock: (segments) =>
      segments.flatMap((seq) =>
        rows
          .all<Omit<LockedSegment<number>, 'sourceDeleted'> & { deleted: number }>(
            'SELECT seq, source, deleted, routes, octet_length(body) AS bytes FROM segments JOIN sources ON num = source WHERE seq = ?',
            seq,
          )
          .map((row) => Object.assign(row, { sourceDeleted: row.deleted === 1 })),
      ),
    take: (places) => places.filter((place) => deleteRow(rows, place)),
    destinations: (ids) =>
      ids.flatMap((id) => {
        const num = destinations.num(id)
        if (num === undefined) return []
        const isLive = rows.all('SELECT 1 FROM destinations WHERE num = ? AND deleted = 0', num).length > 0
        return [{ num, id, deleted: !isLive }]
      }),
    owe: (shipments, atMs) => shipments.map((shipment) => owe(context, shipment, null, atMs)),
    saveRoutes: (segment, routes) => void rows.run('UPDATE segments SET routes = ? WHERE seq = ?', routes, segment),
    count: (source, outcome, count) => countEnded(context, source, outcome, count),
  }
}

/** Inside the transaction that accepts the messages. */
export function insertQuarantined(
  { rows, counts }: WriterContext,
  { source, segment, quarantined }: { source: number; segment: number; quarantined: readonly NewQuarantined[] },
): void {
  for (const { index, planId, violations } of quarantined)
    rows.run(
      'INSERT INTO quarantine (segment, idx, source, plan, rule) VALUES (?, ?, ?, ?, ?)',
      segment,
      index,
      source,
      planId,
      violations[0]?.rule ?? '',
    )
  counts.add(source, 'quarantined', quarantined.length)
}

/** Inside the transaction that purges the messages. */
export function dropPurged(context: WriterContext, segment: number, indexes: readonly number[]): void {
  const held = indexes.filter((index) => deleteRow(context.rows, { segment, index }))
  if (held.length === 0) return
  const [row] = context.rows.all<{ source: number }>('SELECT source FROM segments WHERE seq = ?', segment)
  countEnded(context, (row as { source: number }).source, 'deleted', held.length)
}

function deleteRow(rows: Rows, { segment, index }: Place<number>): boolean {
  return rows.run('DELETE FROM quarantine WHERE segment = ? AND idx = ?', segment, index) === 1
}

function countEnded({ counts }: Pick<WriterContext, 'counts'>, source: number, outcome: 'released' | 'deleted', count: number): void {
  counts.add(source, 'quarantined', -count)
  counts.add(source, outcome, count)
}
