// The row port of the ledger and the other counts, for PostgreSQL. Every count is the sum of the folded counts and the deltas that are not
// folded yet (see fold-deltas.ts). recount.ts computes the same counts from the rows of messages.

import { createSerialQueue } from '../../../timing/serial-queue.ts'
import type { StoredPart } from '../../encoding/stored-parts.ts'
import { type BookRows, readRejections } from '../../history/book-rows.ts'
import type { OldestPending } from '../../store.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { type Ask, rowsOf, withIndexScansOnly } from '../session/database.ts'
import { writeText } from '../session/text-columns.ts'
import { msOfRowId } from '../tables/ids.ts'
import { countedRows, recount } from '../tables/recount.ts'
import { holders } from '../tables/shipment-holders.ts'
import { sqlOf } from '../tables/sql.ts'

const RECOUNT_MS = 10 * 60_000

export function bookRows({ database, idMap, configuration }: StoreContext): BookRows {
  const inTurn = createSerialQueue()
  const all = rowsOf(database.ask)
  return {
    destinations: () => [...configuration().destinations.keys()],
    ...countedRows(database.ask),
    /** Reads every row, so it uses a separate connection with a longer timeout, and only one runs at a time. */
    recount: () =>
      inTurn(async () => {
        const connection = await database.connect(RECOUNT_MS)
        try {
          return await recount((text) => connection.query(text))
        } finally {
          connection.destroy()
        }
      }),
    async oldestOf(destinationIds) {
      const nums = new Map<string, string>()
      for (const id of destinationIds) {
        const num = await idMap.find(database.ask, 'destinations', id)
        if (num !== undefined) nums.set(id, num)
      }
      if (nums.size === 0) return []
      const oldest = await withIndexScansOnly(database, (ask) => oldestByNum(ask, [...nums.values()]))
      return [...nums].flatMap(([destinationId, num]) => {
        const found = oldest.get(num)
        return found === undefined ? [] : [{ destinationId, ...found }]
      })
    },
    rejections: () => readRejections(sqlOf(database.ask)),
    // One statement, so that hours that are being packed are neither missed nor counted twice.
    stats: async (kind, subjects, ranges) => {
      const range = (_: unknown, at: number): string =>
        `SELECT step, at, doc FROM stats WHERE kind = $1 AND subject = s.name AND step = $${3 + 3 * at} AND at >= $${4 + 3 * at} AND at < $${5 + 3 * at}`
      const found = await all<{ nth: number; step: number; at: number; doc: string }>(
        `SELECT nth::integer, step, at, doc FROM unnest($2::text[]) WITH ORDINALITY AS s(name, nth)
         CROSS JOIN LATERAL (${ranges.map(range).join(' UNION ALL ')}) counts
         ORDER BY nth, at`,
        [kind, subjects.map(writeText), ...ranges.flatMap(({ step, fromMs, toMs }) => [step, fromMs, toMs])],
      )
      return found.map(({ nth, ...row }) => Object.assign(row, { subject: subjects[nth - 1] as string }))
    },
  }
}

type Oldest = Omit<OldestPending, 'destinationId'>

/** Returns when the oldest pending delivery of each destination was created, and when the first attempt was made. Destinations without pending deliveries are left out. */
async function oldestByNum(ask: Ask, destinations: readonly string[]): Promise<Map<string, Oldest>> {
  const oldest = (holder: string): string =>
    `(SELECT parts, first_attempt FROM shipments s WHERE ${holder} AND s.destination = d.num AND attempt = 0 ORDER BY s.id LIMIT 1)
     UNION ALL
     (SELECT parts, first_attempt FROM shipments s WHERE ${holder} AND s.destination = d.num AND attempt > 0 ORDER BY s.first_attempt LIMIT 1)
     UNION ALL
     (SELECT parts, first_attempt FROM shipments s WHERE s.holder < 1 AND s.destination = d.num AND attempt < 0 ORDER BY s.id LIMIT 1)
     UNION ALL
     (SELECT parts, first_attempt FROM shipments s WHERE s.holder < 1 AND s.destination = d.num AND attempt < -1 ORDER BY s.first_attempt LIMIT 1)`
  const { rows } = await ask<{ destination: string; parts: string; first_attempt: number | null }>(
    `SELECT d.num AS destination, o.parts, o.first_attempt FROM unnest($1::bigint[]) AS d(num) CROSS JOIN LATERAL (${oldest('holder = 0')}) o
     UNION ALL
     -- The same for held shipments, for all destinations in one scan. Here, -2 stands for heads of keys that have been attempted.
     (SELECT DISTINCT ON (destination, greatest(-2, least(attempt, 1))) destination, parts, first_attempt FROM shipments
      WHERE holder = ANY($2::bigint[]) AND destination = ANY($1::bigint[])
      ORDER BY destination, greatest(-2, least(attempt, 1)), coalesce(first_attempt, 0), id)`,
    [destinations, await holders(ask)],
  )
  const found = new Map<string, Oldest>()
  for (const { destination, parts, first_attempt: firstAttempt } of rows) {
    const created = (JSON.parse(parts) as StoredPart<string>[]).map(([origin]) => msOfRowId(origin))
    const before = found.get(destination)
    const attempted = [firstAttempt, before?.firstAttemptAtMs].filter((ms) => ms != null)
    found.set(destination, {
      atMs: Math.min(before?.atMs ?? Number.POSITIVE_INFINITY, ...created),
      firstAttemptAtMs: attempted.length === 0 ? null : Math.min(...attempted),
    })
  }
  return found
}
