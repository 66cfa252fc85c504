// Inspects everything that is stored, in one snapshot on a separate connection, so that it delays no other query and can be ended
// at its deadline. Only the server can check its own files; the checksum failures it reports are passed on, along with missing tables
// and missing or invalid indexes. Nothing is written.

import { inspectedRows } from '../../history/book-rows.ts'
import { inspectRows } from '../../history/books.ts'
import type { StoreInspection } from '../../store.ts'
import { type Ask, type Database, rowsOf } from '../session/database.ts'
import { countedRows } from '../tables/recount.ts'
import { sqlOf } from '../tables/sql.ts'
import { MIGRATIONS, PARTITIONED } from './migrations.ts'
import { DAY_MS, dayOf, firstKey, KEEP_PARTITIONS, partitionedDays, TABLES } from './partitions.ts'

/** Returns undefined if it does not finish by the deadline. */
export async function inspect(database: Pick<Database, 'connect'>, deadlineMs: number): Promise<StoreInspection | undefined> {
  const endMs = performance.now() + deadlineMs
  // A statement timeout of 0 would mean no timeout.
  if (deadlineMs < 1) return undefined
  const connection = await database.connect(Math.ceil(deadlineMs))
  // A statement that is still running then fails with its connection. A timer may run a little before its time, so the clock is not asked.
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    connection.destroy()
  }, endMs - performance.now())
  try {
    const ask: Ask = (text, values) => connection.query(text, values)
    const all = rowsOf(ask)
    await ask('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await ask(KEEP_PARTITIONS)
    return await inspectRows(
      inspectedRows(sqlOf(ask), {
        ...countedRows(ask),
        problems: () => problemsOf(ask),
        hasTable: async (name) => (await all<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [name]))[0]?.found ?? false,
        async storedBytes() {
          const [row] = await all<{ bytes: number }>(
            `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes FROM pg_class
             WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'm')`,
          )
          return row?.bytes ?? 0
        },
      }),
    )
  } catch (error) {
    if (isLate) return undefined
    throw error
  } finally {
    clearTimeout(timer)
    connection.destroy()
  }
}

async function problemsOf(ask: Ask): Promise<string[]> {
  const { rows: relations } = await ask<{ name: string; broken: boolean }>(
    `SELECT c.relname AS name, i.indexrelid IS NOT NULL AND NOT (i.indisvalid AND i.indisready) AS broken
     FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relnamespace = current_schema()::regnamespace ORDER BY 1`,
  )
  const there = new Set(relations.map(({ name }) => name))
  const missing = expected().filter((name) => !there.has(name))
  const broken = relations.filter((relation) => relation.broken)
  const { rows: checksums } = await ask<{ failures: number | null }>(
    'SELECT checksum_failures AS failures FROM pg_stat_database WHERE datname = current_database()',
  )
  const failures = checksums[0]?.failures ?? 0
  return [
    ...(failures > 0 ? [`PostgreSQL has detected ${failures} checksum ${failures === 1 ? 'failure' : 'failures'} in its data pages`] : []),
    ...missing.map((name) => `"${name}" is missing from the schema`),
    ...broken.map(({ name }) => `the index "${name}" is invalid`),
    ...(missing.length > 0 ? [] : await partitionProblems(ask)),
  ]
}

/** The tables and indexes that the steps of the schema create. */
function expected(): string[] {
  const sql = MIGRATIONS.map((step) => step.sql).join('\n')
  const created = [...sql.matchAll(/CREATE (?:TABLE|INDEX|UNIQUE INDEX) (\w+)/g)].map(([, name]) => name as string)
  const dropped = new Set([...sql.matchAll(/DROP (?:TABLE|INDEX) (\w+)/g)].map(([, name]) => name as string))
  return created.filter((name) => !dropped.has(name))
}

/** Rows of a day without a partition go to the `_rest` table, from which they can only be dropped one by one. If the day already has rows there, that is not reported. */
async function partitionProblems(ask: Ask): Promise<string[]> {
  const { rows } = await ask<{ now_ms: number }>('SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms')
  const today = dayOf(rows[0]?.now_ms ?? 0)
  const problems: string[] = []
  for (const table of TABLES) {
    const days = new Set(await partitionedDays(ask, table))
    for (const day of [today, today + 1].filter((wanted) => !days.has(wanted))) {
      const { rows: rest } = await ask(
        `SELECT FROM ${table}_rest WHERE ${PARTITIONED[table]} >= $1 AND ${PARTITIONED[table]} < $2 LIMIT 1`,
        [firstKey(table, day), firstKey(table, day + 1)],
      )
      if (rest.length === 0) problems.push(`"${table}" has no partition for ${new Date(day * DAY_MS).toISOString().slice(0, 10)}`)
    }
  }
  return problems
}
