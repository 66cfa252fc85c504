// Starts the child processes of the benchmark, exchanges messages with them, and makes sure that they end. It does not depend on what they do.

import { type ChildProcess, fork, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const running = new Set<ChildProcess>()
const folders = new Set<string>()
const errors = new WeakMap<ChildProcess, string>()
/** How much of a process's output is shown if it fails. */
const ERROR_CHARS = 4_000

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

/** A temporary folder that is removed when the benchmark ends. */
export function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-'))
  folders.add(folder)
  return folder
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  folders.delete(folder)
}

/** Starts a script of this folder in a separate process, with a message channel. */
export function startScript(file: string, args: string[] = []): ChildProcess {
  const stdio: StdioOptions = ['ignore', 'ignore', 'pipe', 'ipc']
  return watch(fork(join(import.meta.dirname, file), args, { serialization: 'advanced', stdio }))
}

export function startProgram(file: string, args: string[], env: NodeJS.ProcessEnv = process.env, cwd?: string): ChildProcess {
  return watch(spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'], ...(cwd === undefined ? {} : { cwd }) }))
}

function watch(child: ChildProcess): ChildProcess {
  running.add(child)
  child.on('exit', () => running.delete(child))
  child.on('error', (error) => errors.set(child, error.message))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => errors.set(child, ((errors.get(child) ?? '') + text).slice(-ERROR_CHARS)))
  return child
}

export function errorText(child: ChildProcess): string {
  return errors.get(child)?.trim() ?? ''
}

/** Waits for the child's next message of this kind. Throws if it sends a message of kind `failed` or exits. */
export function nextReport<Report extends { kind: string }, Kind extends Report['kind']>(
  child: ChildProcess,
  kind: Kind,
  timeoutMs: number,
): Promise<Extract<Report, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer)
      child.off('message', onMessage).off('exit', onExit)
      act()
    }
    const fail = (what: string) => settle(() => reject(new Error([what, errorText(child)].filter(Boolean).join('\n'))))
    const onMessage = (message: Report | { kind: 'failed'; message: string }) => {
      if (message.kind === kind) settle(() => resolve(message as Extract<Report, { kind: Kind }>))
      else if (message.kind === 'failed') fail((message as { message: string }).message)
    }
    const onExit = () => fail(`${child.spawnfile} ended while "${kind}" was awaited`)
    const timer = setTimeout(() => fail(`no "${kind}" within ${timeoutMs / 1_000} s`), timeoutMs)
    child.on('message', onMessage).on('exit', onExit)
    if (child.exitCode !== null || child.signalCode !== null) onExit()
  })
}

/** Asks a child to exit, and kills it if it does not. Returns true if it exited by itself with code 0. */
export async function stop(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM', patienceMs = 15_000): Promise<boolean> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    await ended
    clearTimeout(timer)
  }
  return child.exitCode === 0
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}
