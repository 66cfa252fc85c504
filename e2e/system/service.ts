// The service under test, as a process of its own: started as a user starts it, spoken to over HTTP, ended by signals. With
// SWITCHYARD_TEST_STORE=postgres a folder has a database in the place of its file: see test-store.ts.
//
//   await using service = await startService()                    on a new folder, removed in the end
//   const id = await service.destination({ urls: [receiver.url] })
//   await service.send([track('m-1')])                            POST /v1/batch with the write key → { status, headers, body }
//   await service.post('/v1/track', '{"broken', { … })            anything at all, as it stands
//   await service.api('/ledger')                                  the control API: its body, or an error that shows the answer
//   await service.api('/destinations/x', { method: 'PATCH', body: { enabled: false } })
//   await service.settled()                                       nothing is pending any more → the ledger
//   await service.logged(({ msg }) => /timeout/.test(msg))        the first line of the log that passes, when it comes
//   service.kill('SIGKILL'); await service.ended                  { code, signal, … }
//   const next = await service.restart()                          on the same folder, when this one has ended; call stop() or
//                                                                 kill() first. Disposing of the first ends and removes all

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
/** A start takes half a second, and most of a minute while many other programs run. */
const START_DEADLINE_MS = 180_000
/** Half of a start is compiling, and these tests make some hundred: 0.3 s instead of 0.6 s each. */
const NODE_COMPILE_CACHE = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'switchyard-e2e-compiled')

export interface ServiceOptions {
  /** Where the store is and stays; default: a folder of its own, removed when the service is disposed of. */
  folder?: string
  /** The admin token; null: none is given. */
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
  /** From the first signal that was sent to it, or from its start, to its end. */
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
  /** Of the control API: the one given, or the one it printed. Empty when neither. */
  token: string
  folder: string
  /** The SQLite file; there is none on PostgreSQL. */
  file: string
  /** Settings that name its store, for commands that open it themselves. */
  storeEnv: Record<string, string>
  /** Every byte that it keeps, by where that is; but not the key's. */
  stored(): Promise<[place: string, bytes: Buffer][]>
  pid: number
  /** Everything that it has printed so far. */
  stdout: () => string
  stderr: () => string
  /** The log's lines so far, parsed. Throws where one is not JSON. */
  log: () => LogLine[]
  /** Resolves with the first line of the log that passes, be it there already. */
  logged(passes: (line: LogLine) => boolean, waiting?: Waiting): Promise<LogLine>
  /** Resolves when stdout matches. */
  printed(pattern: RegExp, waiting?: Waiting): Promise<RegExpExecArray>

  /** Messages as a client sends them. Rejects when there was no answer. */
  send(messages: readonly object[], init?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<TrackingAnswer>
  /** To the tracking API, with the write key, as it stands. */
  post(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<TrackingAnswer>
  /** A call of the control API, under /api. Rejects unless the answer is 2xx. */
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>

  /** Creates one, of the default source unless told otherwise, and gives its id. */
  destination(settings: { urls: string[]; name?: string; [setting: string]: unknown }): Promise<string>
  ledger(options?: { recount?: boolean }): Promise<LedgerRow[]>
  /** The ledger, when nothing is pending any more (and so many were owed, in all). */
  settled(owed?: number, waiting?: Waiting): Promise<LedgerRow[]>
  /** All pages. */
  deliveries(query?: string): Promise<DeliveryView[]>
  stats(): Promise<SourceStats>

  kill: (signal: NodeJS.Signals) => void
  ended: Promise<Ended>
  /** SIGTERM, and its end; by SIGKILL, if it takes much too long. */
  stop(): Promise<Ended>
  /** The next process on the same folder. Waits for this one's end. Options that are not given stay as they were. */
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

/** The process alone, which may refuse to start: its end tells. */
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
    // `close` comes when its output has been read to the end, `exit` when it has ended: nothing may be missing, nor timed with it.
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

/** Where a service and those that were restarted from it run, one after the other. */
interface Place {
  folder: string
  isOurs: boolean
  runs: Running[]
  /** Undefined: a file in the folder. */
  store: StoreLocation | undefined
}

const databases = new Map<string, Promise<StoreLocation>>()

/** Whoever is started on another's folder has the other's data. */
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
      return readdirSync(folder)
        .filter((name) => !name.endsWith('.key'))
        .map((name) => [name, readFileSync(join(folder, name))])
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
      // Some tests send to one receiver twice.
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

/** A call of the control API. Rejects unless the answer is 2xx, with the answer. */
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
