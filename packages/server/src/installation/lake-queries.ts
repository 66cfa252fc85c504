// Queries over lakes: finds the schemas that a caller may see, and runs the query with the code of the warehouse package, which loads DuckDB in a process of
// its own. Nothing of it is loaded before the first query.

import { mkdirSync, rmSync } from 'node:fs'
import type * as enginesPart from '@switchyard/warehouse/engines'
import type * as sqlPart from '@switchyard/warehouse/sql'
import type { ReadableLake, SqlFault, SqlRunner } from '@switchyard/warehouse/sql'
import type { Config } from '../config.ts'
import type { LakeQueries, LakeQuery, LakeTable } from '../control/routes/lake-queries.ts'
import { BucketCopies, type BucketCopiesOptions } from '../delivery/supervision/loading/bucket-copies.ts'
import { CopyProblem } from '../delivery/supervision/loading/copy-files.ts'
import { ApiError } from '../errors.ts'
import { readSchemas, schemasOfSources } from '../store/port/warehouse-tables.ts'
import type { Destination, Store } from '../store/store.ts'
import { findPackage, lakeFolder, loadPart, WAREHOUSE, warehouseFolder } from './integrations-package.ts'

type SqlPart = typeof sqlPart
type EnginesPart = typeof enginesPart

/** It has no stored columns, because they never change. */
const ARCHIVE = {
  table: '_messages',
  columns: ['id', 'type', 'user_id', 'anonymous_id', 'event', 'received_at', 'message'].map((name) => ({
    name,
    type: name === 'received_at' ? 'timestamp' : 'text',
  })),
}

interface Parts {
  runner: SqlRunner
  sql: SqlPart
  engines: EnginesPart
}

interface Opened {
  readable: ReadableLake
  release: () => void
}

export class StoredLakeQueries implements LakeQueries {
  readonly #store: Store
  readonly #config: Config
  readonly #fetching: Pick<BucketCopiesOptions, 'ask' | 'folder'>
  #copies: BucketCopies | null = null
  #parts: Promise<Parts> | null = null

  /** `fetching`: how the files of lakes in buckets are copied. */
  constructor(store: Store, config: Config, fetching: Pick<BucketCopiesOptions, 'ask' | 'folder'>) {
    this.#store = store
    this.#config = config
    this.#fetching = fetching
  }

  async run({ lake, query, limit, signal }: LakeQuery, sources: readonly string[] | 'all') {
    const url = urlOf(lake)
    const parts = await this.#open()
    const { runner, sql } = parts
    const { readable, release } = url.startsWith('file:') ? this.#inFolder(parts, url, lake.id) : this.#inBucket(parts, lake)
    const schemas = (await schemasOfSources(this.#store.documents, lake.id)).filter(({ sourceId }) => isIn(sourceId, sources))
    try {
      return await runner.run({
        query,
        lake: readable,
        schemas: schemas.map(({ name }) => name),
        signal,
        ...(limit === undefined ? {} : { limits: { rows: limit } }),
      })
    } catch (error) {
      if (error instanceof CopyProblem) {
        // The lake of a limited caller lacks the sources that the caller lacks.
        const whole = this.#store.configuration().destinations.get(lake.id) ?? lake
        throw new ApiError('sql_failed', { message: error.messageFor(whole, sources), line: null, column: null })
      }
      if (!(error instanceof sql.SqlProblem)) throw error
      const { fault } = error
      // The error that DuckDB gives looks like a mistake in the query.
      const isEmpty = schemas.length === 0 && fault.code === 'sql_invalid' && /does not exist/.test(fault.message)
      throw asApiError(isEmpty ? { ...fault, message: `${fault.message} ${nothingLoaded(lake)}` } : fault)
    } finally {
      release()
    }
  }

  #inFolder({ sql, engines }: Parts, url: string, id: string): Opened {
    const files = engines.lakeFiles({ engine: 'parquet', url }, { lakeFolder: lakeFolder(this.#config) })
    return { readable: new sql.FolderLake(files, files.place, id), release: () => undefined }
  }

  #inBucket({ sql }: Parts, lake: Destination): Opened {
    this.#copies ??= new BucketCopies({
      ...this.#fetching,
      tooLarge: (message) => new sql.SqlProblem({ code: 'sql_too_large', message, line: null, column: null }),
    })
    const readable = this.#copies.lake(lake)
    return { readable, release: () => readable.release() }
  }

  async tables(lake: Destination, sources: readonly string[] | 'all'): Promise<LakeTable[]> {
    const found = await readSchemas(this.#store.documents, lake.id)
    // Whoever wants to know the tables will query them soon. Without the package, the query says so.
    if (found.length > 0)
      void this.#open().then(
        ({ runner }) => runner.prepare(),
        () => {},
      )
    return found
      .filter(({ sourceId }) => isIn(sourceId, sources))
      .flatMap(({ sourceId, schema }) =>
        [ARCHIVE, ...schema.tables].map(({ table, columns }) => ({
          sourceId,
          schema: schema.name,
          table,
          columns: columns.map(({ name, type }) => ({ name, type })),
        })),
      )
  }

  async close(): Promise<void> {
    const parts = await this.#parts?.catch(() => null)
    parts?.runner.close()
    this.#copies?.close()
    rmSync(this.#fetching.folder, { recursive: true, force: true })
  }

  async #open(): Promise<Parts> {
    this.#parts ??= this.#load()
    // It may be installed in the meantime.
    this.#parts.catch(() => {
      this.#parts = null
    })
    return this.#parts
  }

  async #load(): Promise<Parts> {
    const url = findPackage(WAREHOUSE, warehouseFolder(this.#config))
    if (url === null) throw new ApiError('not_installed')
    const folder = lakeFolder(this.#config)
    if (folder !== null) mkdirSync(folder, { recursive: true })
    const [sql, engines] = await Promise.all([loadPart<SqlPart>(url, './sql'), loadPart<EnginesPart>(url, './engines')])
    return { sql, engines, runner: new sql.SqlRunner() }
  }
}

function nothingLoaded(lake: Destination): string {
  const seconds = lake.type === 'warehouse' ? lake.load.everyMs / 1_000 : 0
  return `Nothing of your sources has been loaded into this lake yet: messages are loaded every ${seconds} s, or with POST /api/destinations/${lake.id}/load.`
}

function isIn(sourceId: string, sources: readonly string[] | 'all'): boolean {
  return sources === 'all' || sources.includes(sourceId)
}

function urlOf(lake: Destination): string {
  if (lake.type !== 'warehouse' || lake.warehouse.engine !== 'parquet') throw new ApiError('not_a_lake')
  return lake.warehouse.url
}

function asApiError({ code, message, line, column }: SqlFault): ApiError {
  return new ApiError(code, { message, line, column })
}
