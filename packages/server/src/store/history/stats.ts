// Counts over time. Every count is added to its minute and to its hour. Minutes are dropped sooner than hours, and
// neither has to be computed from the other.

import type { Awaitable, Sql } from '../encoding/sql.ts'
import type { StatKind, StatPoint, StatQuery, StatRow } from '../port/books.ts'
import { addCounts, type StatCounts } from '../port/stat-counts.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DROPPED_PER_STEP = 500

/** The key of a stored row. */
export interface StatKey {
  kind: StatKind
  subject: string
  /** MINUTE_MS or HOUR_MS. */
  step: number
  /** The start of the minute or hour. */
  at: number
}

/** `doc`: the counts, as JSON. */
export interface StoredStat extends StatKey {
  doc: string
}

/** The row port of counts over time. */
export interface StatRows {
  /** The rows that exist for these keys. Until the transaction ends, nobody else can change them or add a row for one of the keys. */
  stored(keys: readonly StatKey[]): Awaitable<readonly StoredStat[]>
  put(rows: readonly StoredStat[]): Awaitable<unknown>
}

/** Adds counts to the stored ones. Must run in one transaction. */
export async function addStats(stats: StatRows, rows: readonly StatRow[]): Promise<void> {
  const additions = additionsOf(rows)
  const docs = new Map((await stats.stored(additions)).map((row) => [idOf(row), row.doc]))
  const sums = additions.map(({ kind, subject, step, at, counts }) => {
    const sum = JSON.parse(docs.get(idOf({ kind, subject, step, at })) ?? '{}') as StatCounts
    addCounts(sum, counts)
    return { kind, subject, step, at, doc: JSON.stringify(sum) }
  })
  await stats.put(sums)
}

/** One addition for each stored row: two counts of the same minute are added up first. */
function additionsOf(rows: readonly StatRow[]): (StatKey & { counts: StatCounts })[] {
  const additions = new Map<string, StatKey & { counts: StatCounts }>()
  for (const { kind, subject, atMs, counts } of rows) {
    for (const step of [MINUTE_MS, HOUR_MS]) {
      const key = { kind, subject, step, at: Math.floor(atMs / step) * step }
      const known = additions.get(idOf(key))
      if (known === undefined) additions.set(idOf(key), { ...key, counts: { ...counts } })
      else addCounts(known.counts, counts)
    }
  }
  return [...additions.values()]
}

function idOf({ kind, subject, step, at }: StatKey): string {
  return JSON.stringify([kind, subject, step, at])
}

/** Drops some of the counts from before these times, and returns how many. Skips rows that another node is dropping or adding to. */
export async function dropStats(sql: Sql, minutesBeforeMs: number, hoursBeforeMs: number): Promise<number> {
  const old = `SELECT kind, subject, step, at FROM stats WHERE step = ? AND at < ? LIMIT ${DROPPED_PER_STEP} ${sql.lock('FOR UPDATE SKIP LOCKED')}`
  const drop = (step: number, beforeMs: number): Awaitable<number> =>
    sql.run(`DELETE FROM stats WHERE (kind, subject, step, at) IN (${old})`, [step, Math.floor(beforeMs)])
  return (await drop(MINUTE_MS, minutesBeforeMs)) + (await drop(HOUR_MS, hoursBeforeMs))
}

/** The step of the rows that answer a query: hours for whole hours, because they are kept for longer. */
export function storedStep({ stepMs }: Pick<StatQuery, 'stepMs'>): number {
  return stepMs % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS
}

/** Adds rows, which are ordered by time, up to the step of the query. */
export function seriesOf(rows: readonly { at: number; doc: string }[], { stepMs }: Pick<StatQuery, 'stepMs'>): StatPoint[] {
  const points: StatPoint[] = []
  for (const { at, doc } of rows) {
    const atMs = Math.floor(at / stepMs) * stepMs
    const counts = JSON.parse(doc) as StatCounts
    const last = points.at(-1)
    if (last?.atMs === atMs) addCounts(last.counts, counts)
    else points.push({ atMs, counts })
  }
  return points
}
