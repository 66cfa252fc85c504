// The service under test: started as a user starts it, and controlled through its control API. Its ledger is checked, so that
// nothing is assumed to be delivered.

import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Target } from './events.ts'
import { nowMs } from './http-message.ts'
import { errorText, pause, startProgram, stop } from './processes.ts'
import { SHARED_SECRET } from './programs/http-front-end.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const CLI = process.env.SWITCHYARD_BENCH_CLI ?? join(ROOT, 'packages', 'server', 'src', 'cli.ts')
const TOKEN = 'benchmark-admin-token-benchmark-admin-token'
const START_LIMIT_MS = 120_000
/** Must be the same on every node. */
const SECRET_KEY = 'a key for the benchmark, and for nothing else'

export interface Source {
  id: string
  name: string
  writeKeys: string[]
}

export interface LedgerLine {
  destinationId: string
  owed: number
  delivered: number
  pending: number
  failed: number
  expired: number
  cancelled: number
}

export interface Service {
  pid: number
  /** From the start of the process to the first 200 of /readyz. */
  startMs: number
  targetOf(source: Source): Target
  defaultSource(): Promise<Source>
  createSource(name: string): Promise<Source>
  createDestination(name: string, url: string, source: Source, settings?: object): Promise<string>
  setPaused(destinationId: string, paused: boolean): Promise<void>
  setUrl(destinationId: string, url: string): Promise<void>
  /** Loads what waits for a warehouse. */
  load(destinationId: string): Promise<void>
  ledger(options?: { recount: boolean }): Promise<LedgerLine[]>
  /** Returns the response of a GET of the control API. */
  read(path: string): Promise<unknown>
  /** Returns the sum of one of its metrics over all labels; 0 if there is no metric of that name. */
  metric(name: string): Promise<number>
  /** Returns true if it exited with code 0 in time. */
  stop(signal?: NodeJS.Signals): Promise<boolean>
}

/** The same runtime flags as in `npm start`. */
function flagsOfStart(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
  return scripts.start.split(' ').filter((word) => word.startsWith('--'))
}

function pick(...names: string[]): Record<string, string | undefined> {
  return Object.fromEntries(names.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])))
}

export function isServiceThere(): boolean {
  return existsSync(CLI)
}

/** The service of another checkout, for example of the commit before a change. Its dependencies must be installed there. */
export function cliOf(checkout: string): string {
  const cli = resolve(checkout, 'packages', 'server', 'src', 'cli.ts')
  if (!existsSync(cli)) throw new Error(`${cli} does not exist: --before must be the root folder of a Switchyard checkout`)
  return cli
}

/** Starts the service on the store in this folder, or on the given store. `launcher` is a command that replaces itself with the one after it. */
export async function startService(
  folder: string,
  more: Record<string, string> = {},
  cli = CLI,
  launcher: string[] = [],
): Promise<Service> {
  const startedAtMs = nowMs()
  const env = {
    PATH: process.env.PATH,
    // Set by scripts/run.mjs, which also starts the service of a user.
    ...pick('NODE_COMPILE_CACHE', 'MALLOC_ARENA_MAX'),
    NODE_ENV: 'production',
    SWITCHYARD_PORT: '0',
    SWITCHYARD_STORE: `sqlite:${join(folder, 'switchyard.db')}`,
    SWITCHYARD_ADMIN_TOKEN: TOKEN,
    SWITCHYARD_LOG: process.env.SWITCHYARD_LOG ?? 'info',
    // Not for the version of --before, which may not know it.
    ...(cli === CLI && process.env.SWITCHYARD_INGEST_THREADS ? { SWITCHYARD_INGEST_THREADS: process.env.SWITCHYARD_INGEST_THREADS } : {}),
    ...more,
  }
  const [file, ...args] = [...launcher, process.execPath, ...flagsOfStart(), cli]
  const child = startProgram(file, args, env, folder)
  const origin = await startedAddress(child)
  await ready(child, origin)
  const startMs = nowMs() - startedAtMs
  const call = (method: string, path: string, body?: unknown) => callApi(origin, method, path, body)
  const { hostname, port } = new URL(origin)
  return {
    pid: child.pid ?? 0,
    startMs,
    targetOf: ({ writeKeys }) => ({
      host: hostname,
      port: Number(port),
      path: '/v1/batch',
      headers: { Authorization: `Basic ${Buffer.from(`${writeKeys[0]}:`).toString('base64')}` },
    }),
    async defaultSource() {
      const { data } = (await call('GET', '/api/sources')) as { data: Source[] }
      const source = data.find(({ name }) => name === 'default')
      if (!source) throw new Error('the service has no source named default')
      return source
    },
    createSource: async (name) => (await call('POST', '/api/sources', { name })) as Source,
    async createDestination(name, url, source, settings = {}) {
      const destination = { type: 'webhook', name, urls: [url], sourceIds: [source.id], sharedSecret: SHARED_SECRET, ...settings }
      const { id } = (await call('POST', '/api/destinations', destination)) as { id: string }
      return id
    },
    async setPaused(destinationId, paused) {
      await call('PATCH', `/api/destinations/${destinationId}`, { paused })
    },
    async setUrl(destinationId, url) {
      await call('PATCH', `/api/destinations/${destinationId}`, { urls: [url] })
    },
    async load(destinationId) {
      await call('POST', `/api/destinations/${destinationId}/load`)
    },
    async ledger(options) {
      const { data } = (await call('GET', options?.recount ? '/api/ledger?recount=true' : '/api/ledger')) as { data: LedgerLine[] }
      return data
    },
    read: (path) => call('GET', path),
    async metric(name) {
      const text = await (await fetch(`${origin}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text()
      const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
    },
    stop: (signal) => stop(child, signal),
  }
}

/** Starts a node on a PostgreSQL store. */
export function startNode(connectionString: string, folder: string, cli?: string): Promise<Service> {
  return startService(folder, { SWITCHYARD_STORE: connectionString, SWITCHYARD_SECRET_KEY: SECRET_KEY }, cli)
}

/** Reads the address from the first lines that the service prints, on either stream. */
function startedAddress(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const look = (chunk: Buffer | string) => {
      text = (text + String(chunk)).slice(-10_000)
      const port = /http:\/\/(?:127\.0\.0\.1|localhost):(\d+)\D/.exec(text)?.[1]
      if (port !== undefined) settle(() => resolve(`http://127.0.0.1:${port}`))
    }
    const settle = (act: () => void) => {
      clearTimeout(timer)
      child.stderr?.off('data', look)
      // Later output is discarded, but must be read so that the pipe does not fill up.
      child.stdout?.off('data', look).resume()
      child.off('exit', onExit)
      act()
    }
    const onExit = () => settle(() => reject(new Error(`the service exited during its start: ${errorText(child)}`)))
    const timer = setTimeout(() => settle(() => reject(new Error(`the service printed no address: ${text}`))), START_LIMIT_MS)
    child.stdout?.on('data', look)
    child.stderr?.on('data', look)
    child.on('exit', onExit)
  })
}

async function ready(child: ChildProcess, origin: string): Promise<void> {
  const limit = nowMs() + START_LIMIT_MS
  while (nowMs() < limit && child.exitCode === null) {
    const isReady = await fetch(`${origin}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return
    await pause(5)
  }
  throw new Error(`the service did not become ready: ${errorText(child)}`)
}

async function callApi(origin: string, method: string, path: string, body: unknown): Promise<unknown> {
  const authorization = `Bearer ${TOKEN}`
  const content = body === undefined ? { headers: { authorization } } : jsonContent(authorization, body)
  const response = await fetch(`${origin}${path}`, { method, ...content })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

function jsonContent(authorization: string, body: unknown) {
  return { headers: { authorization, 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
