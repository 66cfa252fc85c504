// How far an import is, beside the file: everything before `offset` has had its answer. Written whole or not at all, and
// only ever behind the truth: what it does not know is sent again, under the same messageIds.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { CommandProblem, EXIT } from '../line/problem.ts'

export interface ImportState {
  version: 1
  /** Of the file: see fingerprintOf. */
  fingerprint: string
  fingerprintBytes: number
  /** Made of the first line; part of the messageIds of lines that have none. */
  salt: string
  offset: number
  line: number
  accepted: number
  rejected: Record<string, number>
  /** How long the file of rejected lines is up to here. */
  rejectsBytes: number
}

export function readState(path: string): ImportState | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new CommandProblem(`${path} cannot be read: ${(error as Error).message}.`, EXIT.usage)
  }
  try {
    const state = JSON.parse(text) as ImportState
    const counts = [state.offset, state.line, state.accepted, state.rejectsBytes, state.fingerprintBytes]
    if (state.version === 1 && counts.every((count) => Number.isSafeInteger(count) && count >= 0) && typeof state.salt === 'string')
      return state
  } catch {
    // Told below.
  }
  throw new CommandProblem(`${path} is not the state of an import. Remove it to begin anew, or use --restart.`, EXIT.usage)
}

export function writeState(path: string, state: ImportState): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
}

export function removeState(path: string): void {
  rmSync(path, { force: true })
}
