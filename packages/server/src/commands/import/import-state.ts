// The progress of an import, saved next to the file: every line before `offset` has been answered. The state is written atomically and may
// lag behind: lines after `offset` are sent again, with the same messageIds.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { UsageProblem } from '../service/problem.ts'

export interface ImportState {
  version: 1
  /** The fingerprint of the file: see fingerprintOf. */
  fingerprint: string
  fingerprintBytes: number
  /** Derived from the first line; part of the messageIds of lines without one. */
  salt: string
  offset: number
  line: number
  accepted: number
  rejected: Record<string, number>
  /** The length of the rejects file at this point. */
  rejectsBytes: number
}

export function readState(path: string): ImportState | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new UsageProblem(`Cannot read ${path}: ${(error as Error).message}.`)
  }
  try {
    const state = JSON.parse(text) as ImportState
    const counts = [state.offset, state.line, state.accepted, state.rejectsBytes, state.fingerprintBytes]
    if (state.version === 1 && counts.every((count) => Number.isSafeInteger(count) && count >= 0) && typeof state.salt === 'string')
      return state
  } catch {
    // Reported below.
  }
  throw new UsageProblem(`${path} is not a valid import state. Delete it or use --restart to start over.`)
}

export function writeState(path: string, state: ImportState): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
}

export function removeState(path: string): void {
  rmSync(path, { force: true })
}
