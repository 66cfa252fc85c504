// The quarantine inside the writing thread's transaction. Nobody else writes meanwhile, so no locks are needed.

import { type Place, type QuarantineChanges, quarantineChanges as sharedChanges } from '../../quarantine/quarantine-rows.ts'
import type { NewQuarantined } from '../../store.ts'
import { rowAndIndex } from '../schema/row-ids.ts'
import type { Rows } from '../schema/rows.ts'
import { owe } from './replay-rows.ts'
import type { WriterContext } from './writer-context.ts'

export function quarantineChanges(context: WriterContext): QuarantineChanges<number> {
  const { rows } = context
  return sharedChanges(rows, {
    parseId: rowAndIndex,
    take: (places) => places.filter((place) => deleteRow(rows, place)),
    owe: (shipments, atMs) => shipments.map((shipment) => owe(context, shipment, null, atMs)),
    count: (source, outcome, count) => countEnded(context, source, outcome, count),
  })
}

/** Inside the transaction that accepts the messages. */
export function insertQuarantined(
  { rows, counts }: WriterContext,
  { source, segment, quarantined }: { source: number; segment: number; quarantined: readonly NewQuarantined[] },
): void {
  for (const { index, planId, violations } of quarantined)
    rows.run('INSERT INTO quarantine (segment, idx, source, plan, rule) VALUES (?, ?, ?, ?, ?)', [
      segment,
      index,
      source,
      planId,
      violations[0]?.rule ?? '',
    ])
  counts.add(source, 'quarantined', quarantined.length)
}

/** Inside the transaction that purges the messages. */
export function dropPurged(context: WriterContext, segment: number, indexes: readonly number[]): void {
  const held = indexes.filter((index) => deleteRow(context.rows, { segment, index }))
  if (held.length === 0) return
  const [row] = context.rows.all<{ source: number }>('SELECT source FROM segments WHERE seq = ?', [segment])
  countEnded(context, (row as { source: number }).source, 'deleted', held.length)
}

function deleteRow(rows: Rows, { segment, index }: Place<number>): boolean {
  return rows.run('DELETE FROM quarantine WHERE segment = ? AND idx = ?', [segment, index]) === 1
}

function countEnded({ counts }: Pick<WriterContext, 'counts'>, source: number, outcome: 'released' | 'deleted', count: number): void {
  counts.add(source, 'quarantined', -count)
  counts.add(source, outcome, count)
}
