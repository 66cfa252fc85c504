// A service with a lake, for tests of warehouses.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type ReadRow, readTable, scanTable } from '../../packages/warehouse/src/fixtures/lake-reading.ts'
import { type Service, type ServiceOptions, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

export interface Lake {
  /** The folder of the lake. */
  folder: string
  /** The address of the lake. */
  url: string
  /** The folder of the source. */
  source: string
}

export interface Attempt {
  reason: string | null
  error: string | null
  responseStart: string | null
  load: { id: string; tables: { table: string; rows: number }[]; rows: number; bytes: number; durationMs: number } | null
}

export interface Tables {
  data: {
    schema: string
    table: string
    rows: number
    lastLoadAt: string | null
    columns: { name: string; type: string; path: string; unfit: { count: number; types: { type: string; count: number }[] } }[]
  }[]
}

/** Loads that are repeated soon, so that tests need not wait. */
export const RETRY = { initialMs: 100, maxMs: 500 }
export const LOAD = { everyMs: 1_000 }

export async function startWithLake(options: ServiceOptions = {}): Promise<AsyncDisposable & { service: Service; lake: Lake }> {
  const service = await startService(options)
  return { service, lake: lakeOf(service), [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() }
}

export function lakeOf({ folder }: Pick<Service, 'folder'>): Lake {
  const lake = join(folder, 'lake')
  mkdirSync(lake, { recursive: true })
  return { folder: lake, url: pathToFileURL(lake).href, source: join(lake, 'default') }
}

/** Creates a destination for the lake, and returns its id. */
export async function addLake(service: Service, { url }: Lake, settings: object = {}): Promise<string> {
  const body = {
    type: 'warehouse',
    name: 'Lake',
    sourceIds: [service.sourceId],
    warehouse: { engine: 'parquet', url },
    load: LOAD,
    retry: RETRY,
  }
  return (await service.api<{ id: string }>('/destinations', { method: 'POST', body: { ...body, ...settings } })).id
}

/** The ids of the rows of a table in a lake: as the manifest says, and as a scan of the folder finds them. Throws if these differ. */
export async function idsIn(folder: string, table: string): Promise<string[]> {
  const idsOf = (rows: ReadRow[]): string[] => rows.map(({ id }) => String(id)).sort()
  const [read, scanned] = [idsOf(await readTable(folder, table)), idsOf(await scanTable(folder, table))]
  if (read.join() !== scanned.join())
    throw new Error(`${table} has ${scanned.length} rows in its folder, and ${read.length} in its manifest`)
  return read
}

export function loaded(service: Service, owed?: number): Promise<unknown> {
  return service.settled(owed, { deadlineMs: 60_000 })
}

export async function attemptsOf(service: Service, query = ''): Promise<Attempt[]> {
  const { data } = await service.api<{ data: { id: string }[] }>(`/deliveries?limit=1000${query}`)
  const details = await Promise.all(data.map(({ id }) => service.api<{ attempts: Attempt[] }>(`/deliveries/${id}`)))
  return details.flatMap(({ attempts }) => attempts)
}

/** Waits until a load has failed, and returns its attempt. */
export async function failedAttempt(service: Service): Promise<Attempt> {
  const found = await eventually(
    async () => (await attemptsOf(service)).find(({ reason }) => reason !== null),
    (attempt) => attempt !== undefined,
    { what: 'an attempt that failed', deadlineMs: 60_000 },
  )
  return found as Attempt
}
