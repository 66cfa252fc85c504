// Counts over time. Every count is added to its minute and to its hour. Minutes are dropped sooner than hours, and
// neither has to be computed from the other. Hours that are over are packed into fortnights: see packed-stats.ts.

import type { Awaitable, Sql } from '../encoding/sql.ts'
import type { StatKind, StatPoint, StatQuery, StatRow } from '../port/books.ts'
import { addCounts, isOnlyRecent, type StatCounts } from '../port/stat-counts.ts'
import { addHour, FORTNIGHT_MS, fortnightOf, hoursWithin, packFortnight, unpackFortnight } from './packing/packed-stats.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DROPPED_PER_STEP = 500
/** Hours are packed when they have been over for so long that counts rarely arrive. */
const PACKED_AFTER_MS = 2 * HOUR_MS
/** A step is one transaction, for which other writes wait. */
const FORTNIGHTS_PER_STEP = 20

/** The key of a stored row. */
export interface StatKey {
  kind: StatKind
  subject: string
  /** MINUTE_MS, HOUR_MS or FORTNIGHT_MS. */
  step: number
  /** The start of the minute, hour or fortnight. */
  at: number
}

/** `doc`: the counts of a minute or an hour, as JSON; a packed fortnight, or `{}`. */
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
      const kept = step === HOUR_MS ? Object.fromEntries(Object.entries(counts).filter(([name]) => !isOnlyRecent(name))) : counts
      const known = additions.get(idOf(key))
      if (known === undefined) additions.set(idOf(key), { ...key, counts: { ...kept } })
      else addCounts(known.counts, kept)
    }
  }
  return [...additions.values()]
}

function idOf({ kind, subject, step, at }: StatKey): string {
  return JSON.stringify([kind, subject, step, at])
}

/**
 * Packs some of the hours that are over, and returns how many. Must run in one transaction. Skips rows that another node is packing or adding
 * to. Nodes of a version before this one do not see packed hours.
 */
export async function packStats(stats: StatRows, sql: Sql, nowMs: number): Promise<number> {
  const beforeMs = Math.floor((nowMs - PACKED_AFTER_MS) / HOUR_MS) * HOUR_MS
  const over = 'SELECT kind, subject, at FROM stats WHERE step = ? AND at < ? ORDER BY at LIMIT ?'
  const fortnights = new Map<string, StatKey>()
  for (const { kind, subject, at } of await sql.all<StatKey>(over, [HOUR_MS, beforeMs, DROPPED_PER_STEP])) {
    const key: StatKey = { kind, subject, step: FORTNIGHT_MS, at: fortnightOf(at) }
    if (fortnights.size < FORTNIGHTS_PER_STEP) fortnights.set(idOf(key), key)
  }
  const packed: { key: StatKey; hours: { at: number; doc: string }[] }[] = []
  for (const key of fortnights.values()) {
    const which = 'kind = ? AND subject = ? AND step = ? AND at >= ? AND at < ?'
    const values = [key.kind, key.subject, HOUR_MS, key.at, Math.min(beforeMs, key.at + FORTNIGHT_MS)]
    const hours = await sql.all<{ at: number; doc: string }>(
      `SELECT at, doc FROM stats WHERE ${which} ${sql.lock('FOR UPDATE SKIP LOCKED')}`,
      values,
    )
    for (const { at } of hours)
      await sql.run('DELETE FROM stats WHERE kind = ? AND subject = ? AND step = ? AND at = ?', [key.kind, key.subject, HOUR_MS, at])
    if (hours.length > 0) packed.push({ key: sql.read(key, 'subject'), hours })
  }
  if (packed.length === 0) return 0
  const docs = new Map((await stats.stored(packed.map(({ key }) => key))).map((row) => [idOf(row), row.doc]))
  const rows = packed.map(({ key, hours }) => {
    const fortnight = unpackFortnight(docs.get(idOf(key)) ?? '{}')
    for (const { at, doc } of hours) addHour(fortnight, at, JSON.parse(doc) as StatCounts)
    return { ...key, doc: packFortnight(fortnight) }
  })
  await stats.put(rows)
  return packed.reduce((sum, { hours }) => sum + hours.length, 0)
}

/** Drops some of the counts from before these times, and returns how many. Skips rows that another node is dropping or adding to. */
export async function dropStats(sql: Sql, minutesBeforeMs: number, hoursBeforeMs: number): Promise<number> {
  const old = `SELECT kind, subject, step, at FROM stats WHERE step = ? AND at < ? LIMIT ${DROPPED_PER_STEP} ${sql.lock('FOR UPDATE SKIP LOCKED')}`
  const drop = (step: number, beforeMs: number): Awaitable<number> =>
    sql.run(`DELETE FROM stats WHERE (kind, subject, step, at) IN (${old})`, [step, Math.floor(beforeMs)])
  const dropped = (await drop(MINUTE_MS, minutesBeforeMs)) + (await drop(HOUR_MS, hoursBeforeMs))
  return dropped + (await drop(FORTNIGHT_MS, hoursBeforeMs - FORTNIGHT_MS))
}

/** Stored rows of one step in a period. */
export interface StatRange {
  step: number
  fromMs: number
  toMs: number
}

/** The rows that answer a query: hours for whole hours, because they are kept for longer. */
export function storedRanges({ stepMs, fromMs, toMs }: Pick<StatQuery, 'stepMs' | 'fromMs' | 'toMs'>): StatRange[] {
  if (stepMs % HOUR_MS !== 0) return [{ step: MINUTE_MS, fromMs, toMs }]
  return [
    { step: HOUR_MS, fromMs, toMs },
    { step: FORTNIGHT_MS, fromMs: fortnightOf(fromMs), toMs },
  ]
}

/** Adds rows up to the step of the query. */
export function seriesOf(
  rows: readonly Pick<StoredStat, 'step' | 'at' | 'doc'>[],
  { stepMs, fromMs, toMs }: Pick<StatQuery, 'stepMs' | 'fromMs' | 'toMs'>,
): StatPoint[] {
  const points = new Map<number, StatCounts>()
  const add = (at: number, counts: StatCounts): void => {
    const atMs = Math.floor(at / stepMs) * stepMs
    const sum = points.get(atMs)
    if (sum === undefined) points.set(atMs, counts)
    else addCounts(sum, counts)
  }
  for (const { step, at, doc } of rows) {
    if (step === FORTNIGHT_MS) for (const hour of hoursWithin(at, doc, fromMs, toMs)) add(hour.at, hour.counts)
    else add(at, JSON.parse(doc) as StatCounts)
  }
  return Array.from(points, ([atMs, counts]) => ({ atMs, counts })).sort((a, b) => a.atMs - b.atMs)
}
