// SQL over a lake, as the service sees it: one process per query, which is killed when it takes too long, when the query is cancelled, or when it has
// answered. DuckDB is loaded in that process only. A process that has loaded it waits for the next query for some minutes, because loading takes longer than most queries.

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  type FromProcess,
  type Preparation,
  type SqlAnswer,
  type SqlFault,
  type SqlLimits,
  schemasOf,
  type TableName,
  type ToProcess,
  type ViewFiles,
} from './protocol.ts'
import type { ReadableLake } from './readable-lake.ts'

export type { SqlAnswer, SqlColumn, SqlFault, SqlLimits, SqlValue } from './protocol.ts'
export { FolderLake, type ReadableLake } from './readable-lake.ts'

export const SQL_LIMITS: SqlLimits = { rows: 10_000, bytes: 8_000_000, memoryMb: 512, timeMs: 30_000 }
export const MAX_QUERY_BYTES = 100_000
/** Each may use the memory of the limits. */
const MAX_RUNNING = 2
const MAX_WAITING = 16
const SPARE_MS = 3 * 60_000
/** Starting a process stops this one for some milliseconds, so the answer of the query goes out before. */
const SPARE_AFTER_MS = 10
/** If the tables of a query have more files than this, their views are not prepared for the next query: that reads the metadata of each file. */
const MAX_PREPARED_FILES = 1_000
/** If a query seems to name more tables than this, their files are read when the process asks for them. */
const MAX_READ_AHEAD = 8
/** A query whose files were merged away is run again, with the files that replaced them. */
const ATTEMPTS = 3
const PROGRAM = fileURLToPath(import.meta.resolve('./query-process.ts'))

export class SqlProblem extends Error {
  override name = 'SqlProblem'
  readonly fault: SqlFault

  constructor(fault: SqlFault) {
    super(fault.message)
    this.fault = fault
  }
}

export interface SqlRequest {
  query: string
  lake: ReadableLake
  /** The schemas that the caller may see. No others exist for the query. */
  schemas: readonly string[]
  limits?: Partial<SqlLimits>
  /** Ends the query at once. */
  signal?: AbortSignal
}

/** What a process has been told about a lake before its query. Only queries of the same scope may use it. */
interface Prepared {
  /** The lake, and the schemas that the caller may see. */
  scope: string
  preparation: Preparation
}

export class SqlRunner {
  #running = 0
  readonly #waiting: (() => void)[] = []
  #spare: QueryProcess | null = null
  #spareTimer: NodeJS.Timeout | undefined
  /** What the process for the next query prepares. */
  #nextPrepared: Prepared | null = null
  /** The lake and the schemas of the last query. */
  #lastScope: string | null = null
  #scopeChangedMs = Number.NEGATIVE_INFINITY
  readonly #stopping = new AbortController()

  /** Throws a SqlProblem. */
  async run({ signal, ...request }: SqlRequest): Promise<SqlAnswer> {
    const limits = { ...SQL_LIMITS, ...request.limits }
    if (Buffer.byteLength(request.query) > MAX_QUERY_BYTES)
      throw problem('sql_invalid', `The query is longer than ${MAX_QUERY_BYTES} bytes.`)
    const ended = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(limits.timeMs), ...(signal === undefined ? [] : [signal])])
    try {
      await this.#turn(ended)
      try {
        return await this.#attempts({ ...request, limits }, ended)
      } finally {
        this.#running--
        this.#waiting.shift()?.()
        this.#keepSpareSoon()
      }
    } catch (error) {
      if (!ended.aborted) throw error
      if (signal?.aborted || this.#stopping.signal.aborted) throw problem('sql_cancelled', 'The query was cancelled.')
      throw problem(
        'sql_timed_out',
        `The query took longer than ${limits.timeMs / 1_000} s. Restrict the days (where day >= …), or select fewer columns.`,
      )
    }
  }

  /** Starts a process for the next query, because somebody is about to write one. It ends if none comes. */
  prepare(): void {
    if (this.#running === 0) this.#keepSpare(null)
  }

  /** Whether the process for the next query has the views of the last one. */
  get isPrepared(): boolean {
    return this.#spare?.isAlive === true && this.#spare.isPrepared
  }

  close(): void {
    this.#stopping.abort()
    clearTimeout(this.#spareTimer)
    this.#spare?.kill()
    this.#spare = null
  }

  /** Waits until fewer queries run. */
  async #turn(ended: AbortSignal): Promise<void> {
    ended.throwIfAborted()
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_WAITING)
        throw problem('sql_busy', `${MAX_RUNNING} queries run and ${MAX_WAITING} wait. Try again in a few seconds.`)
      await new Promise<void>((resolve, reject) => {
        const leave = (): void => {
          this.#waiting.splice(this.#waiting.indexOf(start), 1)
          reject(ended.reason as Error)
        }
        const start = (): void => {
          ended.removeEventListener('abort', leave)
          resolve()
        }
        this.#waiting.push(start)
        ended.addEventListener('abort', leave, { once: true })
      })
    }
    this.#running++
  }

  async #attempts(request: SqlRequest & { limits: SqlLimits }, ended: AbortSignal): Promise<SqlAnswer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(request, ended)
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof SqlProblem) || error.fault.isFileGone !== true) throw error
      }
    }
  }

  async #once({ query, lake, schemas, limits }: SqlRequest & { limits: SqlLimits }, ended: AbortSignal): Promise<SqlAnswer> {
    const scope = lake.id === undefined ? null : JSON.stringify([lake.id, schemas])
    const child = this.#takeProcess(scope)
    // If the query fails or needs no tables, the next process prepares the same.
    this.#nextPrepared = child.prepared
    const kill = (): void => child.kill()
    ended.addEventListener('abort', kill, { once: true })
    try {
      ended.throwIfAborted()
      child.say({ kind: 'query', query, limits })
      const tables = await Promise.race([lake.tables(schemas, ended), abortedBy(ended)])
      child.say({ kind: 'tables', tables })
      const files = new SentFiles({ files: (table) => lake.files(table, ended) }, child)
      files.sendAhead(query, tables)
      await child.next('ready')
      const first = await child.next('wanted', 'answer')
      if (first.kind === 'answer') return { ...first.answer, warnings: [] }
      const { views, warnings } = await files.send(first.tables, tables)
      const { answer } = await child.next('answer')
      this.#nextPrepared = this.#prepareNext(scope, { views, schemas: schemasOf(tables), memoryMb: limits.memoryMb })
      return { ...answer, warnings }
    } finally {
      ended.removeEventListener('abort', kill)
      // The answer goes out first: the end of a process takes the time of a processor.
      setImmediate(kill)
    }
  }

  /**
   * What the process for the next query prepares: the views of this one. Nothing if queries of several scopes take turns, because a process that has prepared
   * something for one of them is not used for the others.
   */
  #prepareNext(scope: string | null, preparation: Preparation): Prepared | null {
    if (scope === null) return null
    if (this.#lastScope !== null && this.#lastScope !== scope) this.#scopeChangedMs = performance.now()
    this.#lastScope = scope
    const files = preparation.views.reduce((sum, view) => sum + view.files.length, 0)
    const isWorth = files > 0 && files <= MAX_PREPARED_FILES && performance.now() - this.#scopeChangedMs > SPARE_MS
    return isWorth ? { scope, preparation } : null
  }

  #takeProcess(scope: string | null): QueryProcess {
    const spare = this.#spare
    const isUsable = spare?.isAlive === true && (spare.prepared === null || spare.prepared.scope === scope)
    if (!isUsable) spare?.kill()
    const taken = isUsable ? spare : new QueryProcess(null)
    this.#spare = null
    clearTimeout(this.#spareTimer)
    // Its start would take time from the query that runs, so it begins when that has ended.
    this.#spareTimer = undefined
    return taken
  }

  #keepSpareSoon(): void {
    if (this.#running > 0 || this.#spare !== null) return
    clearTimeout(this.#spareTimer)
    this.#spareTimer = setTimeout(() => {
      if (this.#running === 0) this.#keepSpare(this.#nextPrepared)
    }, SPARE_AFTER_MS).unref()
  }

  #keepSpare(prepared: Prepared | null): void {
    if (this.#stopping.signal.aborted || this.#spare !== null) return
    this.#spare = new QueryProcess(prepared)
    this.#spareTimer = setTimeout(() => {
      this.#spare?.kill()
      this.#spare = null
    }, SPARE_MS)
    this.#spareTimer.unref()
  }
}

type FoundFiles = Awaited<ReturnType<ReadableLake['files']>>

/** The files of tables, each read and sent to a process at most once. */
class SentFiles {
  readonly #lake: { files: (table: TableName) => Promise<FoundFiles> }
  readonly #child: QueryProcess
  readonly #reads = new Map<string, Promise<FoundFiles>>()

  constructor(lake: { files: (table: TableName) => Promise<FoundFiles> }, child: QueryProcess) {
    this.#lake = lake
    this.#child = child
  }

  /** Reads the manifests of the tables whose names are in the text of the query, while the process parses it. */
  sendAhead(query: string, tables: readonly TableName[]): void {
    const text = query.toLowerCase()
    const named = tables.filter(({ table }) => text.includes(table.toLowerCase()))
    // Whether one of them cannot be read matters only if the query really names it.
    if (named.length <= MAX_READ_AHEAD) for (const table of named) this.#read(table).catch(() => {})
  }

  /** Sends the files of the tables that the process wants. It gets no more than what the caller may see. */
  async send(wanted: readonly TableName[], known: readonly TableName[]): Promise<{ views: ViewFiles[]; warnings: string[] }> {
    const mayHave = new Set(known.map(({ schema, table }) => `${schema}/${table}`))
    const [views, warnings]: [ViewFiles[], string[]] = [[], []]
    const allowed = wanted.filter(({ schema, table }) => mayHave.has(`${schema}/${table}`))
    for (const [at, found] of (await Promise.all(allowed.map((name) => this.#read(name)))).entries()) {
      const { schema, table } = allowed[at] as TableName
      if (found.files.length > 0) views.push({ schema, table, files: found.files })
      warnings.push(...found.warnings)
    }
    return { views, warnings }
  }

  #read({ schema, table }: TableName): Promise<FoundFiles> {
    const key = `${schema}/${table}`
    const known = this.#reads.get(key)
    if (known !== undefined) return known
    const read = this.#lake.files({ schema, table }).then((found) => {
      this.#child.say({ kind: 'files', views: [{ schema, table, files: found.files }] })
      return found
    })
    this.#reads.set(key, read)
    return read
  }
}

function abortedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

function problem(code: SqlFault['code'], message: string): SqlProblem {
  return new SqlProblem({ code, message, line: null, column: null })
}

/** A process for one query. */
class QueryProcess {
  /** What this process has been told to prepare. */
  readonly prepared: Prepared | null
  /** Whether it has prepared that. */
  isPrepared = false
  readonly #child: ChildProcess
  readonly #messages: Exclude<FromProcess, { kind: 'prepared' }>[] = []
  #wake: () => void = () => {}
  #hasEnded = false
  #errors = ''

  constructor(prepared: Prepared | null) {
    this.prepared = prepared
    // Node.js prints nothing of its own, and has no variables of the service.
    this.#child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--max-old-space-size=256', PROGRAM], {
      env: {},
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child.unref()
    const { stdin, stdout, stderr } = this.#child
    for (const stream of [stdin, stdout, stderr]) (stream as unknown as { unref?: () => void }).unref?.()
    stdin?.on('error', () => {})
    stderr?.setEncoding('utf8').on('data', (text: string) => (this.#errors = (this.#errors + text).slice(-2_000)))
    const end = (): void => {
      this.#hasEnded = true
      this.#wake()
    }
    this.#child.on('error', end)
    this.#child.on('close', end)
    if (stdout !== null)
      createInterface({ input: stdout }).on('line', (line) => {
        const message = JSON.parse(line) as FromProcess
        if (message.kind === 'prepared') this.isPrepared = true
        else this.#messages.push(message)
        this.#wake()
      })
    if (prepared !== null) this.say({ kind: 'prepare', preparation: prepared.preparation })
  }

  get isAlive(): boolean {
    return !this.#hasEnded
  }

  say(message: ToProcess): void {
    if (!this.#hasEnded) this.#child.stdin?.write(`${JSON.stringify(message)}\n`)
  }

  async next<Kind extends FromProcess['kind']>(...kinds: Kind[]): Promise<FromProcess & { kind: Kind }> {
    while (this.#messages.length === 0 && !this.#hasEnded) await new Promise<void>((resolve) => (this.#wake = resolve))
    const message = this.#messages.shift()
    if (message?.kind === 'fault') throw new SqlProblem(message.fault)
    if (message !== undefined && (kinds as string[]).includes(message.kind)) return message as FromProcess & { kind: Kind }
    if (/Cannot find (package|module)|ERR_MODULE_NOT_FOUND|ERR_DLOPEN_FAILED/.test(this.#errors))
      throw problem('sql_failed', 'DuckDB is not installed for this platform. Install it with "switchyard warehouse install".')
    throw problem(
      'sql_failed',
      'The process of the query ended unexpectedly, perhaps because it needed too much memory. Select fewer rows or columns.',
    )
  }

  kill(): void {
    if (!this.#hasEnded) this.#child.kill('SIGKILL')
  }
}
