// The program of the process that runs one query and ends. It has no variables of the service and holds no credentials. It ends when the service closes its
// standard input, or dies.

import { createInterface } from 'node:readline'
import { faultOf } from './faults.ts'
import type { FromProcess, SqlFault, SqlLimits, TableName, ToProcess, ViewFiles } from './protocol.ts'
import { openDatabases, runQuery, tablesOf, warmUp } from './query-database.ts'

/** What DuckDB may use is a setting; this is for the rest: values while they become JSON, and what DuckDB does not count. */
const REST_MB = 512
const POLL_MS = 50

const input = createInterface({ input: process.stdin })
const waiting: ToProcess[] = []
let wake: () => void = () => {}
input.on('line', (line) => {
  waiting.push(JSON.parse(line) as ToProcess)
  wake()
})
input.on('close', () => process.exit(0))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

async function next<Kind extends ToProcess['kind']>(): Promise<ToProcess & { kind: Kind }> {
  while (waiting.length === 0) await new Promise<void>((resolve) => (wake = resolve))
  return waiting.shift() as ToProcess & { kind: Kind }
}

function say(message: FromProcess): Promise<void> {
  return new Promise((resolve) => process.stdout.write(`${JSON.stringify(message)}\n`, () => resolve()))
}

function watchMemory({ memoryMb }: SqlLimits): void {
  setInterval(() => {
    if (process.memoryUsage.rss() < (memoryMb + REST_MB) * 1e6) return
    const fault: SqlFault = {
      code: 'sql_too_large',
      message: 'The query needs more memory than a query may use. Select fewer rows or columns, or group by fewer values.',
      line: null,
      column: null,
    }
    void say({ kind: 'fault', fault }).then(() => process.exit(0))
  }, POLL_MS).unref()
}

async function main(): Promise<void> {
  const databases = await openDatabases()
  await say({ kind: 'ready' })
  // If it fails, the query is only slower.
  await warmUp(databases, () => waiting.length > 0).catch(() => 0)
  const { query, tables, limits } = await next<'query'>()
  watchMemory(limits)
  try {
    const wanted: TableName[] = await tablesOf(databases, query, tables)
    let views: ViewFiles[] = []
    if (wanted.length > 0) {
      await say({ kind: 'wanted', tables: wanted })
      views = (await next<'files'>()).views
    }
    const schemas = [...new Set(tables.map(({ schema }) => schema))]
    await say({ kind: 'answer', answer: await runQuery(databases, query, views, schemas, limits) })
  } catch (error) {
    await say({ kind: 'fault', fault: faultOf(error, query, true) })
  }
  process.exit(0)
}

await main()
