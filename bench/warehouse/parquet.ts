// Parquet files in a folder, beside DuckDB writing the same rows from tables in memory, with one and with two threads. Run by run.ts in a process with the
// settings of a loader. As in a loader, the messages of one load are in memory at a time.

import { globSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { createWarehouse } from '../../packages/warehouse/src/engines.ts'
import { temporaryLake } from '../../packages/warehouse/src/fixtures/lake-reading.ts'
import { emptySchema, LOADED_AT, OWNER } from '../../packages/warehouse/src/fixtures/messages.ts'
import { evolve } from '../../packages/warehouse/src/schema/evolve.ts'
import { best, line, type Measured, measured, ratio, shopMessages } from './measured.ts'

const LOAD = 50_000
const ROUNDS = 3

async function measureParquet(count: number): Promise<void> {
  console.log(`\nParquet files in a folder: ${count.toLocaleString('en')} messages in loads of ${LOAD.toLocaleString('en')}`)
  using lake = temporaryLake()
  const rounds: { whole: Measured; writing: Measured; duckdb: Measured[] }[] = []
  let rows = 0
  let bytes = 0
  let json = 0
  for (let round = 0; round < ROUNDS; round++) {
    const folder = join(lake.folder, `ours-${round}`)
    const warehouse = createWarehouse({ engine: 'parquet', url: pathToFileURL(folder).href }, { lakeFolder: lake.folder })
    let schema = emptySchema()
    const [whole, writing] = [
      { ms: 0, cpuMs: 0 },
      { ms: 0, cpuMs: 0 },
    ]
    rows = 0
    json = 0
    for (let from = 0; from < count; from += LOAD) {
      const messages = shopMessages(Math.min(LOAD, count - from), from)
      json += messages.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
      add(
        whole,
        await measured(async () => {
          const evolved = evolve(schema, messages, { engine: 'parquet', loadedAtMs: LOADED_AT })
          schema = evolved.schema
          const load = { id: `load_${from}`, owner: OWNER, schema, loadedAtMs: LOADED_AT, repeated: false }
          add(
            writing,
            await measured(async () => {
              for (const table of (await warehouse.load(load, evolved.batch)).tables) {
                if (table.error !== null) throw new Error(table.error.message)
                rows += table.rows
              }
            }),
          )
        }),
      )
    }
    await warehouse.close()
    bytes = globSync('shop/**/*.parquet', { cwd: folder }).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0)
    rounds.push({ whole, writing, duckdb: [await withDuckDb(folder, 1), await withDuckDb(folder, 2)] })
    rmSync(folder, { recursive: true })
  }
  const whole = best(rounds.map((round) => round.whole))
  const writing = best(rounds.map((round) => round.writing))
  const duckdb = [0, 1].map((at) => best(rounds.map((round) => round.duckdb[at] as Measured)))
  line('messages to files (parsing, rows, writing)', rows, whole)
  line('rows to files', rows, writing)
  for (const [at, spent] of duckdb.entries()) line(`DuckDB, rows in memory to files, threads: ${at + 1}`, rows, spent)
  for (const [at, spent] of duckdb.entries()) {
    ratio(`rows to files, beside DuckDB with threads: ${at + 1}`, writing.ms, spent.ms)
    ratio(`messages to files, beside DuckDB with threads: ${at + 1}`, whole.ms, spent.ms)
  }
  console.log(`  CPU per 1,000 messages ${' '.repeat(38)} ${((whole.cpuMs / count) * 1_000).toFixed(1)} ms`)
  const mb = (of: number): string => `${((of / count) * 1).toFixed(0)} MB`
  console.log(`  a day of 1,000,000 such messages: ${mb(bytes)} in all tables, from ${mb(json)} of JSON`)
}

function add(sum: Measured, { ms, cpuMs }: Measured): void {
  sum.ms += ms
  sum.cpuMs += cpuMs
}

/** The same tables, from memory. */
async function withDuckDb(folder: string, threads: number): Promise<Measured> {
  const db = await (await DuckDBInstance.create(':memory:', { threads: String(threads) })).connect()
  const tables = [...new Set(globSync('shop/*/day=*/*.parquet', { cwd: folder }).map((file) => file.split('/')[1] as string))]
  for (const table of tables)
    await db.run(`CREATE TABLE "${table}" AS SELECT * FROM read_parquet('${folder}/shop/${table}/*/*.parquet', union_by_name = true)`)
  const spent = await measured(async () => {
    for (const table of tables) await db.run(`COPY "${table}" TO '${folder}/${table}.duckdb' (FORMAT parquet, COMPRESSION zstd)`)
  })
  db.closeSync()
  return spent
}

await measureParquet(Number(process.argv[2]))
