// The child processes of another process, such as the integration hosts of a node.

import { execFileSync } from 'node:child_process'

export function childrenOf(pid: number): number[] {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean)
      .map(Number)
  } catch (error) {
    // It has none.
    if ((error as { status?: number }).status === 1) return []
    throw error
  }
}

/** Sends SIGKILL, unless the process has ended already. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
