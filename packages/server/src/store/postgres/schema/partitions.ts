// The daily partitions of the tables that retention drops by age: lists them, and creates those of the next days ahead of time, on any node.
// Invariant: a day may lack a partition. Its rows are then in `<table>_rest`, and a day with rows there never gets a
// partition. Nothing is dropped here: see retention.ts.

import { setTimeout as sleep } from 'node:timers/promises'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import { isLockTimeout, SCHEMA } from '../session/connection.ts'
import type { Ask, Database } from '../session/database.ts'
import { rowIdAt } from '../tables/ids.ts'
import { PARTITIONED, type PartitionedTable } from './migrations.ts'

export const DAY_MS = 86_400_000
export const TABLES = Object.keys(PARTITIONED) as PartitionedTable[]
const DAYS_AHEAD = 7
/** How long other statements may have to queue behind a lock request of this file. */
const LOCK_TIMEOUT_MS = 200
const TRIES = 20
const PAUSE_MS = 250
const ROW_OF_ANOTHER_PARTITION = '23514'

/**
 * Run right after the BEGIN of a snapshot in which several statements count rows. A dropped partition disappears from older
 * snapshots too, while they do not see its counts in the archive. So no partition may be dropped while the snapshot is in use.
 */
export const KEEP_PARTITIONS = 'LOCK TABLE segments, attempts, replays IN ACCESS SHARE MODE'

/** The day as stored in `message_keys.day`: days since 1970, in UTC. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

export function partitionName(table: PartitionedTable, day: number): string {
  return `${table}_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`
}

/** The first key of a day. A partition has the keys from this one up to the first key of the next day, exclusive. */
export function firstKey(table: PartitionedTable, day: number): string {
  return table === 'message_keys' ? String(day) : rowIdAt(day * DAY_MS)
}

/** The days that have a partition, oldest first. */
export async function partitionedDays(ask: Ask, table: PartitionedTable): Promise<number[]> {
  const { rows } = await ask<{ name: string }>(
    'SELECT c.relname::text AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = $1::regclass ORDER BY 1',
    [`${SCHEMA}.${table}`],
  )
  return rows.flatMap(({ name }) => dayOfName(name) ?? [])
}

/** Creates the partitions of yesterday, today and the next days, by the server's date. Runs one statement if all exist. */
export async function preparePartitions(database: Database): Promise<void> {
  const { rows } = await database.query<{ now_ms: number; names: string[] }>(
    `SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms,
            ARRAY(SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r') AS names`,
    [SCHEMA],
  )
  const { now_ms: nowMs, names } = rows[0] as { now_ms: number; names: string[] }
  const there = new Set(names)
  const today = dayOf(nowMs)
  const days = Array.from({ length: DAYS_AHEAD + 2 }, (_, at) => today - 1 + at)
  for (const table of TABLES) {
    const missing = days.filter((day) => !there.has(partitionName(table, day)))
    // Partitions that are needed only in a few days can be created later.
    const tries = missing.some((day) => day <= today + 1) ? TRIES : 1
    if (missing.length > 0) await createPartitions(database, table, missing, tries)
  }
}

/** Partitions that cannot be created now, because a lock is held for long, are left to the next call. */
export async function createPartitions(database: Database, table: PartitionedTable, days: readonly number[], tries = TRIES): Promise<void> {
  for (let left = tries; left > 0; left--) {
    if (left < tries) await sleep(PAUSE_MS)
    try {
      await database.transaction((ask) => attach(ask, table, days))
      return
    } catch (error) {
      // The first row of such a day may be inserted into the `_rest` table at this moment; the next try sees it.
      if (!isLockTimeout(error) && (error as { code?: string }).code !== ROW_OF_ANOTHER_PARTITION) throw error
    }
  }
}

/** Creates the tables separately and then attaches them, so that the parent can be read and written meanwhile. */
async function attach(ask: Ask, table: PartitionedTable, days: readonly number[]): Promise<void> {
  await ask(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`)
  await ask('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.partitions])
  const key = PARTITIONED[table]
  const { rows } = await ask<{ at: number }>(
    `SELECT d.at::integer FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS d (name, first, next, at)
     WHERE to_regclass(d.name) IS NULL AND NOT EXISTS (SELECT 1 FROM ${table}_rest r WHERE r.${key} >= d.first AND r.${key} < d.next)`,
    [
      days.map((day) => `${SCHEMA}.${partitionName(table, day)}`),
      days.map((day) => firstKey(table, day)),
      days.map((day) => firstKey(table, day + 1)),
    ],
  )
  if (rows.length === 0) return
  const statements = rows.map(({ at }) => {
    const day = days[at - 1] as number
    const name = partitionName(table, day)
    return `CREATE TABLE ${name} (LIKE ${table} INCLUDING ALL);
      ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM (${firstKey(table, day)}) TO (${firstKey(table, day + 1)});`
  })
  await ask(statements.join('\n'))
}

function dayOfName(name: string): number | undefined {
  const match = /_(\d{4})(\d\d)(\d\d)$/.exec(name)
  return match === null ? undefined : Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3])) / DAY_MS
}
