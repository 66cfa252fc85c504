// The program of the process that runs one query and ends. It has no variables of the service and holds no credentials. It ends when the service closes its
// standard input, or dies.

import { createInterface } from 'node:readline'
import { faultOf } from './faults.ts'
import { type FromProcess, type Preparation, type SqlFault, schemasOf, type TableName, type ToProcess, type ViewFiles } from './protocol.ts'
import { openDatabases, type PreparedDatabase, prepare, runQuery, tablesOf, warmUp } from './query-database.ts'

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

function hasQuery(): boolean {
  return waiting.some(({ kind }) => kind === 'query')
}

function say(message: FromProcess): Promise<void> {
  return new Promise((resolve) => process.stdout.write(`${JSON.stringify(message)}\n`, () => resolve()))
}

function watchMemory(memoryMb: number): NodeJS.Timeout {
  return setInterval(() => {
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

/** If it fails, the query creates its views itself. */
async function prepareViews(preparation: Preparation): Promise<PreparedDatabase | undefined> {
  const watching = watchMemory(preparation.memoryMb)
  const prepared = await prepare(preparation).catch(() => undefined)
  clearInterval(watching)
  if (prepared !== undefined) await say({ kind: 'prepared' })
  return prepared
}

/** The files of tables, most of which have been sent already. */
async function viewsOf(tables: TableName[]): Promise<ViewFiles[]> {
  await say({ kind: 'wanted', tables })
  const found = new Map<string, ViewFiles>()
  const keyOf = ({ schema, table }: TableName): string => `${schema}/${table}`
  while (!tables.every((table) => found.has(keyOf(table)))) for (const view of (await next<'files'>()).views) found.set(keyOf(view), view)
  return tables.flatMap((table) => found.get(keyOf(table)) ?? []).filter(({ files }) => files.length > 0)
}

async function main(): Promise<void> {
  const databases = await openDatabases()
  await say({ kind: 'ready' })
  // If it fails, the query is only slower.
  await warmUp(databases, hasQuery).catch(() => 0)
  const first = await next<'prepare' | 'query'>()
  let prepared: PreparedDatabase | undefined
  if (first.kind === 'prepare' && !hasQuery()) prepared = await prepareViews(first.preparation)
  const { query, limits } = first.kind === 'query' ? first : await next<'query'>()
  watchMemory(limits.memoryMb)
  const known = next<'tables'>().then(({ tables }) => tables)
  try {
    const wanted = await tablesOf(databases, query, known)
    const views = wanted.length === 0 ? [] : await viewsOf(wanted)
    await say({ kind: 'answer', answer: await runQuery({ ...databases, prepared }, query, views, schemasOf(await known), limits) })
  } catch (error) {
    await say({ kind: 'fault', fault: faultOf(error, query, true) })
  }
  process.exit(0)
}

await main()
