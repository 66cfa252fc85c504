// The warehouses of the system under fault: a lake in a folder, one in a bucket, and a PostgreSQL database on a server of its own, behind a proxy. Every
// message is sent to all of them, and their tables are read as users read them.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fastFolder } from '../../../packages/server/src/store/fixtures/fast-folder.ts'
import { PostgresServer } from '../../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { readTable, scanTable } from '../../../packages/warehouse/src/fixtures/lake-reading.ts'
import { S3_KEY, S3Server } from '../../../packages/warehouse/src/fixtures/s3-server.ts'
import { readManifest } from '../../../packages/warehouse/src/parquet/manifest.ts'
import { S3Files } from '../../../packages/warehouse/src/parquet/s3-files.ts'
import { withReader } from '../../../packages/warehouse/src/parquet/table-files.ts'
import { DatabaseProxy } from '../../cluster/proxy.ts'
import type { LedgerRow } from '../../system/service.ts'
import { eventually } from '../../system/signals.ts'
import type { FinalState } from './destinations.ts'

/** The ids of the rows of each table. */
export type TableIds = ReadonlyMap<string, readonly string[]>

export interface LoadedWarehouse {
  name: string
  id: string
  expected: (nth: number) => FinalState
  read: () => Promise<TableIds>
}

type Api = <T>(path: string, init?: { method?: string; body?: unknown }) => Promise<T>

/** Short, so that a load is usually being written when a fault is caused. */
const LOAD = { everyMs: 1_000, maxRows: 200 }
const RETRY = { initialMs: 200, maxMs: 2_000 }
/** In each direction, so each statement takes at least twice this longer: a fault is then more likely to hit a load. */
const USUAL_DELAY_MS = 5
/** All messages of the load are track calls of one event. */
const TABLES = ['tracks', 'order_completed'] as const
const ARCHIVE = '_messages'
/** The name of the source of the messages, in snake case. */
const SCHEMA = 'default'

export class Warehouses implements AsyncDisposable {
  /** The settings of the nodes. */
  readonly env: Readonly<Record<string, string>>
  readonly server: PostgresServer
  readonly proxy: DatabaseProxy
  readonly bucket: S3Server
  readonly #lake: string
  readonly #started: AsyncDisposableStack

  private constructor(lake: string, server: PostgresServer, proxy: DatabaseProxy, bucket: S3Server, started: AsyncDisposableStack) {
    this.env = { SWITCHYARD_LAKE_DIR: lake }
    this.server = server
    this.proxy = proxy
    this.bucket = bucket
    this.#lake = lake
    this.#started = started
  }

  /** `parent`: where the folder of the lake is made; a temporary folder by default. */
  static async start(parent = fastFolder(tmpdir)): Promise<Warehouses> {
    await using started = new AsyncDisposableStack()
    const folder = mkdtempSync(join(parent, 'switchyard-lake-'))
    started.defer(() => rmSync(folder, { recursive: true, force: true }))
    const server = await PostgresServer.start({ settings: ['synchronous_commit=on'] })
    started.defer(() => server.dispose())
    const proxy = started.use(await DatabaseProxy.start(server.port))
    const bucket = new S3Server()
    await bucket.start()
    started.defer(() => bucket.close())
    const warehouses = new Warehouses(folder, server, proxy, bucket, started.move())
    warehouses.heal()
    return warehouses
  }

  /** Ends the effects of a fault on the database and the bucket. */
  heal(): void {
    this.proxy.heal()
    this.proxy.slow({ delayMs: USUAL_DELAY_MS })
    this.bucket.refuse = () => undefined
    this.bucket.losesAnswer = () => false
  }

  /** Creates the destinations. */
  async add(api: Api, sourceId: string): Promise<LoadedWarehouse[]> {
    const place = join(this.#lake, 'main')
    mkdirSync(place)
    const database = this.server.url().replace(`:${this.server.port}/`, `:${this.proxy.port}/`)
    const bucket = { url: `s3://${this.bucket.bucket}/main`, endpoint: this.bucket.endpoint, ...S3_KEY, pathStyle: true }
    const planned: [name: string, warehouse: object, read: LoadedWarehouse['read']][] = [
      ['lake in a folder', { engine: 'parquet', url: pathToFileURL(place).href }, () => readFolder(join(place, SCHEMA))],
      ['lake in a bucket', { engine: 'parquet', ...bucket }, () => readBucket(bucket)],
      ['PostgreSQL warehouse', { engine: 'postgres', url: database }, () => readPostgres(this.server)],
    ]
    const added: LoadedWarehouse[] = []
    for (const [name, warehouse, read] of planned) {
      const body = { type: 'warehouse', name, sourceIds: [sourceId], warehouse, load: LOAD, retry: RETRY }
      const { id } = await api<{ id: string }>('/destinations', { method: 'POST', body })
      added.push({ name, id, expected: () => 'delivered', read })
    }
    return added
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#started.disposeAsync()
  }
}

/** Resolves when each warehouse has recorded at least this many messages as loaded. */
export async function allLoaded(api: Api, warehouses: readonly LoadedWarehouse[], messages: number, deadlineMs: number): Promise<void> {
  if (warehouses.length === 0) return
  const counts = async (): Promise<[string, number][]> => {
    // The node or its store may be down.
    const { data } = await api<{ data: LedgerRow[] }>('/ledger').catch(() => ({ data: [] as LedgerRow[] }))
    return warehouses.map(({ name, id }) => [name, data.find(({ destinationId }) => destinationId === id)?.delivered ?? 0])
  }
  let last: [string, number][] = []
  await eventually(
    async () => (last = await counts()),
    (found) => found.every(([, count]) => count >= messages),
    {
      what: `all warehouses have loaded ${messages} messages`,
      deadlineMs,
      state: () => last.map(([name, count]) => `${name}: ${count}`).join(', '),
    },
  )
}

/** Reads the files that the manifest lists. A scan of the folder must find the same rows. */
async function readFolder(folder: string): Promise<TableIds> {
  const found = new Map<string, readonly string[]>()
  const idsOf = (rows: readonly Record<string, unknown>[]): string[] => rows.map(({ id }) => String(id)).sort()
  for (const table of [...TABLES, ARCHIVE]) {
    const ids = idsOf(await readTable(folder, table))
    const scanned = idsOf(await scanTable(folder, table))
    if (ids.join() !== scanned.join())
      throw new Error(`${table} has ${ids.length} rows in its manifest, and ${scanned.length} in the files of its folder`)
    found.set(table, ids)
  }
  return found
}

async function readBucket(place: { url: string; endpoint: string }): Promise<TableIds> {
  const files = new S3Files({ engine: 'parquet', ...place, ...S3_KEY, pathStyle: true })
  try {
    const found = new Map<string, readonly string[]>()
    for (const table of [...TABLES, ARCHIVE]) {
      const ids: string[] = []
      for (const { path } of (await readManifest(files, `${SCHEMA}/${table}`)).files) {
        const rows = await withReader(files, `${SCHEMA}/${table}/${path}`, async (reader) =>
          (await Promise.all([...reader.groups.keys()].map((group) => reader.read(group, ['id'])))).flat(),
        )
        if (rows === null) throw new Error(`${table}/${path} is in the manifest, but not in the bucket`)
        ids.push(...rows.map(([id]) => String(id)))
      }
      found.set(table, ids)
    }
    return found
  } finally {
    await files.close()
  }
}

/** Connects to the server directly, not through the proxy. */
async function readPostgres(server: PostgresServer): Promise<TableIds> {
  const client = await server.client()
  try {
    const found = new Map<string, readonly string[]>()
    for (const table of TABLES) {
      const { rows } = await client.query<{ id: string }>(`SELECT id FROM "${SCHEMA}".${table}`)
      found.set(
        table,
        rows.map(({ id }) => id),
      )
    }
    return found
  } finally {
    await client.end()
  }
}
