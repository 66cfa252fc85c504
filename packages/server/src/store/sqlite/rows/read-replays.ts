// Replay jobs as rows, and the counting of what one would be made for.

import { resolveNamed } from '../../history/named-deliveries.ts'
import { type ReplayJobRow, STANDS } from '../../replays/replay-job-row.ts'
import type { CountedFailures, CountedRows, RowCount } from '../../replays/replay-rows.ts'
import type { ReplayJobState } from '../../store.ts'
import { resolveOrigins } from '../messages/origins.ts'
import { rowAndIndex } from '../schema/ids.ts'
import type { Rows } from './rows.ts'

/** Whether a delivery of the same message came after it and is pending or was delivered. */
const replayed = (index: string): string =>
  `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = ${index} AND r.destination = d.destination
    AND r.origin > d.origin AND ${STANDS})`
const REPLAYED = replayed('d.idx')
const SUPERSEDED = `EXISTS (SELECT 1 FROM replays r WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination
  AND r.origin > d.origin AND r.state IN (SELECT value FROM json_each(?5)))`

export class ReplayReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  newest(state: ReplayJobState | undefined, last: number, limit: number): ReplayJobRow<number>[] {
    const [where, ...values] = state === undefined ? ['', last, limit] : ['state = ? AND', state, last, limit]
    return this.#rows.all(
      `SELECT * FROM replay_jobs WHERE ${where} num <= ? ORDER BY num DESC LIMIT ?`,
      ...values,
    ) as ReplayJobRow<number>[]
  }

  one(id: string): ReplayJobRow<number> | undefined {
    return this.#rows.get('SELECT * FROM replay_jobs WHERE id = ?', id) as ReplayJobRow<number> | undefined
  }

  countFailures({ destinationId, state, reason, instead, first, last, limit }: CountedFailures<number>): RowCount<number> {
    return this.#rows.get(
      `SELECT count(*) AS seen, max(id) AS newest, ifnull(sum(matches), 0) AS total,
              ifnull(sum(matches AND (${REPLAYED} OR ${SUPERSEDED})), 0) AS replayed
       FROM (SELECT id, destination, origin, idx, segment, ${reason === null ? '1' : 'reason = ?7'} AS matches
             FROM failures WHERE destination = ?1 AND state = ?2 AND id >= ?3 AND id <= ?4 ORDER BY id LIMIT ?6) d`,
      this.#rows.destinations.num(destinationId) ?? -1,
      state,
      first,
      last,
      JSON.stringify(instead),
      limit,
      ...(reason === null ? [] : [reason]),
    ) as RowCount<number>
  }

  countDelivered({ destinationId, first, last, limit }: CountedRows<number>): RowCount<number> {
    return this.#rows.get(
      `SELECT count(*) AS seen, max(id) AS newest, ifnull(sum(delivered), 0) AS total, ifnull(sum(CASE WHEN delivered > 0 THEN (
         SELECT count(*) FROM json_each(doc, '$.f') f, json_each(f.value, '$[2]') i
         WHERE json_extract(f.value, '$[0]') = 'delivered' AND ${replayed('i.value')}) ELSE 0 END), 0) AS replayed
       FROM (SELECT id, destination, origin, segment, delivered, doc FROM attempts
             WHERE destination = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ?) d`,
      this.#rows.destinations.num(destinationId) ?? -1,
      first,
      last,
      limit,
    ) as RowCount<number>
  }

  async countNamed(deliveryIds: readonly string[]): Promise<{ destinationId: string; replayed: boolean }[]> {
    const rows = { named: rowAndIndex, origins: (names: readonly number[]) => resolveOrigins(this.#rows.database, names) }
    return (await resolveNamed(rows, deliveryIds)).flatMap((found) => {
      if (found === undefined) return []
      const { destination, segment, index, origin } = found
      const row = this.#rows.get(
        `SELECT ${REPLAYED} AS replayed FROM (SELECT ? AS segment, ? AS idx, ? AS destination, ? AS origin) d`,
        segment,
        index,
        destination,
        origin,
      ) as { replayed: number }
      return { destinationId: this.#rows.destinations.id(destination), replayed: row.replayed === 1 }
    })
  }
}
