// The row port of the quarantine, for PostgreSQL, and the transactions that end the quarantine of messages. All of them lock segments before
// rows of the quarantine, in the order of the row ids, so that they do not deadlock with each other or with a purge.

import { commonQuarantineStore } from '../../quarantine/common-quarantine-store.ts'
import { deleteMessages, releaseMessages } from '../../quarantine/end-quarantine.ts'
import { quarantineReads } from '../../quarantine/list-quarantine.ts'
import type { HeldQuery, Place, QuarantineChanges, QuarantineReadRows, QuarantineRow } from '../../quarantine/quarantine-rows.ts'
import type { QuarantineStore } from '../../store.ts'
import { addDelta, QUARANTINE_COUNTS } from '../messages/ledger-deltas.ts'
import { insertReplays } from '../replays/insert-replays.ts'
import { type RowIds, rowAndIndex } from '../schema/ids.ts'
import type { Value } from '../session/connection.ts'
import { type Ask, rowsOf, withIndexScansOnly } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import type { StoreContext } from '../session/store-context.ts'
import { readText, writeText } from '../session/text-columns.ts'
import { writeAudit } from './audit-rows.ts'
import { segmentRows } from './segment-rows.ts'

const COLUMNS = 'q.segment, q.idx AS index, q.plan AS "planId", q.rule'
const PLACES = plainColumns({ segment: 'bigint', idx: 'integer' })

const HELD_AT = statement({
  parameters: { places: PLACES },
  text: ({ places }) =>
    `SELECT ${COLUMNS} FROM ${places.as('p')} JOIN quarantine q ON q.segment = p.segment AND q.idx = p.idx ORDER BY q.segment, q.idx`,
})

const TAKE = statement({
  parameters: { places: PLACES },
  text: ({ places }) =>
    `DELETE FROM quarantine q USING ${places.as('p')} WHERE q.segment = p.segment AND q.idx = p.idx RETURNING q.segment, q.idx AS index`,
})

export function createQuarantine(context: StoreContext): QuarantineStore {
  const { database, ids, idMap, nowMs } = context
  const reads = quarantineReads<string>(async (work) => {
    const seed = await context.seed()
    return withIndexScansOnly(database, (ask) => work({ ...segmentRows(ask, idMap, seed), ...heldRows(ask, context) }))
  })
  return commonQuarantineStore({
    ...reads,
    release: (messages, atMs, audit) =>
      database.transaction(async (ask) => {
        const reply = await releaseMessages(changes(ask, ids), messages, atMs)
        if (reply.ids.length > 0) await writeAudit(ask, ids, audit, atMs)
        return reply
      }),
    delete: (messageIds, atMs, outcome, audit) =>
      database.transaction(async (ask) => {
        const deleted = await deleteMessages(changes(ask, ids), messageIds, atMs, outcome)
        if (deleted.length > 0) await writeAudit(ask, ids, audit, atMs)
        return deleted
      }),
    nowMs,
    wake: (destinationId) => context.consumer()?.wake(destinationId),
  })
}

function heldRows(ask: Ask, { idMap }: StoreContext): Pick<QuarantineReadRows<string>, 'source' | 'held' | 'heldAt'> {
  const all = rowsOf(ask)
  return {
    source: (id) => idMap.find(ask, 'sources', id),
    async held({ source, planId, rule, from, oldestFirst, limit }: HeldQuery<string>) {
      const values: Value[] = [from.segment, from.index, limit]
      const conditions = [`(q.segment, q.idx) ${oldestFirst ? '>=' : '<='} ($1::bigint, $2::integer)`]
      const equals = (column: string, value: string | undefined): void => {
        if (value !== undefined) conditions.push(`q.${column} = $${values.push(value)}`)
      }
      equals('source', source)
      equals('plan', planId && writeText(planId))
      equals('rule', rule && writeText(rule))
      const direction = oldestFirst ? 'ASC' : 'DESC'
      const held = await all<QuarantineRow<string>>(
        `SELECT ${COLUMNS} FROM quarantine q WHERE ${conditions.join(' AND ')} ORDER BY q.segment ${direction}, q.idx ${direction} LIMIT $3`,
        values,
      )
      return held.map(withTexts)
    },
    heldAt: async (places) =>
      places.length === 0 ? [] : (await all<QuarantineRow<string>>(HELD_AT, HELD_AT.values({ places: columnsOf(places) }))).map(withTexts),
  }
}

function changes(ask: Ask, ids: RowIds): QuarantineChanges<string> {
  const all = rowsOf(ask)
  return {
    parseId: rowAndIndex,
    lock: (segments) =>
      all(
        `SELECT g.seq, g.source, s.deleted AS "sourceDeleted", g.routes, octet_length(g.body) AS bytes
         FROM segments g JOIN sources s ON s.num = g.source WHERE g.seq = ANY($1::bigint[]) ORDER BY g.seq FOR NO KEY UPDATE OF g`,
        [segments],
      ),
    take: (places) => all(TAKE, TAKE.values({ places: columnsOf(places) })),
    destinations: (wanted) => all('SELECT num, id, deleted FROM destinations WHERE id = ANY($1::text[]) ORDER BY num FOR SHARE', [wanted]),
    owe: (shipments, atMs) => insertReplays(ask, ids, shipments, { job: null, atMs }),
    saveRoutes: async (segment, routes) => void (await ask('UPDATE segments SET routes = $2 WHERE seq = $1', [segment, routes])),
    count: (source, outcome, count) => addDelta(ask, ids.next(), QUARANTINE_COUNTS, source, countsOf(outcome, count)),
  }
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

function columnsOf(places: readonly Place<string>[]): { segment: string; idx: number }[] {
  return places.map(({ segment, index }) => ({ segment, idx: index }))
}

function withTexts(row: QuarantineRow<string>): QuarantineRow<string> {
  return Object.assign(row, { planId: readText(row.planId), rule: readText(row.rule) })
}
