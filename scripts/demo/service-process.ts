// Runs the service as a separate process, as `npm start` does: on loopback, with its store in the demo's folder. It is not in the
// terminal's process group, so that Ctrl-C reaches only the demo, which stops the traffic first. If the demo is killed, the service stops
// by itself (exit-with-demo.ts).

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const CLI = join(import.meta.dirname, '..', '..', 'packages', 'server', 'src', 'cli.ts')
const GUARD = pathToFileURL(join(import.meta.dirname, 'exit-with-demo.ts'))
const STOP_DEADLINE_MS = 12_000

/** A problem that the user can fix. Its message is printed without a stack trace. */
export class DemoProblem extends Error {}

export interface ServiceProcess {
  url: string
  token: string
  sourceId: string
  writeKey: string
  pid: number
  /** Resolves with the exit code or signal when the process has ended. */
  ended: Promise<string>
  api: <T>(method: string, path: string, body?: unknown) => Promise<T>
  stop(): Promise<void>
  /** Sends SIGKILL. */
  kill(): void
}

export async function startService(folder: string, { port, isOurs }: { port: number; isOurs: boolean }): Promise<ServiceProcess> {
  const logFile = join(folder, 'service.log')
  const log = openSync(logFile, 'a')
  const guard = new URL(GUARD)
  if (isOurs) guard.searchParams.set('remove', folder)
  // Settings in the user's environment are meant for the user's own service.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SWITCHYARD_')))
  const child = spawn(
    process.execPath,
    ['--max-semi-space-size=16', '--heap-growing-percent=100', `--import=${guard.href}`, CLI, 'serve', '--json'],
    {
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'pipe', log, 'ipc'],
      env: {
        ...env,
        SWITCHYARD_HOST: '127.0.0.1',
        SWITCHYARD_PORT: String(port),
        SWITCHYARD_STORE: `sqlite:${join(folder, 'switchyard.db')}`,
        SWITCHYARD_LOG: 'warn',
      },
    },
  )
  closeSync(log)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal === null ? `code ${code}` : `signal ${signal}`))
  })
  const facts = await firstLine(child)
  if (facts === null) throw new DemoProblem(startProblem(readFileSync(logFile, 'utf8'), port))
  const { url, adminToken: token, source } = JSON.parse(facts) as StartFacts
  const kill = (): void => void child.kill('SIGKILL')
  return {
    url,
    token,
    sourceId: source.id,
    writeKey: source.writeKeys[0] as string,
    pid: child.pid as number,
    ended,
    api: (method, path, body) => call(url, token, method, path, body),
    async stop() {
      child.kill('SIGTERM')
      const late = setTimeout(kill, STOP_DEADLINE_MS)
      await ended
      clearTimeout(late)
    },
    kill,
  }
}

interface StartFacts {
  url: string
  adminToken: string
  source: { id: string; writeKeys: string[] }
}

/** The first line of its standard output, or null if the process ended before it printed one. */
function firstLine(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.includes('\n')) resolve(text.split('\n', 1)[0] as string)
    })
    child.once('error', () => resolve(null))
    child.once('close', () => resolve(null))
  })
}

function startProblem(log: string, port: number): string {
  const sentence = log.trim().split('\n').at(-1) ?? ''
  const advice = port === 0 ? '' : ' Without --port, the demo uses a free port.'
  return `The service could not start. ${sentence}${advice}`
}

async function call<T>(url: string, token: string, method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} /api${path}: ${response.status} ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}
