// Counts over time. Several nodes add to the same minute at once. Each locks the rows it adds to, all nodes in the same order, and adds to
// the values that it reads under the lock.

import type { Droppers } from '../../history/retention.ts'
import { addStats, dropStats, packStats, type StatRows, type StoredStat } from '../../history/stats.ts'
import type { StatRow } from '../../store.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import type { Ask } from '../session/database.ts'
import { Columns, statement } from '../session/row-parameters.ts'
import { readText, writeText } from '../session/text-columns.ts'
import { MARKER } from '../tables/ledger-deltas.ts'
import { sqlOf } from '../tables/sql.ts'

/** Rows that are added in one transaction, and the id of the marker that proves its commit. */
interface Batch {
  marker: string
  rows: readonly StatRow[]
}

/** Returns a function that adds counts. */
export function createStats({ database, ids }: Pick<StoreContext, 'database' | 'ids'>): (rows: readonly StatRow[]) => Promise<void> {
  const uncertain = new Set<Batch>()
  /** Adds a batch only once, however often it is called. */
  const write = async (batch: Batch): Promise<void> => {
    await database.transaction(async (ask) => {
      // If an earlier try of the same batch is about to commit, this waits for it.
      const { count } = await ask(`INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, ${MARKER}, 0, '{}') ON CONFLICT DO NOTHING`, [
        batch.marker,
      ])
      if (count > 0) await addStats(statRows(ask), batch.rows)
    })
    uncertain.delete(batch)
  }
  return async (rows) => {
    for (const batch of uncertain) await write(batch)
    if (rows.length === 0) return
    const batch = { marker: ids.next(), rows }
    try {
      await write(batch)
    } catch (error) {
      // It may have been added anyway, and the caller would add it again after an error. So it is kept here until the outcome is known.
      if (!(error instanceof PostgresUnavailable && error.mayHaveCommitted)) throw error
      uncertain.add(batch)
    }
  }
}

/** What retention does with counts: see retention.ts. */
export function statDroppers({ database }: Pick<StoreContext, 'database'>): Pick<Droppers, 'packed' | 'stats'> {
  return {
    packed: (nowMs) => database.transaction((ask) => packStats(statRows(ask), sqlOf(ask), nowMs)),
    stats: (...beforeMs) => dropStats(sqlOf(database.ask), ...beforeMs),
  }
}

const STATS = new Columns<StoredStat>({
  kind: ['text', ({ kind }) => kind],
  subject: ['text', ({ subject }) => writeText(subject)],
  step: ['integer', ({ step }) => step],
  at: ['bigint', ({ at }) => at],
  doc: ['text', ({ doc }) => doc],
})
const KEY = 'kind, subject, step, at'
const IN_ORDER = 'ORDER BY kind COLLATE "C", subject COLLATE "C", step, at'

const MAKE = statement({
  parameters: { stats: STATS },
  text: ({ stats }) => `INSERT INTO stats (${stats.names}) SELECT * FROM ${stats.as('k')} ${IN_ORDER} ON CONFLICT DO NOTHING`,
})
const LOCK = statement({
  parameters: { stats: STATS },
  text: ({ stats }) => `SELECT ${KEY}, s.doc FROM stats s JOIN ${stats.as('k')} USING (${KEY}) ${IN_ORDER} FOR UPDATE OF s`,
})
const PUT = statement({
  parameters: { stats: STATS },
  text: ({ stats }) =>
    `UPDATE stats s SET doc = k.doc FROM ${stats.as('k')} WHERE (s.kind, s.subject, s.step, s.at) = (k.kind, k.subject, k.step, k.at)`,
})

export function statRows(ask: Ask): StatRows {
  return {
    /** Inserts missing rows first, so that all of them can be locked. */
    async stored(keys) {
      const values = MAKE.values({ stats: keys.map((key) => ({ ...key, doc: '{}' })) })
      await ask(MAKE, values)
      let { rows } = await ask<StoredStat>(LOCK, values)
      // Another node packed or dropped a row in the meantime.
      while (rows.length < keys.length) {
        await ask(MAKE, values)
        rows = (await ask<StoredStat>(LOCK, values)).rows
      }
      return rows.map((row) => Object.assign(row, { subject: readText(row.subject) }))
    },
    put: (stats) => ask(PUT, PUT.values({ stats })),
  }
}
