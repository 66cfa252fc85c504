// Counts over time, as they are stored and as they are asked for. Every count is added twice, to its minute and to its hour:
// minutes are dropped soon and hours late, and neither has to be made from the other.

import type { Awaitable } from '../encoding/row-port.ts'
import type { StatKind, StatPoint, StatQuery, StatRow } from '../port/books.ts'
import { addCounts, type StatCounts } from '../port/stat-counts.ts'

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000

/** What names a stored row. */
export interface StatKey {
  kind: StatKind
  subject: string
  /** Minutes or hours. */
  step: number
  /** Where the minute or hour begins. */
  at: number
}

/** With its counts, as JSON. */
export interface StoredStat extends StatKey {
  doc: string
}

/** The rows of the counts, as an adapter gives them. */
export interface StatRows {
  /** Those of these that there are. Nobody else changes them, or adds one of these, until the transaction ends. */
  stored(keys: readonly StatKey[]): Awaitable<readonly StoredStat[]>
  put(rows: readonly StoredStat[]): Awaitable<unknown>
}

/** Adds to what is there. In one transaction. */
export async function addStats(stats: StatRows, rows: readonly StatRow[]): Promise<void> {
  const additions = additionsOf(rows)
  const docs = new Map((await stats.stored(additions)).map((row) => [nameOf(row), row.doc]))
  const sums = additions.map(({ kind, subject, step, at, counts }) => {
    const sum = JSON.parse(docs.get(nameOf({ kind, subject, step, at })) ?? '{}') as StatCounts
    addCounts(sum, counts)
    return { kind, subject, step, at, doc: JSON.stringify(sum) }
  })
  await stats.put(sums)
}

/** One for each stored row: two counts of one minute are one addition. */
function additionsOf(rows: readonly StatRow[]): (StatKey & { counts: StatCounts })[] {
  const additions = new Map<string, StatKey & { counts: StatCounts }>()
  for (const { kind, subject, atMs, counts } of rows) {
    for (const step of [MINUTE_MS, HOUR_MS]) {
      const key = { kind, subject, step, at: Math.floor(atMs / step) * step }
      const known = additions.get(nameOf(key))
      if (known === undefined) additions.set(nameOf(key), { ...key, counts: { ...counts } })
      else addCounts(known.counts, counts)
    }
  }
  return [...additions.values()]
}

function nameOf({ kind, subject, step, at }: StatKey): string {
  return JSON.stringify([kind, subject, step, at])
}

/** Which of the two answers a query: whole hours are kept for longer. */
export function storedStep({ stepMs }: StatQuery): number {
  return stepMs % HOUR_MS === 0 ? HOUR_MS : MINUTE_MS
}

/** Added up to the step that is asked for, from rows in the order of their time. */
export function seriesOf(rows: readonly { at: number; doc: string }[], { stepMs }: StatQuery): StatPoint[] {
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
