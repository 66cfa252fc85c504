// The row port of the quarantine, for PostgreSQL, and the transactions that end the quarantine of messages. All of them lock segments before
// rows of the quarantine, in the order of the row ids, so that they do not deadlock with each other or with a purge.

import { writeAudit } from '../../history/audit-log.ts'
import { commonQuarantineStore, quarantineReads } from '../../quarantine/common-quarantine-store.ts'
import { deleteMessages, releaseMessages } from '../../quarantine/end-quarantine.ts'
import { type Place, type QuarantineChanges, quarantineChanges, quarantineReadRows } from '../../quarantine/quarantine-rows.ts'
import type { QuarantineStore } from '../../store.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { insertReplays } from '../replays/replay-rows.ts'
import { type Ask, rowsOf, withIndexScansOnly } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import { type RowIds, rowAndIndex } from '../tables/ids.ts'
import { addDelta, QUARANTINE_COUNTS } from '../tables/ledger-deltas.ts'
import { sqlOf } from '../tables/sql.ts'
import { segmentLookups } from './history.ts'

const PLACES = plainColumns({ segment: 'bigint', idx: 'integer' })

const TAKE = statement({
  parameters: { places: PLACES },
  text: ({ places }) =>
    `DELETE FROM quarantine q USING ${places.as('p')} WHERE q.segment = p.segment AND q.idx = p.idx RETURNING q.segment, q.idx AS index`,
})

export function createQuarantine(context: StoreContext): QuarantineStore {
  const { database, ids, nowMs } = context
  const reads = quarantineReads<string>((work) =>
    withIndexScansOnly(database, (ask) =>
      work(quarantineReadRows(sqlOf(ask), { ...segmentLookups(ask, context), source: (id) => context.idMap.find(ask, 'sources', id) })),
    ),
  )
  return commonQuarantineStore({
    ...reads,
    release: (messages, atMs, audit) =>
      database.transaction(async (ask) => {
        const reply = await releaseMessages(changes(ask, ids), messages, atMs)
        if (reply.ids.length > 0) await writeAudit(sqlOf(ask), ids, audit, atMs)
        return reply
      }),
    delete: (messageIds, atMs, outcome, audit) =>
      database.transaction(async (ask) => {
        const deleted = await deleteMessages(changes(ask, ids), messageIds, atMs, outcome)
        if (deleted.length > 0) await writeAudit(sqlOf(ask), ids, audit, atMs)
        return deleted
      }),
    nowMs,
    wake: (destinationId) => context.consumer()?.wake(destinationId),
  })
}

function changes(ask: Ask, ids: RowIds): QuarantineChanges<string> {
  return quarantineChanges(sqlOf(ask), {
    parseId: rowAndIndex,
    take: (places) => rowsOf(ask)(TAKE, TAKE.values({ places: places.map(({ segment, index }) => ({ segment, idx: index })) })),
    owe: (shipments, atMs) => insertReplays(ask, ids, shipments, { job: null, atMs }),
    count: (source, outcome, count) => addDelta(ask, ids.next(), QUARANTINE_COUNTS, source, countsOf(outcome, count)),
  })
}

/** Inside the transaction that purges the messages. Their segments are locked. */
export async function dropPurged(ask: Ask, ids: RowIds, purged: readonly { source: string; seq: string; indexes: readonly number[] }[]) {
  const places = purged.flatMap(({ seq, indexes }) => indexes.map((index) => ({ segment: seq, idx: index })))
  // Nearly always empty.
  if (places.length === 0 || (await ask('SELECT 1 FROM quarantine LIMIT 1')).rows.length === 0) return
  const { rows: taken } = await ask<Place<string>>(TAKE, TAKE.values({ places }))
  const counts = new Map<string, number>()
  for (const { segment } of taken) {
    const { source } = purged.find(({ seq }) => seq === segment) as { source: string }
    counts.set(source, (counts.get(source) ?? 0) + 1)
  }
  for (const [source, count] of counts) await addDelta(ask, ids.next(), QUARANTINE_COUNTS, source, countsOf('deleted', count))
}

function countsOf(outcome: 'released' | 'deleted', count: number): [quarantined: number, released: number, deleted: number] {
  return [-count, outcome === 'released' ? count : 0, outcome === 'deleted' ? count : 0]
}
