// Copies of the files of lakes in buckets, for queries: a query reads local files only. Loaders fetch them (delivery/loader/copy-run.ts). They are kept for some
// minutes after the last query of the table, and have a largest size together. A table in use is never removed. See docs/decisions/0150-sql-over-buckets.md.

import { randomUUID } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TableCopies } from '@switchyard/warehouse'
import type { ReadableLake } from '@switchyard/warehouse/sql'
import type { Destination } from '../../../store/store.ts'
import type { CopyRequest } from '../../link/copy-message.ts'

type TableName = Awaited<ReturnType<ReadableLake['tables']>>[number]

export interface BucketCopiesOptions {
  ask: (lake: Destination, request: CopyRequest) => Promise<unknown>
  /** What a query fails with if its tables are too large. */
  tooLarge: (message: string) => Error
  folder: string
  maxBytes?: number
  keptMs?: number
}

interface Kept {
  folder: string
  bytes: number
  /** The queries that read it. */
  users: number
  usedAtMs: number
}

const MAX_BYTES = 2 * 1024 ** 3
/** A user who was deleted in between is in the copies until then, but no query reads them any more. */
const KEPT_MS = 600_000
const RETRY_MS = 1_000
const NAME = /^switchyard-sql-(\d+)-/

export class BucketCopies {
  readonly #options: Required<BucketCopiesOptions>
  readonly #kept = new Map<string, Kept>()
  /** Of each lake: the end of its last listing, and of its last copy. */
  readonly #turns = new Map<string, Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: BucketCopiesOptions) {
    this.#options = { maxBytes: MAX_BYTES, keptMs: KEPT_MS, ...options }
  }

  /** The lake for one query. Call `release` when that has ended. */
  lake(lake: Destination): ReadableLake & { release: () => void } {
    const used: Kept[] = []
    let isOver = false
    return {
      id: lake.id,
      tables: async (schemas, signal) => {
        return await Promise.race([this.#tables(lake, schemas, signal), aborted(signal)])
      },
      files: async (table, signal) => {
        // Fetching that has begun goes on if the query is cancelled, so that the next one finds what was fetched.
        const copied = this.#copied(lake, table, signal).then(({ kept, ...copies }) => {
          if (isOver) this.#release([kept])
          else used.push(kept)
          return copies
        })
        return await Promise.race([copied, aborted(signal)])
      },
      release: () => {
        isOver = true
        this.#release(used)
      },
    }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #tables(lake: Destination, schemas: readonly string[], signal: AbortSignal): Promise<TableName[]> {
    return this.#inTurn(
      `tables ${lake.id}`,
      signal,
      async () => (await this.#options.ask(lake, { kind: 'tables', schemas })) as TableName[],
    )
  }

  #copied(lake: Destination, table: TableName, signal: AbortSignal): Promise<{ kept: Kept; files: string[]; warnings: string[] }> {
    return this.#inTurn(`copy ${lake.id}`, signal, () => this.#copy(lake, table))
  }

  /**
   * One after the other for each lake, so that a slow bucket is asked for little at the same time, and other lakes do not wait for it. A query that has ended
   * before its turn asks for nothing: otherwise, queries that are cancelled one after the other would be answered without end.
   */
  #inTurn<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const done = (this.#turns.get(what) ?? Promise.resolve()).then(() => {
      signal.throwIfAborted()
      return work()
    })
    const ended = done.then(
      () => undefined,
      () => undefined,
    )
    this.#turns.set(what, ended)
    void ended.then(() => {
      if (this.#turns.get(what) === ended) this.#turns.delete(what)
    })
    return done
  }

  async #copy(lake: Destination, { schema, table }: TableName): Promise<{ kept: Kept; files: string[]; warnings: string[] }> {
    const { folder, maxBytes, ask, tooLarge } = this.#options
    const key = JSON.stringify([lake.id, schema, table])
    const kept = this.#kept.get(key) ?? { folder: join(folder, randomUUID()), bytes: 0, users: 0, usedAtMs: 0 }
    this.#kept.set(key, kept)
    kept.users++
    try {
      for (;;) {
        // Copies of other lakes may be made at the same time, so nothing is fetched that has no room reserved. At first, only the size is asked for.
        const request: CopyRequest = { kind: 'copy', schema, table, folder: kept.folder, maxBytes: kept.bytes }
        const { bytes, files, warnings } = (await ask(lake, request)) as TableCopies
        if (files !== null) {
          kept.bytes = bytes
          return { kept, files, warnings }
        }
        if (!(await this.#reserve(kept, bytes)))
          throw tooLarge(
            `The files of ${schema}.${table} have ${gibibytes(bytes)} GiB. At most ${gibibytes(maxBytes)} GiB of buckets are fetched for queries at the same time. Query the bucket with DuckDB instead, or use a lake in a folder.`,
          )
      }
    } catch (error) {
      // Some of the files may have been fetched.
      kept.bytes = await sizeOf(kept.folder)
      this.#release([kept])
      throw error
    }
  }

  #bytesBeside(own: Kept): number {
    return [...this.#kept.values()].reduce((sum, kept) => sum + (kept === own ? 0 : kept.bytes), 0)
  }

  /** Removes what no query reads, the least recently used first, until there is room. */
  async #reserve(own: Kept, bytes: number): Promise<boolean> {
    const fits = (): boolean => this.#bytesBeside(own) + bytes <= this.#options.maxBytes
    while (!fits()) {
      const unused = [...this.#kept].filter(([, kept]) => kept !== own && kept.users === 0)
      const [oldest] = unused.sort(([, one], [, other]) => one.usedAtMs - other.usedAtMs)
      if (oldest === undefined) return false
      await this.#remove(...oldest)
    }
    own.bytes = bytes
    return true
  }

  #release(used: readonly Kept[]): void {
    for (const kept of used) {
      kept.users--
      kept.usedAtMs = Date.now()
    }
    this.#removeLater(this.#options.keptMs)
  }

  /** Queries of other tables do not put it off. */
  #removeLater(afterMs: number): void {
    if (this.#timer !== undefined || this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#removeOld()
    }, afterMs)
    this.#timer.unref()
  }

  async #removeOld(): Promise<void> {
    const { keptMs } = this.#options
    const all = [...this.#kept]
    for (const [key, kept] of all) {
      // If the files cannot be removed, this is tried again later.
      if (kept.users === 0 && kept.usedAtMs + keptMs <= Date.now()) await this.#remove(key, kept).catch(() => undefined)
    }
    const leftMs = [...this.#kept.values()].filter(({ users }) => users === 0).map(({ usedAtMs }) => usedAtMs + keptMs - Date.now())
    if (leftMs.length > 0) this.#removeLater(Math.max(Math.min(...leftMs), Math.min(keptMs, RETRY_MS)))
  }

  /** It counts until it is removed, but a query that comes meanwhile gets another folder. */
  async #remove(key: string, kept: Kept): Promise<void> {
    const leaving = randomUUID()
    this.#kept.delete(key)
    this.#kept.set(leaving, kept)
    await rm(kept.folder, { recursive: true, force: true })
    this.#kept.delete(leaving)
  }
}

/** Creates the folder for the copies, which only this user can open, and removes those of processes that were killed. */
export function createCopyFolder(folder: string, above = tmpdir()): string {
  for (const name of existsSync(above) ? readdirSync(above) : []) {
    const [, pid] = NAME.exec(name) ?? []
    if (pid !== undefined && join(above, name) !== folder && (Number(pid) === process.pid || !isAlive(Number(pid))))
      removeIfOwn(join(above, name))
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (!isOwn(folder)) throw new Error(`${folder} is not a folder of the user that the service runs as.`)
  return folder
}

export function copyFolderName(above = tmpdir()): string {
  return join(above, `switchyard-sql-${process.pid}-${randomUUID()}`)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it is somebody else's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function removeIfOwn(folder: string): void {
  try {
    // Another user could replace folders by links while they are removed.
    if (isOwn(folder)) rmSync(folder, { recursive: true, force: true })
  } catch {
    // Somebody else has removed it.
  }
}

function isOwn(folder: string): boolean {
  const found = lstatSync(folder)
  return found.isDirectory() && (process.getuid === undefined || found.uid === process.getuid())
}

async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(
    files.map(({ parentPath, name }) =>
      stat(join(parentPath, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error)
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

function gibibytes(bytes: number): string {
  return (bytes / 1024 ** 3).toFixed(1)
}
