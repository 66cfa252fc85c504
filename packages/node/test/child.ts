// Runs a program that uses the client in a separate process, so that a test can see how it ends: normally, by process.exit,
// by a signal, by kill -9.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface Child {
  process: ChildProcess
  /** Resolves when the program has printed this line. */
  printed(line: string): Promise<void>
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stderr: string; stdout: string }>
}

const DEADLINE_MS = 60_000

/** `body` is the program's text, with `Analytics`, `host` and `say(line)` in scope. */
export function runChild(host: string, body: string): Child {
  const program = `
    import { Analytics } from ${JSON.stringify(import.meta.resolve('@switchyard/node'))}
    const host = ${JSON.stringify(host)}
    const say = (line) => process.stdout.write(line + '\\n')
    const event = { userId: 'u', event: 'e' }
    ${body}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: fileURLToPath(new URL('..', import.meta.url)),
  })
  let stdout = ''
  let stderr = ''
  const watchers = new Set<() => void>()
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
    for (const watcher of watchers) watcher()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  const deadline = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS)
  const ended = new Promise<Awaited<Child['ended']>>((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(deadline)
      for (const watcher of watchers) watcher()
      resolve({ code, signal, stderr, stdout })
    })
  })
  const printed = (line: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const watcher = (): void => {
        if (stdout.split('\n').includes(line)) resolve()
        else if (child.exitCode !== null || child.signalCode !== null) reject(new Error(`ended before it printed ${line}: ${stderr}`))
      }
      watchers.add(watcher)
      watcher()
    })
  return { process: child, printed, ended }
}
