// Runs the command line against a service: in this process, because starting another one often takes longer than the test itself, or in a
// separate process.
//
//   const { code, stdout, stderr } = await switchyard(service, 'sources', 'list')
//   const sources = await asJson<Source[]>(service, 'sources')                      with --json; fails unless the exit code is 0
//   await using tail = startSwitchyard(service, ['tail'])                           a process, until it is stopped
//   await tail.printed(/accepted/)

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { runCommandLine } from '../../packages/server/src/commands/main.ts'
import { CLI, type Running, runService, type Service } from './service.ts'
import { Signals } from './signals.ts'

export interface Result {
  code: number | null
  stdout: string
  stderr: string
}

export interface CommandOptions {
  /** Text for stdin. */
  input?: string
  env?: Record<string, string>
}

export interface RunningCommand extends AsyncDisposable {
  child: ChildProcess
  stdout: () => string
  stderr: () => string
  printed(pattern: RegExp): Promise<RegExpExecArray>
  kill: (signal: NodeJS.Signals) => void
  ended: Promise<Result>
}

/** The URL and token of the service, without the SWITCHYARD_ settings of this process. */
export function environment(service: Pick<Service, 'url' | 'token'> | null, env: Record<string, string> = {}): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SWITCHYARD_|NODE_|NO_COLOR$)/.test(name)) as [string, string][]
  return {
    ...Object.fromEntries(inherited),
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'switchyard-e2e-compiled'),
    // Without the logins of the user who runs the tests.
    XDG_CONFIG_HOME: join(tmpdir(), 'switchyard-e2e-without-configuration'),
    ...(service === null ? {} : { SWITCHYARD_URL: service.url, SWITCHYARD_TOKEN: service.token }),
    ...env,
  }
}

export function startSwitchyard(
  service: Pick<Service, 'url' | 'token'> | null,
  args: readonly string[],
  options: CommandOptions = {},
): RunningCommand {
  const child = spawn(process.execPath, [CLI, ...args], { env: environment(service, options.env), stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const signals = new Signals()
  const text = { stdout: '', stderr: '' }
  let isOver = false
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (part: string) => {
      text[name] += part
      signals.notify()
    })
  }
  const ended = new Promise<Result>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      isOver = true
      resolve({ code, ...text })
      signals.notify()
    })
  })
  return {
    child,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    async printed(pattern) {
      let found: RegExpExecArray | null = null
      const state = (): string => `it printed:\n${text.stdout}${text.stderr}`
      await signals.until(
        () => {
          found = pattern.exec(text.stdout)
          if (found === null && isOver) throw new Error(`it ended before ${pattern}\n${state()}`)
          return found !== null
        },
        { what: `${pattern} on stdout`, state },
      )
      return found as unknown as RegExpExecArray
    },
    kill: (signal) => void child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      if (!isOver) child.kill('SIGKILL')
      await ended
    },
  }
}

/** Runs a command to its end in this process. A command that reads stdin needs a separate process. */
export function switchyard(service: Pick<Service, 'url' | 'token'> | null, ...args: string[]): Promise<Result> {
  return switchyardWith({}, service, ...args)
}

export async function switchyardWith(
  env: Record<string, string>,
  service: Pick<Service, 'url' | 'token'> | null,
  ...args: string[]
): Promise<Result> {
  const text = { stdout: '', stderr: '' }
  const stream = (name: keyof typeof text): NodeJS.WriteStream =>
    new Writable({
      decodeStrings: false,
      write(part: string | Buffer, _encoding, done) {
        text[name] += part.toString()
        done()
      },
    }) as NodeJS.WriteStream
  const code = await new Promise<number>((resolve, reject) => {
    const here = {
      argv: [process.execPath, CLI, ...args],
      env: environment(service, env),
      stdout: stream('stdout'),
      stderr: stream('stderr'),
      on: () => process,
      exit: (status: number) => resolve(status) as never,
    }
    runCommandLine(here).catch(reject)
  })
  return { code, ...text }
}

/** Runs a command as a process that can be killed, with what it printed as a service's process has it. */
export function runProcess({ url, token }: Pick<Service, 'url' | 'token'>, args: string[], env: Record<string, string> = {}): Running {
  return runService({ args, env: { SWITCHYARD_URL: url, SWITCHYARD_TOKEN: token, ...env } })
}

/** A folder for the files of a test, which is removed after it. */
export function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-command-line-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs a command that must succeed, and returns its stdout. */
export async function says(service: Pick<Service, 'url' | 'token'>, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await switchyard(service, ...args)
  assert.equal(code, 0, `switchyard ${args.join(' ')}\n${stdout}${stderr}`)
  return stdout
}

/** Runs a command with --json and returns the parsed value. */
export async function asJson<T>(service: Pick<Service, 'url' | 'token'>, ...args: string[]): Promise<T> {
  return JSON.parse(await says(service, '--json', ...args)) as T
}

export interface Named {
  id: string
  name: string
  [field: string]: unknown
}

/** Creates a source for one test, so that tests do not see each other's messages. */
export async function newSource(service: Pick<Service, 'url' | 'token'>, name: string): Promise<{ id: string; key: string }> {
  const { id, writeKeys } = await asJson<Named & { writeKeys: string[] }>(service, 'sources', 'create', name)
  return { id, key: writeKeys[0] as string }
}
