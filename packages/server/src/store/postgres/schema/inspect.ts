// A look at everything that is stored, in one snapshot on a connection of its own, so that it holds up no other question and ends
// at its deadline. Whether the server's files are whole is the server's to know; what it says of them is passed on, with what of
// the schema is missing or not usable. Nothing is written.

import { inspectRows } from '../../history/books.ts'
import type { StoreInspection } from '../../store.ts'
import { readLedger, recount } from '../rows/recount.ts'
import { type Ask, type Database, rowsOf } from '../session/database.ts'
import { msOfRowId } from './ids.ts'
import { MIGRATIONS, PARTITIONED } from './migrations.ts'
import { DAY_MS, dayOf, firstKey, KEEP_PARTITIONS, partitionedDays, TABLES } from './partitions.ts'

/** Undefined when it is not over by the deadline. */
export async function inspect(database: Pick<Database, 'connect'>, deadlineMs: number): Promise<StoreInspection | undefined> {
  const endMs = performance.now() + deadlineMs
  // To the server, no time at all means any.
  if (deadlineMs < 1) return undefined
  const connection = await database.connect(Math.ceil(deadlineMs))
  // What is still under way then fails with the connection.
  const timer = setTimeout(() => connection.destroy(), endMs - performance.now())
  try {
    const ask: Ask = (text, values) => connection.query(text, values)
    const all = rowsOf(ask)
    await ask('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await ask(KEEP_PARTITIONS)
    return await inspectRows({
      problems: () => problemsOf(ask),
      ledger: () => readLedger(ask),
      recount: () => recount(ask),
      async oldestMessageAtMs() {
        const [row] = await all<{ seq: string | null }>('SELECT min(seq) AS seq FROM segments')
        return row?.seq ? msOfRowId(row.seq) : null
      },
      async textsWithSecrets() {
        const sql = 'SELECT doc AS text FROM destinations WHERE NOT deleted UNION ALL SELECT value FROM settings'
        return (await all<{ text: string }>(sql)).map(({ text }) => text)
      },
      async storedBytes() {
        const [row] = await all<{ bytes: number }>(
          `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes FROM pg_class
           WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'm')`,
        )
        return row?.bytes ?? 0
      },
    })
  } catch (error) {
    if (performance.now() >= endMs) return undefined
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
    ...(failures > 0 ? [`PostgreSQL has found ${failures} of its pages damaged`] : []),
    ...missing.map((name) => `"${name}" is missing from the schema`),
    ...broken.map(({ name }) => `the index "${name}" is not usable`),
    ...(missing.length > 0 ? [] : await partitionProblems(ask)),
  ]
}

/** Tables and indexes, as the schema's steps name them. */
function expected(): string[] {
  const sql = MIGRATIONS.map((step) => step.sql).join('\n')
  const created = [...sql.matchAll(/CREATE (?:TABLE|INDEX|UNIQUE INDEX) (\w+)/g)].map(([, name]) => name as string)
  const dropped = new Set([...sql.matchAll(/DROP (?:TABLE|INDEX) (\w+)/g)].map(([, name]) => name as string))
  return created.filter((name) => !dropped.has(name))
}

/** Without a partition of its own, a day's rows come to lie where they can only be dropped one by one. Where they do already, that is no fault. */
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
