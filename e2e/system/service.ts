// The service under test, in a separate process: started as a user starts it, called over HTTP, stopped by signals. With
// SWITCHYARD_TEST_STORE=postgres it uses a PostgreSQL database instead of a file in its folder: see test-store.ts.
//
//   await using service = await startService()                    in a new folder, which is removed at the end
//   const id = await service.destination({ urls: [receiver.url] })
//   await service.send([track('m-1')])                            POST /v1/batch with the write key → { status, headers, body }
//   await service.post('/v1/track', '{"broken', { … })            any body, unchanged
//   await service.api('/ledger')                                  the control API: returns the body, or throws an error with the answer
//   await service.api('/destinations/x', { method: 'PATCH', body: { enabled: false } })
//   await service.settled()                                       waits until nothing is pending → the ledger
//   await service.logged(({ msg }) => /timeout/.test(msg))        waits for a matching line of the log
//   service.kill('SIGKILL'); await service.ended                  { code, signal, … }
//   const next = await service.restart()                          in the same folder, after this one has ended; call stop() or
//                                                                 kill() first. Disposing of the first stops and removes all

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fastFolder } from '../../packages/server/src/store/fixtures/fast-folder.ts'
import { newStoreLocation, ON_POSTGRES, type StoreLocation } from '../../packages/server/src/store/fixtures/test-store.ts'
import { eventually, Signals, type Waiting } from './signals.ts'

export const CLI = join(import.meta.dirname, '..', '..', 'packages', 'server', 'src', 'cli.ts')
export const TOKEN = 'token-of-the-whole-system-tests'

const STOP_DEADLINE_MS = 30_000
/** A start takes half a second, and almost a minute on a machine that is very busy. */
const START_DEADLINE_MS = 180_000
/** Half of the time of a start is spent on compiling. With a cache, each of some hundred starts takes 0.3 s instead of 0.6 s. */
const NODE_COMPILE_CACHE = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'switchyard-e2e-compiled')

export interface ServiceOptions {
  /** The folder of the store, which is kept; by default a new folder that is removed when the service is disposed of. */
  folder?: string
  /** The admin token; null to set none. */
  token?: string | null
  log?: string
  env?: Record<string, string>
  args?: string[]
  /** Options of Node.js. */
  execArgv?: string[]
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  /** Milliseconds from the first signal, or else from the start, to the end of the process. */
  ms: number
}

export interface LogLine {
  level: string
  time: string
  msg: string
  [field: string]: unknown
}

export interface TrackingAnswer {
  status: number
  headers: Headers
  body: { success: boolean; code?: string; message?: string; accepted?: number; rejected?: { index: number; code: string }[] }
}

export interface LedgerRow {
  destinationId: string
  owed: number
  delivered: number
  pending: number
  failed: number
  expired: number
  cancelled: number
  quarantined: number
}

export interface DeliveryView {
  id: string
  messageId: string
  destinationId: string
  state: 'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled'
  reason: string | null
  attemptCount: number
  nextAttemptAt: string | null
  settledAt: string | null
}

export interface SourceStats {
  sourceId: string
  accepted: number
  duplicates: number
  rejected: number
  suppressed: number
}

export interface Service extends AsyncDisposable {
  url: string
  writeKey: string
  sourceId: string
  /** The admin token that was given or printed; empty if there is none. */
  token: string
  folder: string
  /** The SQLite file; there is none on PostgreSQL. */
  file: string
  /** The settings of its store, for commands that open the store themselves. */
  storeEnv: Record<string, string>
  /** All stored bytes by place, without the encryption key. */
  stored(): Promise<[place: string, bytes: Buffer][]>
  pid: number
  /** All output so far. */
  stdout: () => string
  stderr: () => string
  /** The lines of the log so far, parsed. Throws if one is not JSON. */
  log: () => LogLine[]
  /** Resolves with the first matching line of the log, also if it is already there. */
  logged(passes: (line: LogLine) => boolean, waiting?: Waiting): Promise<LogLine>
  /** Resolves when stdout matches. */
  printed(pattern: RegExp, waiting?: Waiting): Promise<RegExpExecArray>

  /** Sends messages as a client does. Rejects if there was no answer. */
  send(messages: readonly object[], init?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<TrackingAnswer>
  /** Sends a body unchanged to the tracking API, with the write key. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<TrackingAnswer>
  /** Calls the control API, under /api. Rejects unless the answer is 2xx. */
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>

  /** Creates a destination, for the default source unless others are given, and returns its id. */
  destination(settings: { urls: string[]; name?: string; [setting: string]: unknown }): Promise<string>
  ledger(options?: { recount?: boolean }): Promise<LedgerRow[]>
  /** Returns the ledger as soon as nothing is pending and, if a number is given, so many deliveries were owed in all. */
  settled(owed?: number, waiting?: Waiting): Promise<LedgerRow[]>
  /** All pages. */
  deliveries(query?: string): Promise<DeliveryView[]>
  stats(): Promise<SourceStats>

  kill: (signal: NodeJS.Signals) => void
  ended: Promise<Ended>
  /** Sends SIGTERM and waits for the end; sends SIGKILL if that takes much too long. */
  stop(): Promise<Ended>
  /** Starts the next process in the same folder, after this one has ended. Options that are not given stay the same. */
  restart(options?: Omit<ServiceOptions, 'folder'>): Promise<Service>
}

/** A message for send(). */
export function track(messageId: string, fields: object = {}): object {
  return { type: 'track', messageId, userId: `user of ${messageId}`, event: 'Tested', ...fields }
}

export interface Running {
  child: ChildProcess
  signals: Signals
  stdout: () => string
  stderr: () => string
  kill: (signal: NodeJS.Signals) => void
  ended: Promise<Ended>
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a process that may refuse to start; `ended` tells. */
export function runService({ env = {}, args = [], execArgv = [] }: Pick<ServiceOptions, 'env' | 'args' | 'execArgv'>): Running {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SWITCHYARD_') && !name.startsWith('NODE_'))
  const child = spawn(process.execPath, [...execArgv, CLI, ...args], {
    env: { ...Object.fromEntries(inherited), NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  const signals = new Signals()
  let since = performance.now()
  let isSignalled = false
  const stdout: string[] = []
  const stderr: string[] = []
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout.push(text)
    signals.notify()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr.push(text)
    signals.notify()
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    // `close` is emitted when all output has been read, `exit` when the process has ended: the output must be complete, and reading it must not count as time.
    let ms = 0
    child.on('exit', () => {
      ms = performance.now() - since
    })
    child.on('close', (code, signal) => {
      running.delete(child)
      resolve({ code, signal, stdout: stdout.join(''), stderr: stderr.join(''), ms })
      signals.notify()
    })
  })
  return {
    child,
    signals,
    stdout: () => stdout.join(''),
    stderr: () => stderr.join(''),
    kill(signal) {
      if (!isSignalled) since = performance.now()
      isSignalled = true
      child.kill(signal)
    },
    ended,
  }
}

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const folder = options.folder ?? mkdtempSync(join(fastFolder(), 'switchyard-e2e-'))
  const place: Place = { folder, isOurs: options.folder === undefined, runs: [], store: ON_POSTGRES ? await databaseOf(folder) : undefined }
  try {
    return await startIn(place, options)
  } catch (error) {
    await leave(place)
    throw error
  }
}

/** The folder and store of a service and of those that were restarted from it. */
interface Place {
  folder: string
  isOurs: boolean
  runs: Running[]
  /** Undefined if the store is a file in the folder. */
  store: StoreLocation | undefined
}

const databases = new Map<string, Promise<StoreLocation>>()

/** A service that is started in the folder of another one has its data. */
function databaseOf(folder: string): Promise<StoreLocation> {
  const known = databases.get(folder) ?? newStoreLocation()
  databases.set(folder, known)
  return known
}

async function leave({ folder, isOurs, runs, store }: Place): Promise<void> {
  for (const { kill } of runs) kill('SIGKILL')
  await Promise.all(runs.map(({ ended }) => ended))
  if (!isOurs) return
  await store?.remove()
  rmSync(folder, { recursive: true, force: true })
}

async function startIn(place: Place, options: ServiceOptions): Promise<Service> {
  const { folder } = place
  const { token = TOKEN, log: level = 'info', env = {}, args = [], execArgv = [] } = options
  const file = join(folder, 'switchyard.db')
  const storeEnv = place.store?.env ?? { SWITCHYARD_STORE: `sqlite:${file}` }
  const run = runService({
    env: {
      SWITCHYARD_PORT: '0',
      ...storeEnv,
      // With SQLite this is the default.
      ...(place.store === undefined ? {} : { SWITCHYARD_LAKE_DIR: join(folder, 'lake') }),
      SWITCHYARD_LOG: level,
      ...(token === null ? {} : { SWITCHYARD_ADMIN_TOKEN: token }),
      ...env,
    },
    args,
    execArgv,
  })
  place.runs.push(run)
  const { child, signals, stdout, stderr, kill, ended } = run
  const state = (): string => `it printed:\n${stdout()}${stderr()}`.slice(-6_000)
  const isOver = (): boolean => !running.has(child)
  const until = (condition: () => boolean, waiting: Waiting): Promise<void> =>
    signals.until(
      () => {
        if (condition()) return true
        if (isOver()) throw new Error(`the service ended before: ${waiting.what}\n${state()}`)
        return false
      },
      { state, ...waiting },
    )
  const printed = async (pattern: RegExp, waiting: Waiting = {}): Promise<RegExpExecArray> => {
    let found: RegExpExecArray | null = null
    await until(() => (found = pattern.exec(stdout())) !== null, { what: `${pattern} on stdout`, ...waiting })
    return found as unknown as RegExpExecArray
  }

  const [, url = ''] = await printed(/^Switchyard listens on (\S+)$/m, { deadlineMs: START_DEADLINE_MS })
  const [, writeKey = '', sourceId = ''] = await printed(/^ *Write key +(\S+) .*?(src_\w+)\)?$/m)
  const [, shown = ''] = await printed(/^ *Admin token +(\S+).*$/m)

  const post: Service['post'] = (path, body, headers = {}) => answerOf(url, path, writeKey, body, headers)
  const api: Service['api'] = (path, init) => callControl(url, service.token, path, init)
  const ledger: Service['ledger'] = async ({ recount = false } = {}) =>
    (await api<{ data: LedgerRow[] }>(`/ledger${recount ? '?recount=true' : ''}`)).data
  const lines: LogLine[] = []
  const log = (): LogLine[] => {
    const texts = stderr().split('\n').slice(lines.length, -1)
    for (const text of texts) lines.push(JSON.parse(text) as LogLine)
    return lines
  }

  const service: Service = {
    url,
    writeKey,
    sourceId,
    token: token ?? (shown.startsWith('sy_') ? shown : ''),
    folder,
    file,
    storeEnv,
    async stored() {
      if (place.store !== undefined) return [['the database', await place.store.bytes()]]
      return readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isFile() && !entry.name.endsWith('.key'))
        .map(({ name }) => [name, readFileSync(join(folder, name))])
    },
    pid: child.pid ?? 0,
    stdout,
    stderr,
    log,
    async logged(passes, waiting = {}) {
      let found: LogLine | undefined
      await until(() => (found = log().find(passes)) !== undefined, { what: `in the log: ${String(passes)}`, ...waiting })
      return found as LogLine
    },
    printed,
    send: (messages, { headers = {}, signal } = {}) =>
      answerOf(url, '/v1/batch', writeKey, JSON.stringify({ batch: messages }), { 'content-type': 'application/json', ...headers }, signal),
    post,
    api,
    async destination({ name = 'receiver', ...settings }) {
      const body = { name, sourceIds: [sourceId], ...settings }
      // Some tests have two destinations with one receiver.
      return (await api<{ id: string }>('/destinations?allowDuplicate=true', { method: 'POST', body })).id
    },
    ledger,
    settled: (owed, waiting = {}) =>
      eventually(
        () => ledger(),
        (rows) =>
          rows.every(({ pending }) => pending === 0) && (owed === undefined || rows.reduce((sum, row) => sum + row.owed, 0) === owed),
        { what: `nothing pending${owed === undefined ? '' : `, ${owed} owed in all`}`, state, ...waiting },
      ),
    async deliveries(query = '') {
      const all: DeliveryView[] = []
      let cursor: string | null = null
      do {
        const page: { data: DeliveryView[]; next: string | null } = await api(
          `/deliveries?limit=1000${query === '' ? '' : `&${query}`}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
        )
        all.push(...page.data)
        cursor = page.next
      } while (cursor !== null)
      return all
    },
    async stats() {
      const { data } = await api<{ data: SourceStats[] }>('/stats/totals')
      return data.find((row) => row.sourceId === sourceId) as SourceStats
    },
    kill,
    ended,
    stop() {
      kill('SIGTERM')
      const tooLong = setTimeout(kill, STOP_DEADLINE_MS, 'SIGKILL')
      return ended.finally(() => clearTimeout(tooLong))
    },
    async restart(changes = {}) {
      await ended
      return startIn(place, { ...options, ...changes })
    },
    [Symbol.asyncDispose]: () => leave(place),
  }
  return service
}

/** Calls the control API. Unless the answer is 2xx, rejects with an error that contains it. */
export async function callControl<T>(
  url: string,
  token: string,
  path: string,
  { method = 'GET', body }: { method?: string; body?: unknown } = {},
): Promise<T> {
  const response = await fetch(`${url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} /api${path}: ${response.status} ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}

async function answerOf(
  url: string,
  path: string,
  writeKey: string,
  body: string | Buffer,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<TrackingAnswer> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, ...headers },
    body: body as string,
    ...(signal === undefined ? {} : { signal }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as TrackingAnswer['body'] }
}
