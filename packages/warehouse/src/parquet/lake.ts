// The engine `parquet`: `{source}/{table}/day=…/{load}.parquet`, and the archive `_messages`. Everything that two processes could do at once is decided by
// the manifest of a table (manifest.ts).

import { problemOf, WarehouseProblem } from '../failure.ts'
import { ARCHIVE_TABLE, LAYOUT } from '../schema/names.ts'
import type {
  ArchivePage,
  ArchiveQuery,
  Check,
  LakeCopying,
  Load,
  LoadedTable,
  LoadResult,
  Owner,
  Progress,
  RowBatch,
  SourceSchema,
  Upkeep,
  UserDeletion,
  Warehouse,
  WarehouseError,
} from '../warehouse.ts'
import { ArchiveReader } from './archive.ts'
import type { LakeFiles } from './lake-files.ts'
import { isFolderOf, OWNER_FILE, placeTaken } from './owner.ts'
import { ParquetFile } from './parquet-file.ts'
import { loadState } from './state-files.ts'
import { copyTable } from './table-copies.ts'
import { type Committed, loadTable } from './table-files.ts'
import { tablesOf } from './table-list.ts'
import { deleteFromTable, keepUp } from './upkeep.ts'

/** Tables of a load that are written at the same time: most of the time of a small one is spent waiting for the disk. */
const PARALLEL_TABLES = 4
const TEST_TABLE = '_switchyard_test'
/** What would stop the upkeep of every other table, too. */
const ALL_TABLES = new Set<WarehouseError['code']>(['credentials_refused', 'disk_full', 'read_only', 'timed_out', 'unreachable'])

export class ParquetLake implements Warehouse {
  readonly #files: LakeFiles
  readonly #destinationId: string | null
  readonly #archive: ArchiveReader
  readonly #claimed = new Set<string>()

  /** With `destinationId`, nothing is read or removed in folders of other destinations. */
  constructor(files: LakeFiles, destinationId: string | null = null) {
    this.#files = files
    this.#destinationId = destinationId
    this.#archive = new ArchiveReader(files)
  }

  async check(): Promise<Check> {
    const steps: Check['steps'] = []
    const path = `${TEST_TABLE}/test.parquet`
    const work: [string, () => Promise<void>][] = [
      ...(this.#files.verify === undefined ? [] : [['connect', () => this.#verify()] as [string, () => Promise<void>]]),
      ['create table', () => this.#writeTest(path)],
      [
        'read table',
        async () => {
          if ((await this.#files.read(path)) === null)
            throw new WarehouseProblem('failed', `${this.#files.place}: a file that was just written cannot be read.`)
        },
      ],
      ['drop table', () => this.#files.remove(path)],
    ]
    for (const [step, run] of work) {
      try {
        await run()
        steps.push({ step, ok: true })
      } catch (error) {
        const problem = problemOf(error, this.#files.place)
        steps.push({ step, ok: false, error: problem.message })
        return { problem, steps, version: null }
      }
    }
    return { problem: null, steps, version: null }
  }

  async load(load: Load, batch: RowBatch, signal?: AbortSignal): Promise<LoadResult> {
    await this.#claim(load.schema.name, load.owner)
    const folderOf = (table: string): string => `${load.schema.name}/${table}`
    const work: [string, () => Promise<Committed>][] = [
      ...[...batch.tables, ...(batch.archive === null ? [] : [batch.archive])].map((rows): [string, () => Promise<Committed>] => [
        rows.table,
        () => loadTable(this.#files, folderOf(rows.table), load, rows),
      ]),
      ...batch.states.map((state): [string, () => Promise<Committed>] => [
        state.table,
        () => loadState(this.#files, folderOf(state.table), load, state),
      ]),
    ]
    const tables: LoadedTable[] = []
    const next = work.values()
    const run = async (): Promise<void> => {
      for (const [table, write] of next) tables.push(await this.#attempt(table, write, signal))
    }
    await Promise.all(Array.from({ length: PARALLEL_TABLES }, run))
    return { tables, unfit: [] }
  }

  async deleteUsers(deletion: UserDeletion): Promise<Progress> {
    return this.#step(deletion.schema, deletion.cursor, async (table, folder) => ({
      ...(await deleteFromTable(this.#files, folder, table, deletion)),
      isDone: true,
    }))
  }

  async upkeep(upkeep: Upkeep): Promise<Progress> {
    return this.#step(upkeep.schema, upkeep.cursor, async (table, folder) => {
      try {
        return await keepUp(this.#files, folder, table, upkeep)
      } catch (error) {
        const problem = problemOf(error, this.#files.place)
        if (ALL_TABLES.has(problem.code)) throw error
        // A file that cannot be read, for example: the other tables are looked after all the same.
        return { changed: 0, problems: [{ ...problem, message: `${folder}: ${problem.message}` }], isDone: true }
      }
    })
  }

  readonly readArchive = (
    query: ArchiveQuery,
    cursor: string | null,
    limit: number,
    maxCharacters = Number.POSITIVE_INFINITY,
  ): Promise<ArchivePage> =>
    this.#told(async () => {
      await this.#assertOwn(query.schema.name)
      return this.#archive.read(`${query.schema.name}/${ARCHIVE_TABLE}`, query, cursor, limit, maxCharacters)
    })

  readonly archiveSize = (query: ArchiveQuery): Promise<number> =>
    this.#told(async () => {
      await this.#assertOwn(query.schema.name)
      return this.#archive.size(`${query.schema.name}/${ARCHIVE_TABLE}`, query)
    })

  readonly copying: LakeCopying = {
    tables: (schemas, signal) => this.#told(() => tablesOf(this.#files, schemas, this.#destinationId, signal)),
    copy: (request, signal) =>
      this.#told(async () => {
        await this.#assertOwn(request.schema, signal)
        return copyTable(this.#files, request, signal)
      }),
  }

  async close(): Promise<void> {
    await this.#files.close?.()
  }

  async #verify(): Promise<void> {
    await this.#files.verify?.()
  }

  /** The cursor is the table that comes next. */
  async #step(
    { name, tables }: SourceSchema,
    cursor: string | null,
    work: (table: string, folder: string) => Promise<Omit<Progress, 'cursor'> & { isDone: boolean }>,
  ): Promise<Progress> {
    const all = [...new Set([ARCHIVE_TABLE, ...Object.keys(LAYOUT), ...tables.map(({ table }) => table).sort()])]
    const at = cursor === null ? 0 : Math.max(0, all.indexOf(cursor))
    const table = all[at] as string
    const { isDone, ...progress } = await this.#told(async () => {
      await this.#assertOwn(name)
      return work(table, `${name}/${table}`)
    })
    return { ...progress, cursor: isDone ? (all[at + 1] ?? null) : table }
  }

  /** Errors say what they mean for a lake. */
  #told<T>(work: () => Promise<T>): Promise<T> {
    return work().catch((error: unknown) => {
      const { code, message } = problemOf(error, this.#files.place)
      throw new WarehouseProblem(code, message, error)
    })
  }

  async #attempt(table: string, write: () => Promise<Committed>, signal: AbortSignal | undefined): Promise<LoadedTable> {
    try {
      signal?.throwIfAborted()
      return { table, ...(await write()), error: null }
    } catch (error) {
      return { table, rows: 0, bytes: 0, error: problemOf(error, this.#files.place) }
    }
  }

  async #assertOwn(schema: string, signal?: AbortSignal): Promise<void> {
    if (this.#destinationId === null || (await isFolderOf(this.#files, schema, this.#destinationId, signal))) return
    throw placeTaken(this.#files.place, schema)
  }

  /** Marks the folder of a source as ours, or refuses it. */
  async #claim(schema: string, { installation, destinationId, sourceId, adopt = false }: Owner): Promise<void> {
    const owner = JSON.stringify({ installation, destinationId, sourceId })
    const key = `${schema} ${owner}`
    if (this.#claimed.has(key)) return
    const path = `${schema}/${OWNER_FILE}`
    try {
      await this.#verify()
      const found = await this.#files.read(path)
      const isOurs = found !== null && Buffer.from(found.bytes).toString().trim() === owner
      if (!isOurs) {
        const isEmpty = found === null && !(await this.#files.list(schema)).some(({ isFolder }) => isFolder)
        // Another node of ours may have claimed it, and written, in between.
        if (found === null && !isEmpty && (await this.#files.read(path)) !== null)
          return await this.#claim(schema, { installation, destinationId, sourceId, adopt })
        if (!isEmpty && !adopt) throw placeTaken(this.#files.place, schema)
        const isClaimed = await this.#files.replace(path, found?.version ?? null, Buffer.from(`${owner}\n`))
        if (!isClaimed) return await this.#claim(schema, { installation, destinationId, sourceId, adopt })
      }
    } catch (error) {
      const { code, message } = problemOf(error, this.#files.place)
      throw new WarehouseProblem(code, message, error)
    }
    this.#claimed.add(key)
  }

  async #writeTest(path: string): Promise<void> {
    const file = await this.#files.create(path)
    try {
      const parquet = new ParquetFile([{ name: 'id', type: 'text' }], file)
      await parquet.write([['test']])
      await parquet.finish()
      await file.publish()
    } finally {
      await file.discard()
    }
  }
}
