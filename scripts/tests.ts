// Runs the tests (run-test-files.ts, which takes the same arguments) in a process group and in temporary folders of their own. When the run ends,
// by itself or by Ctrl-C, SIGTERM or SIGHUP, nothing is left: no service, browser or PostgreSQL server, and no data in memory or on disk.

import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fastFolder } from '../packages/server/src/store/fixtures/fast-folder.ts'

/** After a signal, test files kill what they started and exit. What has not ended by then, for example a stopped process, is killed. */
const GRACE_MS = 2_000
const POLL_MS = 50

// What one run leaves for the next is not in the folder of this run: compiled code, and the unpacked browser.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'switchyard-e2e-compiled')
process.env['SWITCHYARD_TEST_CACHE'] ??= tmpdir()
const onDisk = createFolder(tmpdir())
const inMemory = fastFolder() === tmpdir() ? undefined : createFolder(fastFolder())
const child = spawn(process.execPath, [join(import.meta.dirname, 'run-test-files.ts'), ...process.argv.slice(2)], {
  detached: true,
  // If this process is killed, the channel closes, and the runner kills its group.
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  env: { ...process.env, TMPDIR: onDisk, ...(inMemory === undefined ? {} : { SWITCHYARD_TEST_MEMORY: inMemory }) },
})
const ended = new Promise<number>((resolve) => {
  child.once('error', () => resolve(1))
  child.once('exit', (code) => resolve(code ?? 1))
})

let interruptedBy: NodeJS.Signals | undefined
const interrupted = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // The terminal signals this process, and the process that started it may pass the signal on: the first one counts.
    process.on(signal, () => {
      interruptedBy ??= signal
      resolve()
    })
  }
})

await Promise.race([ended, interrupted])
if (interruptedBy !== undefined) await stopGroup()
// A test that has passed may have left something running, too.
signalGroup('SIGKILL')
const code = await ended
for (const folder of [onDisk, inMemory]) if (folder !== undefined) remove(folder)
process.exit(interruptedBy === undefined ? code : 128 + constants.signals[interruptedBy])

async function stopGroup(): Promise<void> {
  signalGroup('SIGINT')
  const deadline = performance.now() + GRACE_MS
  while (performance.now() < deadline && signalGroup(0)) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
}

/** Returns false if no process of the group is left. */
function signalGroup(signal: NodeJS.Signals | 0): boolean {
  try {
    // Windows has no process groups.
    return process.platform === 'win32' ? child.kill(signal) : process.kill(-(child.pid as number), signal)
  } catch {
    return false
  }
}

/** A folder that cannot be removed says nothing about the tests. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  } catch (error) {
    console.error(`The folder ${folder} could not be removed: ${String(error)}`)
  }
}

/** Under root, PostgreSQL runs as another user, which must be able to enter the folder. */
function createFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, 'switchyard-run-'))
  chmodSync(folder, 0o755)
  return folder
}
