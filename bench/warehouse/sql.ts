// SQL over a lake, beside DuckDB called directly on the same files. DuckDB makes the events, because writing 20 million with our own code takes long.

import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DuckDBInstance } from '@duckdb/node-api'
import { temporaryLake } from '../../packages/warehouse/src/fixtures/lake-reading.ts'
import { FolderFiles } from '../../packages/warehouse/src/parquet/folder-files.ts'
import { FolderLake, SqlRunner } from '../../packages/warehouse/src/sql/sql.ts'

const DAYS = 20
const ROUNDS = 7
/** The pause between two queries. Meanwhile, the process for the next query starts, as it does while a person looks at a result. */
const PAUSE_MS = 1_500
const QUERIES: [title: string, from: (table: string) => string][] = [
  ['count by day', (table) => `SELECT day, count(*) FROM ${table} GROUP BY day ORDER BY day`],
  ['search for one user', (table) => `SELECT * FROM ${table} WHERE user_id = 'user-4711' ORDER BY received_at LIMIT 100`],
  ['total by event', (table) => `SELECT event, count(*), sum(total) FROM ${table} GROUP BY event ORDER BY event`],
]

export async function measureSql(events: number): Promise<void> {
  console.log(`\nSQL over ${events.toLocaleString('en')} events in ${DAYS} files`)
  using lake = temporaryLake()
  const files = await makeEvents(lake.folder, events)
  const runner = new SqlRunner()
  // The processes of queries keep nothing alive.
  const alive = setInterval(() => {}, 60_000)
  const db = await (await DuckDBInstance.create(':memory:', { threads: '2', memory_limit: '512MB' })).connect()
  const paths = files.map((path) => `'${path}'`).join(', ')
  const direct = `read_parquet([${paths}], union_by_name = true, hive_partitioning = true)`
  const run = (query: string): Promise<unknown> =>
    runner.run({ query, lake: new FolderLake(new FolderFiles(lake.folder), lake.folder), schemas: ['shop'] })
  try {
    // The queries below find a waiting process. This one does not.
    const first = await timed(() => run('SELECT 1'))
    for (const [title, from] of QUERIES) {
      const [ours, theirs] = [[] as number[], [] as number[]]
      for (let round = 0; round < ROUNDS; round++) {
        await sleep(PAUSE_MS)
        // On a busy machine, the process for the next query may need longer to start.
        for (let left = round === 0 ? 0 : 20; !runner.isPrepared && left > 0; left--) await sleep(PAUSE_MS / 10)
        ours.push(await timed(() => run(from('tracks'))))
        await sleep(PAUSE_MS)
        theirs.push(await timed(async () => (await db.run(from(direct))).getRows()))
      }
      for (const [of, number] of [
        ['best', (times: number[]) => Math.min(...times)],
        ['median', (times: number[]) => [...times].sort((one, other) => one - other)[Math.floor(ROUNDS / 2)] ?? 0],
      ] as const) {
        const [own, other] = [number(ours), number(theirs)]
        const times = `${own.toFixed(0).padStart(6)} ms   DuckDB directly ${other.toFixed(0).padStart(6)} ms   ${(other / own).toFixed(2)} ×`
        console.log(`  ${title.padEnd(24)} ${of.padEnd(6)} ${times}`)
      }
    }
    const atOnce: number[] = []
    // It uses the waiting process.
    await run('SELECT 1')
    for (let round = 0; round < ROUNDS; round++) atOnce.push(await timed(() => run('SELECT 1')))
    console.log(
      `  Without a waiting process, SELECT 1 takes ${Math.min(...atOnce).toFixed(0)} ms right after another query, and took ${first.toFixed(0)} ms as the first query`,
    )
  } finally {
    clearInterval(alive)
    runner.close()
    db.closeSync()
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

async function makeEvents(folder: string, events: number): Promise<string[]> {
  const db = await (await DuckDBInstance.create(':memory:')).connect()
  const perDay = Math.ceil(events / DAYS)
  const manifest = []
  for (let day = 1; day <= DAYS; day++) {
    const date = `2026-10-${String(day).padStart(2, '0')}`
    const path = `day=${date}/load_${day}.parquet`
    const file = join(folder, 'shop', 'tracks', path)
    mkdirSync(join(file, '..'), { recursive: true })
    await db.run(`COPY (
      SELECT 'message-' || (${day * perDay} + i) AS id, 'user-' || (hash(i * ${day}) % 100000) AS user_id, 'anonymous-' || (i % 9000) AS anonymous_id,
        ['order_completed', 'product_viewed', 'cart_viewed'][1 + i % 3] AS event, TIMESTAMPTZ '${date} 00:00:00Z' + INTERVAL 1 MILLISECOND * (i % 86400000) AS received_at,
        (i % 9973) / 100.0::DOUBLE AS total, 'https://shop.example/' || (i % 1000) AS context_page_url
      FROM range(${perDay}) t(i)
    ) TO '${file}' (FORMAT parquet, COMPRESSION zstd)`)
    manifest.push({
      path,
      rows: perDay,
      bytes: statSync(file).size,
      sha256: '',
      from: `${date}T00:00:00.000Z`,
      to: `${date}T23:59:59.999Z`,
    })
  }
  db.closeSync()
  writeFileSync(join(folder, 'shop', 'tracks', '_manifest.json'), JSON.stringify({ files: manifest }))
  return manifest.map(({ path }) => join(folder, 'shop', 'tracks', path))
}
