// PostgreSQL, beside COPY of the same rows from a file on the server into tables of the same definition.

import { join } from 'node:path'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { createWarehouse } from '../../packages/warehouse/src/engines.ts'
import { emptySchema, LOADED_AT, OWNER } from '../../packages/warehouse/src/fixtures/messages.ts'
import { evolve } from '../../packages/warehouse/src/schema/evolve.ts'
import { best, line, type Measured, measured, ratio, shopMessages } from './measured.ts'

const LOAD = 50_000
const ROUNDS = 3

export async function measurePostgres(count: number): Promise<void> {
  console.log(`\nPostgreSQL: ${count.toLocaleString('en')} messages in loads of ${LOAD.toLocaleString('en')}`)
  const server = await PostgresServer.start({ fsync: true })
  try {
    const client = await server.client()
    const rounds: { whole: Measured; writing: Measured; copy: Measured }[] = []
    let rows = 0
    for (let round = 0; round < ROUNDS; round++) {
      const name = `round_${round}`
      await client.query(`CREATE DATABASE ${name}`)
      const warehouse = createWarehouse({ engine: 'postgres', url: server.url(name) }, { lakeFolder: null })
      let schema = emptySchema()
      const writing = { ms: 0, cpuMs: 0 }
      rows = 0
      const whole = await measured(async () => {
        for (let from = 0; from < count; from += LOAD) {
          const messages = shopMessages(Math.min(LOAD, count - from), from)
          const evolved = evolve(schema, messages, { engine: 'postgres', loadedAtMs: LOADED_AT })
          schema = evolved.schema
          const load = { id: `load_${from}`, owner: OWNER, schema, loadedAtMs: LOADED_AT, repeated: false }
          const spent = await measured(async () => {
            const { tables } = await warehouse.load(load, evolved.batch)
            for (const table of tables) {
              if (table.error !== null) throw new Error(table.error.message)
              rows += table.rows
            }
          })
          writing.ms += spent.ms
          writing.cpuMs += spent.cpuMs
        }
      })
      await warehouse.close()
      rounds.push({ whole, writing, copy: await withCopy(server, name) })
      await client.query(`DROP DATABASE ${name}`)
    }
    await client.end()
    const [whole, writing, copy] = (['whole', 'writing', 'copy'] as const).map((kind) => best(rounds.map((round) => round[kind])))
    if (whole === undefined || writing === undefined || copy === undefined) throw new Error('nothing was measured')
    line('messages to tables (made, parsed, rows, sent)', rows, whole)
    line('rows to tables', rows, writing)
    console.log(
      `  ${'COPY from files on the server'.padEnd(54)} ${Math.round((rows / copy.ms) * 1_000)
        .toLocaleString('en')
        .padStart(10)} rows/s`,
    )
    ratio('rows to tables, beside COPY', writing.ms, copy.ms)
  } finally {
    await server.dispose()
  }
}

async function withCopy(server: PostgresServer, database: string): Promise<Measured> {
  const client = await server.client(database)
  const { rows } = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'shop' AND tablename !~ '^_'",
  )
  const { rows: found } = await client.query<{ folder: string }>("SELECT current_setting('data_directory') AS folder")
  const folder = found[0]?.folder ?? ''
  for (const { name } of rows) {
    await client.query(`COPY shop."${name}" TO '${join(folder, `${name}.copy`)}'`)
    await client.query(`CREATE TABLE public."${name}" (LIKE shop."${name}" INCLUDING ALL)`)
  }
  const spent = await measured(async () => {
    for (const { name } of rows) await client.query(`COPY public."${name}" FROM '${join(folder, `${name}.copy`)}'`)
  })
  await client.end()
  return spent
}
