// Measures warehouses: how fast rows are written into Parquet files and PostgreSQL, beside DuckDB and COPY with the same rows; the memory of a load of many wide
// tables; what a day of a million events costs in bytes; SQL over a lake, beside DuckDB on the same files; and the service while a lake is loaded. The cases of a comparison take turns, so that other
// load on the machine affects both alike, and the best of three rounds is printed.
// Run: npm run bench:warehouse -- [--quick] [--messages N] [--events N] [--only parquet,postgres,memory,sql,beside]

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { LOADER } from '../../packages/server/src/delivery/link/host-channel.ts'
import { measureBeside } from './beside.ts'
import { measurePostgres } from './postgres.ts'
import { measureSql } from './sql.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    messages: { type: 'string' },
    events: { type: 'string' },
    only: { type: 'string', default: 'parquet,postgres,memory,sql,beside' },
  },
})
const only = new Set(values.only.split(','))
const messages = Number(values.messages ?? (values.quick ? 20_000 : 200_000))
const events = Number(values.events ?? (values.quick ? 1_000_000 : 20_000_000))

/** Runs a program with the settings of a loader. */
function inLoader(program: string, ...args: string[]): void {
  const { status } = spawnSync(process.execPath, [...LOADER.flags, join(import.meta.dirname, program), ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...LOADER.env },
  })
  if (status !== 0) process.exitCode = 1
}

if (only.has('parquet')) inLoader('parquet.ts', String(messages))
if (only.has('postgres')) await measurePostgres(messages)
if (only.has('memory')) {
  console.log('\nMemory of a load into 1,000 tables of 100 columns, in a process of its own')
  inLoader('memory.ts')
}
if (only.has('sql')) await measureSql(events)
if (only.has('beside')) await measureBeside(values.quick ? 15_000 : 60_000, values.quick ? 3 : 5)
