// Runs an example as a reader would: as a separate process, with arguments, environment and input. For tests only.
// Invariant: no process outlives its test, and none waits longer than the guard.

import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

const GUARD_MS = 60_000
/** Half of the start-up time is compiling. */
const NODE_COMPILE_CACHE = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'switchyard-e2e-compiled')

export interface ExampleOptions {
  args?: string[]
  env?: Record<string, string>
  /** Null if its input stays open. */
  input?: string | null
}

export interface Finished {
  code: number | null
  stdout: string
  stderr: string
}

export interface RunningExample {
  child: ChildProcess
  stdout(): string
  stderr(): string
  /** Resolves with the match once the output so far has one. */
  waitFor(pattern: RegExp, from?: 'stdout' | 'stderr'): Promise<RegExpMatchArray>
  finished: Promise<Finished>
}

/** Runs to the end. */
export function runExample(t: TestContext, file: string, options: ExampleOptions = {}): Promise<Finished> {
  return startExample(t, file, options).finished
}

export function startExample(t: TestContext, file: string, { args = [], env = {}, input }: ExampleOptions = {}): RunningExample {
  return startNode(t, [join(import.meta.dirname, '..', file), ...args], env, input)
}

function startNode(t: TestContext, args: string[], env: Record<string, string> = {}, input?: string | null): RunningExample {
  const child = spawn(process.execPath, args, {
    cwd: join(import.meta.dirname, '..'),
    env: { ...cleanEnvironment(), NODE_COMPILE_CACHE, ...env },
    stdio: 'pipe',
  })
  const output = { stdout: '', stderr: '' }
  const watchers = new Set<() => void>()
  const guard = setTimeout(() => child.kill('SIGKILL'), GUARD_MS)
  const finished = new Promise<Finished>((resolve) => {
    child.on('close', (code) => {
      clearTimeout(guard)
      resolve({ code, ...output })
      for (const check of watchers) check()
    })
  })
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
      for (const check of watchers) check()
    })
  }
  // An example may exit before it has read all of its input; ignore the error.
  child.stdin.on('error', () => {})
  if (input !== null) child.stdin.end(input)
  t.after(async () => {
    child.kill('SIGKILL')
    await finished
  })
  return { child, stdout: () => output.stdout, stderr: () => output.stderr, waitFor, finished }

  function waitFor(pattern: RegExp, from: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpMatchArray> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        const match = pattern.exec(output[from])
        const ended = child.exitCode !== null || child.signalCode !== null
        if (!match && !ended) return
        watchers.delete(check)
        if (match) resolve(match)
        else reject(new Error(`${pattern} never came. stdout: ${output.stdout} stderr: ${output.stderr}`))
      }
      watchers.add(check)
      check()
    })
  }
}

/** The environment of this process, without the variables that would affect an example. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SWITCHYARD_|NO_COLOR$|FORCE_COLOR$|NODE_)/.test(name)))
}
